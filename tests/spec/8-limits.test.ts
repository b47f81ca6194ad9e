/** Spec §8, the limits that concern model clients. */
import { describe, expect, test } from 'bun:test'
import { testApp } from '../support/app.ts'
import { nativeModels, publicModels, store } from './catalog.ts'

const listing = async (entry: Record<string, unknown>) => {
  const app = testApp()
  store(app, app.members[0]!.id, [{ slug: 'lineup', ...entry }])
  const [native] = await nativeModels(app)
  const [shown] = await publicModels(app)
  return { native, shown }
}

describe('§8 default input budget: 272000', () => {
  test('stands where the upstream names none', async () => {
    const { native, shown } = await listing({})
    expect(native?.context_window).toBe(272_000)
    expect(shown?.context_length).toBe(272_000)
  })

  test('gives way to what the upstream says', async () => {
    const { native, shown } = await listing({ context_window: 128_000, max_context_window: 128_000 })
    expect(native).toMatchObject({ context_window: 128_000, max_context_window: 128_000 })
    expect(shown?.context_length).toBe(128_000)
  })
})

describe('§8 maximum input budget: 872000, for the native client only', () => {
  test('is in its listing and in no other', async () => {
    const { native, shown } = await listing({})
    expect(native?.max_context_window).toBe(872_000)
    expect(JSON.stringify(shown)).not.toContain('872000')
  })

  test('a budget above it raises it: a maximum is never below the default', async () => {
    const { native } = await listing({ context_window: 1_000_000 })
    expect(native).toMatchObject({ context_window: 1_000_000, max_context_window: 1_000_000 })
  })
})

describe('§8 auto-compact threshold: 784800', () => {
  test('is 90% of the maximum that is advertised, with no limit of ours below it', async () => {
    const { native } = await listing({})
    expect(Math.floor((native?.max_context_window ?? 0) * 0.9)).toBe(784_800)
    expect(native).not.toHaveProperty('auto_compact_token_limit')
  })

  test('a limit that the upstream sets is handed on', async () => {
    const { native } = await listing({ auto_compact_token_limit: 700_000 })
    expect(native?.auto_compact_token_limit).toBe(700_000)
  })
})
