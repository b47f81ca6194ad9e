/** My account: profile, ways to sign in, and signed-in browsers. */
import type { FC } from 'hono/jsx'
import type { ShareUse } from '../src/model/shares/shares.ts'
import { ClockCard, type ClockProps } from './me/clock.tsx'
import { PasskeysCard, type PasskeysProps } from './me/passkeys.tsx'
import { type Session, SessionsCard } from './me/sessions.tsx'
import { LocalAdminOffer } from './people/local-admin.tsx'
import { ShareMeters } from './people/shares.tsx'
import { plural } from './ui/amounts.ts'
import { ButtonLink, Submit } from './ui/button.tsx'
import { TextCard } from './ui/card.tsx'
import { Action, CodeField, Field, Form, NeedsScript, NewPassword, Outcome } from './ui/form.tsx'

interface MeProps {
  username: string
  displayName: string | null
  email: string | null
  /** Detects edits of a form that was opened before another change. */
  version: string
  role: { name: string }
  /** False if the authentication mode has no passwords, or only the proxy signed this browser in. */
  managesPassword: boolean
  hasPassword: boolean
  /** Whether the local administrator behind the proxy is missing and this user may create it. */
  mayCreateLocalAdmin: boolean
  /** Whether this is the only user, who may remove the password. */
  isOnlyAccount: boolean
  hasTotp: boolean
  recoveryCodesLeft: number
  /** Empty if the user has no share of the pool. */
  shareUses: readonly ShareUse[]
  clock: ClockProps
  passkeys: PasskeysProps
  sessions: readonly Session[]
  /** ISO 8601: when the page was rendered. */
  now: string
  done: string | null
  problem: string | null
}

export const MePage: FC<MeProps> = (props) => {
  const { username, now, done, problem, passkeys, sessions } = props
  return (
    <div class="page page-narrow" data-now={now}>
      <header class="page-head">
        <h1>{props.displayName ?? username}</h1>
        <span class="muted">
          {props.displayName ? `${username} · ` : ''}
          {props.role.name}
        </span>
      </header>
      <Outcome done={done} problem={problem} />
      <NeedsScript />
      <Profile {...props} />
      {props.shareUses.length > 0 && (
        <TextCard id="share" title="Your share of the pool">
          <ShareMeters uses={props.shareUses} />
        </TextCard>
      )}
      <ClockCard {...props.clock} now={now} />
      <Password {...props} />
      <TwoFactor {...props} />
      <PasskeysCard {...passkeys} now={now} />
      <SessionsCard sessions={sessions} now={now} />
    </div>
  )
}

const Profile: FC<MeProps> = ({ displayName, email, version }) => (
  <TextCard id="profile" title="Profile">
    <Form name="profile" class="row-form" action="/api/dashboard-auth/me">
      <input type="hidden" name="expectedVersion" value={version} />
      <Field label="Display name" name="displayName" value={displayName} maxlength={128} autocomplete="name" />
      <Field label="E-mail" name="email" type="email" value={email} maxlength={320} autocomplete="email" />
      <Submit>Save</Submit>
    </Form>
  </TextCard>
)

const Password: FC<MeProps> = ({ username, hasPassword, managesPassword, isOnlyAccount, mayCreateLocalAdmin }) => (
  <TextCard id="password" title="Password">
    {hasPassword && managesPassword ? (
      <>
        <Form name="password" class="row-form" action="/api/dashboard-auth/password/change">
          <Field
            label="Current password"
            name="currentPassword"
            type="password"
            autocomplete="current-password"
            required
          />
          <NewPassword name="newPassword" label="New password" username={username} />
          <Submit>Change password</Submit>
        </Form>
        {isOnlyAccount && <RemovePassword />}
      </>
    ) : (
      <p class="muted">
        {hasPassword
          ? 'The reverse proxy signed you in. To change your password, sign out and sign in with the password.'
          : 'You have no password. The reverse proxy signs you in.'}
      </p>
    )}
    {mayCreateLocalAdmin && <LocalAdminOffer returnTo="/me" />}
  </TextCard>
)

const RemovePassword: FC = () => (
  <details class="fold">
    <summary class="reveal">Remove password</summary>
    <p class="muted">Anyone who uses this machine then has full access without signing in.</p>
    <Form
      name="remove-password"
      class="row-form"
      action="/api/dashboard-auth/password/remove"
      confirm="Remove the password? Anyone who uses this machine then has full access."
    >
      <Field label="Your password" name="password" type="password" autocomplete="current-password" required />
      <Submit isRisky>Remove password</Submit>
    </Form>
  </details>
)

const TwoFactor: FC<MeProps> = ({ hasTotp, recoveryCodesLeft }) => (
  <TextCard id="two-factor" title="Two-factor authentication" count={hasTotp ? 'on' : 'off'}>
    {hasTotp ? (
      <>
        <RecoveryCodes left={recoveryCodesLeft} />
        <details class="fold">
          <summary class="reveal">Turn off</summary>
          <Form name="totp-off" class="row-form" action="/api/dashboard-auth/totp/disable">
            <CodeField label="Code or recovery code" takesRecoveryCodes />
            <Submit isRisky>Turn off two-factor</Submit>
          </Form>
        </details>
      </>
    ) : (
      <p class="split">
        <span class="muted">Ask for a code from an authenticator app after the password.</span>
        <ButtonLink href="/me/two-factor?return=%2Fme">Set up</ButtonLink>
      </p>
    )}
  </TextCard>
)

const FEW_CODES = 3

const RecoveryCodes: FC<{ left: number }> = ({ left }) => (
  <div class="split" id="recovery-codes">
    <p class={left <= FEW_CODES ? undefined : 'muted'}>
      {left === 0 ? 'You have no recovery codes.' : `${plural(left, 'recovery code')} left.`}{' '}
      {left <= FEW_CODES && 'Create new ones so that you can sign in without your authenticator.'}
    </p>
    <Action
      name="recovery-codes"
      action="/api/dashboard-auth/totp/recovery-codes"
      target="#main"
      label={left === 0 ? 'Create recovery codes' : 'Create new codes'}
      confirm={left === 0 ? undefined : 'Create new recovery codes? The current ones stop working.'}
    />
  </div>
)
