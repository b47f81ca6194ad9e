/** The ways in: a password or a passkey, the second factor, the first password, and why somebody is not let in. */
import type { FC } from 'hono/jsx'
import { ButtonLink, Submit } from './ui/button.tsx'
import { Entrance, Logout, PasskeyButton, withReturn } from './ui/entrance.tsx'
import { CodeField, Done, Field, Form, NewPassword } from './ui/form.tsx'

interface LoginProps {
  usernameField: 'hidden' | 'shown'
  /** Whether anybody has a passkey to sign in with. */
  hasPasskeys: boolean
  guests: 'refused' | 'welcome' | 'with-password'
  returnTo: string
  problem: string | null
  /** Which of the two forms the problem is about. */
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
    <p class="muted">Guests see the overview with names masked, and can change nothing.</p>
    <Form name="guest" class="stack" action={withReturn('/api/dashboard-auth/guest/login', returnTo)} problem={problem}>
      {guests === 'with-password' && (
        <Field label="Guest password" name="password" type="password" autocomplete="off" required />
      )}
      <Submit isPlain isWide>
        Look around as a guest
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
  <Entrance title="Enter the code">
    <p class="muted">
      Your authenticator app shows six digits for <strong>{username}</strong>.
    </p>
    <Form name="totp" class="stack" action={withReturn('/api/dashboard-auth/totp/verify', returnTo)} problem={problem}>
      <CodeField autofocus label="Code" />
      <Submit isWide>Continue</Submit>
    </Form>
    <Logout label="Sign in as somebody else" />
  </Entrance>
)

interface SetupProps {
  /** Asked for from another machine. */
  asksToken: boolean
  returnTo: string
  problem: string | null
}

export const SetupPage: FC<SetupProps> = ({ asksToken, returnTo, problem }) => (
  <Entrance title="Choose a password">
    <p>
      This makes the first account, <strong>admin</strong>, which may do everything. You can rename it and add other
      people later.
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
          hint="Proves that this machine is yours; it works once."
        />
      )}
      <NewPassword username="admin" autofocus={!asksToken} />
      <Submit isWide>Set the password</Submit>
    </Form>
    {asksToken && <WhereTheTokenIs />}
  </Entrance>
)

/** Behind a reverse proxy that signs people in. */
export const LocalAdminPage: FC<Omit<SetupProps, 'asksToken'>> = ({ returnTo, problem }) => (
  <Entrance title="Create a local administrator">
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
  </Entrance>
)

const WhereTheTokenIs: FC = () => (
  <details class="fold" open>
    <summary class="reveal">Where do I find the token?</summary>
    <ul class="bullets">
      <li>
        In the log of the service, written once at its start. With Docker: <code>docker logs sluice</code>
      </li>
      <li>
        On the machine itself, a new one: <code>sluice bootstrap-token --rotate</code>
      </li>
      <li>
        Or it is what you have set as <code>CODEX_LB_DASHBOARD_BOOTSTRAP_TOKEN</code>.
      </li>
    </ul>
    <p class="muted">On the machine itself, at http://localhost, no token is needed.</p>
  </details>
)

interface PendingProps {
  reason: 'unknown' | 'disabled'
  /** As the proxy announces this browser. */
  subject: string
  /** Whether somebody has a password here. */
  hasLocalLogin: boolean
  returnTo: string
}

export const PendingPage: FC<PendingProps> = ({ reason, subject, hasLocalLogin, returnTo }) => (
  <Entrance title={reason === 'disabled' ? 'This account is disabled' : 'You are not known here yet'}>
    <p>
      The reverse proxy announces you as <code>{subject}</code>.
    </p>
    <p>
      {reason === 'disabled'
        ? 'An administrator has disabled this account. Ask one to enable it, then try again.'
        : 'An administrator has to add this name first. Ask one, then try again.'}
    </p>
    <div class="actions">
      <ButtonLink isMain href={returnTo}>
        Try again
      </ButtonLink>
      {hasLocalLogin && <ButtonLink href={withReturn('/login', returnTo)}>Sign in with a password</ButtonLink>}
    </div>
  </Entrance>
)
