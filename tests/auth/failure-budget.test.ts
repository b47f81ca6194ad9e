/** Eight failed attempts per minute and client: which count, for which client, and when the next is allowed. */
import { describe, expect, test } from 'bun:test'
import { FailureBudget } from '../../src/auth/failure-budget.ts'
import type { SharedTries } from '../../src/auth/shared-tries.ts'
import { AppError } from '../../src/errors.ts'
import { getClient } from '../../src/lib/client-ip.ts'

const setUp = () => {
  let now = 5000
  const budget = new FailureBudget({ monotonic: () => now })
  /** Seconds until the next attempt if this one is rejected, otherwise a function that gives it back. */
  const take = async (ip: string | null = '192.0.2.1') => {
    try {
      return await budget.take(getClient(ip), 'password_rate_limited')
    } catch (err) {
      if (err instanceof AppError && err.status === 429) return err.extra.retryAfterSeconds
      throw err
    }
  }
  const wait = (ms: number) => {
    now += ms
  }
  const useUp = async (ip: string | null = '192.0.2.1') => {
    for (let n = 0; n < 8; n++) expect(await take(ip)).toBeFunction()
  }
  return { budget, take, wait, useUp }
}

describe('tries', () => {
  test('come back one by one, a minute after each was used', async () => {
    const { take, wait, useUp } = setUp()
    await take()
    wait(30_000)
    for (let n = 0; n < 7; n++) await take()
    expect(await take()).toBe(30)
    wait(28_001)
    expect(await take()).toBe(2)
    wait(1998)
    expect(await take()).toBe(1)
    wait(1)
    expect(await take()).toBeFunction()
    expect(await take()).toBe(30)
    wait(60_000)
    await useUp()
  })

  test('that come together are counted one by one', async () => {
    const { take } = setUp()
    const taken = await Promise.all(Array.from({ length: 100 }, () => take()))
    expect(taken.filter((one) => typeof one === 'function')).toHaveLength(8)
  })

  test('that other processes have used up charge nothing here', async () => {
    let waitMs: number | null = 2000
    const shared = {
      take: async () => (waitMs === null ? { at: 0 } : { waitMs }),
      giveBack: async () => {},
    } as unknown as SharedTries // as: what the budget calls
    const budget = new FailureBudget({ monotonic: () => 0 }, 1, shared)
    await expect(budget.take('192.0.2.1', 'password_rate_limited')).rejects.toMatchObject({ status: 429 })
    waitMs = null
    expect(await budget.take('192.0.2.1', 'password_rate_limited')).toBeFunction()
  })

  test('that succeeded are given back, and no others', async () => {
    const { take, wait, useUp } = setUp()
    await take()
    wait(10)
    const giveBack = (await take()) as () => void // as: there is room
    wait(10)
    for (let n = 0; n < 6; n++) await take()
    giveBack()
    giveBack() // only once
    expect(await take()).toBeFunction()
    expect(await take()).toBe(60)
    wait(60_000)
    giveBack()
    await useUp()
    expect(await take()).toBeNumber()
  })

  test('that are only counted end at the same number, without an error', async () => {
    const { budget, take, wait } = setUp()
    expect(Array.from({ length: 10 }, () => budget.spend('192.0.2.1'))).toEqual([...Array(8).fill(true), false, false])
    expect(await take()).toBe(60)
    wait(60_000)
    expect(budget.spend('192.0.2.1')).toBe(true)
  })
})

describe('a client', () => {
  const shares = async (one: string | null, other: string | null) => {
    const { take, useUp } = setUp()
    await useUp(one)
    return typeof (await take(other)) === 'number'
  }

  test.each([
    ['192.0.2.1', '192.0.2.2', false],
    ['192.0.2.1', '::ffff:192.0.2.1', true],
    ['2001:db8::1', '2001:db8::ffff:0:0:1', true],
    ['2001:db8:0:0:1::', '2001:db8::2', true],
    ['2001:db8:0:1::1', '2001:db8:0:2::1', false],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::', true],
    ['1:2:3:4:5:6:7:8', '::4:5:6:7:8', false],
    ['::4:5:6:7:8', '::9:5:6:7:8', false],
    ['::1', '::2', true],
    ['::1', '1::1', false],
    [null, null, true],
    [null, '192.0.2.1', false],
  ])('%p and %p are the same client: %p', async (one, other, isOne) => {
    expect(await shares(one, other)).toBe(isOne)
  })

  test('is removed after failures of ten thousand other clients', async () => {
    const { take, useUp } = setUp()
    await take('198.51.100.2')
    await useUp('198.51.100.1')
    for (let n = 1; n < 8; n++) await take('198.51.100.2')
    for (let n = 0; n < 9_999; n++) await take(`10.0.${n >> 8}.${n & 255}`)
    expect(await take('198.51.100.2')).toBeNumber()
    expect(await take('198.51.100.1')).toBeFunction()
  })
})
