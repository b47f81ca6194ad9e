/** Checking a password takes the same work for every user name, known or not. */
import { expect, test } from 'bun:test'
import { createPasswords, DUMMY_HASH } from '../../src/auth/passwords.ts'

const getCost = (hash: string) => hash.split('$').slice(1, 4)

test('a user without a password takes the same time to check', async () => {
  const passwords = await createPasswords()
  const hash = await passwords.hash('a long password')
  expect(getCost(DUMMY_HASH)).toEqual(getCost(hash))
  expect(await passwords.verify('a long password', hash)).toBe(true)
  for (const tried of ['a long password', '', 'x'.repeat(2000)]) expect(await passwords.verify(tried, null)).toBe(false)
  // An unreadable hash would be answered immediately. The other implementation, in the executable, reads it too.
  expect(await Bun.password.verify('a long password', DUMMY_HASH)).toBe(false)
})

test('an unreadable hash matches no password', async () => {
  const passwords = await createPasswords()
  expect(await passwords.verify('a long password', 'broken')).toBe(false)
})
