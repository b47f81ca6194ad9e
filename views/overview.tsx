/** The overview: health in one sentence, every account with its state and whether it would be chosen, the last requests. */
import type { FC } from 'hono/jsx'
import type { Health, Overview } from '../src/admin/overview.ts'
import { AccountList } from './account-list.tsx'
import { FirstSteps } from './first-steps.tsx'
import { RequestList } from './request-list.tsx'
import type { Tone } from './ui/badge.tsx'
import { durationText, Until } from './ui/time.tsx'

/** The region that renews itself: the same URL answers htmx with this alone. */
export const OverviewPage: FC<Overview> = (overview) => {
  const { health, accounts, requests, generatedAt: now } = overview
  const isNew = accounts.length === 0 || requests.length === 0
  return (
    <div
      id="overview"
      class="page"
      hx-get="/dashboard"
      hx-trigger="every 10s"
      hx-swap="outerMorph"
      data-now={now}
      data-poll
    >
      <h1 class="sr">Overview</h1>
      <HealthLine health={health} now={now} />
      {accounts.length > 0 && <AccountList accounts={accounts} now={now} />}
      {isNew ? <FirstSteps {...overview} /> : <RequestList requests={requests} now={now} />}
    </div>
  )
}

const LEVELS: Record<Health['level'], [word: string, tone: Tone]> = {
  serving: ['Serving', 'good'],
  empty: ['Ready for the first account', 'idle'],
  blocked: ['Not serving', 'bad'],
  faulty: ['The request log cannot be written', 'bad'],
  draining: ['Shutting down', 'wait'],
}

const NEXT: Record<NonNullable<Health['next']>['event'], string> = {
  reset: 'next reset',
  back: 'next one back',
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
          {health.eligible} of {health.total} {health.total === 1 ? 'account' : 'accounts'} eligible
        </span>
      )}
      {health.needAttention > 0 && (
        <span class="health-attention">
          {health.needAttention} {health.needAttention === 1 ? 'needs' : 'need'} your attention
        </span>
      )}
      {next && (
        <span>
          {NEXT[next.event]} <Until at={next.at} now={now} /> ({next.account})
        </span>
      )}
      {health.firstEventMs !== null && <span>first token {durationText(health.firstEventMs)} (median)</span>}
    </p>
  )
}
