/** Current values for a scrape: accounts, requests, sockets, bodies, the ledger, and the process. */
import { ACCOUNT_STATUSES } from '../../db/schema/accounts.ts'
import { VERSION } from '../boot/version.ts'
import type { RejectionReason } from '../errors.ts'
import { usedNow } from '../model/accounts/usage-windows.ts'
import type { Pool } from '../proxy/pool/pool.ts'
import type { Family, Sample } from './prometheus.ts'

interface Present {
  pool: Pick<Pool, 'all'>
  /** ms since epoch */
  now: number
  /** Running requests. */
  turns: number
  /** Open sockets of clients. */
  clientSockets: number
  /** Open live calls. */
  liveCalls: number
  /** Idle upstream sockets between requests. */
  keptUpstreamSockets: number
  heldBytes: number
  /** Answered requests that later ones can refer to, and their memory. */
  responses: { size: number; bytes: number }
  ledger: { unwrittenTurns: number; healthy: boolean; rejections: Readonly<Record<RejectionReason, number>> }
  /** ms since epoch; null: none yet. */
  lastBackupAt: number | null
  /** ms since epoch */
  startedAt: number
  rssBytes: number
  cpuSeconds: number
}

export const presentFamilies = (present: Present): Family[] => [
  gauge('sluice_build_info', 'Always 1. The labels name the version and the runtime.', {
    value: 1,
    labels: { version: VERSION, runtime: `bun ${Bun.version}` },
  }),
  many('sluice_account_in_flight', 'Running requests by account.', inFlight(present)),
  many('sluice_account_state', '1 for the current state of an account, 0 for the other states.', states(present)),
  many('sluice_account_used_percent', 'Used percent of each quota window, 0 to 100.', usedPercents(present)),
  gauge('sluice_turns_in_flight', 'Running requests.', { value: present.turns }),
  gauge('sluice_client_sockets', 'Open WebSockets of clients.', { value: present.clientSockets }),
  gauge('sluice_live_calls', 'Open live calls.', { value: present.liveCalls }),
  gauge('sluice_kept_upstream_sockets', 'Open WebSockets to ChatGPT, also between requests.', {
    value: present.keptUpstreamSockets,
  }),
  gauge('sluice_held_body_bytes', 'Request bodies in memory.', { value: present.heldBytes }),
  gauge('sluice_stored_responses', 'Responses in memory that later requests can refer to.', {
    value: present.responses.size,
  }),
  gauge('sluice_stored_response_bytes', 'Memory of stored responses.', { value: present.responses.bytes }),
  gauge('sluice_ledger_pending', 'Finished requests that are not on disk yet.', {
    value: present.ledger.unwrittenTurns,
  }),
  gauge('sluice_ledger_healthy', '0 while the request log cannot be written.', {
    value: present.ledger.healthy ? 1 : 0,
  }),
  {
    name: 'sluice_rejected_requests_total',
    type: 'counter',
    help: 'Requests of rejected clients by reason.',
    samples: Object.entries(present.ledger.rejections).map(([reason, value]) => ({ labels: { reason }, value })),
  },
  many(
    'sluice_last_backup_timestamp_seconds',
    'When the newest backup in the data folder was created.',
    known(present.lastBackupAt === null ? null : present.lastBackupAt / 1000),
  ),
  gauge('process_start_time_seconds', 'When the process started.', { value: present.startedAt / 1000 }),
  gauge('process_resident_memory_bytes', 'Resident memory.', { value: present.rssBytes }),
  {
    name: 'process_cpu_seconds_total',
    type: 'counter',
    help: 'Processor time, user and system.',
    samples: [{ value: present.cpuSeconds }],
  },
]

function* inFlight({ pool }: Present): Generator<Sample> {
  for (const { id, inFlight: value } of pool.all()) yield { labels: { account: id }, value }
}

function* states({ pool }: Present): Generator<Sample> {
  for (const { id, state } of pool.all())
    for (const status of ACCOUNT_STATUSES)
      yield { labels: { account: id, state: status }, value: state.status === status ? 1 : 0 }
}

const WINDOWS = [
  ['fiveHour', '5h'],
  ['weekly', 'weekly'],
  ['monthly', 'monthly'],
] as const

/** Windows never reported have no series. */
function* usedPercents({ pool, now }: Present): Generator<Sample> {
  for (const { id, usage } of pool.all())
    for (const [kind, window] of WINDOWS) {
      const value = usedNow(usage?.windows[kind] ?? null, now)
      if (value !== null) yield { labels: { account: id, window }, value }
    }
}

const known = (value: number | null): Sample[] => (value === null ? [] : [{ value }])

const gauge = (name: string, help: string, sample: Sample): Family => many(name, help, [sample])

const many = (name: string, help: string, samples: Iterable<Sample>): Family => ({ name, type: 'gauge', help, samples })
