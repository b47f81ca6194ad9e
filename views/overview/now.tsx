/** Health in one sentence, what needs attention, and the setup checklist until it is done. */
import type { FC } from 'hono/jsx'
import type { NowPart } from '../../src/admin/overview.ts'
import type { Health } from '../../src/admin/overview-health.ts'
import type { Attention } from '../../src/model/attention.ts'
import type { Tone } from '../ui/badge.tsx'
import { WarningIcon } from '../ui/icons.tsx'
import { durationText, Until } from '../ui/time.tsx'
import { FirstChecklist } from './checklist.tsx'

export const OverviewNow: FC<NowPart> = ({ generatedAt, health, attention, checklist }) => (
  <div
    id="overview-now"
    class="stack"
    data-now={generatedAt}
    data-live="accounts keys settings health minute"
    data-live-src="/dashboard/now"
  >
    <HealthLine health={health} now={generatedAt} />
    {attention.length > 0 && <AttentionList items={attention} />}
    {checklist && <FirstChecklist {...checklist} />}
  </div>
)

const LEVELS: Record<Health['level'], [word: string, tone: Tone]> = {
  serving: ['Serving', 'good'],
  failing: ['Failing', 'bad'],
  empty: ['No accounts yet', 'idle'],
  blocked: ['Not serving', 'bad'],
  faulty: ['The request log cannot be written', 'bad'],
  draining: ['Shutting down', 'wait'],
}

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
    </p>
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
