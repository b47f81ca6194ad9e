/** One card in the middle of the page, for signing in, joining and confirming. */
import type { FC, PropsWithChildren } from 'hono/jsx'
import { KeyIcon } from './icons.tsx'

export const CenteredCard: FC<PropsWithChildren<{ title: string }>> = ({ title, children }) => (
  <div class="narrow">
    <section class="card panel">
      <h1>{title}</h1>
      {children}
    </section>
  </div>
)

/** The URL of a form that continues at `returnTo`. */
export const withReturn = (action: string, returnTo: string): string =>
  `${action}?return=${encodeURIComponent(returnTo)}`

interface PasskeyProps {
  /** The script's action. */
  action: 'sign-in-passkey' | 'confirm-passkey'
  then: string
  /** Whether there is another method above it. */
  isAlternative: boolean
}

/** Shown to browsers that support passkeys. */
export const PasskeyButton: FC<PasskeyProps> = ({ action, then, isAlternative }) => (
  <div class="needs-passkey stack">
    {isAlternative && <p class="or">or</p>}
    <button class="button button-plain wide" type="button" data-action={action} data-then={then}>
      <KeyIcon /> Use a passkey
    </button>
    <div class="form-problem" role="alert" />
  </div>
)

/** Leaves a half-completed sign-in, or a page without another way out. */
export const Logout: FC<{ label: string }> = ({ label }) => (
  <form method="post" action="/api/dashboard-auth/logout">
    <button class="link" type="submit">
      {label}
    </button>
  </form>
)
