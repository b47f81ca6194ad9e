/** The page of a key: after the key is entered, its holder sees its limits, usage and latest requests. */
import type { FC } from 'hono/jsx'
import type { ApiKey } from '../../src/model/keys/api-key-view.ts'
import type { KeyState } from '../../src/model/keys/key-list.ts'
import type { LogEntry } from '../../src/model/log/request-log-entry.ts'
import { LogTime } from '../logs/log-time.tsx'
import { STATUS_STYLES } from '../logs/words.ts'
import { Pool, type PoolLeft } from '../overview/own.tsx'
import { costText, countText, dollarText, plural, shortCount, tokenCost } from '../ui/amounts.ts'
import { ButtonLink, Command, Submit } from '../ui/button.tsx'
import { Card, TextCard } from '../ui/card.tsx'
import { CenteredCard } from '../ui/centered-card.tsx'
import { Action, Field, Form, Outcome } from '../ui/form.tsx'
import { ShareBar } from '../ui/meter.tsx'
import { TableHead } from '../ui/table.tsx'
import { durationText, Until } from '../ui/time.tsx'
import { Connect } from './connect.tsx'
import { LimitList } from './limits.tsx'
import { KeyBadge } from './list.tsx'
import { KEY_PLACEHOLDER } from './snippets.ts'

export interface KeyHolderView extends Pick<ApiKey, 'expiresAt' | 'usageSummary' | 'limits'> {
  generatedAt: string
  name: string
  keyPrefix: string
  state: KeyState
  days: { date: string; requests: number; errors: number; tokens: number; costUsd: number }[]
  /** Newest first. */
  requests: Pick<
    LogEntry,
    | 'id'
    | 'requestedAt'
    | 'model'
    | 'status'
    | 'result'
    | 'errorCode'
    | 'httpStatus'
    | 'tokens'
    | 'costUsd'
    | 'latencyFirstTokenMs'
  >[]
  models: string[]
  pool: PoolLeft[] | null
  connection: { baseUrl: string; isGuess: boolean; model: string }
  mayRegenerate: boolean
  code: string | null
  problem: string | null
  done: string | null
}

export interface EnterKeyProps {
  /** Tells JSON clients this apart from the page itself. */
  isKeyNeeded: true
  problem: string | null
  done: string | null
}

export const EnterKeyPage: FC<EnterKeyProps> = ({ problem }) => (
  <CenteredCard title="Your key">
    <p class="muted">Enter your API key to see its limits, usage and latest requests.</p>
    <Form name="key-session" class="stack" action="/api/key/session" problem={problem}>
      <Field label="API key" name="secret" type="password" autocomplete="off" maxlength={512} autofocus required />
      <Submit isWide>Show</Submit>
    </Form>
  </CenteredCard>
)

export const KeyHolderPage: FC<KeyHolderView> = (view) => {
  const { generatedAt: now, name, keyPrefix, state, expiresAt, limits, pool, connection, models } = view
  return (
    <div class="page page-narrow" id="key-holder" data-now={now}>
      <header class="page-head key-head">
        <h1>{name}</h1>
        <KeyBadge state={state} />
        <form class="key-leave" method="post" action="/api/key/logout">
          <button class="link" type="submit">
            Close this key
          </button>
        </form>
        <p class="key-facts muted">
          <code>{keyPrefix}…</code>
          {expiresAt && (
            <span>
              expires <Until at={expiresAt} now={now} />
            </span>
          )}
          <span>{lifeText(view)}</span>
        </p>
      </header>
      <Outcome done={view.done} problem={view.problem} />
      <TextCard id="limits" title="Limits">
        {limits.length === 0 ? (
          <p class="muted">No limits. This key can use everything the pool has.</p>
        ) : (
          <LimitList limits={limits} now={now} />
        )}
      </TextCard>
      {pool && <Pool pool={pool} now={now} />}
      <CostPerDay {...view} />
      <LastRequests {...view} />
      <TextCard id="models" title="Models" help="key-models" count={models.length}>
        {models.length === 0 ? (
          <p class="muted">No model is available right now.</p>
        ) : (
          <ul class="key-models">
            {models.map((model) => (
              <li>
                <code>{model}</code>
              </li>
            ))}
          </ul>
        )}
      </TextCard>
      <TextCard id="connect" title="Connect a client">
        <p class="muted">
          Replace <code>{KEY_PLACEHOLDER}</code> with your key.
        </p>
        <Connect {...connection} apiKey={KEY_PLACEHOLDER} />
      </TextCard>
      {view.mayRegenerate && (
        <TextCard id="secret" title="Secret">
          <div class="split">
            <p class="muted">Create a new secret. The current one stops working immediately.</p>
            <Action
              name="renew"
              action="/api/key/secret"
              label="Create new secret"
              target="#main"
              confirm="Create a new secret? Every client that uses the current one stops working."
            />
          </div>
        </TextCard>
      )}
    </div>
  )
}

const lifeText = ({ usageSummary: { requestCount, totalTokens, totalCostUsd } }: KeyHolderView): string =>
  `all time: ${plural(requestCount, 'request')}, ${shortCount(totalTokens)} tokens, ${tokenCost(totalCostUsd, totalTokens)}`

const CostPerDay: FC<KeyHolderView> = ({ days }) => {
  const top = Math.max(...days.map(({ costUsd }) => costUsd))
  return (
    <Card id="days" title="Cost per day" help="key-days">
      <div class="scroll-x" tabindex={0}>
        <table class="figures">
          <TableHead texts={['Day', 'Share']} numbers={['Cost', 'Requests', 'Errors', 'Tokens']} />
          <tbody>
            {days.toReversed().map(({ date, requests, errors, tokens, costUsd }) => (
              <tr>
                <th scope="row">{date}</th>
                <td class="key-day">
                  {top > 0 && <ShareBar percent={(costUsd / top) * 100} of="the most expensive day" />}
                </td>
                <td>{tokenCost(costUsd, tokens)}</td>
                <td>{countText(requests)}</td>
                <td>{countText(errors)}</td>
                <td>{shortCount(tokens)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="card-part small muted">
        Estimated at list prices: {dollarText(days.reduce((sum, day) => sum + day.costUsd, 0))} in {days.length} days.
      </p>
    </Card>
  )
}

const LastRequests: FC<KeyHolderView> = ({ requests, generatedAt: now }) => (
  <Card id="requests" title="Last requests" help="key-requests" count={requests.length}>
    {requests.length === 0 ? (
      <p class="card-body muted">No requests yet.</p>
    ) : (
      <div class="scroll-x" tabindex={0}>
        <table class="list requests">
          <TableHead texts={['Time', 'Model', 'Result']} numbers={['Tokens', 'First token', 'Cost']} />
          <tbody>
            {requests.map((request) => {
              const { tone, Icon } = STATUS_STYLES[request.status]
              return (
                <tr>
                  <td class="cell-time">
                    <LogTime at={request.requestedAt} now={now} />
                  </td>
                  <td class="cell-model">{request.model ? <code>{request.model}</code> : '–'}</td>
                  <td class="cell-result">
                    <span class={`result tone-${tone}`} title={`HTTP ${request.httpStatus}`}>
                      <Icon />
                      <span>
                        <b>{request.result}</b>
                        {request.errorCode && <code class="muted">{request.errorCode}</code>}
                      </span>
                    </span>
                  </td>
                  <td class="cell-tokens number">{request.tokens === null ? '–' : shortCount(request.tokens)}</td>
                  <td class="cell-first number">
                    {request.latencyFirstTokenMs === null ? '–' : durationText(request.latencyFirstTokenMs)}
                  </td>
                  <td class="cell-cost number">{request.costUsd === null ? '–' : costText(request.costUsd)}</td>
                </tr>
              )
            })}
          </tbody>
        </table>
      </div>
    )}
  </Card>
)

interface SecretProps {
  id: string
  name: string
  /** The key itself. */
  key: string
}

export const NewSecretPage: FC<SecretProps> = ({ name, key }) => (
  <div class="page page-narrow">
    <header class="page-head">
      <h1>New secret for {name}</h1>
    </header>
    <section class="card card-body key-secret" aria-labelledby="shown-title" data-once>
      <h2 id="shown-title">Your key</h2>
      <p>
        <strong>Copy it now. You cannot see it again.</strong> Sluice stores only a fingerprint. The previous secret no
        longer works.
      </p>
      <Command text={key} class="command-key" />
      <div class="actions">
        <ButtonLink isMain href="/key">
          Done, I copied it
        </ButtonLink>
      </div>
    </section>
  </div>
)
