/** Settings, Network: the outbound proxies of accounts, their pools, and who uses which. */
import type { FC } from 'hono/jsx'
import type { EGRESS_SCHEMES, EgressTest } from '../../db/schema/egress.ts'
import type { EgressReason } from '../../src/model/egress/route.ts'
import { Submit } from '../ui/button.tsx'
import { Card } from '../ui/card.tsx'
import { Action, Check, Field, Form } from '../ui/form.tsx'
import { plainOptions, Select } from '../ui/select.tsx'
import { Since } from '../ui/time.tsx'

export interface EgressPage {
  routingEnabled: boolean
  defaultPoolId: string | null
  endpoints: EndpointView[]
  pools: PoolView[]
  bindings: { accountId: string; poolId: string; isActive: boolean }[]
  bound: { accountId: string; poolId: string; isActive: boolean; accountName: string }[]
}

interface EndpointView {
  id: string
  name: string
  scheme: (typeof EGRESS_SCHEMES)[number]
  host: string
  port: number
  username: string | null
  isActive: boolean
  hasPassword: boolean
  lastTest: (Omit<EgressTest, 'at'> & { /** ISO 8601 */ at: string }) | null
  /** ISO 8601; null: it works. */
  failingSince: string | null
}

interface PoolView {
  id: string
  name: string
  isActive: boolean
  endpointIds: string[]
  members: { endpointId: string; sortOrder: number; isActive: boolean }[]
  /** Why accounts cannot use it now; null: they can. */
  reason: EgressReason | null
  /** `reason` in words. */
  reasonText: string | null
}

const PATH = '/api/settings/upstream-proxy'

type Endpoint = EgressPage['endpoints'][number]
type Pool = EgressPage['pools'][number]

interface Props extends EgressPage {
  /** The user may change proxies and their passwords. */
  isGuard: boolean
  now: string
}

export const EgressCards: FC<Props> = (props) => (
  <>
    <Endpoints {...props} />
    <Pools {...props} />
  </>
)

const Endpoints: FC<Props> = ({ endpoints, isGuard, now }) => (
  <Card id="egress-endpoints" title="Proxies" count={endpoints.length || null}>
    {endpoints.length === 0 && (
      <div class="card-body">
        <p class="muted">
          No proxies yet. Accounts connect directly, or through the proxy of the environment.{' '}
          {!isGuard && 'An administrator can add proxies.'}
        </p>
      </div>
    )}
    {endpoints.length > 0 && (
      <ul class="rows">
        {endpoints.map((endpoint) => (
          <EndpointRow {...{ endpoint, isGuard, now }} />
        ))}
      </ul>
    )}
    {isGuard && (
      <details class="fold card-part">
        <summary class="reveal">Add proxy</summary>
        <Form name="egress-endpoint" class="stack" action={`${PATH}/endpoints`}>
          <EndpointFields endpoint={null} />
          <div class="actions">
            <Submit>Add proxy</Submit>
          </div>
        </Form>
      </details>
    )}
  </Card>
)

const EndpointRow: FC<{ endpoint: Endpoint; isGuard: boolean; now: string }> = ({ endpoint, isGuard, now }) => {
  const { id, name, isActive } = endpoint
  return (
    <li class="row">
      <span class="row-main">
        <strong>{name}</strong> <code>{getAddress(endpoint)}</code>
        {!isActive && <span class="tag">off</span>}
        <br />
        <span class="muted small">
          <LastTest {...{ endpoint, now }} />
        </span>
        {isGuard && (
          <details class="fold">
            <summary class="reveal small">Edit {name}</summary>
            <Form name={`egress-endpoint-${id}`} class="stack" method="patch" action={`${PATH}/endpoints/${id}`}>
              <EndpointFields endpoint={endpoint} />
              <div class="actions">
                <Submit>Save</Submit>
              </div>
            </Form>
            <Action
              name={`egress-delete-${id}`}
              method="delete"
              action={`${PATH}/endpoints/${id}`}
              label="Delete"
              confirm={`Delete ${name}? A pool without another proxy stops connecting its accounts.`}
              isRisky
            />
          </details>
        )}
      </span>
      <Action name={`egress-test-${id}`} action={`${PATH}/endpoints/${id}/test`} label="Test" />
    </li>
  )
}

const LastTest: FC<{ endpoint: Endpoint; now: string }> = ({ endpoint: { lastTest, failingSince }, now }) => (
  <>
    {failingSince !== null && (
      <span class="bad">
        Not connecting, <Since at={failingSince} now={now} />.{' '}
      </span>
    )}
    {lastTest === null ? (
      'Not tested.'
    ) : (
      <>
        {lastTest.ok ? `Test passed in ${lastTest.elapsedMs} ms` : `Test failed: ${lastTest.error}`}
        {lastTest.exitAddress !== null && (
          <>
            , exit address <code>{lastTest.exitAddress}</code>
          </>
        )}{' '}
        · <Since at={lastTest.at} now={now} />
      </>
    )}
  </>
)

const getAddress = ({ scheme, host, port, username }: Endpoint): string =>
  `${scheme}://${username === null ? '' : `${username}@`}${host.includes(':') ? `[${host}]` : host}:${port}`

const SCHEMES = ['http', 'https', 'socks5', 'socks5h']

const EndpointFields: FC<{ endpoint: Endpoint | null }> = ({ endpoint }) => (
  <>
    <Field label="Name" name="name" value={endpoint?.name} maxlength={128} autocomplete="off" required />
    <Select
      label="Protocol"
      name="scheme"
      options={plainOptions(SCHEMES)}
      value={endpoint?.scheme ?? 'http'}
      hint="With socks5, Sluice looks up host names; with the others, the proxy does."
    />
    <Field label="Host" name="host" value={endpoint?.host} maxlength={255} autocomplete="off" required />
    <Field label="Port" name="port" type="number" min={1} max={65_535} value={endpoint?.port.toString()} required />
    <Field label="User name" name="username" value={endpoint?.username} maxlength={255} autocomplete="off" />
    <Field
      label="Password"
      name="password"
      type="password"
      maxlength={1024}
      autocomplete="off"
      hint={endpoint?.hasPassword ? 'Leave empty to keep the stored password.' : undefined}
    />
    <Check label="Active" name="isActive" isOn={endpoint?.isActive ?? true} />
  </>
)

const Pools: FC<Props> = (props) => (
  <Card id="egress-pools" title="Proxy pools" count={props.pools.length || null}>
    <div class="card-body">
      <p class="muted">
        Sluice uses the first proxy of a pool, and the next one if it doesn’t connect. Assign a pool on the page of an
        account, under Routing.
      </p>
    </div>
    {props.pools.length > 0 && (
      <ul class="rows">
        {props.pools.map((pool) => (
          <PoolRow {...props} pool={pool} />
        ))}
      </ul>
    )}
    <Form name="egress-pool" class="row-form card-part" action={`${PATH}/pools`}>
      <Field label="New pool" name="name" placeholder="Europe" maxlength={128} autocomplete="off" required />
      <Submit>Create pool</Submit>
    </Form>
  </Card>
)

const PoolRow: FC<Props & { pool: Pool }> = ({ pool, endpoints, bound, defaultPoolId }) => {
  const { id, name, isActive, members, reasonText } = pool
  const users = bound.filter(({ poolId }) => poolId === id)
  const others = endpoints.filter((endpoint) => !pool.endpointIds.includes(endpoint.id))
  const getName = (endpointId: string) => endpoints.find((endpoint) => endpoint.id === endpointId)?.name ?? endpointId
  return (
    <li class="row">
      <span class="row-main">
        <strong>{name}</strong>
        {!isActive && <span class="tag">off</span>}
        {id === defaultPoolId && <span class="tag">default</span>}
        {reasonText !== null && (
          <>
            <br />
            <span class="bad small">Its accounts are skipped: {reasonText}.</span>
          </>
        )}
        <br />
        <span class="muted small">
          {users.length === 0
            ? 'No account uses this pool.'
            : `Used by ${users.map(({ accountName }) => accountName).join(', ')}`}
        </span>
        {members.length > 0 && (
          <ol class="pool-members">
            {members.map(({ endpointId }) => (
              <li>
                <span>{getName(endpointId)}</span>
                <Action
                  name={`egress-member-${id}-${endpointId}`}
                  method="delete"
                  action={`${PATH}/pools/${id}/members/${endpointId}`}
                  label="Remove"
                />
              </li>
            ))}
          </ol>
        )}
        {others.length > 0 && (
          <Form name={`egress-members-${id}`} class="row-form" action={`${PATH}/pools/${id}/members`}>
            <Select
              label={`Add a proxy to ${name}`}
              name="endpointId"
              options={others.map((endpoint) => [endpoint.id, endpoint.name])}
              value={others[0]?.id ?? ''}
            />
            <Submit isPlain>Add</Submit>
          </Form>
        )}
      </span>
      <Action
        name={`egress-pool-state-${id}`}
        method="patch"
        action={`${PATH}/pools/${id}`}
        label={isActive ? 'Turn off' : 'Turn on'}
        values={{ isActive: String(!isActive) }}
        confirm={isActive ? `Turn off ${name}? Its accounts are skipped until you turn it on again.` : undefined}
      />
      <Action
        name={`egress-pool-delete-${id}`}
        method="delete"
        action={`${PATH}/pools/${id}`}
        label="Delete"
        confirm={`Delete the pool ${name}?`}
        isRisky
      />
    </li>
  )
}
