/** What may be said about an account from outside. */
import { expect, test } from 'bun:test'
import { Email } from '../../src/model/people-input.ts'

test('an address is looked at in a time that grows with its length alone', () => {
  const began = Bun.nanoseconds()
  expect(Email.safeParse(`a@${'.'.repeat(200_000)}@`).success).toBe(false) // 35 s where dots could be shared out in many ways
  expect(Bun.nanoseconds() - began).toBeLessThan(5e9)
  expect(
    ['a@b.example', 'A@b.c.example', 'a@b', 'a@b..c', '@b.c'].map((text) => Email.safeParse(text).success),
  ).toEqual([true, true, false, false, false])
})
