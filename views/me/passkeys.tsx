/** My passkeys: list, add, rename and remove. */
import type { FC } from 'hono/jsx'
import { Submit } from '../ui/button.tsx'
import { Card } from '../ui/card.tsx'
import { Action, Field, Form } from '../ui/form.tsx'
import { KeyIcon } from '../ui/icons.tsx'
import { Since } from '../ui/time.tsx'

interface Passkey {
  id: string
  name: string
  createdAt: string
  lastUsedAt: string | null
}

export interface PasskeysProps {
  items: readonly Passkey[]
  /** null: passkeys work at this address. */
  unavailableReason: string | null
  /** A local address where they work. */
  availableAt: string | null
}

export const PasskeysCard: FC<PasskeysProps & { now: string }> = ({ items, unavailableReason, availableAt, now }) => (
  <Card id="passkeys" title="Passkeys" count={items.length}>
    {items.length > 0 && (
      <ul class="rows">
        {items.map((passkey) => (
          <PasskeyRow passkey={passkey} now={now} />
        ))}
      </ul>
    )}
    <div class="card-body">
      {unavailableReason === null ? (
        <AddPasskey />
      ) : (
        <p class="muted">
          {unavailableReason}{' '}
          {availableAt && <a href={`${availableAt}/me`}>Open {availableAt.replace('http://', '')}</a>}
        </p>
      )}
    </div>
  </Card>
)

const PasskeyRow: FC<{ passkey: Passkey; now: string }> = ({ passkey, now }) => {
  const path = `/api/dashboard-auth/passkeys/${passkey.id}`
  return (
    <li class="row">
      <div class="row-main">
        <strong>{passkey.name}</strong>
        <p class="muted">
          Added <Since at={passkey.createdAt} now={now} />
          {passkey.lastUsedAt && (
            <>
              , last used <Since at={passkey.lastUsedAt} now={now} />
            </>
          )}
        </p>
      </div>
      <details class="row-more needs-script">
        <summary class="reveal">
          Manage<span class="sr"> {passkey.name}</span>
        </summary>
        <Form name={`passkey-${passkey.id}`} class="row-form" method="patch" action={path}>
          <Field label="Name" name="name" value={passkey.name} maxlength={64} required />
          <Submit>Rename</Submit>
        </Form>
        <div class="actions actions-below">
          <Action
            name={`passkey-off-${passkey.id}`}
            action={path}
            method="delete"
            label="Remove"
            confirm={`Remove the passkey ${passkey.name}?`}
            isRisky
          />
        </div>
      </details>
    </li>
  )
}

/** Browsers offer passkeys to scripts only. */
const AddPasskey: FC = () => (
  <>
    <p class="muted">Sign in and confirm changes with this device or a security key instead of your password.</p>
    <form class="row-form needs-passkey" data-passkey data-then="/me?done=passkey_added#passkeys">
      <Field label="Passkey name" name="name" maxlength={64} placeholder="My laptop" required />
      <Submit>
        <KeyIcon /> Add passkey
      </Submit>
      <div class="form-problem" role="alert" />
    </form>
    <p class="muted without-passkey">This browser does not support passkeys here, or JavaScript is off.</p>
  </>
)
