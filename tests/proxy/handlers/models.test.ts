/** The model routes: the native catalog by client version, the public list, one model; empty and valid without accounts. */
import { describe, expect, test } from 'bun:test'
import { fetchCatalogs } from '../../../src/jobs/catalog.ts'
import { jobDeps } from '../../jobs/deps.ts'
import { type TestApp, testApp } from '../../support/app.ts'
import { until } from '../../support/until.ts'

const NATIVE = 'GET /backend-api/codex/models'

const ready = async (accounts = 1) => {
  const app = await testApp({ accounts })
  await fetchCatalogs(jobDeps(app), new AbortController().signal)
  app.upstream.reset()
  return app
}

const catalogRequests = ({ upstream }: TestApp) =>
  upstream.requests.filter(({ path }) => path.endsWith('/codex/models'))

// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever was answered
const json = async (response: Response): Promise<any> => response.json()

describe('the native catalog', () => {
  test('has the models, the public list beside them, and our own tag', async () => {
    const app = await ready()
    const response = await app.ask(`${NATIVE}?client_version=0.169.0`)
    expect(response.status).toBe(200)
    expect(response.headers.get('etag')).toMatch(/^"[0-9a-f]{16}"$/)
    expect(response.headers.get('content-type')).toBe('application/json')
    const { models, data } = await json(response)
    expect(models.map(({ slug }: { slug: string }) => slug)).toContain('codex-auto-review')
    expect(data.map(({ id }: { id: string }) => id)).not.toContain('codex-auto-review')
    expect(catalogRequests(app)).toHaveLength(0)
  })

  test('is never answered with 304', async () => {
    const app = await ready()
    const first = await app.ask(NATIVE)
    const headers = { 'if-none-match': first.headers.get('etag') ?? '' }
    const second = await app.ask(NATIVE, { headers })
    expect(second.status).toBe(200)
    expect(second.headers.get('etag')).toBe(first.headers.get('etag'))
  })

  test('of a new version is fetched immediately, and once for all waiting clients', async () => {
    const app = await ready()
    const answers = await Promise.all([1, 2, 3].map(() => app.ask(`${NATIVE}?client_version=0.140.0`)))
    const { models } = await json(answers[0]!)
    expect(models.map(({ slug }: { slug: string }) => slug)).toEqual(['gpt-5.5', 'codex-auto-review'])
    expect(catalogRequests(app)).toHaveLength(1)
    expect(app.bindings.catalog.versions()).toContain('0.140.0')
    expect(app.clock.pending).toBe(0)
  })

  test('is the nearest one known when the upstream is slow or fails', async () => {
    const app = await ready()
    app.members[0]!.sim.always({ on: 'models', delayHeadersMs: 60_000 })
    const answer = app.ask(`${NATIVE}?client_version=0.200.0`)
    await app.clock.advance('4s')
    expect((await json(await answer)).models.length).toBeGreaterThan(2)

    app.members[0]!.sim.always({ on: 'models', status: 500 })
    expect((await json(await app.ask(`${NATIVE}?client_version=0.201.0`))).models.length).toBeGreaterThan(2)
  })

  test('of many new versions costs one fetch, and displaces at most one known version', async () => {
    const app = await ready(3)
    const { catalog } = app.bindings
    for (let minor = 1; minor <= 8; minor++) catalog.noteClientVersion(`0.15${minor}.0`)
    const known = catalog.versions()
    app.upstream.reset()
    for (let minor = 0; minor < 20; minor++) await app.ask(`${NATIVE}?client_version=0.${200 + minor}.0`)
    expect(catalogRequests(app)).toHaveLength(1)
    expect(known.filter((version) => !catalog.versions().includes(version))).toHaveLength(1)
    await app.clock.advance('30s')
    await app.ask(`${NATIVE}?client_version=0.230.0`)
    expect(catalogRequests(app)).toHaveLength(2)
  })

  test('of a new version is fetched from one account per plan', async () => {
    const app = await testApp({ accounts: [{ plan: 'plus' }, { plan: 'plus' }, { plan: 'pro' }] })
    await fetchCatalogs(jobDeps(app), new AbortController().signal)
    app.upstream.reset()
    await app.ask(`${NATIVE}?client_version=0.140.0`)
    const asked = catalogRequests(app).map(
      ({ account }) => app.upstream.accounts.find((one) => one.chatgptAccountId === account)?.plan,
    )
    expect(asked.toSorted()).toEqual(['plus', 'pro'])
  })

  test.each(['', 'latest', '%2e%2e%2f', '1.2.3%26x=1', '1.2.3-anything', '1.2.3%2Bbuild', '01.2.3', '12345.0.0'])(
    'of the version %j is the pinned one, nothing is fetched',
    async (v) => {
      const app = await ready()
      const { models } = await json(await app.ask(`${NATIVE}?client_version=${v}`))
      expect(models.length).toBeGreaterThan(2)
      expect(catalogRequests(app)).toHaveLength(0)
    },
  )

  test('is empty and valid without accounts', async () => {
    const app = await testApp({ accounts: 0 })
    const response = await app.ask(`${NATIVE}?client_version=0.169.0`)
    expect(await json(response)).toEqual({ models: [], object: 'list', data: [] })
  })
})

describe('the public list', () => {
  test('has the format of SDKs, and the native one for a native client', async () => {
    const app = await ready()
    const { object, data } = await json(await app.ask('GET /v1/models'))
    expect(object).toBe('list')
    expect(data[0]).toMatchObject({ object: 'model', owned_by: 'sluice', context_length: 272_000 })
    expect(await json(await app.ask('GET /v1/models?client_version=0.169.0'))).toHaveProperty('models')
  })

  test('is fetched for the first client while nothing is known, once for all', async () => {
    const app = await testApp({ accounts: 1 })
    const [list, same, one] = await Promise.all([
      app.ask('GET /v1/models'),
      app.ask(NATIVE),
      app.ask('GET /v1/models/gpt-5.5'),
      app.ask(`${NATIVE}?client_version=0.140.0`),
    ])
    expect((await json(list)).data.map(({ id }: { id: string }) => id)).toContain('gpt-6.1-sol')
    expect((await json(same)).models.length).toBeGreaterThan(2)
    expect(one.status).toBe(200)
    expect(catalogRequests(app)).toHaveLength(2)
  })

  test('does not wait for a slow account if another has answered the job', async () => {
    const app = await testApp({ accounts: 2 })
    app.members[0]!.sim.always({ on: 'models', delayHeadersMs: 10_000 })
    const stop = new AbortController()
    const job = fetchCatalogs(jobDeps(app), stop.signal)
    const isStored = () => app.sqlite.query('SELECT 1 FROM account_catalogs').get() !== null
    await until(isStored)
    const { data } = await json(await app.ask('GET /v1/models'))
    expect(data.length).toBeGreaterThan(2)
    stop.abort()
    await job.catch(() => {})
  })

  test('is fetched for each of two clients of unknown versions', async () => {
    const app = await testApp({ accounts: 1 })
    const ask = (version: string) => app.ask(`${NATIVE}?client_version=${version}`)
    const answers = await Promise.all(['0.140.0', '0.141.0'].map(ask))
    for (const answer of answers) expect((await json(answer)).models.length).toBeGreaterThan(1)
  })

  test('is empty if the upstream does not answer in time, and then not fetched for a while', async () => {
    const app = await testApp({ accounts: 1 })
    app.members[0]!.sim.always({ on: 'models', delayHeadersMs: 60_000 })
    const answer = app.ask('GET /v1/models')
    await app.clock.advance('4s')
    expect(await json(await answer)).toEqual({ object: 'list', data: [] })

    const other = await testApp({ accounts: 1 })
    other.members[0]!.sim.always({ on: 'models', status: 500 })
    for (let times = 0; times < 3; times++) expect((await other.ask('GET /v1/models')).status).toBe(200)
    expect(catalogRequests(other)).toHaveLength(1)
  })

  test.each([401, 500])(
    'is fetched from a new account after another had answered %d, and not from the other',
    async (status) => {
      const app = await testApp({ accounts: 1 })
      app.members[0]!.sim.always({ on: 'models', status })
      expect((await json(await app.ask('GET /v1/models'))).data).toEqual([])
      app.upstream.reset()
      const { sim } = await app.addAccount()
      const { data } = await json(await app.ask('GET /v1/models'))
      expect(data.length).toBeGreaterThan(2)
      expect(catalogRequests(app).map(({ account }) => account)).toEqual([sim.chatgptAccountId])
    },
  )

  test.each([NATIVE, `${NATIVE}?client_version=0.140.0`, 'GET /v1/models'])(
    '%s uses another account of a plan whose newest fails, while nothing is known',
    async (route) => {
      const app = await testApp({ accounts: [{ plan: 'plus' }, { plan: 'plus' }] })
      const [, newest] = app.members
      newest!.sim.always({ on: 'models', status: 500 })
      const answers = await Promise.all([app.ask(route), app.ask(route)])
      for (const answer of answers) expect((await json(answer)).data.length).toBeGreaterThan(0)
      const asked = catalogRequests(app).filter(({ account }) => account !== newest!.sim.chatgptAccountId)
      expect(asked).toHaveLength(1)
    },
  )

  test('waits for the account fetched before, if the newer one fails', async () => {
    const app = await testApp({ accounts: 1 })
    app.members[0]!.sim.always({ on: 'models', delayHeadersMs: 1000 })
    const first = app.ask('GET /v1/models')
    await app.clock.advance(0)
    ;(await app.addAccount()).sim.always({ on: 'models', status: 500 })
    const second = app.ask('GET /v1/models')
    await app.clock.advance('1s')
    for (const answer of [first, second]) expect((await json(await answer)).data.length).toBeGreaterThan(2)
    expect(catalogRequests(app)).toHaveLength(2)
  })

  test('does not wait for an account fetched before, if the newer one has answered', async () => {
    const app = await testApp({ accounts: 1 })
    app.members[0]!.sim.always({ on: 'models', delayHeadersMs: 60_000 })
    const first = app.ask('GET /v1/models')
    await app.clock.advance(0)
    await app.addAccount()
    let models = 0
    const second = app.ask('GET /v1/models').then(async (answer) => {
      models = (await json(answer)).data.length
    })
    await app.clock.advance('1s')
    expect(models).toBeGreaterThan(2)
    await app.clock.advance('4s')
    await Promise.all([first, second])
  })

  test('is fetched from each account once in a while, if new ones fail as well', async () => {
    const app = await testApp({ accounts: [{ plan: 'plus' }, { plan: 'pro' }] })
    const fail = ({ sim }: (typeof app.members)[0]) => sim.always({ on: 'models', status: 500 })
    app.members.forEach(fail)
    for (let times = 0; times < 3; times++) await app.ask('GET /v1/models')
    expect(catalogRequests(app)).toHaveLength(2)
    fail(await app.addAccount({ plan: 'plus' }))
    await Promise.all([1, 2, 3].map(() => app.ask('GET /v1/models')))
    expect(catalogRequests(app)).toHaveLength(3)
    await app.clock.advance('30s')
    for (let times = 0; times < 3; times++) await app.ask('GET /v1/models')
    expect(catalogRequests(app)).toHaveLength(6)
  })

  test('returns one model, or the error that it is unknown', async () => {
    const app = await ready()
    expect(await json(await app.ask('GET /v1/models/gpt-5.5'))).toMatchObject({ id: 'gpt-5.5', object: 'model' })
    const missing = await app.ask('GET /v1/models/unheard-of')
    expect(missing.status).toBe(404)
    expect(await json(missing)).toMatchObject({ error: { code: 'model_not_found', type: 'invalid_request_error' } })
  })

  test('contains only what the key can use', async () => {
    const app = await ready()
    await app.change({ apiKeyAuthEnabled: true })
    const { key } = await app.key({ allowedModels: ['gpt-5.5'] })
    const headers = { authorization: `Bearer ${key}` }
    const { data } = await json(await app.ask('GET /v1/models', { headers }))
    expect(data.map(({ id }: { id: string }) => id)).toEqual(['gpt-5.5'])
    expect((await app.ask('GET /v1/models/gpt-6.1-sol', { headers })).status).toBe(404)
    expect((await app.ask('GET /v1/models')).status).toBe(401)
  })
})
