/** An app of a few real routes with a real database: gates, errors and memory views, no upstream. */
import { Hono } from 'hono'
import { onChange } from '../../db/commit.ts'
import type { AppEnv, Bindings } from '../../src/boot/bindings.ts'
import { readConfig } from '../../src/boot/env.ts'
import { renderError } from '../../src/http/render-error.tsx'
import { requestContext } from '../../src/http/request-context.ts'
import { seededRandom } from '../../src/lib/random.ts'
import { Firewall } from '../../src/model/firewall.ts'
import { KeyRing } from '../../src/model/keys/key-ring.ts'
import { StreamTimer } from '../../src/proxy/downstream/stream-timer.ts'
import { ClientLimitsView } from '../../src/proxy/pool/client-limits.ts'
import { SettingsCache } from '../../src/settings/cache.ts'
import { ManualClock } from './clock.ts'
import { testDb } from './db.ts'

interface Ask {
  json?: unknown
  headers?: Record<string, string>
  /** Socket peer; this machine when absent. */
  peer?: string
}

/** `mount` adds the routes. `ask` answers with status and parsed body. `over` replaces parts of the bindings. */
export const fewRoutes = async (mount: (app: Hono<AppEnv>) => void, over: Partial<Bindings> = {}) => {
  const { db, sqlite } = testDb()
  const clock = new ManualClock()
  const keys = await KeyRing.open(db)
  const firewall = await Firewall.open(db)
  const settings = await SettingsCache.open(db, fail)
  onChange(db, async (topics) => {
    if (topics.has('keys')) await keys.reload()
    if (topics.has('firewall')) await firewall.reload()
    if (topics.has('settings')) await settings.reload()
  })
  const env = readConfig({})
  const ledger = { reject() {} }
  const bindings = {
    db,
    clock,
    keys,
    firewall,
    settings,
    env,
    ledger,
    pulse: new StreamTimer(clock),
    random: seededRandom(3),
    clientLimits: new ClientLimitsView({ pool: over.pool ?? NO_ACCOUNTS, settings, clock }),
    ...over,
  }
  const app = new Hono<AppEnv>()
  app.use(requestContext)
  app.onError(renderError)
  mount(app)
  const ask = async (route: string, { json, headers = {}, peer = '127.0.0.1' }: Ask = {}) => {
    const [method, path] = route.split(' ')
    const init = { method, headers: { host: 'localhost:2455', 'content-type': 'application/json', ...headers } }
    const body = json === undefined ? undefined : JSON.stringify(json)
    const response = await app.request(path!, { ...init, body }, { ...bindings, peer })
    const text = await response.text()
    return { status: response.status, body: text === '' ? null : JSON.parse(text) }
  }
  return { db, sqlite, clock, keys, ask }
}

const NO_ACCOUNTS = { all: () => [], get: () => null, canServe: () => false, revision: 0 }

const fail = (error: unknown): never => {
  throw error
}
