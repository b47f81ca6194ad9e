/** One key: usage in the last 7 days, limits, permissions, and every action on it. */
import type { Child, FC } from 'hono/jsx'
import type { KeyState } from '../../src/model/keys/key-list.ts'
import type { AccountShare, keyUsage7d } from '../../src/model/keys/key-trends.ts'
import type { Titled } from '../titles.ts'
import { plural, shortCount, tokenCost } from '../ui/amounts.ts'
import type { Expected } from '../ui/badge.tsx'
import { ButtonLink } from '../ui/button.tsx'
import { TextCard } from '../ui/card.tsx'
import { Action, Outcome } from '../ui/form.tsx'
import { Since, Until } from '../ui/time.tsx'
import { claudeModelsText } from './claude-models.tsx'
import { Connect, type ConnectProps } from './connect.tsx'
import type { Choice } from './form.tsx'
import { LimitList } from './limits.tsx'
import { KeyBadge } from './list.tsx'
import { type OptionalKeys, OptionalKeysBar } from './optional.tsx'
import { KEY_PLACEHOLDER } from './snippets.ts'
import { KeyTestForm } from './test.tsx'
import { Trend, type TrendPoint } from './trend.tsx'
import { type ApiKey, FAST_MODE_NAMES, STATES } from './words.ts'

export interface KeyProps {
  /** ISO 8601: when the page was rendered. */
  generatedAt: string
  apiKey: ApiKey
  state: KeyState
  usage: ReturnType<typeof keyUsage7d>
  shares: readonly NamedShare[]
  trends: { cost: TrendPoint[]; tokens: TrendPoint[] }
  connection: Omit<ConnectProps, 'apiKey'>
  /** null: keys are required. */
  optional: OptionalKeys | null
  /** Names of the accounts this key is limited to. */
  accountNames: readonly Choice[]
  /** Names of all model sources. */
  sourceNames: readonly Choice[]
  /** The user sees only their own keys, and no accounts. */
  isOwn: boolean
  canWrite: boolean
  done: string | null
  problem: string | null
}

interface NamedShare extends AccountShare {
  /** null: the account was deleted. */
  name: string | null
}

const WHY_NOT = 'You have read-only access to keys.'

export const KeyPage: Titled<KeyProps> = (props) => {
  const { apiKey, generatedAt: now, canWrite, connection } = props
  return (
    <div class="page page-narrow" id="key-page" data-now={now}>
      <Head {...props} />
      <Outcome done={props.done} problem={props.problem} />
      <OptionalKeysBar optional={props.optional} src={`/keys/${apiKey.id}`} isOneKey />
      <Usage {...props} />
      <TextCard id="limits" title="Limits">
        {apiKey.limits.length === 0 ? (
          <p class="muted">No limits. This key can use everything the pool has.</p>
        ) : (
          <LimitList limits={apiKey.limits} now={now} />
        )}
      </TextCard>
      <TextCard id="policy" title="Permissions">
        <Policy {...props} />
      </TextCard>
      <KeyTestForm id={apiKey.id} whyNot={canWrite ? null : WHY_NOT} />
      <TextCard id="connect" title="Connect a client">
        <p class="muted">
          Replace <code>{KEY_PLACEHOLDER}</code> with the key you copied when it was created. Lost it? Replace the
          secret below.
        </p>
        <Connect {...connection} apiKey={KEY_PLACEHOLDER} />
      </TextCard>
      {canWrite && <Actions apiKey={apiKey} />}
    </div>
  )
}

KeyPage.title = ({ apiKey }) => apiKey.name

const Head: FC<KeyProps> = ({ apiKey, state, generatedAt: now }) => (
  <header class="page-head key-head">
    <p class="crumbs">
      <a href="/keys">Keys</a>
    </p>
    <h1>{apiKey.name}</h1>
    <KeyBadge state={state} />
    <p class="key-facts muted">
      <code>{apiKey.keyPrefix}…</code>
      <span>{apiKey.owner ? `Owner ${apiKey.owner.username}` : 'No owner'}</span>
      <span>
        created <Since at={apiKey.createdAt} now={now} />
      </span>
      <span>{apiKey.lastUsedAt ? <Used at={apiKey.lastUsedAt} now={now} /> : 'never used'}</span>
      {apiKey.expiresAt && <Expires at={apiKey.expiresAt} now={now} />}
    </p>
  </header>
)

const Used: FC<{ at: string; now: string }> = ({ at, now }) => (
  <>
    last used <Since at={at} now={now} />
  </>
)

const Expires: FC<{ at: string; now: string }> = ({ at, now }) => (
  <span>
    {at > now ? (
      <>
        expires <Until at={at} now={now} />
      </>
    ) : (
      <>
        expired <Since at={at} now={now} />
      </>
    )}
  </span>
)

const Usage: FC<KeyProps> = ({ usage, shares, trends, isOwn, apiKey: { usageSummary: life } }) => {
  const costText = (usd: number) => tokenCost(usd, usage.totalCostUsd === 0 ? usage.totalTokens : 0)
  return (
    <TextCard id="usage" title="Last 7 days">
      {usage.totalRequests === 0 ? (
        <p class="muted">
          No requests in the last 7 days.
          {life.requestCount > 0 && ` All time: ${requestsText(life)}.`}
        </p>
      ) : (
        <>
          <p>
            <b>{plural(usage.totalRequests, 'request')}</b> · <b>{shortCount(usage.totalTokens)}</b> tokens,{' '}
            {shortCount(usage.cachedInputTokens)} cached · <b>{costText(usage.totalCostUsd)}</b>{' '}
            <span class="muted">(all time: {requestsText(life)})</span>
          </p>
          <div class="key-trends">
            <Trend label="Tokens" points={trends.tokens} text={shortCount} />
            <Trend label="Cost" points={trends.cost} text={costText} />
          </div>
          {!isOwn && <Shares shares={shares} total={usage.totalCostUsd} text={costText} />}
        </>
      )}
    </TextCard>
  )
}

const requestsText = ({ requestCount: count, totalCostUsd, totalTokens }: ApiKey['usageSummary']): string =>
  `${shortCount(count)} ${count === 1 ? 'request' : 'requests'}, ${tokenCost(totalCostUsd, totalTokens)}`

const MAX_SHARES = 8

interface SharesProps {
  shares: readonly NamedShare[]
  total: number
  text: (usd: number) => string
}

const Shares: FC<SharesProps> = ({ shares, total, text }) => (
  <div>
    <h3 class="field-label">Usage by account</h3>
    <ul class="key-shares">
      {shares.slice(0, MAX_SHARES).map(({ name, costMicros }) => (
        <li>
          <span class="key-share">{name ?? <span class="muted">deleted account</span>}</span>
          <span class="muted">
            {text(costMicros / 1e6)}
            {total > 0 && ` · ${Math.round(costMicros / 1e4 / total)} %`}
          </span>
        </li>
      ))}
      {shares.length > MAX_SHARES && <li class="muted">and {shares.length - MAX_SHARES} more</li>}
    </ul>
  </div>
)

const Policy: FC<KeyProps> = ({ apiKey, accountNames, sourceNames, isOwn }) => {
  const sourceName = (id: string) => sourceNames.find((source) => source.id === id)?.name ?? id
  const accountName = (id: string) => accountNames.find((account) => account.id === id)?.name ?? id
  const { assignedAccountIds: ids, assignedTags: tags } = apiKey
  const names = [...(ids ?? []).map(accountName), ...(tags ?? []).map((tag) => `tagged ${tag}`)]
  return (
    <dl class="key-policy">
      <Fact name="Models">
        {apiKey.enforcedModel ? `always ${apiKey.enforcedModel}` : (apiKey.allowedModels?.join(', ') ?? 'all models')}
      </Fact>
      <Fact name="Reasoning effort">
        {apiKey.enforcedReasoningEffort
          ? `always ${apiKey.enforcedReasoningEffort}`
          : (apiKey.allowedReasoningEfforts?.join(', ') ?? 'set by the client')}
      </Fact>
      <Fact name="Service tier">
        {apiKey.enforcedServiceTier ? `always ${apiKey.enforcedServiceTier}` : 'set by the client'}
      </Fact>
      <Fact name="Traffic class">{apiKey.trafficClass}</Fact>
      <Fact name="Fast mode">
        {apiKey.prohibitFastMode === null ? 'as in the settings' : FAST_MODE_NAMES[apiKey.prohibitFastMode]}
      </Fact>
      {apiKey.claudeModels && <Fact name="Claude names">{claudeModelsText(apiKey.claudeModels, null)}</Fact>}
      {!isOwn && (
        <Fact name="Accounts">
          {apiKey.accountAssignmentScopeEnabled ? names.join(', ') || 'none' : 'all accounts'}
        </Fact>
      )}
      {!isOwn && apiKey.assignedSourceIds && (
        <Fact name="Model sources">{apiKey.assignedSourceIds.map((id) => sourceName(id)).join(', ') || 'none'}</Fact>
      )}
    </dl>
  )
}

const Fact: FC<{ name: string; children?: Child }> = ({ name, children }) => (
  <div>
    <dt class="muted">{name}</dt>
    <dd>{children}</dd>
  </div>
)

const Actions: FC<{ apiKey: ApiKey }> = ({ apiKey: { id, name, isActive, limits } }) => {
  const path = `/api/api-keys/${id}`
  return (
    <section class="card card-body key-actions" aria-label="Actions">
      <div class="key-action">
        <ButtonLink href={`/keys/${id}/edit`}>Edit</ButtonLink>
        <Hint text="Name, models, expiry, limits and routing." />
      </div>
      <Action
        name="switch"
        class="key-action"
        label={isActive ? 'Turn off' : 'Turn on'}
        action={path}
        method="patch"
        values={{ isActive: String(!isActive) }}
        expected={expectedKey(isActive ? 'off' : 'active')}
      >
        <Hint
          text={
            isActive
              ? 'Rejects requests with this key until you turn it on again.'
              : 'Accepts requests with this key again.'
          }
        />
      </Action>
      {limits.length > 0 && (
        <Action
          name="reset"
          class="key-action"
          label="Reset limits"
          action={path}
          method="patch"
          values={{ resetUsage: 'true' }}
        >
          <Hint text="Sets the usage of every limit back to zero." />
        </Action>
      )}
      <Action
        name="regenerate"
        class="key-action"
        label="Replace secret"
        action={`${path}/regenerate`}
        target="#main"
        confirm={`Create a new secret for ${name}? The current one stops working immediately.`}
      >
        <Hint text="Create a new secret. The current one stops working immediately." />
      </Action>
      <Action
        name="delete"
        class="key-action"
        label="Delete"
        action={path}
        method="delete"
        confirm={`Delete ${name}? Clients that use it are rejected immediately. You cannot undo this.`}
        isRisky
      >
        <Hint text="Past requests stay in the log." />
      </Action>
    </section>
  )
}

const expectedKey = (state: KeyState): Expected => {
  const [text, tone] = STATES[state]
  return { at: '.key-head .badge', text, tone }
}

const Hint: FC<{ text: string }> = ({ text }) => <span class="muted small">{text}</span>
