/** `/logs/captures`: what captures are, the form that starts one, those that run, and those that have ended. */
import type { FC } from 'hono/jsx'
import type { EndReason } from '../../src/model/captures/capture.ts'
import { bytesText } from '../settings/words.ts'
import { plural } from '../ui/amounts.ts'
import { Submit } from '../ui/button.tsx'
import { Card } from '../ui/card.tsx'
import { Action, Form, NeedsScript, Outcome } from '../ui/form.tsx'
import { type Choice, getOptions, Select } from '../ui/select.tsx'
import { Since, Until } from '../ui/time.tsx'

/** Ids and names that the user may not see are null. Times are ISO 8601. */
export interface CaptureView {
  id: string
  isRunning: boolean
  keyId: string | null
  keyName: string | null
  accountId: string | null
  accountName: string | null
  startedBy: string
  startedAt: string
  endsAt: string
  endedAt: string | null
  endReason: EndReason | null
  /** When it will be deleted; null while it runs. */
  deletedAt: string | null
  maxMiB: number
  /** On disk. */
  bytes: number
  requests: number
  /** What could not be written in time. */
  droppedBytes: number
}

export interface CapturesView {
  generatedAt: string
  captures: CaptureView[]
  done: string | null
  problem: string | null
  /** May start, stop and delete captures. */
  isGuard: boolean
  /** May read what they hold. */
  isReader: boolean
  /** For the form. */
  choices: { keys: Choice[]; accounts: Choice[] }
  retentionDays: number
}

export const CapturesPage: FC<CapturesView> = (view) => {
  const running = view.captures.filter(({ isRunning }) => isRunning)
  const ended = view.captures.filter(({ isRunning }) => !isRunning)
  return (
    <div class="page page-narrow" data-now={view.generatedAt}>
      <nav class="crumbs" aria-label="Breadcrumb">
        <a href="/logs">Logs</a>
      </nav>
      <header class="page-head">
        <h1>Captures</h1>
      </header>
      <Outcome done={view.done} problem={view.problem} />
      <NeedsScript />
      <Card id="captures" title="Running" count={running.length || null}>
        <List {...view} captures={running} none="No capture is running. The log keeps figures only, no contents." />
        {view.isGuard && <StartForm {...view} />}
      </Card>
      <Card id="past-captures" title="Ended" count={ended.length || null}>
        <List {...view} captures={ended} none={endedText(view.retentionDays)} />
      </Card>
    </div>
  )
}

const endedText = (days: number): string => `Ended captures are kept for ${days === 1 ? '1 day' : `${days} days`}.`

const StartForm: FC<CapturesView> = ({ choices }) => (
  <Form
    name="capture"
    class="card-part capture-form"
    action="/api/captures"
    confirm="Everything that clients send and ChatGPT answers is stored in full until the capture is deleted. Start?"
  >
    <div class="capture-fields">
      <Select label="Key" name="keyId" options={[['', 'None'], ...getOptions(choices.keys)]} value="" />
      <Select label="or account" name="accountId" options={[['', 'None'], ...getOptions(choices.accounts)]} value="" />
      <Select label="For" name="minutes" options={DURATIONS} value="60" />
      <Select label="At most" name="maxMiB" options={SIZES} value="64" />
    </div>
    <div class="actions">
      <Submit>Start capture</Submit>
    </div>
  </Form>
)

const DURATIONS = [
  ['15', '15 minutes'],
  ['60', '1 hour'],
  ['240', '4 hours'],
  ['1440', '1 day'],
  ['4320', '3 days'],
  ['10080', '7 days'],
] as const

const SIZES = [
  ['16', '16 MiB'],
  ['64', '64 MiB'],
  ['256', '256 MiB'],
  ['1024', '1 GiB'],
  ['4096', '4 GiB'],
] as const

const List: FC<CapturesView & { none: string }> = ({ captures, none, ...view }) =>
  captures.length === 0 ? (
    <div class="card-body">
      <p class="muted">{none}</p>
    </div>
  ) : (
    <ul class="rows">
      {captures.map((capture) => (
        <Row {...view} capture={capture} />
      ))}
    </ul>
  )

const Row: FC<Omit<CapturesView, 'captures'> & { capture: CaptureView }> = ({ capture, ...view }) => (
  <li class="row" id={`capture-${capture.id}`}>
    <span class="row-main">
      {view.isReader ? <a href={`/logs/captures/${capture.id}`}>{scopeText(capture)}</a> : scopeText(capture)}
      <span class="row-line muted small">
        {`${plural(capture.requests, 'request')}, ${bytesText(capture.bytes)} of ${capture.maxMiB} MiB. `}
        <When capture={capture} now={view.generatedAt} />
        {capture.droppedBytes > 0 && ` ${bytesText(capture.droppedBytes)} could not be written in time.`}
      </span>
    </span>
    {view.isGuard &&
      (capture.isRunning ? (
        <Action name={`end-${capture.id}`} action={`/api/captures/${capture.id}`} method="delete" label="Stop" />
      ) : (
        <Action
          name={`delete-${capture.id}`}
          action={`/api/captures/${capture.id}/requests`}
          method="delete"
          label="Delete"
          confirm="Delete this capture and everything it holds?"
          isRisky
        />
      ))}
  </li>
)

export const scopeText = ({ keyId, keyName, accountId, accountName }: CaptureView): string => {
  if (keyName) return `Key ${keyName}`
  if (accountName) return `Account ${accountName}`
  return keyId ? 'Deleted key' : accountId ? 'Deleted account' : 'Capture'
}

const REASONS = {
  stopped: 'stopped',
  time: 'ended at its time',
  size: 'ended at its size',
  disk: 'ended because a file could not be written or the disk is almost full',
} as const

export const When: FC<{ capture: CaptureView; now: string }> = ({ capture, now }) => (
  <>
    Started by {capture.startedBy} <Since at={capture.startedAt} now={now} />,{' '}
    {capture.endedAt === null ? (
      <>
        ends <Until at={capture.endsAt} now={now} />.
      </>
    ) : (
      <>
        {REASONS[capture.endReason ?? 'stopped']} <Since at={capture.endedAt} now={now} />
        {capture.deletedAt && (
          <>
            , deleted <Until at={capture.deletedAt} now={now} />
          </>
        )}
        .
      </>
    )}
  </>
)
