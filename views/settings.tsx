/** Settings: my own way in, what everybody is asked for, guests, and the first of the people. */
import type { FC } from 'hono/jsx'
import { Action, type ListedUser, PeopleList } from './people/list.tsx'
import { NoAccount } from './people/page.tsx'
import { Check, Done, Field, Form, NeedsScript } from './ui/form.tsx'

export interface SettingsProps {
  /** null: the local user of an install without a password, or nobody is asked to sign in. */
  me: { username: string; roleName: string; ways: readonly string[] } | null
  authMode: 'standard' | 'trusted_header' | 'disabled'
  /** null: the visitor may not change these. */
  security: SecurityProps | null
  /** null: the visitor does not manage people. */
  people: { first: readonly ListedUser[]; total: number } | null
  /** ISO 8601: when the page was made. */
  now: string
  done: string | null
  problem: string | null
}

export interface SecurityProps {
  totpRequiredOnLogin: boolean
  totpRequiredForAdminRole: boolean
  usersWithoutTotpCount: number
  adminsWithoutTotpCount: number
  dashboardSessionTtlSeconds: number
  guestAccessEnabled: boolean
  guestPasswordConfigured: boolean
}

export const SettingsPage: FC<SettingsProps> = (props) => {
  const { security, people, now, done, problem } = props
  return (
    <div class="page page-narrow" data-now={now}>
      <header class="page-head">
        <h1>Settings</h1>
      </header>
      <Done text={done} />
      {problem && <p class="note note-bad">{problem}</p>}
      <NeedsScript />
      <section class="card" id="access" aria-labelledby="access-title">
        <header class="card-head">
          <h2 id="access-title">Access</h2>
        </header>
        <OwnAccess {...props} />
        {security && <Requirements {...security} />}
        {security && <Guests {...security} />}
      </section>
      {people && <People people={people} now={now} hasAccount={props.me !== null} />}
    </div>
  )
}

const OwnAccess: FC<SettingsProps> = ({ me, authMode }) => {
  if (me) {
    const { username, roleName, ways } = me
    return (
      <div class="card-body split">
        <p>
          You are <strong>{username}</strong> ({roleName}). <span class="muted">{ways.join(' · ')}</span>
        </p>
        <a class="button button-plain" href="/me">
          My account
        </a>
      </div>
    )
  }
  return authMode === 'disabled' ? (
    <p class="card-body muted">
      Signing in is switched off (<code>CODEX_LB_DASHBOARD_AUTH_MODE=disabled</code>): whoever reaches this page may do
      everything.
    </p>
  ) : (
    <div class="card-body split">
      <p>
        No password is set. <span class="muted">Whoever uses this machine may do everything; others are kept out.</span>
      </p>
      <a class="button" href="/setup?return=%2Fsettings">
        Set a password
      </a>
    </div>
  )
}

/** Seconds → words. */
const LENGTHS: readonly [seconds: number, label: string][] = [
  [3600, '1 hour'],
  [43_200, '12 hours'],
  [86_400, '1 day'],
  [604_800, '7 days'],
  [2_592_000, '30 days'],
  [7_776_000, '90 days'],
  [31_536_000, '1 year'],
]

const Requirements: FC<SecurityProps> = (security) => {
  const { dashboardSessionTtlSeconds: seconds } = security
  const isListed = LENGTHS.some(([value]) => value === seconds)
  return (
    <Form name="security" class="card-part stack" method="patch" action="/api/settings">
      <h3>Signing in</h3>
      <Check
        name="totpRequiredOnLogin"
        label="Require two-factor from everybody with a password"
        hint={wouldEnroll(security.usersWithoutTotpCount, 'account')}
        isOn={security.totpRequiredOnLogin}
      />
      <Check
        name="totpRequiredForAdminRole"
        label="Require two-factor from administrators"
        hint={wouldEnroll(security.adminsWithoutTotpCount, 'administrator')}
        isOn={security.totpRequiredForAdminRole}
      />
      <label class="field field-short">
        <span class="field-label">A sign-in lasts</span>
        <select name="dashboardSessionTtlSeconds">
          {!isListed && (
            <option value={seconds} selected>
              {seconds} seconds
            </option>
          )}
          {LENGTHS.map(([value, label]) => (
            <option value={value} selected={value === seconds}>
              {label}
            </option>
          ))}
        </select>
      </label>
      <div class="actions">
        <button class="button" type="submit">
          Save
        </button>
      </div>
    </Form>
  )
}

const wouldEnroll = (count: number, noun: string): string =>
  count === 0
    ? `Every ${noun} has it set up.`
    : `${count} ${noun}${count === 1 ? '' : 's'} would have to set it up at the next visit.`

const Guests: FC<SecurityProps> = ({ guestAccessEnabled, guestPasswordConfigured }) => (
  <div class="card-part stack">
    <Form name="guests" class="stack" method="patch" action="/api/settings">
      <h3>Guests</h3>
      <Check
        name="guestAccessEnabled"
        label="Let guests look without an account"
        hint="They see the overview with names masked and can change nothing."
        isOn={guestAccessEnabled}
      />
      <div class="actions">
        <button class="button" type="submit">
          Save
        </button>
      </div>
    </Form>
    {guestAccessEnabled && <GuestPassword isSet={guestPasswordConfigured} />}
  </div>
)

const GuestPassword: FC<{ isSet: boolean }> = ({ isSet }) => (
  <>
    <Form name="guest-password" class="row-form" action="/api/dashboard-auth/guest/password">
      <Field
        label={isSet ? 'New guest password' : 'Guest password'}
        name="password"
        type="password"
        autocomplete="off"
        minlength={8}
        maxlength={1024}
        hint={isSet ? 'One is set; all guests share it.' : 'None is set: guests come in without one.'}
        required
      />
      <button class="button button-plain" type="submit">
        {isSet ? 'Replace' : 'Set'}
      </button>
    </Form>
    <div class="actions">
      {isSet && (
        <Action
          name="guest-password-off"
          action="/api/dashboard-auth/guest/password/remove"
          label="Remove the password"
          confirm="Remove the guest password? Guests then come in without one."
        />
      )}
      <Action name="guests-out" action="/api/dashboard-auth/guest/logout-all" label="Log all guests out" />
    </div>
  </>
)

interface PeopleProps {
  people: NonNullable<SettingsProps['people']>
  now: string
  hasAccount: boolean
}

const People: FC<PeopleProps> = ({ people: { first, total }, now, hasAccount }) => (
  <section class="card" id="access-people" aria-labelledby="access-people-title">
    <header class="card-head">
      <h2 id="access-people-title">People</h2>
      <span class="count">{total}</span>
      <a class="card-link" href="/settings/access">
        {total > first.length ? `Open all ${total}` : 'Open full page'}
      </a>
    </header>
    {hasAccount || total > 0 ? <PeopleList users={first} roles={[]} now={now} isShort /> : <NoAccount />}
  </section>
)
