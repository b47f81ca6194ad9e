/** How routing treats this account: its policy and name, the restricted pool, and what else decides. */
import type { FC } from 'hono/jsx'
import type { WireAccount } from '../../src/model/accounts/account-view.ts'
import { Submit } from '../ui/button.tsx'
import { Card, TextCard } from '../ui/card.tsx'
import { Fact } from '../ui/fact.tsx'
import { Action, Check, Field, Form } from '../ui/form.tsx'
import { getOptions, Select, withChosenOption } from '../ui/select.tsx'

export interface RouteView {
  /** Pools to choose from. */
  pools: { id: string; name: string }[]
  /** The account's own pool; null: the default. */
  chosen: string | null
  isByEnvironment: boolean
  poolName: string | null
  endpointName: string | null
  exitAddress: string | null
  /** Why it cannot connect; null: it can. */
  problem: string | null
}

export interface RoutingProps {
  strategy: string
  /** Requests one account may run at once; 0: unlimited. */
  streamLimit: number
  /** Slugs, sorted; null: not fetched yet. */
  models: readonly string[] | null
  /** Users the account can belong to. Empty: the viewer cannot choose one. */
  owners: readonly { id: string; name: string }[]
  /** Its place, from 1, among all accounts; `isSet`: someone chose it. */
  order: { place: number; of: number; isSet: boolean }
  /** The conversations that stay on it; null: hidden from the user. */
  sessions: { href: string; mayRelease: boolean } | null
  /** How it reaches ChatGPT; null: hidden from the user. */
  egress: RouteView | null
  /** Why nothing can be changed; null: it can. */
  refusal: string | null
}

export const POLICIES: readonly [WireAccount['routingPolicy'], label: string, hint: string][] = [
  ['burn_first', 'Use first', 'Used before other accounts, until it is out of quota.'],
  ['normal', 'Normal', 'The routing strategy decides.'],
  ['preserve', 'Last resort', 'Used only when no other account is available.'],
]

export const RoutingTab: FC<RoutingProps & { account: WireAccount }> = (props) => (
  <>
    <TextCard id="routing" title="Routing">
      <RoutingForm {...props} />
    </TextCard>
    {props.egress && <EgressCard accountId={props.account.accountId} {...props.egress} />}
    <Circumstances {...props} />
  </>
)

const EgressCard: FC<RouteView & { accountId: string }> = (props) => (
  <TextCard id="egress" title="Outbound proxy">
    {props.problem === null ? (
      <p>
        {props.isByEnvironment
          ? 'Connects directly, or through the proxy of the environment.'
          : `Connects through ${props.endpointName} of the pool ${props.poolName}.`}{' '}
        {props.exitAddress !== null && (
          <>
            ChatGPT sees <code>{props.exitAddress}</code>.
          </>
        )}
      </p>
    ) : (
      <p class="bad">Not used: {props.problem}.</p>
    )}
    <Form
      name="egress"
      class="stack"
      method="put"
      action={`/api/settings/upstream-proxy/accounts/${encodeURIComponent(props.accountId)}/binding`}
    >
      <Select
        label="Proxy pool"
        name="poolId"
        options={[['', 'Default'], ...withChosenOption(getOptions(props.pools), props.chosen)]}
        value={props.chosen ?? ''}
        hint="All traffic of this account to ChatGPT goes through this pool."
      />
      <div class="actions">
        <Submit>Save</Submit> <a href="/settings/network#egress-pools">Manage pools</a>
      </div>
    </Form>
  </TextCard>
)

const RoutingForm: FC<RoutingProps & { account: WireAccount }> = ({ account, owners, refusal }) => (
  <Form name="routing" class="stack" method="patch" action={`/api/accounts/${encodeURIComponent(account.accountId)}`}>
    <fieldset class="stack" disabled={refusal !== null}>
      <input type="hidden" name="expectedVersion" value={account.version} />
      <Field
        label="Alias"
        name="alias"
        value={account.alias}
        maxlength={255}
        class="field-short"
        hint="Shown in place of the e-mail address. Leave empty to show the address."
      />
      {refusal === null && (
        <Field
          label="Tags"
          name="tags"
          value={account.tags.join(', ')}
          maxlength={840}
          placeholder="team-a, europe"
          hint="Separate tags with commas. Filter by them, and assign them to keys."
        />
      )}
      <fieldset class="choices">
        <legend class="field-label">Routing policy</legend>
        {POLICIES.map(([value, label, hint]) => (
          <label class="check">
            <input type="radio" name="routingPolicy" value={value} checked={account.routingPolicy === value} />
            <span>
              {label}
              <span class="hint">{hint}</span>
            </span>
          </label>
        ))}
      </fieldset>
      <Check
        label="Restricted pool"
        name="securityWorkAuthorized"
        isOn={account.securityWorkAuthorized}
        hint="For accounts that are authorized for security work. Requests that require such an account use only this pool."
      />
      <Caps account={account} owners={owners} />
      {refusal === null ? (
        <div class="actions">
          <Submit>Save</Submit>
        </div>
      ) : (
        <p class="muted small">{refusal}</p>
      )}
    </fieldset>
  </Form>
)

const Caps: FC<Pick<RoutingProps, 'owners'> & { account: WireAccount }> = ({ account, owners }) => (
  <fieldset class="stack">
    <legend class="field-label">Reserve part of the quota</legend>
    <p class="hint">
      From these percentages on, Sluice skips the account until the window resets, even when no other account is
      available. Leave empty to use all of it.
    </p>
    <Percent label="Cap on the 5-hour window (%)" name="maxUsedPercentPrimary" value={account.maxUsedPercentPrimary} />
    <Percent
      label="Cap on the weekly or monthly window (%)"
      name="maxUsedPercentSecondary"
      value={account.maxUsedPercentSecondary}
    />
    {owners.length > 0 && (
      <Select
        label="Owner"
        name="ownerUserId"
        options={[['', 'No owner'], ...withChosenOption(getOptions(owners), account.ownerUserId)]}
        value={account.ownerUserId ?? ''}
        hint="The user whose account this is."
      />
    )}
    <Check
      label="Reserve for the owner"
      name="reserveForOwner"
      isOn={account.reserveForOwner}
      hint="Keys of the owner are exempt from the caps."
    />
  </fieldset>
)

const Percent: FC<{ label: string; name: string; value: number | null }> = ({ label, name, value }) => (
  <Field label={label} name={name} type="number" min={1} max={100} value={value?.toString()} class="field-short" />
)

const Circumstances: FC<RoutingProps & { account: WireAccount }> = ({
  account,
  strategy,
  streamLimit,
  models,
  order,
  sessions,
  refusal,
}) => (
  <Card id="circumstances" title="What else affects routing">
    <dl class="answers">
      <Fact name="Strategy">
        {strategy.replaceAll('_', ' ')} <span class="muted">· applies to all accounts</span>
      </Fact>
      <Fact name="Order">
        <Order accountId={account.accountId} order={order} mayMove={refusal === null} />
      </Fact>
      <Fact name="Parallel requests">
        {account.inFlight} running, {streamLimit === 0 ? 'unlimited' : `at most ${streamLimit}`}{' '}
        <span class="muted">· per account</span>
      </Fact>
      {sessions && (
        <Fact name="Conversations">
          <Conversations accountId={account.accountId} {...sessions} />
        </Fact>
      )}
      <Fact name="Health">{TIERS[account.tier]}</Fact>
      <Fact name="Models">
        {models === null ? (
          <span class="muted">not fetched yet</span>
        ) : models.length === 0 ? (
          <span class="muted">none</span>
        ) : (
          <ul class="model-list">
            {models.map((model) => (
              <li>
                <code>{model}</code>
              </li>
            ))}
          </ul>
        )}
      </Fact>
    </dl>
  </Card>
)

const Conversations: FC<{ accountId: string } & NonNullable<RoutingProps['sessions']>> = (props) => (
  <>
    <a href={props.href}>Sticky sessions</a> <span class="muted">· stay on this account</span>
    {props.mayRelease && (
      <div class="actions">
        <Action
          name="release"
          action={`/api/accounts/${encodeURIComponent(props.accountId)}/release`}
          label="Release conversations"
          confirm="Let the conversations of this account continue on other accounts? Their cached input is sent in full once, and reasoning that only this account can read is left out. Compacted conversations stay."
        />
      </div>
    )}
  </>
)

const Order: FC<{ accountId: string; order: RoutingProps['order']; mayMove: boolean }> = (props) => {
  const { accountId, order, mayMove } = props
  const action = `/api/accounts/${encodeURIComponent(accountId)}`
  return (
    <>
      {order.isSet ? `${order.place} of ${order.of}` : 'automatic'}{' '}
      <span class="muted">· used by Fill first and Drain in order</span>
      {mayMove && order.of > 1 && (
        <div class="actions">
          {order.place > 1 && <Move name="up" label="Move up" action={action} to={order.place - 1} />}
          {order.place < order.of && <Move name="down" label="Move down" action={action} to={order.place + 1} />}
        </div>
      )}
    </>
  )
}

const Move: FC<{ name: string; label: string; action: string; to: number }> = ({ name, label, action, to }) => (
  <Action name={`move-${name}`} label={label} action={action} method="patch" values={{ position: String(to) }} />
)

const TIERS: Record<WireAccount['tier'], string> = {
  healthy: 'Healthy',
  draining: 'Nearly out of quota or failing recently, so it is used last',
  probing: 'Recovering: one request at a time until three have succeeded',
}
