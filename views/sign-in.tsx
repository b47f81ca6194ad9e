/** Sign-in: password or passkey, the second factor, the first password, and why a user cannot sign in. */
import type { FC } from 'hono/jsx'
import { ButtonLink, Submit } from './ui/button.tsx'
import { CenteredCard, Logout, PasskeyButton, withReturn } from './ui/centered-card.tsx'
import { CodeField, Done, Field, Form, NewPassword, RecoveryCodeField } from './ui/form.tsx'

interface LoginProps {
  usernameField: 'hidden' | 'shown'
  /** Whether any user has a passkey. */
  hasPasskeys: boolean
  guests: 'refused' | 'welcome' | 'with-password'
  returnTo: string
  problem: string | null
  /** Whether the problem belongs to the guest form. */
  isGuestProblem: boolean
  done: string | null
}

export const LoginPage: FC<LoginProps> = (props) => {
  const { usernameField, hasPasskeys, guests, returnTo, problem, isGuestProblem, done } = props
  const asksName = usernameField === 'shown'
  return (
    <div class="narrow">
      <Done text={done} />
      <section class="card panel">
        <h1>Sign in</h1>
        <Form
          name="login"
          class="stack"
          action={withReturn('/api/dashboard-auth/password/login', returnTo)}
          problem={isGuestProblem ? null : problem}
        >
          {asksName && (
            <Field label="User name" name="username" autocomplete="username" maxlength={64} autofocus required />
          )}
          <Field
            label="Password"
            name="password"
            type="password"
            autocomplete="current-password"
            autofocus={!asksName}
            required
          />
          <Submit isWide>Sign in</Submit>
        </Form>
        <p class="muted small">
          Forgot it? On the server:
          <br />
          <code>sluice user reset-password admin</code>
        </p>
        {hasPasskeys && <PasskeyButton action="sign-in-passkey" then={returnTo} isAlternative />}
      </section>
      {guests !== 'refused' && <GuestCard {...{ guests, returnTo }} problem={isGuestProblem ? problem : null} />}
    </div>
  )
}

interface GuestProps extends Pick<LoginProps, 'guests' | 'returnTo'> {
  problem: string | null
}

const GuestCard: FC<GuestProps> = ({ guests, returnTo, problem }) => (
  <section class="card panel panel-quiet">
    <h2>Just looking?</h2>
    <p class="muted">Guests can see the overview with masked names. They cannot change anything.</p>
    <Form name="guest" class="stack" action={withReturn('/api/dashboard-auth/guest/login', returnTo)} problem={problem}>
      {guests === 'with-password' && (
        <Field label="Guest password" name="password" type="password" autocomplete="off" required />
      )}
      <Submit isPlain isWide>
        Continue as guest
      </Submit>
    </Form>
  </section>
)

interface TotpProps {
  username: string
  returnTo: string
  problem: string | null
}

export const TotpPage: FC<TotpProps> = ({ username, returnTo, problem }) => (
  <CenteredCard title="Enter the code">
    <p class="muted">
      Enter the six-digit code for <strong>{username}</strong> from your authenticator app.
    </p>
    <Form name="totp" class="stack" action={withReturn('/api/dashboard-auth/totp/verify', returnTo)} problem={problem}>
      <CodeField autofocus label="Code" />
      <Submit isWide>Continue</Submit>
    </Form>
    <details class="fold">
      <summary class="reveal">Lost your authenticator?</summary>
      <Form name="recovery" class="stack" action={withReturn('/api/dashboard-auth/totp/verify', returnTo)}>
        <RecoveryCodeField />
        <Submit isPlain isWide>
          Use recovery code
        </Submit>
      </Form>
      <p class="muted">
        No recovery codes? Ask an administrator to reset your two-factor, or run on the server:{' '}
        <code>sluice user reset-totp {username}</code>
      </p>
    </details>
    <Logout label="Sign in as a different user" />
  </CenteredCard>
)

interface SetupProps {
  /** The request comes from another machine. */
  asksToken: boolean
  returnTo: string
  problem: string | null
}

export const SetupPage: FC<SetupProps> = ({ asksToken, returnTo, problem }) => (
  <CenteredCard title="Choose a password">
    <p>
      This creates the first user, <strong>admin</strong>, with full access. You can rename it and add more users later.
    </p>
    <Form
      name="setup"
      class="stack"
      action={withReturn('/api/dashboard-auth/password/setup', returnTo)}
      problem={problem}
    >
      {asksToken && (
        <Field
          label="Bootstrap token"
          name="bootstrapToken"
          autocomplete="off"
          autofocus
          required
          hint="Shows that you have access to the server. It works once."
        />
      )}
      <NewPassword username="admin" autofocus={!asksToken} />
      <Submit isWide>Set password</Submit>
    </Form>
    {asksToken && <TokenHint />}
  </CenteredCard>
)

/** Behind a reverse proxy that signs users in. */
export const LocalAdminPage: FC<Omit<SetupProps, 'asksToken'>> = ({ returnTo, problem }) => (
  <CenteredCard title="Create a local administrator">
    <p>
      Sign in as <strong>admin</strong> with this password when the reverse proxy is down. This user has full access, so
      keep the password somewhere safe.
    </p>
    <p class="muted">You stay signed in as yourself.</p>
    <Form
      name="setup"
      class="stack"
      action={withReturn('/api/dashboard-auth/password/setup', returnTo)}
      problem={problem}
    >
      <NewPassword username="admin" autofocus />
      <div class="actions">
        <Submit>Create local administrator</Submit>
        <ButtonLink href={returnTo}>Cancel</ButtonLink>
      </div>
    </Form>
  </CenteredCard>
)

const TokenHint: FC = () => (
  <details class="fold" open>
    <summary class="reveal">Where do I find the token?</summary>
    <ul class="bullets">
      <li>
        In the log, written when Sluice starts. With Docker: <code>docker logs sluice</code>
      </li>
      <li>
        Create a new one on the server: <code>sluice bootstrap-token --rotate</code>
      </li>
      <li>
        If you set <code>SLUICE_DASHBOARD_BOOTSTRAP_TOKEN</code>, use that value.
      </li>
    </ul>
    <p class="muted">You don’t need a token if you open http://localhost on the server itself.</p>
  </details>
)

interface PendingProps {
  reason: 'unknown' | 'disabled'
  /** The name the proxy sent. */
  subject: string
  /** Whether any user has a password. */
  hasLocalLogin: boolean
  returnTo: string
}

export const PendingPage: FC<PendingProps> = ({ reason, subject, hasLocalLogin, returnTo }) => (
  <CenteredCard title={reason === 'disabled' ? 'Your user is disabled' : 'You don’t have access yet'}>
    <p>
      The reverse proxy signed you in as <code>{subject}</code>.
    </p>
    <p>
      {reason === 'disabled'
        ? 'Ask an administrator to enable you, then try again.'
        : 'Ask an administrator to add this name, then try again.'}
    </p>
    <div class="actions">
      <ButtonLink isMain href={returnTo}>
        Try again
      </ButtonLink>
      {hasLocalLogin && <ButtonLink href={withReturn('/login', returnTo)}>Sign in with a password</ButtonLink>}
    </div>
  </CenteredCard>
)
