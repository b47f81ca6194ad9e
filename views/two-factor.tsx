/** Setting up the second factor: a picture to scan, the same as text, and a code that proves it worked. */
import type { FC } from 'hono/jsx'
import { ButtonLink, Submit } from './ui/button.tsx'
import { Entrance, Logout, withReturn } from './ui/entrance.tsx'
import { CodeField, Form } from './ui/form.tsx'

interface TwoFactorProps {
  /** Made for this page and stored nowhere until a code proves it. */
  secret: string
  otpauthUri: string
  qrSvgDataUri: string
  /** Whether nothing else answers until this is done. */
  isRequired: boolean
  /** Whether it is a step on the way to creating the local administrator. */
  isForLocalAdmin: boolean
  returnTo: string
  problem: string | null
}

export const TwoFactorPage: FC<TwoFactorProps> = (props) => {
  const { secret, otpauthUri, qrSvgDataUri, isRequired, isForLocalAdmin, returnTo, problem } = props
  return (
    <Entrance title="Set up two-factor authentication">
      {isRequired && <p class="note">Your role asks for it: everything else waits until this is done.</p>}
      {isForLocalAdmin && (
        <p class="note">Creating a local administrator needs a confirmation. Set up two-factor authentication first.</p>
      )}
      <p>Scan this with an authenticator app, then enter the code it shows.</p>
      <div class="qr">
        <img src={qrSvgDataUri} alt="QR code with the secret below" width="200" height="200" />
      </div>
      <details class="fold">
        <summary class="reveal">Type it in instead</summary>
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
        action={withReturn('/api/dashboard-auth/totp/setup/confirm', returnTo)}
        problem={problem && `${problem} Without script the picture is a new one each time: scan it again.`}
      >
        <input type="hidden" name="secret" value={secret} />
        <CodeField autofocus label="Code" />
        <div class="actions">
          <Submit>Switch it on</Submit>
          {!isRequired && <ButtonLink href={isForLocalAdmin ? '/me' : returnTo}>Cancel</ButtonLink>}
        </div>
      </Form>
      {isRequired && <Logout label="Sign out" />}
    </Entrance>
  )
}
