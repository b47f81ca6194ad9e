/** Health in one sentence, what needs attention, and the setup checklist until it is done. */
import type { Child, FC } from 'hono/jsx'
import type { Attention } from '../../src/model/overview/attention.ts'
import type { ServiceLevel } from '../../src/model/overview/service-level.ts'
import { LEVELS } from '../levels.ts'
import { WarningIcon } from '../ui/icons.tsx'
import { ClockTime, durationText, Until } from '../ui/time.tsx'
import { type Checklist, FirstChecklist } from './checklist.tsx'

export interface NowPart {
  health: Health
  attention: Attention[]
  /** null: done, hidden, or not for this user. */
  checklist: Checklist | null
}

export interface Health {
  level: ServiceLevel
  eligible: number
  total: number
  /** Accounts that need a user's action. */
  needAttention: number
  /** When an account has quota again: a reset, the end of a block, or a check. */
  next: { at: string; account: string; event: 'reset' | 'back' | 'check' } | null
  /** Median of the period; null: no request was answered. */
  firstEventMs: number | null
  /** What helps while the level is `blocked`; otherwise null. */
  advice: Advice | null
}

/** Ways out of `blocked`; accounts only if this user may change them. */
export interface Advice {
  /** At a limit, with a reset credit available. */
  resetCredit: NamedAccount | null
  /** It needs sign-in. */
  signIn: NamedAccount | null
  /** It was paused. */
  resume: NamedAccount | null
  mayAdd: boolean
  /** ISO 8601: when the first account is available again; null: none recovers on its own. */
  until: string | null
}

export interface NamedAccount {
  id: string
  name: string
}

/** `at`: when the page was made, ISO 8601. */
export const OverviewNow: FC<NowPart & { at: string }> = ({ at, health, attention, checklist }) => (
  <div id="overview-now" class="stack">
    <HealthLine health={health} now={at} />
    {attention.length > 0 && <AttentionList items={attention} />}
    {checklist && <FirstChecklist {...checklist} />}
  </div>
)

const NEXT: Record<NonNullable<Health['next']>['event'], string> = {
  reset: 'next reset',
  back: 'next account back',
  check: 'next check',
}

const HealthLine: FC<{ health: Health; now: string }> = ({ health, now }) => {
  const [word, tone] = LEVELS[health.level]
  const { next } = health
  return (
    <p class={`health tone-${tone}`} aria-live="polite">
      <span class="dot" aria-hidden="true" />
      <strong>{word}</strong>
      {health.total > 0 && (
        <span>
          {health.eligible} of {health.total} {health.total === 1 ? 'account' : 'accounts'} available
        </span>
      )}
      {health.needAttention > 0 && (
        <span class="health-attention">
          {health.needAttention} {health.needAttention === 1 ? 'needs' : 'need'} attention
        </span>
      )}
      {next && (
        <span>
          {NEXT[next.event]} <Until at={next.at} now={now} /> ({next.account})
        </span>
      )}
      {health.firstEventMs !== null && <span>first token {durationText(health.firstEventMs)}, median</span>}
      {health.advice && <HealthAdvice advice={health.advice} now={now} />}
    </p>
  )
}

/** "Use a reset credit on ada, add an account, or wait until 19:34." */
const HealthAdvice: FC<{ advice: Advice; now: string }> = ({ advice, now }) => {
  const { resetCredit, signIn, resume, mayAdd, until } = advice
  const ways: Child[] = []
  if (resetCredit) ways.push(<a href={`/accounts/${resetCredit.id}`}>use a reset credit on {resetCredit.name}</a>)
  if (signIn) ways.push(<a href={`/accounts/new/browser?account=${signIn.id}`}>sign in to {signIn.name} again</a>)
  if (resume) ways.push(<a href={`/accounts/${resume.id}`}>resume {resume.name}</a>)
  if (mayAdd) ways.push(<a href="/accounts/new">add an account</a>)
  if (until)
    ways.push(
      <>
        wait until <ClockTime at={until} now={now} /> (<Until at={until} now={now} />)
      </>,
    )
  if (ways.length === 0) return null
  return (
    <span class="health-advice">
      {ways.map((way, n) => (
        <>
          {n > 0 && (n < ways.length - 1 ? ', ' : ways.length > 2 ? ', or ' : ' or ')}
          {way}
        </>
      ))}
      .
    </span>
  )
}

const AttentionList: FC<{ items: readonly Attention[] }> = ({ items }) => (
  <section class="card" aria-label="Needs attention">
    <ul>
      {items.map(({ id, tone, text, action }) => (
        <li class={`attention-item tone-${tone}`} id={`attention-${id}`}>
          <WarningIcon />
          <span class="attention-text">{text}</span>
          {action && (
            <a class="attention-action" href={action.href}>
              {action.label}
            </a>
          )}
        </li>
      ))}
    </ul>
  </section>
)
