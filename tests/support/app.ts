/** The whole app in process: real routes, real SQLite in memory, the stand-in upstream, and a manual clock. */

import { expect } from 'bun:test'
import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eq, isNotNull, isNull, sql } from 'drizzle-orm'
import { announce, commit, createDb, type Db, getWriter, onChange } from '../../db/commit.ts'
import { folderLocks } from '../../db/lock.ts'
import { accounts as accountRows } from '../../db/schema/accounts.ts'
import { attempts, requests } from '../../db/schema/requests.ts'
import type { Bindings } from '../../src/boot/bindings.ts'
import { buildBindings } from '../../src/boot/build-bindings.ts'
import { readConfig } from '../../src/boot/env.ts'
import { mapInOrder } from '../../src/lib/in-order.ts'
import { createLog } from '../../src/lib/log.ts'
import { type Random, seededRandom } from '../../src/lib/random.ts'
import { createSealer, type Sealer } from '../../src/lib/seal.ts'
import { importAccount } from '../../src/model/accounts/account-intake.ts'
import { parseAuthJson } from '../../src/model/accounts/auth-json.ts'
import { createKey } from '../../src/model/keys/api-keys.ts'
import type { NewKey } from '../../src/model/keys/key-input.ts'
import { answer, loadDashboard } from '../../src/routes/app.ts'
import type { Settings } from '../../src/settings/schema.ts'
import { writeSettings } from '../../src/settings/store.ts'
import { createDial, type Dial } from '../../src/upstream/dial.ts'
import '../../src/proxy/formats/chat-request.ts' // is loaded in real time, for which the manual clock does not wait
import '../../src/proxy/sources/serve.ts'
import '../../src/proxy/sources/serve-overflow.ts'
import { ManualClock } from './clock.ts'
import { onListenerError, testDb } from './db.ts'
import { createInlineReader } from './inline-reader.ts'
import { inlineReplays } from './inline-replays.ts'
import { passwords } from './passwords.ts'
import { canPrepare, type Prepared, recordDraws } from './prepared.ts'
import { createSource } from './source/app.ts'
import type { Account, AccountOptions } from './upstream/accounts.ts'
import { createUpstream } from './upstream/app.ts'

/** Loading takes real time, during which a manual clock does not move. */
await loadDashboard()

const UPSTREAM = 'http://upstream.test'

/** Data folders of the apps of this process; each is created when something is written to it. */
const FOLDERS = join(tmpdir(), `sluice-apps-${process.pid}`)
process.once('exit', () => rmSync(FOLDERS, { recursive: true, force: true }))
export const newFolder = (): string => join(FOLDERS, randomUUID())

export interface TestOptions {
  /** The number of accounts, or their properties. */
  accounts?: number | AccountOptions[]
  settings?: Partial<Settings>
  environment?: Record<string, string>
  /** Another process serves requests, too. */
  isShared?: boolean
  /** The database of an app with the same accounts, which has all settings. */
  prepared?: Prepared
}

export interface Ask {
  json?: unknown
  body?: BodyInit
  headers?: Record<string, string>
  /** Socket peer; this machine when absent. */
  peer?: string
  signal?: AbortSignal
}

interface SetUp extends Pick<Required<TestOptions>, 'settings'> {
  wanted: AccountOptions[]
}

const templates = new Map<string, Promise<Prepared>>()

/** Set up once, then copied for each app with these accounts and settings. */
const getTemplate = (setUp: SetUp): Promise<Prepared> => {
  const key = JSON.stringify(setUp)
  const template = templates.get(key) ?? buildTemplate(setUp)
  templates.set(key, template)
  return template
}

const buildTemplate = async (setUp: SetUp): Promise<Prepared> => {
  const clock = new ManualClock()
  const upstream = createUpstream({ now: () => clock.now() })
  const { db, sqlite } = testDb()
  const { random, getRedraw } = recordDraws(seededRandom(SEED))
  const sealer = createSealer(random.bytes(32), random)
  const sims = setUp.wanted.map((options) => upstream.addAccount(options))
  const accountIds = await store(db, sims, setUp.settings, { sealer, random, now: clock.now() })
  return { pages: sqlite.serialize(), accountIds, redraw: getRedraw() }
}

const SEED = 7

interface Means {
  sealer: Sealer
  random: Random
  now: number
}

const store = async (db: Db, sims: Account[], settings: Partial<Settings>, means: Means): Promise<string[]> => {
  const ids = await mapInOrder(sims, (sim) => storeAccount(db, sim, means))
  const all = { upstreamStreamTransport: 'http', ...settings } as const // no socket can be dialled in process; `live.ts` dials them
  await commit(db, (tx) => writeSettings(tx, all, { now: means.now }))
  return ids
}

const storeAccount = async (db: Db, sim: Account, { sealer, random, now }: Means): Promise<string> => {
  const actor = { id: 'test', method: null, address: null, at: now }
  const imported = parseAuthJson(sim.authJson(), 'auth.json')
  return (await commit(db, (tx) => importAccount(tx, imported, { sealer, random, actor }))).id
}

export const testApp = async (options: TestOptions = {}) => {
  const { accounts = 1, settings = {}, environment = {}, isShared, prepared } = options
  const wanted = typeof accounts === 'number' ? Array.from({ length: accounts }, () => ({})) : accounts
  const start = prepared ?? (canPrepare ? await getTemplate({ wanted, settings }) : undefined)
  const clock = new ManualClock()
  const upstream = createUpstream({ now: () => clock.now(), sleep: (ms, signal) => clock.sleep(ms, signal) })
  const source = createSource()
  /** Names of model sources and their URLs; requests to these reach the stand-in. */
  const names = new Map([['source.test', ['10.0.0.7']]])
  const { db, sqlite } = testDb(start?.pages)
  const lines: string[] = []
  const log = createLog({
    level: 'debug',
    format: 'text',
    now: () => clock.now(),
    write: (line) => void lines.push(line),
  })
  const { random, getRedraw } = recordDraws(seededRandom(SEED))
  const sealer = createSealer(random.bytes(32), random)
  const config = readConfig({
    CODEX_LB_UPSTREAM_BASE_URL: `${UPSTREAM}/backend-api`,
    CODEX_LB_AUTH_BASE_URL: UPSTREAM,
    SLUICE_REALTIME_BASE_URL: UPSTREAM,
    ...environment,
  })
  const actor = { id: 'test', method: null, address: null, at: clock.now() }
  /**
   * Set by a test to inspect an outgoing request, or to make it fail before it is sent; and to set the result of a late
   * connection check.
   */
  const wire: {
    before: ((url: string, init: RequestInit) => Promise<unknown>) | null
    canConnect: Dial['canConnect']
  } = {
    before: null,
    canConnect: async () => true,
  }
  const dial: Dial = {
    ...createDial(
      {},
      (async (url: string, init: RequestInit) => {
        await wire.before?.(url, init)
        if (new URL(url).hostname === '10.0.0.7') return source.fetch(url, init)
        return upstream.fetch(url, init)
      }) as typeof fetch, // as: the dialler calls it with these two only
      { trustsSocketEnvironment: true, random },
    ),
    canConnect: (url, route) => wire.canConnect(url, route),
  }
  /** Set by a test: the database file was removed. */
  const file = { isNamed: true }
  const dir = newFolder()
  const build = (on = db): Promise<Bindings> =>
    buildBindings({
      config,
      folder: {
        dir,
        databasePath: '',
        db: on,
        locks: folderLocks(dir),
        sealer,
        isNamed: () => file.isNamed,
        close: () => {},
      },
      clock,
      random,
      log,
      passwords,
      dial,
      lookup: async (name) => names.get(name) ?? [],
      reader: createInlineReader(db),
      startReplay: inlineReplays(db),
      maxTurns: Number.POSITIVE_INFINITY,
      ...(isShared && { sharing: { processes: 2, number: 1, isAlive: () => true } }),
      timeout: () => new AbortController().signal,
    })
  const addAccount = async (options: AccountOptions = {}): Promise<{ id: string; sim: Account }> => {
    const sim = upstream.addAccount(options)
    return { id: await storeAccount(db, sim, { sealer, random, now: actor.at }), sim }
  }
  const change = (patch: Partial<Settings>) => commit(db, (tx) => writeSettings(tx, patch, { now: clock.now() }))
  const sims = wanted.map((options) => upstream.addAccount(options))
  start?.redraw(random)
  const ids = start?.accountIds ?? (await store(db, sims, settings, { sealer, random, now: clock.now() }))
  const members = sims.map((sim, index) => ({ id: ids[index] ?? '', sim }))
  let bindings = await build() // last: each commit above would make it reload everything

  const ask = async (route: string, { json, body, headers = {}, peer = '127.0.0.1', signal }: Ask = {}) => {
    const [method, path] = route.split(' ')
    const sent = { host: 'localhost:2455', 'content-type': 'application/json', ...headers }
    const origin = URL.parse(`http://${sent.host}`)?.origin ?? 'http://localhost:2455' // the server does the same
    const init = { method, headers: sent, signal, body: json === undefined ? body : JSON.stringify(json) }
    return answer(new Request(`${origin}${path}`, init), { ...bindings, peer })
  }
  return {
    clock,
    dir,
    upstream,
    source,
    names,
    wire,
    get bindings() {
      return bindings
    },
    /** Everything in memory is built again from the disk. */
    restart: async () => {
      await bindings.pool.stop()
      void bindings.captures.stop()
      await bindings.ledger.flush()
      bindings = await build()
    },
    /** Another process on the same database, which hears what commits announce and owners of conversations. */
    addProcess: async (): Promise<Bindings> => {
      const other = createDb({ writer: getWriter(db), onListenerError })
      onChange(db, (topics) => announce(other, topics))
      const started = await build(other)
      bindings.affinity.onChange = (change) => started.affinity.apply(change)
      return started
    },
    /** Makes every strategy use this account before the others. */
    prefer: async (id: string) => {
      await commit(db, (tx) =>
        tx.update(accountRows).set({ routingPolicy: 'burn_first' }).where(eq(accountRows.id, id)).run(),
      )
      await bindings.pool.reload()
    },
    /** To build apps with the same database, except on PostgreSQL. */
    prepare: (): Prepared => ({ pages: sqlite.serialize(), accountIds: ids, redraw: getRedraw() }),
    db,
    sqlite,
    file,
    lines,
    members,
    addAccount,
    change,
    ask,
    key: (input: Partial<NewKey> = {}) =>
      commit(db, (tx) => createKey(tx, { name: 'test', ...input }, { actor, scope: 'all', random })),
    /** Everything the ledger has, oldest first. */
    rows: async () => {
      await bindings.ledger.flush()
      return db.select().from(requests).orderBy(sql`rowid`).all()
    },
    attemptRows: async () => {
      await bindings.ledger.flush()
      return db.select().from(attempts).where(isNotNull(attempts.accountId)).all()
    },
    /** Selections without an account; they are among the attempts of their request. */
    failedSelections: async () => {
      await bindings.ledger.flush()
      return db.select().from(attempts).where(isNull(attempts.accountId)).all()
    },
  }
}

export type TestApp = Awaited<ReturnType<typeof testApp>>

/** A turn as the native client sends it, small. */
export const codexBody = (text = 'hello', more: Record<string, unknown> = {}) => ({
  model: 'gpt-5.5',
  stream: true,
  store: false,
  instructions: 'Be brief.',
  input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text }] }],
  include: ['reasoning.encrypted_content'],
  ...more,
})

export interface StreamEvent {
  type: string
  [member: string]: unknown
}

/** The events of a finished stream, parsed. */
export const getEvents = async (response: Response): Promise<StreamEvent[]> => parseEvents(await response.text())

export const parseEvents = (text: string): StreamEvent[] =>
  text
    .split('\n\n')
    .flatMap((block) => block.split('\n').filter((line) => line.startsWith('data: ')))
    .map((line) => line.slice(6))
    .filter((data) => data !== '[DONE]')
    .map(parseEvent)

/** Garbage shows as an event of its own. */
const parseEvent = (data: string): StreamEvent => {
  try {
    return JSON.parse(data) as StreamEvent // as: tests look at the members they expect
  } catch {
    return { type: 'garbage', data }
  }
}

export const isTerminal = (type: string): boolean =>
  ['response.completed', 'response.incomplete', 'response.failed', 'error'].includes(type)

/**
 * Waits for `work` while time passes in steps of `stepMs`; fails after `steps`. While nothing waits for the clock, the
 * awaited work takes real time, such as decoding on another thread.
 */
export const advanceClockDuring = async <T>(
  { clock }: TestApp,
  work: Promise<T>,
  stepMs = 100,
  steps = 200,
): Promise<T> => {
  let isDone = false
  const settled = work.finally(() => {
    isDone = true
  })
  settled.catch(() => {}) // seen by the client
  await clock.advance(0)
  for (let waits = 0; waits < REAL_WAITS && clock.pending === 0 && !isDone; waits++) await Bun.sleep(1)
  for (let step = 0; step < steps && !isDone; step++) await clock.advance(stepMs)
  if (!isDone) await Promise.race([settled, Bun.sleep(LAST_WAIT_MS)]) // another thread may only now get a processor
  if (!isDone) throw new Error(`nothing came within ${steps * stepMs} ms`)
  return settled
}

/** Each of a millisecond or more. */
const REAL_WAITS = 5000
const LAST_WAIT_MS = 5000

interface Answer {
  status: number
  headers: Headers
  text: string
  events: StreamEvent[]
}

/** Sends a request and reads to the end while time passes. */
export const getAnswer = async (app: TestApp, route: string, ask: Ask, stepMs = 100): Promise<Answer> =>
  advanceClockDuring(
    app,
    app.ask(route, ask).then(async (response) => {
      const text = await response.text()
      const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false
      return { status: response.status, headers: response.headers, text, events: isStream ? parseEvents(text) : [] }
    }),
    stepMs,
  )

/** The ledger's interval. What is recorded during a write is written at the next one. */
const BEAT_MS = 100
const LAST_WRITES = 3

/** Nothing of any turn is left: no slot, no open stream, no timer, no body, no controller. */
export const expectNothingLeft = async ({ clock, bindings, upstream }: TestApp): Promise<void> => {
  await clock.advance(0)
  for (let i = 0; i < LAST_WRITES && clock.pending > 0; i++) await clock.advance(BEAT_MS)
  expect({
    inFlight: bindings.pool.all().map(({ inFlight }) => inFlight),
    openStreams: upstream.openStreams,
    timers: clock.pending,
    heldBytes: bindings.bodies.heldBytes,
    turns: bindings.turns.size,
  }).toEqual({ inFlight: bindings.pool.all().map(() => 0), openStreams: 0, timers: 0, heldBytes: 0, turns: 0 })
  expect(upstream.oddities).toEqual([])
}
