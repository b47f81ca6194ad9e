/** Validation of user fields from outside. */
import { expect, test } from 'bun:test'
import { Email } from '../../src/model/users/people-input.ts'

const isTaken = (text: string): boolean => Email.safeParse(text).success

test('an address has a name, and a host of several parts', () => {
  expect(['a@b.example', 'A@b.c.example', 'a.b@c.example'].map(isTaken)).toEqual([true, true, true])
  expect(['a@b', 'a@b..c', 'a@.b', '@b.c', 'a b@c.d'].map(isTaken)).toEqual(Array(5).fill(false))
})

test('a long invalid text is rejected quickly', () => {
  expect(isTaken(`a@${'.'.repeat(300_000)}@`)).toBe(false) // 80 s where its dots can be shared out in many ways
})
