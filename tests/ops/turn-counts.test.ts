/** Counters of ended requests, whose number of series is bounded. */
import { expect, test } from 'bun:test'
import { exposition } from '../../src/ops/prometheus.ts'
import { TurnCounts } from '../../src/ops/turn-counts.ts'
import type { LedgerEntry } from '../../src/proxy/ledger/ledger.ts'

const aRow = (more: Partial<LedgerEntry['row']> = {}): Pick<LedgerEntry, 'row'> => ({
  row: {
    id: 'one',
    requestId: 'one',
    startedAt: 0,
    route: '/v1/responses',
    kind: 'normal',
    transport: 'http',
    keyId: 'key_a',
    accountId: 'acc_a',
    model: 'gpt-5.5',
    status: 'ok',
    httpStatus: 200,
    inputTokens: 10,
    cachedInputTokens: 4,
    outputTokens: 5,
    reasoningTokens: 2,
    costMicros: 1_500_000,
    attempts: 1,
    firstEventMs: 300,
    totalMs: 3000,
    ...more,
  },
})

const setUp = () => {
  const counts = new TurnCounts((model) => model.startsWith('gpt-'))
  return { counts, text: () => exposition(counts.families()).split('\n') }
}

test('a request is counted under its result, account, key and model', () => {
  const { counts, text } = setUp()
  counts.count(aRow())
  counts.count(aRow({ status: 'cancelled', accountId: null, keyId: null, firstEventMs: null }))
  const lines = text()
  for (const line of [
    'sluice_requests_total{route="/v1/responses",transport="http",status="ok"} 1',
    'sluice_requests_total{route="/v1/responses",transport="http",status="cancelled"} 1',
    'sluice_account_requests_total{account="acc_a",status="ok"} 1',
    'sluice_account_requests_total{account="none",status="cancelled"} 1',
    'sluice_key_tokens_total{key="key_a",type="input"} 10',
    'sluice_key_tokens_total{key="key_a",type="cached_input"} 4',
    'sluice_account_tokens_total{account="acc_a",type="output"} 5',
    'sluice_model_tokens_total{model="gpt-5.5",type="input"} 20',
    'sluice_model_tokens_total{model="gpt-5.5",type="output"} 10',
    'sluice_model_tokens_total{model="gpt-5.5",type="reasoning"} 4',
    'sluice_model_cost_usd_total{model="gpt-5.5"} 3',
    'sluice_first_event_seconds_count 1',
    'sluice_first_event_seconds_bucket{le="0.25"} 0',
    'sluice_first_event_seconds_bucket{le="0.5"} 1',
    'sluice_request_duration_seconds_sum 6',
  ])
    expect(lines).toContain(line)
  expect(lines.filter((line) => line.startsWith('sluice_errors_total'))).toEqual([])
})

test('errors are counted by phase, code and cause; upstream-only codes are counted together', () => {
  const { counts, text } = setUp()
  counts.count(aRow({ status: 'error', phase: 'select', errorCode: 'no_accounts' }))
  counts.count(aRow({ status: 'error', phase: 'stream', errorCode: 'whatever they say today' }))
  expect(text()).toContain('sluice_account_requests_total{account="acc_a",status="error"} 2')
  expect(text()).toContain('sluice_errors_total{phase="select",code="no_accounts",cause="no_account"} 1')
  expect(text()).toContain('sluice_errors_total{phase="stream",code="upstream",cause="chatgpt_error"} 1')
})

test('an unknown model is "other", and so is every key beyond the thousandth', () => {
  const { counts, text } = setUp()
  for (let i = 0; i < 3; i++) counts.count(aRow({ model: `made-up-${i}` }))
  counts.count(aRow({ model: null }))
  expect(text()).toContain('sluice_model_requests_total{model="none",status="ok"} 1')
  expect(text()).toContain('sluice_model_requests_total{model="other",status="ok"} 3')
  for (let i = 0; i < 1100; i++) counts.count(aRow({ keyId: `key_${i}` }))
  expect(text().filter((line) => line.startsWith('sluice_key_cost_usd_total'))).toHaveLength(1001)
  counts.count(aRow({ keyId: 'key_7' }))
  expect(text()).toContain('sluice_key_requests_total{key="key_7",status="ok"} 2')
})

test('the series of an account end when it is deleted', () => {
  const { counts, text } = setUp()
  counts.count(aRow())
  counts.count(aRow({ accountId: 'acc_b' }))
  counts.count(aRow({ accountId: null }))
  counts.keepAccounts(new Set(['acc_b']))
  expect(text().filter((line) => line.includes('acc_a'))).toEqual([])
  for (const left of ['acc_b', 'none'])
    expect(text()).toContain(`sluice_account_requests_total{account="${left}",status="ok"} 1`)
})

test('kinds are counted, and a warm-up is in no other total', () => {
  const { counts, text } = setUp()
  for (const kind of ['image', 'image', 'control', 'warmup'] as const) counts.count(aRow({ kind }))
  const lines = text()
  for (const line of [
    'sluice_requests_by_kind_total{kind="image"} 2',
    'sluice_requests_by_kind_total{kind="control"} 1',
    'sluice_requests_by_kind_total{kind="warmup"} 1',
    'sluice_requests_total{route="/v1/responses",transport="http",status="ok"} 3',
    'sluice_account_requests_total{account="acc_a",status="ok"} 3',
  ])
    expect(lines).toContain(line)
})
