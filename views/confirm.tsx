/** Confirming a sensitive change: a dialog over the form, or a page without script. */
import type { FC } from 'hono/jsx'
import { ButtonLink, Submit } from './ui/button.tsx'
import { CenteredCard, PasskeyButton, withReturn } from './ui/centered-card.tsx'
import { CodeField, Field, Form, Problem, RecoveryCodeField } from './ui/form.tsx'

interface ConfirmProps {
  /** What the user can confirm with: `password`, `totp`, `passkey`. */
  methods: readonly string[]
  username: string
  /** Where a browser without scripts continues. */
  returnTo: string
  /** Why the last attempt failed. */
  problem?: string | null
}

/** Shown in the page's dialog, or as a separate page. */
export const Confirm: FC<ConfirmProps> = ({ methods, username, returnTo, problem }) => {
  const hasSecret = methods.includes('password') || methods.includes('totp')
  return (
    <CenteredCard title="Confirm it’s you">
      <p class="muted">You won’t be asked again in this browser for 5 minutes.</p>
      {hasSecret && (
        <Form
          name="confirm"
          class="stack"
          action={withReturn('/api/dashboard-auth/step-up', returnTo)}
          problem={problem}
        >
          <input type="text" value={username} autocomplete="username" hidden readonly />
          {methods.includes('password') && (
            <Field
              label="Your password"
              name="password"
              type="password"
              autocomplete="current-password"
              autofocus
              required
            />
          )}
          {methods.includes('totp') && <CodeField autofocus={!methods.includes('password')} />}
          <div class="actions">
            <Submit>Confirm</Submit>
            <Cancel returnTo={returnTo} />
          </div>
        </Form>
      )}
      {methods.includes('totp') && <WithRecoveryCode methods={methods} returnTo={returnTo} />}
      {!hasSecret && problem && <Problem text={problem} />}
      {methods.includes('passkey') && (
        <PasskeyButton action="confirm-passkey" then={returnTo} isAlternative={hasSecret} />
      )}
      {!hasSecret && <Cancel returnTo={returnTo} />}
    </CenteredCard>
  )
}

const WithRecoveryCode: FC<Pick<ConfirmProps, 'methods' | 'returnTo'>> = ({ methods, returnTo }) => (
  <details class="fold">
    <summary class="reveal">Lost your authenticator?</summary>
    <Form name="confirm-recovery" class="stack" action={withReturn('/api/dashboard-auth/step-up', returnTo)}>
      {methods.includes('password') && (
        <Field label="Your password" name="password" type="password" autocomplete="current-password" required />
      )}
      <RecoveryCodeField />
      <div class="actions">
        <Submit>Confirm with recovery code</Submit>
      </div>
    </Form>
  </details>
)

const Cancel: FC<{ returnTo: string }> = ({ returnTo }) => (
  <ButtonLink href={returnTo} data-action="close">
    Cancel
  </ButtonLink>
)
