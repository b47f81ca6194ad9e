/** The catalog: complete entries per client version, lists as the key can see them, and the models of each account. */
import { describe, expect, test } from 'bun:test'
import { commit, type Db, onChange } from '../../db/commit.ts'
import {
  Catalog,
  dropOldCatalogs,
  type Listing,
  type ModelPolicy,
  saveCatalog,
} from '../../src/model/catalog/catalog.ts'
import { complete, type ModelEntry } from '../../src/model/catalog/catalog-entry.ts'
import { isClientVersion, nearestVersion, PINNED_CLIENT_VERSION } from '../../src/model/catalog/client-version.ts'
import { testDb } from '../support/db.ts'
import { anAccountRow } from '../support/keys.ts'

const FULL = {
  slug: 'strong',
  display_name: 'Strong',
  supported_reasoning_levels: [{ effort: 'low', description: 'Fast' }],
  shell_type: 'unified_exec',
  visibility: 'list',
  supported_in_api: true,
  priority: 1,
  support_verbosity: true,
  truncation_policy: { mode: 'bytes', limit: 5 },
  experimental_supported_tools: ['clock'],
  base_instructions: 'Be strong.',
  supports_reasoning_summaries: false,
  supports_parallel_tool_calls: false,
  context_window: 272_000,
  max_context_window: 872_000,
  input_modalities: ['text', 'image'],
  something_new: { kept: [1, 2] },
}

const entry = (slug: string, more: Record<string, unknown> = {}): ModelEntry => ({ ...FULL, slug, ...more })

const put = (db: Db, accountId: string, models: ModelEntry[], { version = PINNED_CLIENT_VERSION, at = 1000 } = {}) =>
  commit(db, (tx) => saveCatalog(tx, { accountId, version }, models, at))

const catalogWith = async (fill: (db: Db) => Promise<unknown>) => {
  const { db } = testDb()
  for (const id of ['acc_a', 'acc_b']) await anAccountRow(db, id)
  await fill(db)
  return { db, catalog: await Catalog.open(db) }
}

const read = ({ bytes }: Listing) => JSON.parse(new TextDecoder().decode(bytes))
const slugs = (listing: Listing): string[] => read(listing).models.map(({ slug }: ModelEntry) => slug)
const ids = (listing: Listing): string[] => read(listing).data.map(({ id }: { id: string }) => id)

const policy = (over: Partial<ModelPolicy>): ModelPolicy => ({
  allowedModels: null,
  applyToCodexModel: false,
  enforcedModel: null,
  ...over,
})

describe('a catalog entry', () => {
  test('that is complete is passed on unchanged, unknown members included', () => {
    expect(complete(FULL)).toBe(FULL)
  })

  test('with only a slug becomes one that every client can read', () => {
    expect(complete({ slug: 'bare' })).toMatchObject({
      slug: 'bare',
      display_name: 'bare',
      supported_reasoning_levels: [],
      shell_type: 'unified_exec',
      visibility: 'list',
      supported_in_api: true,
      support_verbosity: false,
      truncation_policy: { mode: 'tokens', limit: 10_000 },
      experimental_supported_tools: [],
      base_instructions: '',
      supports_reasoning_summaries: true,
      supports_parallel_tool_calls: true,
      context_window: 272_000,
      max_context_window: 872_000,
    })
  })

  test.each(['truncation_policy', 'experimental_supported_tools', 'supported_reasoning_levels', 'priority'])(
    'whose %s has the wrong type gets a valid one',
    (name) => {
      const repaired = complete({ ...FULL, [name]: 'nonsense' })
      expect(repaired[name]).not.toBe('nonsense')
      expect(complete(repaired)).toBe(repaired)
    },
  )

  test.each([
    [
      { context_window: null, max_context_window: 128_000 },
      { context_window: 128_000, max_context_window: 128_000 },
    ],
    [
      { context_window: 1_000_000, max_context_window: null },
      { context_window: 1_000_000, max_context_window: 1e6 },
    ],
    [
      { context_window: 128_000, max_context_window: 128_000 },
      { context_window: 128_000, max_context_window: 128_000 },
    ],
  ])('windows %j become %j', (given, expected) => {
    expect(complete(entry('m', given))).toMatchObject(expected)
  })
})

describe('the native list', () => {
  test('is the union of the accounts; of two entries with one slug it has the newer', async () => {
    const { catalog } = await catalogWith(async (db) => {
      await put(db, 'acc_a', [entry('shared', { description: 'old' }), entry('only-a', { priority: 2 })], { at: 1 })
      await put(db, 'acc_b', [entry('shared', { description: 'new' })], { at: 2 })
    })
    const { models, data } = read(catalog.native(null))
    expect(models).toMatchObject([{ slug: 'shared', description: 'new' }, { slug: 'only-a' }])
    expect(data).toMatchObject([{ id: 'shared' }, { id: 'only-a' }])
  })

  test('is in the order of priority and then of names, and complete even if the upstream’s was not', async () => {
    const { catalog } = await catalogWith((db) =>
      put(db, 'acc_a', [{ slug: 'bare' }, entry('b'), entry('a'), entry('first', { priority: 0 })]),
    )
    expect(slugs(catalog.native(null))).toEqual(['first', 'a', 'b', 'bare'])
    expect(ids(catalog.public())).toEqual(['first', 'a', 'b', 'bare'])
    expect(read(catalog.native(null)).models.at(-1)).toMatchObject({ display_name: 'bare', visibility: 'list' })
  })

  test('is that of the requested version, or of the nearest known one', async () => {
    const { catalog } = await catalogWith(async (db) => {
      await put(db, 'acc_a', [entry('old')], { version: '0.140.0' })
      await put(db, 'acc_a', [entry('new')])
    })
    expect(slugs(catalog.native('0.140.0'))).toEqual(['old'])
    expect(slugs(catalog.native('0.150.1'))).toEqual(['old'])
    expect(slugs(catalog.native('0.999.0'))).toEqual(['new'])
    expect(slugs(catalog.native('0.1.0'))).toEqual(['old'])
    expect(slugs(catalog.native(null))).toEqual(['new'])
  })

  test('is empty and valid while nothing is known', async () => {
    expect(read((await catalogWith(async () => {})).catalog.native(null))).toEqual({
      models: [],
      object: 'list',
      data: [],
    })
  })

  test('is encoded once, and its tag changes only with its content', async () => {
    const { db, catalog } = await catalogWith((db) => put(db, 'acc_a', [entry('one')]))
    const first = catalog.native(null)
    expect(catalog.native(null)).toBe(first)
    await put(db, 'acc_a', [entry('one')], { at: 2000 })
    await catalog.reload()
    expect(catalog.native(null).etag).toBe(first.etag)
    await put(db, 'acc_a', [entry('one', { priority: 7 })], { at: 3000 })
    await catalog.reload()
    expect(catalog.native(null).etag).not.toBe(first.etag)
  })
})

describe('a key sees', () => {
  const two = async () =>
    (await catalogWith((db) => put(db, 'acc_a', [entry('one'), entry('two', { priority: 2 })]))).catalog

  test('only the models on its allowlist', async () => {
    const key = policy({ allowedModels: new Set(['two']) })
    expect(slugs((await two()).native(null, key))).toEqual(['two'])
    expect(ids((await two()).public(key))).toEqual(['two'])
    expect((await two()).find('one', key)).toBeNull()
  })

  test('the others as hidden, if its owner configured that', async () => {
    const key = policy({ allowedModels: new Set(['two']), applyToCodexModel: true })
    const { models, data } = read((await two()).native(null, key))
    expect(models).toMatchObject([
      { slug: 'one', visibility: 'hide' },
      { slug: 'two', visibility: 'list' },
    ])
    expect(data).toMatchObject([{ id: 'two' }])
    expect(ids((await two()).public(key))).toEqual(['two'])
  })

  test('only the model it enforces', async () => {
    const key = policy({ enforcedModel: 'one', allowedModels: new Set(['two']), applyToCodexModel: true })
    expect(slugs((await two()).native(null, key))).toEqual(['one'])
    expect(ids((await two()).public(key))).toEqual(['one'])
  })

  test('another tag than a key with other models', async () => {
    const catalog = await two()
    const key = policy({ allowedModels: new Set(['two']) })
    expect(catalog.native(null, key).etag).not.toBe(catalog.native(null).etag)
    expect(catalog.native(null, key)).toBe(catalog.native(null, key))
  })
})

describe('the public list', () => {
  test('states the default budget, and omits hidden models, which can be requested by name', async () => {
    const { catalog } = await catalogWith((db) =>
      put(db, 'acc_a', [entry('one'), entry('hidden', { visibility: 'hide' })]),
    )
    expect(ids(catalog.public())).toEqual(['one'])
    expect(catalog.find('hidden')).toMatchObject({ id: 'hidden' })
    expect(catalog.find('one')).toMatchObject({
      object: 'model',
      created: 0,
      owned_by: 'sluice',
      context_length: 272_000,
      contextLength: 272_000,
      supports_vision: true,
      metadata: { context_window: 272_000, display_name: 'Strong', max_output_tokens: null },
      capabilities: { supports_reasoning: true, output_modalities: ['text'] },
    })
    expect(catalog.find('one')?.metadata).not.toHaveProperty('service_tiers')
    expect(catalog.find('unheard-of')).toBeNull()
  })
})

describe('the models of an account', () => {
  test('are the union over the versions, and unknown before the first fetch', async () => {
    const { catalog } = await catalogWith(async (db) => {
      await put(db, 'acc_a', [entry('old')], { version: '0.140.0' })
      await put(db, 'acc_a', [entry('new')])
    })
    expect([...(catalog.getModels('acc_a') ?? [])].sort()).toEqual(['new', 'old'])
    expect(catalog.getModels('acc_b')).toBeNull()
  })

  test('are kept after an empty response, and deleted with the account', async () => {
    const { db, catalog } = await catalogWith((db) => put(db, 'acc_a', [entry('one')]))
    expect(await put(db, 'acc_a', [])).toBe(false)
    expect(await put(db, 'acc_gone', [entry('one')])).toBe(false)
    await catalog.reload()
    expect([...(catalog.getModels('acc_a') ?? [])]).toEqual(['one'])
    expect(catalog.getModels('acc_gone')).toBeNull()
  })

  test('are read without those that are deleted in the meantime, and an earlier read does not end last', async () => {
    const { db, catalog } = await catalogWith(async (db) => {
      for (const version of ['0.170.0', '0.171.0', '0.172.0']) await put(db, 'acc_a', [entry('one')], { version })
      await put(db, 'acc_a', [entry('two')])
    })
    const before = catalog.reload()
    await commit(db, (tx) => dropOldCatalogs(tx, [PINNED_CLIENT_VERSION]))
    await Promise.all([before, catalog.reload()])
    expect([...(catalog.getModels('acc_a') ?? [])]).toEqual(['two'])
  })

  test('are announced as changed only if they did', async () => {
    const { db } = await catalogWith((db) => put(db, 'acc_a', [entry('one')]))
    expect(await put(db, 'acc_a', [entry('one')], { at: 2000 })).toBe(false)
    expect(await put(db, 'acc_a', [entry('two')], { at: 3000 })).toBe(true)
  })

  test('include which models prefer sockets', async () => {
    const { catalog } = await catalogWith((db) =>
      put(db, 'acc_a', [entry('one', { prefer_websockets: true }), entry('two')]),
    )
    expect(catalog.prefersWebsockets('one')).toBe(true)
    expect(catalog.prefersWebsockets('two')).toBe(false)
  })
})

describe('client versions', () => {
  test('the pinned one and the last eight seen are kept up to date; invalid ones are not', async () => {
    const { catalog } = await catalogWith(async () => {})
    for (let minor = 1; minor <= 10; minor++) catalog.noteClientVersion(`0.${minor}.0`)
    catalog.noteClientVersion('0.4.0')
    catalog.noteClientVersion(PINNED_CLIENT_VERSION)
    catalog.noteClientVersion('../../etc/passwd')
    const seen = ['0.3.0', '0.5.0', '0.6.0', '0.7.0', '0.8.0', '0.9.0', '0.10.0', '0.4.0']
    expect(catalog.versions()).toEqual([PINNED_CLIENT_VERSION, ...seen])
  })

  test('are known again after a restart, and rows of dropped ones are deleted', async () => {
    const { db, catalog } = await catalogWith(async (db) => {
      await put(db, 'acc_a', [entry('one')], { version: '0.140.0' })
      await put(db, 'acc_a', [entry('one')])
    })
    expect(catalog.versions()).toEqual([PINNED_CLIENT_VERSION, '0.140.0'])
    const heard: string[] = []
    onChange(db, async (topics) => heard.push(...topics))
    for (let times = 0; times < 2; times++) await commit(db, (tx) => dropOldCatalogs(tx, [PINNED_CLIENT_VERSION]))
    expect(heard).toEqual(['catalog'])
    expect((await Catalog.open(db)).versions()).toEqual([PINNED_CLIENT_VERSION])
  })

  test('after a restart are the eight that were fetched last, in that order', async () => {
    const minors = [9, 1, 2, 3, 4, 5, 6, 7, 8]
    const { catalog } = await catalogWith(async (db) => {
      for (const [at, minor] of minors.entries())
        await put(db, 'acc_a', [entry('one')], { version: `0.${minor}.0`, at })
    })
    expect(catalog.versions()).toEqual([PINNED_CLIENT_VERSION, ...minors.slice(1).map((minor) => `0.${minor}.0`)])
  })

  test('a new one is fetched once, by the first client, and not immediately again after a failure', async () => {
    const { catalog } = await catalogWith((db) => put(db, 'acc_a', [entry('one')]))
    let fetches = 0
    const fetch = async () => {
      fetches++
      throw new Error('unreachable')
    }
    const ensure = (version: string, now: number, accountIds = ['acc_a']) =>
      catalog.ensure(version, { accountIds, now }, fetch)
    await Promise.all([ensure('0.170.0', 0), ensure('0.170.0', 1)])
    await ensure('0.170.0', 29_999)
    await ensure('0.171.0', 29_999, ['acc_a', 'acc_new'])
    expect(fetches).toBe(1)
    await ensure('0.170.0', 30_000)
    expect(fetches).toBe(2)
    await ensure(PINNED_CLIENT_VERSION, 60_000)
    expect(fetches).toBe(2)
  })

  test('while nothing is known, a slow or failing fetch delays only the accounts it used', async () => {
    const { catalog } = await catalogWith(async () => {})
    const asked: (readonly string[])[] = []
    const slow = Promise.withResolvers<void>()
    const ensure = (now: number, accountIds: string[]) =>
      catalog.ensure(PINNED_CLIENT_VERSION, { accountIds, now }, async (ids) => {
        asked.push(ids)
        if (ids.includes('acc_a')) await slow.promise
      })
    const all = [ensure(0, ['acc_a']), ensure(1, ['acc_a', 'acc_b']), ensure(2, ['acc_b', 'acc_a'])]
    expect(asked).toEqual([['acc_a'], ['acc_b']])
    slow.reject(new Error('unreachable'))
    await Promise.all(all)
    await ensure(29_999, ['acc_a', 'acc_b'])
    expect(asked).toHaveLength(2)
    await ensure(30_000, ['acc_a', 'acc_b'])
    expect(asked.at(-1)).toEqual(['acc_a', 'acc_b'])
  })

  test('while nothing is known, a fetch for another version neither runs nor replaces the running one', async () => {
    const { catalog } = await catalogWith(async () => {})
    const asked: string[] = []
    const slow = Promise.withResolvers<void>()
    const ensure = (version: string, accountIds: string[]) =>
      catalog.ensure(version, { accountIds, now: 0 }, async () => {
        asked.push(version)
        await slow.promise
      })
    const first = ensure('0.170.0', ['acc_a'])
    await ensure('0.171.0', ['acc_a', 'acc_b'])
    const joined = ensure('0.170.0', ['acc_a'])
    slow.resolve()
    await Promise.all([first, joined])
    expect(asked).toEqual(['0.170.0'])
  })

  test('nearest: itself, else the newest before it, else the oldest after it', () => {
    const known = ['0.140.0', '0.150.1', '0.169.0', '0.170.0-alpha.1', '0.170.0']
    expect(nearestVersion(known, '0.150.1')).toBe('0.150.1')
    expect(nearestVersion(known, '0.160.0')).toBe('0.150.1')
    expect(nearestVersion(known, '0.171.0')).toBe('0.170.0')
    expect(nearestVersion(known, '0.170.0-alpha.2')).toBe('0.170.0-alpha.1')
    expect(nearestVersion(known, '0.9.0')).toBe('0.140.0')
    expect(nearestVersion([], '0.9.0')).toBeNull()
  })

  test.each(['0.169.0', '0.170.0-alpha.1', '1.0.0', '0.0.0'])('%s is valid', (text) => {
    expect(isClientVersion(text)).toBe(true)
  })

  test.each(['', 'latest', '0.169', '0.169.0&x=1', '0.169.0 ', '99999.0.0', '1.0.0+build', '1.0.0-x', '01.0.0'])(
    '%j is invalid',
    (text) => {
      expect(isClientVersion(text)).toBe(false)
    },
  )
})
