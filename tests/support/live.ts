/** The whole app on real sockets and the real clock, in this process. */

import { sql } from 'drizzle-orm'
import { commit } from '../../db/commit.ts'
import { folderLocks } from '../../db/lock.ts'
import { attempts, requests } from '../../db/schema/requests.ts'
import { buildBindings } from '../../src/boot/build-bindings.ts'
import { readConfig } from '../../src/boot/env.ts'
import { websocket } from '../../src/http/websocket.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { mapInOrder } from '../../src/lib/in-order.ts'
import { createLog } from '../../src/lib/log.ts'
import { systemRandom } from '../../src/lib/random.ts'
import { createSealer } from '../../src/lib/seal.ts'
import { importAccount } from '../../src/model/accounts/account-intake.ts'
import { parseAuthJson } from '../../src/model/accounts/auth-json.ts'
import { createKey } from '../../src/model/keys/api-keys.ts'
import type { NewKey } from '../../src/model/keys/key-input.ts'
import { answer } from '../../src/routes/app.ts'
import type { Settings } from '../../src/settings/schema.ts'
import { writeSettings } from '../../src/settings/store.ts'
import { createDial } from '../../src/upstream/dial.ts'
import { newFolder } from './app.ts'
import { testDb } from './db.ts'
import { createInlineReader } from './inline-reader.ts'
import { inlineReplays } from './inline-replays.ts'
import { passwords } from './passwords.ts'
import type { AccountOptions } from './upstream/accounts.ts'
import { createUpstream } from './upstream/app.ts'

export interface LiveOptions {
  /** The number of accounts, or their properties. */
  accounts?: number | AccountOptions[]
  settings?: Partial<Settings>
  environment?: Record<string, string>
  /** Proxy variables, for what leaves towards the upstream. */
  proxies?: Record<string, string>
}

export const liveService = async ({
  accounts = 1,
  settings = {},
  environment = {},
  proxies = {},
}: LiveOptions = {}) => {
  const clock = systemClock
  const random = systemRandom
  const upstream = createUpstream()
  const simulator = upstream.listen()
  const { db } = testDb()
  const lines: string[] = []
  const log = createLog({ level: 'debug', format: 'text', now: Date.now, write: (line) => void lines.push(line) })
  const sealer = createSealer(random.bytes(32), random)
  const config = readConfig({
    CODEX_LB_UPSTREAM_BASE_URL: `${simulator.url}/backend-api`,
    CODEX_LB_AUTH_BASE_URL: simulator.url,
    SLUICE_REALTIME_BASE_URL: simulator.url,
    ...environment,
  })
  const dir = newFolder()
  const actor = { id: 'test', method: null, address: null, at: clock.now() }
  const build = () =>
    buildBindings({
      config,
      folder: { dir, databasePath: '', db, locks: folderLocks(dir), sealer, isNamed: () => true, close: () => {} },
      clock,
      random,
      log,
      passwords,
      dial: createDial(proxies, fetch, { trustsSocketEnvironment: true, random }),
      reader: createInlineReader(db),
      startReplay: inlineReplays(db),
      maxTurns: Number.POSITIVE_INFINITY,
      timeout: AbortSignal.timeout,
    })
  let bindings = await build()
  const addAccount = async (options: AccountOptions = {}) => {
    const sim = upstream.addAccount(options)
    const imported = parseAuthJson(sim.authJson(), 'auth.json')
    return { id: (await commit(db, (tx) => importAccount(tx, imported, { sealer, random, actor }))).id, sim }
  }
  const wanted = typeof accounts === 'number' ? Array.from({ length: accounts }, () => ({})) : accounts
  const members = await mapInOrder(wanted, addAccount)
  const change = (patch: Partial<Settings>) => commit(db, (tx) => writeSettings(tx, patch, { now: clock.now() }))
  if (Object.keys(settings).length > 0) await change(settings)
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 30,
    fetch: (request) => answer(request, bindings),
    websocket,
  })
  bindings.server = server
  const flushed = async <T>(read: () => Promise<T>): Promise<T> => {
    await bindings.ledger.flush()
    return read()
  }
  return {
    url: server.url.href.replace(/\/$/, ''),
    socketUrl: server.url.href.replace(/^http/, 'ws').replace(/\/$/, ''),
    dir,
    upstream,
    /** The address of the stand-in upstream. */
    upstreamPort: Number(new URL(simulator.url).port),
    get bindings() {
      return bindings
    },
    lines,
    members,
    addAccount,
    change,
    key: (input: Partial<NewKey> = {}) =>
      commit(db, (tx) => createKey(tx, { name: 'test', ...input }, { actor, scope: 'all', random })),
    rows: () => flushed(() => db.select().from(requests).orderBy(sql`rowid`).all()),
    attemptRows: () => flushed(() => db.select().from(attempts).orderBy(sql`rowid`).all()),
    /** Everything in memory is built again from the disk; idle sockets are closed as at the end of a process. */
    restart: async () => {
      for (const socket of bindings.sockets) socket.drain()
      await bindings.pool.stop()
      await bindings.ledger.flush()
      await bindings.views.stop()
      bindings = await build()
      bindings.server = server
    },
    stop: async () => {
      await server.stop(true)
      await bindings.pool.stop()
      await simulator.stop()
    },
  }
}

export type LiveService = Awaited<ReturnType<typeof liveService>>
