/** The text format of metrics: families, labels and histograms, and the gauges. */
import { describe, expect, test } from 'bun:test'
import { VERSION } from '../../src/boot/version.ts'
import { ACTIVE } from '../../src/model/accounts/account-state.ts'
import { presentFamilies } from '../../src/ops/gauges.ts'
import { LoopLag } from '../../src/ops/loop-lag.ts'
import { exposition, Histogram } from '../../src/ops/prometheus.ts'
import { ManualClock } from '../support/clock.ts'

test('a family has its help and type before its samples; one without samples is omitted', () => {
  const text = exposition([
    { name: 'a_total', type: 'counter', help: 'Things.', samples: [{ value: 2 }, { labels: { k: 'v' }, value: 1.5 }] },
    { name: 'b', type: 'gauge', help: 'Nothing.', samples: [] },
  ])
  expect(text).toBe('# HELP a_total Things.\n# TYPE a_total counter\na_total 2\na_total{k="v"} 1.5\n')
})

test('no label value can end its quotes or its line', () => {
  const samples = [{ labels: { k: 'a"b\\c\nd\u0007' }, value: 1 }]
  const text = exposition([{ name: 'a', type: 'gauge', help: 'x', samples }])
  expect(text.split('\n')[2]).toBe('a{k="a\\"b\\\\c\\nd"} 1')
})

test('buckets are cumulative, a value on a bound belongs to it, and the rest is in +Inf', () => {
  const histogram = new Histogram([1, 5])
  for (const value of [0.5, 1, 3, 9]) histogram.observe(value)
  expect([...histogram.samples()]).toEqual([
    { suffix: '_bucket', labels: { le: '1' }, value: 2 },
    { suffix: '_bucket', labels: { le: '5' }, value: 3 },
    { suffix: '_bucket', labels: { le: '+Inf' }, value: 4 },
    { suffix: '_sum', value: 13.5 },
    { suffix: '_count', value: 4 },
  ])
})

describe('values at the moment of a scrape', () => {
  const rejections = {
    unknown_key: 2,
    inactive_key: 0,
    expired_key: 0,
    missing_key: 0,
    remote_client: 0,
    firewall: 1,
    model_not_allowed: 0,
  }
  const present: Parameters<typeof presentFamilies>[0] = {
    pool: { all: () => [] },
    now: 1_800_000_000_000,
    turns: 3,
    clientSockets: 4,
    liveCalls: 1,
    keptUpstreamSockets: 5,
    heldBytes: 6,
    responses: { size: 7, bytes: 8 },
    ledger: { unwrittenTurns: 7, healthy: true, rejections },
    lastBackupAt: null,
    startedAt: 1_799_999_000_500,
    rssBytes: 8,
    cpuSeconds: 9.5,
  }
  const lines = (more: Partial<typeof present>): string[] =>
    exposition(presentFamilies({ ...present, ...more }))
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))

  test('the process has one series each, times in seconds, and none for a missing backup', () => {
    expect(lines({})).toEqual([
      `sluice_build_info{version="${VERSION}",runtime="bun ${Bun.version}"} 1`,
      'sluice_turns_in_flight 3',
      'sluice_client_sockets 4',
      'sluice_live_calls 1',
      'sluice_kept_upstream_sockets 5',
      'sluice_held_body_bytes 6',
      'sluice_stored_responses 7',
      'sluice_stored_response_bytes 8',
      'sluice_ledger_pending 7',
      'sluice_ledger_healthy 1',
      ...Object.entries(rejections).map(([reason, n]) => `sluice_rejected_requests_total{reason="${reason}"} ${n}`),
      'process_start_time_seconds 1799999000.5',
      'process_resident_memory_bytes 8',
      'process_cpu_seconds_total 9.5',
    ])
    expect(
      lines({ lastBackupAt: 1_799_999_999_000, ledger: { unwrittenTurns: 7, healthy: false, rejections } }),
    ).toEqual(expect.arrayContaining(['sluice_last_backup_timestamp_seconds 1799999999', 'sluice_ledger_healthy 0']))
  })

  test('an account has its requests, its state, and each window the upstream reported', () => {
    const window = { usedPercent: 37, windowMinutes: 300, resetAt: present.now + 1 }
    const account = {
      id: 'acc_a',
      inFlight: 2,
      state: ACTIVE,
      usage: { windows: { fiveHour: null, weekly: window, monthly: { ...window, usedPercent: 1 } } },
    }
    const all = () => [account] as unknown as ReturnType<typeof present.pool.all> // as: the fields of an account used here
    expect(lines({ pool: { all } }).filter((line) => line.includes('acc_a') && !line.endsWith(' 0'))).toEqual([
      'sluice_account_in_flight{account="acc_a"} 2',
      'sluice_account_state{account="acc_a",state="active"} 1',
      'sluice_account_used_percent{account="acc_a",window="weekly"} 37',
      'sluice_account_used_percent{account="acc_a",window="monthly"} 1',
    ])
  })
})

test('the lag of the event loop is the delay of a beat, each measured from the previous one', () => {
  let now = 1000
  let beat = () => {}
  let isStopped = false
  const every = (_: number, run: () => void) => {
    beat = run
    return () => {
      isStopped = true
    }
  }
  const clock = Object.assign(new ManualClock(), { monotonic: () => now, every })
  const lag = new LoopLag(clock)
  lag.start()
  for (const lateMs of [0, 40, -10, 2000]) {
    now += 250 + lateMs
    beat()
  }
  lag.stop()
  const text = exposition([lag.family()])
  for (const line of ['bucket{le="0.001"} 2', 'bucket{le="0.05"} 3', 'bucket{le="1"} 3', 'sum 2.04', 'count 4'])
    expect(text).toContain(`\nsluice_event_loop_lag_seconds_${line}\n`)
  expect(isStopped).toBe(true)
})
