/** Settings, Routing: how an account is chosen, the transport of streams, and limits and timeouts of requests. */
import type { FC } from 'hono/jsx'
import { NeedsScript, Outcome } from '../ui/form.tsx'
import { SettingsFrame } from './frame.tsx'
import type { Page } from './network.tsx'
import { SettingsCard, type ShownSettings, UnsavedBar } from './section.tsx'

export interface Routing extends Page {
  settings: ShownSettings | null
  /** The page of the sticky sessions; null: hidden from the user. */
  sessions: string | null
}

export const RoutingPage: FC<Routing> = ({ frame, now, done, problem, settings, sessions }) => (
  <SettingsFrame frame={frame} now={now} title="Routing">
    <Outcome done={done} problem={problem} isSaid={settings?.saved != null} />
    <NeedsScript />
    {sessions && (
      <p>
        <a href={sessions}>Sticky sessions</a> <span class="muted">· the account each conversation stays on</span>
        <br />
        <a href="/reports/strategies">Compare strategies</a>{' '}
        <span class="muted">· what each would have done with your requests</span>
      </p>
    )}
    {settings && (
      <>
        <SettingsCard section="routing" settings={settings} />
        <SettingsCard section="affinity" settings={settings} />
        <SettingsCard section="claude" settings={settings} />
        <SettingsCard section="windows" settings={settings} />
        <SettingsCard section="planner" settings={settings} />
        <SettingsCard section="resets" settings={settings} />
        <SettingsCard section="limits" settings={settings} />
        <SettingsCard section="timeouts" settings={settings} />
        <UnsavedBar />
      </>
    )}
  </SettingsFrame>
)
