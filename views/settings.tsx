/** Settings, Access & keys: client access, your own sign-in, requirements for everyone, guests, and the first users. */
import type { FC } from 'hono/jsx'
import { type ListedUser, PeopleList } from './people/list.tsx'
import { NoAccount } from './people/page.tsx'
import { type Frame, SettingsFrame } from './settings/frame.tsx'
import { SettingsCard, SettingsPart, type ShownSettings, UnsavedBar } from './settings/section.tsx'
import { ButtonLink, Submit } from './ui/button.tsx'
import { Card } from './ui/card.tsx'
import { Action, Field, Form, NeedsScript, Outcome } from './ui/form.tsx'

export interface SettingsProps {
  frame: Frame
  /** null: the user may not see settings. */
  settings: ShownSettings | null
  /** null: the local user of an install without a password, or authentication is off. */
  me: { username: string; roleName: string; ways: readonly string[] } | null
  authMode: 'standard' | 'trusted_header' | 'disabled'
  /** null: the user may not change security settings. */
  security: SecurityProps | null
  /** null: the user does not manage users. */
  people: { first: readonly ListedUser[]; total: number } | null
  /** ISO 8601: when the page was made. */
  now: string
  done: string | null
  problem: string | null
}

export interface SecurityProps {
  usersWithoutTotpCount: number
  adminsWithoutTotpCount: number
  guestAccessEnabled: boolean
  guestPasswordConfigured: boolean
}

export const SettingsPage: FC<SettingsProps> = (props) => {
  const { frame, settings, security, people, now, done, problem } = props
  return (
    <SettingsFrame frame={frame} now={now} title="Access & keys">
      <Outcome done={done} problem={problem} isSaid={settings?.saved != null} />
      <NeedsScript />
      {settings && <SettingsCard section="clients" settings={settings} />}
      {settings && <SettingsCard section="members" settings={settings} />}
      <Card id="access" title="Access">
        <OwnAccess {...props} />
        {settings && (
          <SettingsPart
            section="security"
            settings={settings}
            notes={security ? getNotes(security, props.people?.total !== 0) : {}}
          />
        )}
        {settings && <SettingsPart section="guests" settings={settings} />}
        {security?.guestAccessEnabled && <GuestPassword isSet={security.guestPasswordConfigured} />}
      </Card>
      {people && <People people={people} now={now} hasAccount={props.me !== null} />}
      {settings && <UnsavedBar />}
    </SettingsFrame>
  )
}

const getNotes = (security: SecurityProps, hasUsers: boolean) => ({
  totpRequiredOnLogin: wouldEnroll(security.usersWithoutTotpCount, 'user', hasUsers),
  totpRequiredForAdminRole: wouldEnroll(security.adminsWithoutTotpCount, 'administrator', hasUsers),
})

const OwnAccess: FC<SettingsProps> = ({ me, authMode }) => {
  if (me) {
    const { username, roleName, ways } = me
    return (
      <div class="card-body split">
        <p>
          Signed in as <strong>{username}</strong> ({roleName}). <span class="muted">{ways.join(' · ')}</span>
        </p>
        <ButtonLink href="/me">My account</ButtonLink>
      </div>
    )
  }
  return authMode === 'disabled' ? (
    <p class="card-body muted">
      Sign-in is turned off (<code>SLUICE_DASHBOARD_AUTH_MODE=disabled</code>). Anyone who can open this page can do
      anything.
    </p>
  ) : (
    <div class="card-body split">
      <p>
        No password is set.{' '}
        <span class="muted">Anyone using this machine can do anything. Other machines are blocked.</span>
      </p>
      <ButtonLink isMain href="/setup?return=%2Fsettings">
        Set a password
      </ButtonLink>
    </div>
  )
}

const wouldEnroll = (count: number, noun: string, hasUsers: boolean): string => {
  if (count > 0) return `${count} ${noun}${count === 1 ? ' hasn’t' : 's haven’t'} set it up yet.`
  return hasUsers ? `Every ${noun} has set it up.` : 'There are no users yet.'
}

const GuestPassword: FC<{ isSet: boolean }> = ({ isSet }) => (
  <div class="card-part stack">
    <Form name="guest-password" class="row-form" action="/api/dashboard-auth/guest/password">
      <Field
        label={isSet ? 'New guest password' : 'Guest password'}
        name="password"
        type="password"
        autocomplete="off"
        minlength={8}
        maxlength={1024}
        hint={isSet ? 'A password is set. All guests share it.' : 'No password is set. Guests don’t need one.'}
        required
      />
      <Submit isPlain>{isSet ? 'Replace' : 'Set'}</Submit>
    </Form>
    <div class="actions">
      {isSet && (
        <Action
          name="guest-password-off"
          action="/api/dashboard-auth/guest/password/remove"
          label="Remove password"
          confirm="Remove the guest password? Guests then don’t need one."
        />
      )}
      <Action name="guests-out" action="/api/dashboard-auth/guest/logout-all" label="Sign out all guests" />
    </div>
  </div>
)

interface PeopleProps {
  people: NonNullable<SettingsProps['people']>
  now: string
  hasAccount: boolean
}

const People: FC<PeopleProps> = ({ people: { first, total }, now, hasAccount }) => (
  <Card
    id="access-people"
    title="Users"
    count={total}
    aside={
      <a class="card-link" href="/settings/access">
        {total > first.length ? `Show all ${total}` : 'Manage users'}
      </a>
    }
  >
    {hasAccount || total > 0 ? <PeopleList users={first} roles={[]} now={now} isShort /> : <NoAccount />}
  </Card>
)
