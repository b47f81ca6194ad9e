/** Fetching catalogs: entries unchanged, the last valid copy kept, one announcement for many. */
import { expect, test } from 'bun:test'
import { onChange } from '../../db/commit.ts'
import { Catalog } from '../../src/model/catalog/catalog.ts'
import { fetchModels, refreshCatalogs } from '../../src/upstream/models.ts'
import { catalogFor } from '../support/upstream/models.ts'
import { poolOfOne, rejection } from './pool-of-one.ts'

const VERSION = '0.169.0'

test('entries are passed on unchanged', async () => {
  const { deps, id, sim, upstream } = await poolOfOne({ plan: 'pro' })
  const models = await fetchModels(deps, id, { version: VERSION })
  expect(models).toEqual(catalogFor(sim, VERSION))
  expect(upstream.requests.at(-1)?.path).toBe('/backend-api/codex/models')
  expect(upstream.oddities).toEqual([])
})

test('an entry without a slug is omitted, without affecting the others', async () => {
  const { deps, id, sim } = await poolOfOne()
  const body = {
    models: [{ slug: 'kept', odd: { deep: [1] } }, { display_name: 'nameless' }, null, 'text', { slug: 7 }],
  }
  sim.next({ on: 'models', status: 200, body })
  expect(await fetchModels(deps, id, { version: VERSION })).toEqual([{ slug: 'kept', odd: { deep: [1] } }])
})

test('an answer without a list is an error', async () => {
  const { deps, id, sim } = await poolOfOne()
  sim.next({ on: 'models', status: 200, body: { data: [] } })
  expect(await rejection(fetchModels(deps, id, { version: VERSION }))).toMatchObject({ code: 'upstream_error' })
})

test('the timeout is fifteen seconds', async () => {
  const { deps, id, sim, clock } = await poolOfOne()
  sim.always({ on: 'models', delayHeadersMs: 3_600_000 })
  const err = rejection(fetchModels(deps, id, { version: VERSION }))
  await clock.advance('15s')
  expect(await err).toMatchObject({ code: 'upstream_timeout' })
})

test('a failed fetch keeps the last valid catalog; all changes are announced once', async () => {
  const { deps, db, id, sim, log, clock } = await poolOfOne()
  const refresh = () => refreshCatalogs({ ...deps, db, log }, { accountIds: [id], versions: [VERSION, '0.140.0'] })
  const heard: string[] = []
  onChange(db, async (topics) => heard.push([...topics].join()))
  await refresh()
  expect(heard).toEqual(['catalog'])
  expect([...((await Catalog.open(db)).getModels(id) ?? [])]).toContain('gpt-6.1-sol')

  await refresh()
  expect(heard).toEqual(['catalog'])

  sim.always({ on: 'models', status: 500 })
  await clock.advance('1m')
  await refresh()
  expect([...((await Catalog.open(db)).getModels(id) ?? [])]).toContain('gpt-6.1-sol')
})
