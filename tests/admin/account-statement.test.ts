/** The account statement, against an upstream whose meter moves by known amounts. */
import { describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { accountEvents } from '../../db/schema/history.ts'
import { odditiesJob } from '../../src/jobs/oddities.ts'
import { pollAccount } from '../../src/jobs/usage.ts'
import { seededRandom } from '../../src/lib/random.ts'
import type { Statement } from '../../src/model/accounts/statement-read.ts'
import { pastIncidents } from '../../src/model/alerts/incidents.ts'
import { costMicros } from '../../src/model/catalog/pricing.ts'
import { jobDeps } from '../jobs/deps.ts'
import { advanceClockDuring, codexBody, getAnswer, testApp } from '../support/app.ts'
import { people, problem } from '../support/people.ts'
import { answers } from '../support/upstream/script.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const MODEL = 'gpt-5.5'

/** Micro-dollars per percent of the weekly quota. */
const PRICE = 400_000

/** `step`: the smallest step of the meter. */
const open = async ({ step = 0.01, price = PRICE }: { step?: number; price?: number } = {}) => {
  const app = await testApp()
  const [{ id, sim }] = app.members as [(typeof app.members)[0]]
  const now = app.clock.now()
  sim.setUsage({
    primary: { usedPercent: 0, windowMinutes: 300, resetAt: now + 5 * HOUR_MS },
    secondary: { usedPercent: 0, windowMinutes: 10_080, resetAt: now + 7 * DAY_MS },
  })
  sim.meterStep = step
  const truth = { here: 0, elsewhere: 0, requests: 0 }
  let outputTokens = 1000
  let micros = price
  sim.meter = ({ inputTokens, cachedTokens, outputTokens: output, reasoningTokens }) => {
    const usage = { inputTokens, cachedInputTokens: cachedTokens, outputTokens: output, reasoningTokens }
    const percent = (costMicros(usage, MODEL, null) ?? 0) / micros
    truth.here += percent
    truth.requests += 1
    return percent
  }
  app.upstream.script(() => answers.text('done', { usage: { inputTokens: 2000, outputTokens } }))
  const deps = jobDeps(app)
  const poll = async () => {
    await advanceClockDuring(app, pollAccount(deps, id))
    await app.bindings.ledger.flush()
  }
  await poll()
  const minute = async () => {
    await app.clock.advance(60_000)
    await poll()
  }
  return {
    app,
    id,
    sim,
    truth,
    poll,
    minute,
    ...people(app),
    setPrice: (next: number) => {
      micros = next
    },
    /** A request with this many output tokens. */
    request: async (tokens = 1000, headers: Record<string, string> = {}) => {
      outputTokens = tokens
      await getAnswer(app, 'POST /backend-api/codex/responses', { json: codexBody('hello', { model: MODEL }), headers })
    },
    elsewhere: (percent: number) => {
      truth.elsewhere += percent
      sim.use(percent)
    },
    statement: async (query = ''): Promise<Statement> =>
      (await (await app.ask(`GET /api/accounts/${id}/statement${query}`)).json()) as Statement, // as: its contract
  }
}

type World = Awaited<ReturnType<typeof open>>

/** Within 0.2 percentage points of what really happened. */
const expectTruth = ({ here, elsewherePercent, usedPercent }: Statement, truth: World['truth'], error = 0.2) => {
  expect(Math.abs(here.percent - truth.here)).toBeLessThanOrEqual(error)
  expect(Math.abs((elsewherePercent ?? Number.NaN) - truth.elsewhere)).toBeLessThanOrEqual(error)
  expect(Math.abs(usedPercent - truth.here - truth.elsewhere)).toBeLessThanOrEqual(error)
  expect(here.requests).toBe(truth.requests)
}

describe('the statement is right to 0.2 percentage points', () => {
  test('without work elsewhere', async () => {
    const world = await open()
    const random = seededRandom(1)
    for (let n = 0; n < 40; n++) {
      await world.request(500 + Math.floor(random.float() * 8000))
      await world.minute()
    }
    const statement = await world.statement()
    expectTruth(statement, world.truth)
    expect(statement.elsewherePercent).toBeCloseTo(0, 1)
    expect(Math.abs((statement.costPerPercentUsd.value ?? 0) - PRICE / 1e6)).toBeLessThan(0.01)
  })

  test('with work elsewhere while nothing runs here', async () => {
    const world = await open()
    for (let n = 0; n < 30; n++) {
      if (n % 3 === 0) world.elsewhere(0.07 * n)
      else await world.request(1000 + 150 * n)
      await world.minute()
    }
    const statement = await world.statement()
    expect(world.truth.elsewhere).toBeGreaterThan(9)
    expectTruth(statement, world.truth)
  })

  test('with work elsewhere during the same minutes as the requests', async () => {
    const world = await open()
    const random = seededRandom(3)
    for (let n = 0; n < 60; n++) {
      await world.request(1000 + Math.floor(random.float() * 5000))
      if (n % 4 === 0) world.elsewhere(0.2 + random.float())
      await world.minute()
    }
    expectTruth(await world.statement(), world.truth)
  })

  test('with several requests between two polls, and long pauses', async () => {
    const world = await open()
    for (let n = 0; n < 12; n++) {
      for (let m = 0; m <= n % 4; m++) await world.request(2500)
      if (n % 5 === 2) world.elsewhere(1.3)
      await world.minute()
      await world.app.clock.advance(HOUR_MS)
      await world.poll()
    }
    expectTruth(await world.statement(), world.truth)
  })

  test('with a meter that only shows whole percents, without work elsewhere', async () => {
    const world = await open({ step: 1 })
    for (let n = 0; n < 60; n++) {
      await world.request(3000)
      await world.minute()
    }
    const statement = await world.statement()
    expect(statement.usedPercent).toBe(Math.floor(world.truth.here))
    expect(statement.here.percent).toBe(statement.usedPercent)
    expect(statement.elsewherePercent).toBe(0)
    expect(statement.here.spread).toBeGreaterThanOrEqual(0.5)
  })
})

test('by key and by model, in proportion to the cost', async () => {
  const world = await open()
  const { key, row } = await world.app.key({ name: 'laptop' })
  await world.request(1000)
  await world.request(4000, { authorization: `Bearer ${key}` })
  await world.minute()
  const { here, byKey, byModel } = await world.statement()
  expect(byModel).toMatchObject([{ name: MODEL, requests: 2, percent: here.percent }])
  expect(byKey.map(({ keyId, name, requests }) => [keyId, name, requests])).toEqual([
    [row.id, 'laptop', 1],
    [null, null, 1],
  ])
  expect(byKey.reduce((sum, { percent }) => sum + percent, 0)).toBeCloseTo(here.percent, 3)
  expect(byKey[0]?.percent).toBeGreaterThan(3 * (byKey[1]?.percent ?? 0))
})

test('elsewhere is unknown while requests are running, and known a minute after they have ended', async () => {
  const world = await open()
  await world.request()
  await world.minute()
  world.sim.next({ silence: { afterEvents: 3 } })
  const held = await world.app.ask('POST /backend-api/codex/responses', { json: codexBody() })
  const reading = held.text()
  await world.app.clock.advance(0)
  world.elsewhere(0.5)
  await world.poll()
  expect((await world.statement()).elsewherePercent).toBeNull()
  const page = await world.app.ask(`GET /accounts/${world.id}?tab=statement`, { headers: { accept: 'text/html' } })
  expect(await page.text()).toContain('elsewhere unknown while requests are running')
  await advanceClockDuring(world.app, reading, 10_000)
  await world.minute()
  expect((await world.statement()).elsewherePercent).not.toBeNull()
})

test('a new window begins a new statement, and a period can span several', async () => {
  const world = await open()
  for (let n = 0; n < 5; n++) {
    await world.request(4000)
    await world.minute()
  }
  const first = world.truth.here
  await world.app.clock.advance(7 * DAY_MS)
  world.sim.restartWeek(world.app.clock.now() + 7 * DAY_MS)
  await world.poll()
  for (let n = 0; n < 3; n++) {
    await world.request(4000)
    await world.minute()
  }
  const current = await world.statement()
  expect(current.usedPercent).toBeCloseTo(world.truth.here - first, 1)
  expect(current.here.requests).toBe(3)
  const from = new Date(world.app.clock.now() - 30 * DAY_MS).toISOString()
  const both = await world.statement(`?from=${from}`)
  expect(both.usedPercent).toBeCloseTo(world.truth.here, 1)
  expect(both.here.requests).toBe(8)
  expect(both.costPerPercentUsd.weeks.length).toBeGreaterThanOrEqual(2)
})

test('as a file it has every reading, in UTC', async () => {
  const world = await open()
  await world.request()
  await world.minute()
  world.elsewhere(0.4)
  await world.minute()
  const response = await world.app.ask(`GET /api/accounts/${world.id}/statement?format=csv`)
  expect(response.headers.get('content-type')).toBe('text/csv; charset=utf-8')
  expect(response.headers.get('content-disposition')).toContain('sluice-statement-weekly-')
  const [head = '', ...lines] = (await response.text()).trimEnd().split('\r\n')
  expect(head).toStartWith('from,at,used_percent,moved_percent,reset_at')
  const columns = head.split(',')
  const requests = lines.map((line) => Number(line.split(',')[columns.indexOf('requests')]))
  const moved = lines.map((line) => Number(line.split(',')[columns.indexOf('moved_percent')]))
  expect(requests.reduce((sum, count) => sum + count, 0)).toBe(1)
  expect(moved.at(-1)).toBeCloseTo(0.4, 2)
})

describe('oddities', () => {
  const kinds = async (world: World) => {
    await job(world)()
    return (await events(world)).map(({ result }) => result)
  }
  const job = ({ app }: World) =>
    odditiesJob({ db: app.db, clock: app.clock, random: app.bindings.random, reader: app.bindings.reader })
  const events = ({ app }: World) =>
    app.db.select().from(accountEvents).where(eq(accountEvents.kind, 'statement')).all()

  test('a jump without requests is one event and one alert, also after a restart', async () => {
    const world = await open()
    await world.request()
    await world.minute()
    world.elsewhere(7)
    await world.minute()
    expect(await kinds(world)).toEqual(['jump'])
    const [event] = await events(world)
    expect(event).toMatchObject({ accountId: world.id, result: 'jump' })
    expect(event?.detail).toMatch(
      /^The weekly meter rose from 0\.\d % to 7\.\d % within \d+ min without a request through Sluice\.$/,
    )
    await world.minute()
    expect(await kinds(world)).toEqual(['jump'])
    expect((await world.statement()).oddities).toMatchObject([{ kind: 'jump', text: event?.detail }])
    const alerts = await pastIncidents(world.app.db, 10)
    expect(alerts).toMatchObject([{ key: `statement.odd:${world.id}`, path: `/accounts/${world.id}?tab=statement` }])
    expect(alerts[0]?.text).toEndWith(`: ${event?.detail}`)
  })

  test('a jump that a small request in the same minutes does not explain', async () => {
    const world = await open({ step: 1 })
    for (let n = 0; n < 40; n++) {
      await world.request(4000)
      await world.minute()
    }
    await world.request(100)
    await world.minute()
    world.elsewhere(6)
    await world.minute()
    expect(await kinds(world)).toEqual(['jump'])
    expect((await events(world))[0]?.detail).toContain('much more than the requests through Sluice account for')
  })

  test('a slow rise, or a jump while a request runs, is none', async () => {
    const world = await open()
    for (let n = 0; n < 8; n++) {
      world.elsewhere(1)
      await world.minute()
    }
    await world.request()
    world.elsewhere(5)
    await world.minute()
    expect(await kinds(world)).toEqual([])
  })

  test('a reset that moved by more than five minutes, but not one that moved by four', async () => {
    const world = await open()
    await world.request()
    await world.minute()
    const shift = (ms: number) => {
      const { secondary } = world.sim.usage ?? {}
      if (secondary) secondary.resetAt += ms
    }
    shift(4 * 60_000)
    await world.minute()
    expect(await kinds(world)).toEqual([])
    shift(2 * HOUR_MS)
    await world.minute()
    expect(await kinds(world)).toEqual(['reset_moved'])
    expect((await events(world))[0]?.detail).toBe('The reset of the weekly window moved 2 h 0 min later.')
  })

  test('a figure that falls without a new reset is none', async () => {
    const world = await open()
    await world.request(8000)
    await world.minute()
    world.elsewhere(-0.2)
    await world.minute()
    expect(await kinds(world)).toEqual([])
  })

  test('a window that starts over before its reset, unless a reset credit was used', async () => {
    const world = await open()
    await world.request(8000)
    await world.minute()
    await world.app.clock.advance(2 * DAY_MS)
    world.sim.restartWeek(world.app.clock.now() + 7 * DAY_MS)
    await world.poll()
    expect(await kinds(world)).toEqual(['short_window'])
    await world.request(8000)
    await world.minute()
    world.app.sqlite.run(
      `INSERT INTO account_events (account_id, at, kind, result) VALUES ('${world.id}', ${world.app.clock.now()}, 'reset', 'reset')`,
    )
    world.sim.restartWeek(world.app.clock.now() + 7 * DAY_MS)
    await world.minute()
    expect(await kinds(world)).toEqual(['short_window'])
  })

  test('a percent that is worth half as much as in the week before', async () => {
    const world = await open()
    const work = async () => {
      for (let n = 0; n < 20; n++) {
        await world.request(4000)
        await world.minute()
      }
    }
    await work()
    await world.app.clock.advance(7 * DAY_MS)
    world.sim.restartWeek(world.app.clock.now() + 7 * DAY_MS)
    await world.poll()
    world.setPrice(PRICE / 2)
    await work()
    expect(await kinds(world)).toEqual(['price_halved'])
    expect((await events(world))[0]?.detail).toBe(
      'One percent of the weekly quota is worth about $0.20 of requests at list prices, at most half the $0.40 of the week before.',
    )
  })

  test('a five-hour window that has not started moves its reset without being odd', async () => {
    const world = await open()
    for (let n = 0; n < 5; n++) {
      const { primary } = world.sim.usage ?? {}
      if (primary) primary.resetAt = world.app.clock.now() + 5 * HOUR_MS
      await world.app.clock.advance(HOUR_MS)
      await world.poll()
    }
    expect(await kinds(world)).toEqual([])
    expect(world.app.sqlite.query(`SELECT 1 FROM meter_readings WHERE "window" = 'five_hour'`).all()).toHaveLength(1)
  })
})

describe('who may read it', () => {
  test('users who see accounts; keys only for users who may list them', async () => {
    const world = await open()
    const path = `/api/accounts/${world.id}/statement`
    await (await world.as('admin')).ask('GET /api/accounts')
    await world.request()
    await world.minute()
    const read = async (role: 'operator' | 'viewer') => {
      const response = await (await world.as(role)).ask(`GET ${path}`)
      return [response.status, (await response.json()).byKey]
    }
    expect(await read('operator')).toMatchObject([200, [{ requests: 1 }]])
    expect((await read('viewer'))[0]).toBe(200)
    const operator = await world.as('operator')
    expect(await problem(await operator.ask('GET /api/accounts/acc_unknown/statement'))).toEqual([
      404,
      'account_not_found',
    ])
    for (const query of ['window=daily', 'from=yesterday', 'from=2026-01-02&to=2026-01-01', 'format=xml', 'other=1'])
      expect((await operator.ask(`GET ${path}?${query}`)).status).toBe(422)
  })
})
