/** Setting up two-factor: a QR code, the secret as text, and a code that proves it worked. */
import type { FC } from 'hono/jsx'
import { ButtonLink, Submit } from './ui/button.tsx'
import { CenteredCard, Logout, withReturn } from './ui/centered-card.tsx'
import { CodeField, Form } from './ui/form.tsx'

interface TwoFactorProps {
  /** Created for this page and stored only after a code confirms it. */
  secret: string
  otpauthUri: string
  qrSvgDataUri: string
  /** Whether the user cannot continue without it. */
  isRequired: boolean
  /** Whether it is a step towards creating the local administrator. */
  isForLocalAdmin: boolean
  returnTo: string
  problem: string | null
}

export const TwoFactorPage: FC<TwoFactorProps> = (props) => {
  const { secret, otpauthUri, qrSvgDataUri, isRequired, isForLocalAdmin, returnTo, problem } = props
  return (
    <CenteredCard title="Set up two-factor authentication">
      {isRequired && <p class="note">Your role requires two-factor authentication. Set it up to continue.</p>}
      {isForLocalAdmin && (
        <p class="note">Creating a local administrator needs a confirmation. Set up two-factor authentication first.</p>
      )}
      <p>Scan the QR code with an authenticator app, then enter the code from the app.</p>
      <div class="qr">
        <img src={qrSvgDataUri} alt="QR code of the secret below" width="200" height="200" />
      </div>
      <details class="fold">
        <summary class="reveal">Enter the secret instead</summary>
        <p>
          <code class="secret">{secret.match(/.{1,4}/g)?.join(' ') ?? secret}</code>
        </p>
        <p>
          <a href={otpauthUri}>Open in an app on this device</a>
        </p>
      </details>
      <Form
        name="two-factor"
        class="stack"
        target="#main"
        action={withReturn('/api/dashboard-auth/totp/setup/confirm', returnTo)}
        problem={problem && `${problem} The QR code is new. Scan it again.`}
      >
        <input type="hidden" name="secret" value={secret} />
        <CodeField autofocus label="Code" />
        <div class="actions">
          <Submit>Turn on two-factor</Submit>
          {!isRequired && <ButtonLink href={isForLocalAdmin ? '/me' : returnTo}>Cancel</ButtonLink>}
        </div>
      </Form>
      {isRequired && <Logout label="Sign out" />}
    </CenteredCard>
  )
}
