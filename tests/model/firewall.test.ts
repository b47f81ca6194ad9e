/** Which clients can use the proxy routes: addresses, ranges, and the empty list. */

import { describe, expect, test } from 'bun:test'
import { commit, type Db, onChange } from '../../db/commit.ts'
import { auditLogs } from '../../db/schema/system.ts'
import { mapInOrder } from '../../src/lib/in-order.ts'
import { addEntry, Firewall, listEntries, removeEntry } from '../../src/model/firewall.ts'
import { testDb } from '../support/db.ts'
import { anActor } from '../support/keys.ts'

const add = (db: Db, ...texts: string[]) =>
  mapInOrder(texts, (text, at) => commit(db, (tx) => addEntry(tx, text, anActor(at))))
const remove = (db: Db, text: string) => commit(db, (tx) => removeEntry(tx, text, anActor(0)))
const code = (code: string) => expect.objectContaining({ code })

describe('the firewall', () => {
  test('with an empty list allows everyone', async () => {
    const firewall = await Firewall.open(testDb().db)
    expect([firewall.allows('203.0.113.9'), firewall.allows(null)]).toEqual([true, true])
  })

  test('allows what is on the list, by address and by range', async () => {
    const { db } = testDb()
    await add(db, '203.0.113.9', '10.0.0.0/8', '2001:db8::/32')
    const firewall = await Firewall.open(db)
    for (const ip of ['203.0.113.9', '10.255.0.1', '2001:db8::1', '::ffff:10.1.1.1'])
      expect(firewall.allows(ip)).toBe(true)
    for (const ip of ['203.0.113.8', '11.0.0.1', '2001:db9::1', '127.0.0.1', 'nonsense', null])
      expect(firewall.allows(ip)).toBe(false)
  })

  test('sees changes after a reload', async () => {
    const { db } = testDb()
    const firewall = await Firewall.open(db)
    await add(db, '10.0.0.0/8')
    expect(firewall.allows('192.0.2.1')).toBe(true)
    await firewall.reload()
    expect(firewall.allows('192.0.2.1')).toBe(false)
    await remove(db, '10.0.0.0/8')
    await firewall.reload()
    expect(firewall.allows('192.0.2.1')).toBe(true)
  })
})

describe('entries', () => {
  test('are stored in one canonical form, and found by any other', async () => {
    const { db } = testDb()
    await add(db, ' 10.1.2.3/8 ', '2001:DB8:0:0::1', '::ffff:192.0.2.1/128')
    expect((await listEntries(db)).map(({ ipAddress }) => ipAddress)).toEqual([
      '10.0.0.0/8',
      '2001:db8::1',
      '192.0.2.1',
    ])
    await remove(db, '10.9.9.9/8')
    await remove(db, '2001:0db8::0001')
    expect((await listEntries(db)).map(({ ipAddress }) => ipAddress)).toEqual(['192.0.2.1'])
  })

  test('must be addresses, unique, and exist to be removed', async () => {
    const { db } = testDb()
    await add(db, '10.0.0.0/8')
    for (const text of ['', 'localhost', '10.0.0.0/33', '10.0.0', 'fe80::1%eth0'])
      await expect(add(db, text)).rejects.toThrow(code('invalid_ip'))
    await expect(add(db, '10.2.0.0/8')).rejects.toThrow(code('ip_exists'))
    await expect(remove(db, '192.0.2.1')).rejects.toThrow(code('ip_not_found'))
    await expect(remove(db, 'nonsense')).rejects.toThrow(code('ip_not_found'))
    expect(await listEntries(db)).toHaveLength(1)
  })

  test('changes are audited and announced', async () => {
    const { db } = testDb()
    const announced: string[][] = []
    onChange(db, async (topics) => announced.push([...topics]))
    await add(db, '192.0.2.1')
    await remove(db, '192.0.2.1')
    expect((await db.select().from(auditLogs).all()).map(({ event, target }) => [event, target])).toEqual([
      ['firewall_entry_added', '192.0.2.1'],
      ['firewall_entry_removed', '192.0.2.1'],
    ])
    expect(announced).toEqual([['firewall'], ['firewall']])
  })
})
