/** One request: its result, timing, cost, attempts, and why its account was chosen. */
import type { Child, FC, PropsWithChildren } from 'hono/jsx'
import type { CostFormula, CostTerm } from '../../src/model/catalog/pricing.ts'
import type { LogDetail } from '../../src/model/log/request-log.ts'
import type { Titled } from '../titles.ts'
import { costText, countText } from '../ui/amounts.ts'
import { CopyButton } from '../ui/button.tsx'
import { CrossIcon } from '../ui/icons.tsx'
import { durationText, Moment } from '../ui/time.tsx'
import { Candidates } from './candidates.tsx'
import { RequestTabs } from './request-tabs.tsx'
import { Result } from './rows.tsx'
import { AttemptBar, TimingBar } from './timing.tsx'
import { KIND_NAMES, phaseText } from './words.ts'

export interface RequestView extends LogDetail {
  generatedAt: string
  showsAccounts: boolean
  /** A capture holds it, and the user may read it. */
  isCaptured: boolean
  links: RequestLinks
}

export interface RequestLinks {
  /** The conversation of the request; null: none, or hidden from the user. */
  conversation: string | null
  /** The account its conversation stays on, or the sessions of its account; null: hidden from the user. */
  sessions: string | null
}

/** A separate page, or the content of the drawer. */
export const RequestPage: Titled<RequestView> = (request) => (
  <div class="page page-narrow" data-now={request.generatedAt}>
    <h1 class="sr">Request</h1>
    <RequestDetail {...request} close="/logs" />
  </div>
)

RequestPage.title = () => 'Request'

export const RequestDetail: FC<RequestView & { close: string }> = ({ close, ...request }) => (
  <article class="card request" data-request={request.id}>
    <header class="card-head request-head">
      <h2 tabindex={-1}>
        <Result request={request} />
      </h2>
      <a class="request-close" href={close} data-drawer-close>
        <CrossIcon />
        <span class="sr">Close</span>
      </a>
    </header>
    {request.isCaptured && <RequestTabs id={request.id} current="details" />}
    <div class="card-part">
      <Facts {...request} />
    </div>
    <Part title="Timing">
      <TimingBar phases={request.phases} isOk={request.status === 'ok'} />
    </Part>
    <Part title="Tokens and cost">
      <Cost {...request} />
    </Part>
    <Part title={attemptsTitle(request)}>
      <Attempts {...request} />
    </Part>
  </article>
)

const Part: FC<PropsWithChildren<{ title: string }>> = ({ title, children }) => (
  <section class="card-part">
    <h3>{title}</h3>
    {children}
  </section>
)

const Facts: FC<RequestView> = (request) => (
  <>
    {request.errorMessage && <p class="request-message">{request.errorMessage}</p>}
    <dl class="facts">
      <Fact name="Started">
        <Moment at={request.requestedAt} />
      </Fact>
      <Fact name="Model">
        {request.model && <code>{request.model}</code>}
        {request.reasoningEffort && ` ${request.reasoningEffort}`}
        {request.serviceTier && ` · ${request.serviceTier}`}
      </Fact>
      {request.showsAccounts && (
        <Fact name="Account">
          {request.accountName ?? (request.accountId ? 'Deleted account' : 'None')}
          {request.planType && <span class="muted"> {request.planType}</span>}
          {request.paidCredits && <span class="muted"> · {paidText(request)}</span>}
          {request.movedAccount && <span class="muted"> · conversation moved to this account</span>}
        </Fact>
      )}
      <Fact name="Key">
        {request.apiKeyName ?? noKeyText(request)}
        {request.borrowed && (
          <span class="muted"> · borrowed: its owner had used up their share, and other users were idle</span>
        )}
      </Fact>
      <Fact name="Request">
        <code>{request.route}</code>
        <span class="muted"> {getWay(request)}</span>
      </Fact>
      <Fact name="Response">
        HTTP {request.httpStatus}
        {request.upstreamStatusCode !== null && request.upstreamStatusCode !== request.httpStatus && (
          <span class="muted"> · ChatGPT returned {request.upstreamStatusCode}</span>
        )}
      </Fact>
      {request.failurePhase && <Fact name="Phase">{phaseText(request.failurePhase)}</Fact>}
      <Fact name="Client">
        {request.clientName}
        {request.useragent && request.useragent !== request.clientName && (
          <span class="muted"> {request.useragent}</span>
        )}
      </Fact>
      <Fact name="Address">{request.clientIp}</Fact>
      <Fact name="Request ID">
        <Copied text={request.requestId} />
      </Fact>
      {request.responseId && (
        <Fact name="Response ID">
          <Copied text={request.responseId} />
        </Fact>
      )}
      {(request.links.conversation || request.links.sessions) && (
        <Fact name="Conversation">
          {request.links.conversation && <a href={request.links.conversation}>Show this conversation</a>}
          {request.links.conversation && request.links.sessions && ' · '}
          {request.links.sessions && (
            <a href={request.links.sessions}>
              {request.links.conversation ? 'Its sticky session' : 'Sticky sessions of the account'}
            </a>
          )}
        </Fact>
      )}
    </dl>
  </>
)

/** A rejected request costs nothing. */
const paidText = ({ status }: RequestView): string =>
  status === 'ok' || status === 'cancelled' ? 'served with paid credits' : 'on paid credits'

const noKeyText = ({ apiKeyId, unrecognizedKey }: RequestView): string | null =>
  apiKeyId ? 'Deleted key' : unrecognizedKey ? 'Unrecognized key (not checked, because keys are optional)' : null

const getWay = ({ requestKind, transport, upstreamTransport }: RequestView): string =>
  [
    requestKind === 'normal' ? null : KIND_NAMES[requestKind],
    transport === upstreamTransport || upstreamTransport === null ? transport : `${transport} to ${upstreamTransport}`,
  ]
    .filter(Boolean)
    .join(', ')

/** Omitted when empty. */
const Fact: FC<{ name: string; children?: Child }> = ({ name, children }) => {
  const isEmpty = children === null || children === undefined || (Array.isArray(children) && children.every(isNothing))
  return isEmpty ? null : (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

const isNothing = (child: unknown): boolean => child === null || child === undefined || child === false || child === ''

const Copied: FC<{ text: string }> = ({ text }) => (
  <span class="copied">
    <code>{text}</code>
    <CopyButton />
  </span>
)

const TERM_NAMES: Record<CostTerm['kind'], string> = {
  input: 'Input',
  cached_input: 'Cached input',
  output: 'Output',
}

const Cost: FC<RequestView> = (request) => {
  const { costFormula: formula, costUsd } = request
  if (request.tokens === null) return <p class="muted">ChatGPT reported no usage.</p>
  if (!formula) {
    const { inputTokens, cachedInputTokens, outputTokens } = request
    return (
      <p>
        {tokensText(inputTokens)} tokens in ({tokensText(cachedInputTokens)} cached), {tokensText(outputTokens)} out.{' '}
        <span class="muted">The price of this model is not known.</span>
      </p>
    )
  }
  return (
    <>
      <table class="formula">
        <tbody>
          {formula.terms.map((term) => (
            <tr>
              <th scope="row">{TERM_NAMES[term.kind]}</th>
              <td class="number">{countText(term.tokens)}</td>
              <td class="muted">× ${term.usdPerMillion} per million</td>
              <td class="number">= {costText(term.usd)}</td>
            </tr>
          ))}
          <tr class="formula-total">
            <th scope="row">Cost</th>
            <td />
            <td />
            <td class="number">{costText(costUsd ?? formula.totalUsd)}</td>
          </tr>
        </tbody>
      </table>
      <p class="small muted">
        {request.reasoningTokens ? `${countText(request.reasoningTokens)} of the output is reasoning. ` : ''}
        {pricesText(formula, costUsd)}
      </p>
    </>
  )
}

const tokensText = (count: number | null): string => (count === null ? '–' : countText(count))

/** Stored costs are never recomputed, so current prices may give a different amount. */
const pricesText = ({ pricesVersion, totalUsd }: CostFormula, costUsd: number | null): string => {
  if (costUsd === null) return `List prices of ${pricesVersion}. No cost was logged for this request.`
  return Math.abs(totalUsd - costUsd) < 0.000_001
    ? `List prices of ${pricesVersion}.`
    : `Logged with earlier prices. At the list prices of ${pricesVersion} it would be ${costText(totalUsd)}.`
}

const attemptsTitle = ({ attempts, showsAccounts }: RequestView): string =>
  attempts.length > 1 || !showsAccounts ? `Attempts (${attempts.length})` : whyText(attempts[0])

const whyText = (attempt?: { accountId: string | null }): string =>
  attempt?.accountId === null ? 'Why no account?' : 'Why this account?'

const Attempts: FC<RequestView> = ({ attempts, phases, requestedAt, showsAccounts }) => {
  if (attempts.length === 0) return <p class="muted">The request ended before an account was chosen.</p>
  const isOnly = attempts.length === 1
  return (
    <ol class="attempts">
      {attempts.map((attempt) => (
        <li class="attempt">
          <p class="attempt-head">
            <strong>{showsAccounts ? accountText(attempt) : `Attempt ${attempt.n + 1}`}</strong>
            <span class="muted">
              {OUTCOMES[attempt.outcome]}
              {attempt.upstreamStatus !== null && attempt.outcome === 'failed' && ` · HTTP ${attempt.upstreamStatus}`}
              {` · ${durationText(attempt.durationMs)}`}
            </span>
            {attempt.code && <code class="muted">{attempt.code}</code>}
          </p>
          {attempt.message && <p class="small">{attempt.message}</p>}
          {!isOnly && (
            <AttemptBar
              startMs={Date.parse(attempt.startedAt) - Date.parse(requestedAt)}
              durationMs={attempt.durationMs}
              totalMs={phases.totalMs}
              outcome={attempt.outcome}
            />
          )}
          {showsAccounts && <Why attempt={attempt} isOnly={isOnly} />}
        </li>
      ))}
    </ol>
  )
}

const accountText = ({ accountName, accountId }: RequestView['attempts'][number]): string =>
  accountName ?? (accountId ? 'Deleted account' : 'No account available')

const OUTCOMES = { ok: 'completed', failed: 'failed', cancelled: 'cancelled by the client' } as const

const Why: FC<{ attempt: RequestView['attempts'][number]; isOnly: boolean }> = ({ attempt, isOnly }) => {
  if (!attempt.isExplained)
    return (
      <p class="small muted">
        This request is too old to explain. Sluice keeps the reasons for errors and the last 10,000 requests.
      </p>
    )
  const candidates = <Candidates candidates={attempt.considered} chosenId={attempt.accountId} />
  if (isOnly) return <div class="why">{candidates}</div>
  return (
    <details class="why" open={attempt.outcome === 'failed'}>
      <summary class="reveal">{whyText(attempt)}</summary>
      {candidates}
    </details>
  )
}
