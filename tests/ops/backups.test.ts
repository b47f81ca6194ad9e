/** Backups as files: what is copied, how a copy is verified, and what restoring changes and keeps. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  copyFileSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { eq } from 'drizzle-orm'
import { commit } from '../../db/commit.ts'
import { onThisThread } from '../../db/connection.ts'
import { acquireFolderLock, FolderLockedError } from '../../db/lock.ts'
import { migrate } from '../../db/migrate.ts'
import { MIGRATIONS } from '../../db/migrations/index.ts'
import { openDatabase } from '../../db/open.ts'
import { accounts } from '../../db/schema/accounts.ts'
import { apiKeys } from '../../db/schema/keys.ts'
import { passkeys, sessions, users } from '../../db/schema/people.ts'
import { auditLogs, settings } from '../../db/schema/system.ts'
import { openSqliteFolder } from '../../src/cli/open-folder.ts'
import { mapInOrder } from '../../src/lib/in-order.ts'
import { seededRandom } from '../../src/lib/random.ts'
import { append } from '../../src/model/audit/audit.ts'
import { copyThroughServer, makeBackup, toKey } from '../../src/ops/backup-file.ts'
import { isRestorable, verifyBackup } from '../../src/ops/backup-verify.ts'
import { Backups, backupPath } from '../../src/ops/backups.ts'
import { restoreBackup } from '../../src/ops/restore.ts'
import { ManualClock } from '../support/clock.ts'

const NOW = Date.UTC(2026, 0, 2, 3, 4, 5)
const actor = { id: 'cli', method: 'cli', address: null, at: NOW }

let root: string
let dir: string
let backup: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'sluice-backup-'))
  dir = join(root, 'data')
  backup = join(root, 'copy.db')
})
afterEach(() => rmSync(root, { recursive: true }))

type Folder = Awaited<ReturnType<typeof openSqliteFolder>>

const open = (seed = 1): Promise<Folder> =>
  openSqliteFolder(
    { DATA_DIR: dir, ENCRYPTION_KEY_FILE: undefined },
    { clock: new ManualClock(), random: seededRandom(seed) },
  )

const addAccount = ({ db }: Folder, id: string, lastRefreshAt = 0) =>
  commit(db, async (tx) => {
    await tx
      .insert(accounts)
      .values({
        id,
        email: `${id}@example.test`,
        planType: 'plus',
        accessTokenSealed: `access of ${id} ${lastRefreshAt}`,
        refreshTokenSealed: `refresh of ${id} ${lastRefreshAt}`,
        idTokenSealed: 'id',
        lastRefreshAt,
        createdAt: 0,
      })
      .run()
    await append(tx, actor, 'account_imported', { target: id })
  })

const idsIn = async (path: string): Promise<string[]> => {
  const { sqlite, db } = openDatabase(path)
  try {
    return (await db.select({ id: accounts.id }).from(accounts).all()).map(({ id }) => id)
  } finally {
    sqlite.close()
  }
}

const places = () => ({ dir, databasePath: join(dir, 'sluice.db'), keyPath: join(dir, 'encryption.key') })
const copy = (keyFile: string | null = null) => makeBackup({ source: places().databasePath, target: backup, keyFile })
const verify = () => verifyBackup(backup, places().keyPath)
const restore = () => restoreBackup({ file: backup, ...places(), actor })
const getMode = (path: string) => statSync(path).mode & 0o777

/** A folder with one account, and its backup. */
const backedUp = async (keyFile: string | null = null) => {
  const folder = await open()
  await addAccount(folder, 'acc_a')
  await copy(keyFile)
  folder.close()
}

describe('creating a backup', () => {
  test('copies all commits, including those only in the write-ahead log, and is private', async () => {
    const folder = await open()
    await addAccount(folder, 'acc_a')
    const made = await copy()
    folder.close()
    expect(made).toMatchObject({ file: backup, keyFile: null })
    expect(await idsIn(backup)).toEqual(['acc_a'])
    expect(getMode(backup)).toBe(0o600)
    expect(existsSync(toKey(backup))).toBe(false)
  })

  test('removes the partial copy of a killed process, and none that may still be written', async () => {
    const folder = await open()
    await addAccount(folder, 'acc_a')
    folder.close()
    const old = ['copy.db.0a1b2c3d.partial', 'copy.db.0a1b2c3d.partial.key', 'copy.db.partial']
    const others = ['copy.db.4e5f6a7b.partial', 'mine.db.0a1b2c3d.partial']
    for (const name of [...old, ...others]) writeFileSync(join(root, name), 'half a backup')
    for (const name of [...old, 'mine.db.0a1b2c3d.partial']) utimesSync(join(root, name), 0, 0)
    await copy(places().keyPath)
    expect(await idsIn(backup)).toEqual(['acc_a'])
    expect(
      readdirSync(root)
        .filter((name) => name.includes('partial'))
        .sort(),
    ).toEqual(others)
  })

  test('only one of two backups created in parallel under one name is complete, and the other reports it', async () => {
    const folder = await open()
    await addAccount(folder, 'acc_a')
    folder.close()
    const { keyPath: keyFile } = places()
    const first = { source: places().databasePath, target: backup, keyFile }
    const link = async (from: string, to: string) => {
      await copy(keyFile) // the second begins while the first is written, and ends before it
      linkSync(from, to)
    }
    await expect(makeBackup({ ...first, link })).rejects.toThrow(`${backup} already exists. Choose another name.`)
    expect(await verify()).toMatchObject({ damage: [], accounts: 1 })
    expect(readdirSync(root).filter((name) => name.includes('partial'))).toEqual([])
    expect(readFileSync(toKey(backup))).toEqual(readFileSync(keyFile))
  })

  test('includes the key only when requested, as privately', async () => {
    await backedUp(places().keyPath)
    expect(getMode(toKey(backup))).toBe(0o600)
    expect(readFileSync(toKey(backup), 'utf8')).toBe(readFileSync(places().keyPath, 'utf8'))
  })

  test('needs space for the copy, and for what the server stores during it', async () => {
    ;(await open()).close()
    const source = places().databasePath
    const log = statSync(`${source}-wal`, { throwIfNoEntry: false })?.size ?? 0
    const needed = statSync(source).size + log + 200 * 1024 * 1024
    const request = { source, target: backup, keyFile: null }
    await expect(makeBackup({ ...request, roomFor: () => needed - 1 })).rejects.toThrow(
      'Not enough free space for a backup',
    )
    expect(readdirSync(root)).toEqual(['data'])
    expect((await makeBackup({ ...request, roomFor: () => needed })).file).toBe(backup)
  })

  test('overwrites nothing, and leaves nothing incomplete', async () => {
    ;(await open()).close()
    writeFileSync(backup, 'mine')
    await expect(copy()).rejects.toThrow('already exists')
    expect(readFileSync(backup, 'utf8')).toBe('mine')
    rmSync(backup)
    rmSync(places().databasePath)
    await expect(copy()).rejects.toThrow('There is no database')
    expect(readdirSync(root)).toEqual(['data'])
  })

  test('is not placed beside the write-ahead log of another file, which SQLite would use', async () => {
    ;(await open()).close()
    writeFileSync(`${backup}-wal`, 'of an earlier copy')
    await expect(copy()).rejects.toThrow('-wal already exists')
    expect(readdirSync(root).sort()).toEqual(['copy.db-wal', 'data'])
  })

  test('includes no key that cannot decrypt it, and copies no other database', async () => {
    ;(await open()).close()
    const other = join(root, 'other.key')
    writeFileSync(other, `${Buffer.alloc(32, 9).toString('base64url')}\n`)
    await expect(copy(other)).rejects.toThrow('is not the encryption key of this database')
    rmSync(places().databasePath)
    writeFileSync(places().databasePath, '')
    await expect(copy()).rejects.toThrow('is not a database of Sluice')
    expect(readdirSync(root).sort()).toEqual(['data', 'other.key'])
  })

  test('rejects a damaged database, whose copy would be damaged', async () => {
    const {
      engine: { sqlite },
    } = await open()
    sqlite.run('CREATE TABLE notes (x UNIQUE)')
    sqlite.run("INSERT INTO notes VALUES ('a note')")
    sqlite.run('PRAGMA wal_checkpoint(TRUNCATE)')
    sqlite.close()
    const bytes = readFileSync(places().databasePath)
    bytes.write('A', bytes.lastIndexOf('a note')) // in the index, whose page comes after that of the table
    writeFileSync(places().databasePath, bytes)
    await expect(copy()).rejects.toThrow(
      'No backup was created, because the database is damaged: row 1 missing from index',
    )
    expect(readdirSync(root)).toEqual(['data'])
  })

  test('leaves neither the copy nor an empty key if the key cannot be included', async () => {
    ;(await open()).close()
    const noKey = join(root, 'a folder')
    mkdirSync(noKey)
    await expect(makeBackup({ source: places().databasePath, target: backup, keyFile: noKey })).rejects.toThrow(
      'backup failed',
    )
    expect(readdirSync(root).sort()).toEqual(['a folder', 'data'])
  })

  describe('on a file system without hard links', () => {
    const onAShare = (meanwhile = () => {}) =>
      makeBackup({
        source: places().databasePath,
        target: backup,
        keyFile: null,
        link: () => {
          meanwhile()
          throw Object.assign(new Error('EPERM: operation not permitted, link'), { code: 'EPERM' })
        },
      })

    test('a copy is created all the same, as privately', async () => {
      const folder = await open()
      await addAccount(folder, 'acc_a')
      await onAShare()
      folder.close()
      expect(readdirSync(root).sort()).toEqual(['copy.db', 'data'])
      expect(await idsIn(backup)).toEqual(['acc_a'])
      expect(getMode(backup)).toBe(0o600)
    })

    test('it replaces no file created at the same time', async () => {
      ;(await open()).close()
      await expect(onAShare(() => writeFileSync(backup, 'mine'))).rejects.toThrow('already exists')
      expect(readFileSync(backup, 'utf8')).toBe('mine')
      expect(readdirSync(root).sort()).toEqual(['copy.db', 'data'])
    })
  })

  test('a missing folder is named', async () => {
    ;(await open()).close()
    const request = { source: places().databasePath, target: join(root, 'nas', 'copy.db'), keyFile: null }
    await expect(makeBackup(request)).rejects.toThrow(
      `The folder ${join(root, 'nas')} does not exist. Create it first.`,
    )
  })
})

describe('verifying', () => {
  test('a valid one can be restored and describes its content', async () => {
    await backedUp()
    const verdict = await verify()
    expect(verdict).toMatchObject({ damage: [], schema: 'current', key: 'fits', accounts: 1, audit: { isWhole: true } })
    expect(isRestorable(verdict)).toBe(true)
  })

  test('the wrong key and a missing one are distinguished', async () => {
    await backedUp()
    rmSync(places().keyPath)
    expect((await verify()).key).toBe('missing')
    writeFileSync(places().keyPath, `${Buffer.alloc(32, 1).toString('base64url')}\n`)
    expect((await verify()).key).toBe('other')
    expect(isRestorable(await verify())).toBe(false)
  })

  test('one of a newer version is detected, and like a damaged one cannot be restored', async () => {
    await backedUp()
    const good = await verify()
    const { sqlite } = openDatabase(backup)
    sqlite.run("INSERT INTO migrations VALUES ('9999_future', 'x', 0)")
    sqlite.run('PRAGMA journal_mode = DELETE')
    sqlite.close()
    expect((await verify()).schema).toBe('newer')
    expect(isRestorable(await verify())).toBe(false)
    expect(isRestorable({ ...good, damage: ['a page is unreadable'] })).toBe(false)
  })

  const changeSchema = (...statements: string[]) => {
    const { sqlite } = openDatabase(backup)
    for (const statement of statements) sqlite.run(statement)
    sqlite.run('PRAGMA journal_mode = DELETE')
    sqlite.close()
  }

  test.each([
    [
      'a trigger',
      ["CREATE TRIGGER steal AFTER UPDATE ON accounts BEGIN UPDATE users SET role_id = 'admin'; END"],
      ['trigger steal'],
    ],
    ['a view', ['CREATE VIEW all_accounts AS SELECT * FROM accounts'], ['view all_accounts']],
    [
      'a table and its index',
      ['CREATE TABLE extra (x)', 'CREATE INDEX extra_x ON extra (x)'],
      ['index extra_x', 'table extra'],
    ],
    ['an index of ours that is missing', ['DROP INDEX users_email_unique'], ['index users_email_unique']],
    ['a table of ours that was changed', ['ALTER TABLE accounts ADD COLUMN note TEXT'], ['table accounts']],
  ])('%s makes it impossible to restore', async (_what, statements, differences) => {
    await backedUp()
    changeSchema(...statements)
    expect(await verify()).toMatchObject({ schemaDifferences: differences })
    expect(isRestorable(await verify())).toBe(false)
    const before = readFileSync(places().databasePath)
    await expect(restore()).rejects.toThrow(`has a schema that no release of Sluice created: ${differences[0]}`)
    expect(readFileSync(places().databasePath)).toEqual(before)
  })

  test('statistics that SQLite keeps are no difference', async () => {
    await backedUp()
    changeSchema('ANALYZE')
    expect((await verify()).schemaDifferences).toEqual([])
  })

  test('damage is detected', async () => {
    await backedUp()
    const bytes = readFileSync(backup)
    bytes.fill(0xff, 8192, 20_000)
    writeFileSync(backup, bytes)
    const found = await (async () => {
      try {
        return (await verify()).damage
      } catch (err) {
        return [String(err)]
      }
    })()
    expect(found).not.toEqual([])
  })

  test('a file that is not a Sluice backup is rejected with a sentence', async () => {
    writeFileSync(backup, 'hello')
    await expect(verify()).rejects.toThrow('is not a database')
    rmSync(backup)
    await expect(verify()).rejects.toThrow('There is no file')
    mkdirSync(backup)
    await expect(verify()).rejects.toThrow('There is no file')
    rmSync(backup, { recursive: true })
    writeFileSync(backup, 'a photograph, which is longer than a page '.repeat(200))
    await expect(verify()).rejects.toThrow(`${backup} cannot be read: file is not a database`)
    rmSync(backup)
    openDatabase(backup).sqlite.run('CREATE TABLE notes (x)')
    await expect(verify()).rejects.toThrow('is not a backup of Sluice')
  })

  test('a modified audit row is reported, and the rest can still be restored', async () => {
    await backedUp()
    const { sqlite, db } = openDatabase(backup)
    sqlite.run("UPDATE audit_logs SET target = 'somebody else'")
    expect(await db.select().from(auditLogs).all()).toHaveLength(1)
    sqlite.close()
    expect((await verify()).audit).toMatchObject({ isWhole: false })
    expect(isRestorable(await verify())).toBe(true)
  })
})

describe('saving the database of a server whose file was removed', () => {
  test('reports why it failed, and leaves nothing behind', async () => {
    const folder = await open()
    const writer = onThisThread(() => folder.engine.sqlite)
    rmSync(folder.databasePath)
    expect(await copyThroughServer(writer, join(root, 'missing', 'copy.db'))).toStartWith('ENOENT')
    folder.engine.sqlite.run('BEGIN')
    expect(await copyThroughServer(writer, backup)).toBe('cannot VACUUM from within a transaction')
    folder.engine.sqlite.run('ROLLBACK')
    expect(readdirSync(root)).toEqual(['data'])
    expect([await copyThroughServer(writer, backup), await idsIn(backup)]).toEqual([null, []])
    folder.close()
  })
})

describe('restoring', () => {
  test('replaces the database, keeps the previous one, and records it in the audit log', async () => {
    await backedUp()
    const later = await open()
    await addAccount(later, 'acc_later')
    later.close()
    const { aside } = await restore()
    expect(await idsIn(places().databasePath)).toEqual(['acc_a'])
    expect(getMode(places().databasePath)).toBe(0o600)
    expect(await idsIn(join(aside ?? '', 'sluice.db'))).toEqual(['acc_a', 'acc_later'])
    const folder = await open()
    const events = await folder.db.select().from(auditLogs).all()
    expect(events.map(({ event }) => event)).toEqual(['account_imported', 'backup_restored'])
    folder.close()
    expect((await verifyBackup(places().databasePath, places().keyPath)).audit.isWhole).toBe(true)
    expect(readdirSync(dir).filter((name) => name.includes('partial'))).toEqual([])
  })

  test('removes the partial copy of a killed process', async () => {
    await backedUp()
    for (const name of ['restore.partial', 'restore.partial-journal']) writeFileSync(join(dir, name), 'half a database')
    await restore()
    expect(await idsIn(places().databasePath)).toEqual(['acc_a'])
    expect(readdirSync(dir).filter((name) => name.includes('partial'))).toEqual([])
  })

  test('does not use that copy as a backup, nor remove the one to restore', async () => {
    await backedUp()
    const file = join(dir, 'restore.partial')
    copyFileSync(backup, file)
    await expect(restoreBackup({ file, ...places(), actor })).rejects.toThrow('Restore the original backup')
    expect(existsSync(file)).toBe(true)
  })

  /** The database and the key of the folder become links to `current` in folders of their own. */
  const moveApart = () => {
    const { databasePath, keyPath } = places()
    for (const [name, path] of [
      ['disk', databasePath],
      ['vault', keyPath],
    ] as const) {
      mkdirSync(join(root, name))
      for (const file of readdirSync(dir).filter((one) => one.startsWith(basename(path))))
        renameSync(join(dir, file), join(root, name, file.replace(basename(path), 'current')))
      symlinkSync(join('..', name, 'current'), path)
    }
    return { disk: join(root, 'disk'), vault: join(root, 'vault') }
  }

  test('replaces link targets, and keeps the previous ones under their names', async () => {
    await backedUp(places().keyPath)
    rmSync(dir, { recursive: true })
    ;(await open(2)).close()
    const { disk, vault } = moveApart()
    const [key, other] = [readFileSync(toKey(backup), 'utf8'), readFileSync(join(vault, 'current'), 'utf8')]
    const { aside } = await restore()
    expect(await idsIn(join(disk, 'current'))).toEqual(['acc_a'])
    expect(readFileSync(join(vault, 'current'), 'utf8')).toBe(key)
    expect(await idsIn(join(aside ?? '', 'sluice.db'))).toEqual([])
    expect(readFileSync(join(aside ?? '', 'encryption.key'), 'utf8')).toBe(other)
    const { databasePath, keyPath } = places()
    expect([databasePath, keyPath].map((path) => lstatSync(path).isSymbolicLink())).toEqual([true, true])
    expect(readdirSync(disk).filter((name) => /partial|before/.test(name))).toEqual([])
  })

  test('keeps a link target when only the database is replaced', async () => {
    await backedUp()
    const folder = await open()
    await addAccount(folder, 'acc_later')
    folder.close()
    const { disk } = moveApart()
    const { aside } = await restore()
    expect(await idsIn(join(disk, 'current'))).toEqual(['acc_a'])
    expect(await idsIn(join(aside ?? '', 'sluice.db'))).toEqual(['acc_a', 'acc_later'])
  })

  test('rejects a dangling link, and a link target in use by a server', async () => {
    await backedUp()
    const { disk } = moveApart()
    const lock = acquireFolderLock(disk)
    await expect(restore()).rejects.toThrow(FolderLockedError)
    lock.release()
    renameSync(disk, join(root, 'away'))
    await expect(restore()).rejects.toThrow('is a link to a missing or unreadable target')
    expect(lstatSync(places().databasePath).isSymbolicLink()).toBe(true)
    renameSync(join(root, 'away'), disk)
    expect((await restore()).verdict.accounts).toBe(1)
  })

  test('includes the content of the write-ahead log beside the file, as after a power failure', async () => {
    const folder = await open()
    await addAccount(folder, 'acc_a')
    for (const suffix of ['', '-wal']) copyFileSync(places().databasePath + suffix, backup + suffix)
    folder.close()
    expect(statSync(`${backup}-wal`).size).toBeGreaterThan(0)
    expect((await restore()).verdict).toMatchObject({ file: backup, accounts: 1 })
    expect(await idsIn(places().databasePath)).toEqual(['acc_a'])
    expect(getMode(places().databasePath)).toBe(0o600)
  })

  test('lists revoked access that works again', async () => {
    const folder = await open()
    const key = (id: string) => ({ id, name: `name of ${id}`, keyHash: id, keyPrefix: id, createdAt: 0 })
    const person = (id: string) => ({ id, username: id, roleId: 'role_admin', createdAt: 0, status: 'active' as const })
    await commit(folder.db, async (tx) => {
      await tx.insert(apiKeys).values(['kept', 'off', 'gone'].map(key)).run()
      await tx
        .insert(users)
        .values(['ada', 'eve', 'bob', 'ida'].map((id) => ({ ...person(id), passwordHash: 'old' })))
        .run()
      await tx
        .insert(passkeys)
        .values({
          id: 'p',
          credentialId: 'p',
          userId: 'ada',
          name: 'phone',
          publicKey: '',
          counter: 0,
          transports: [],
          createdAt: 0,
        })
        .run()
      await tx.insert(settings).values({ key: 'guestAccessEnabled', value: true, updatedAt: 0 }).run()
    })
    await copy()
    folder.close()
    expect(await restore()).toMatchObject({
      revived: { keys: [], people: [], passwords: [], passkeys: [], guests: false },
      isForeign: false,
    })
    const later = await open()
    await commit(later.db, async (tx) => {
      await tx.update(apiKeys).set({ isActive: false }).where(eq(apiKeys.id, 'off')).run()
      await tx.delete(apiKeys).where(eq(apiKeys.id, 'gone')).run()
      await tx.update(users).set({ status: 'disabled' }).where(eq(users.id, 'eve')).run()
      await tx.delete(users).where(eq(users.id, 'bob')).run()
      await tx.update(users).set({ passwordHash: 'new' }).where(eq(users.id, 'ida')).run()
      await tx.delete(passkeys).run()
      await tx.delete(settings).run()
    })
    later.close()
    expect((await restoreBackup({ file: backup, ...places(), actor: { ...actor, at: NOW + 1000 } })).revived).toEqual({
      keys: ['name of off', 'name of gone'],
      people: ['eve', 'bob'],
      passwords: ['ida'],
      passkeys: ['phone of ada'],
      guests: true,
    })
  })

  test('a write-ahead log without its database is not used for the restored one, and is moved aside', async () => {
    await backedUp()
    const folder = await open()
    await addAccount(folder, 'acc_later')
    const log = readFileSync(`${places().databasePath}-wal`)
    folder.close()
    for (const suffix of ['', '-wal', '-shm']) rmSync(places().databasePath + suffix, { force: true })
    writeFileSync(`${places().databasePath}-wal`, log) // as after a kill, and a `mv` of the database alone
    const { aside } = await restore()
    expect(await idsIn(places().databasePath)).toEqual(['acc_a'])
    expect(readFileSync(join(aside ?? '', 'sluice.db-wal'))).toEqual(log)
    expect(await verifyBackup(places().databasePath, places().keyPath)).toMatchObject({
      damage: [],
      audit: { isWhole: true },
    })
  })

  test('does not touch an equal key, which may be in a read-only place', async () => {
    await backedUp(places().keyPath)
    const before = statSync(places().keyPath).ino
    const { aside } = await restore()
    expect([statSync(places().keyPath).ino, existsSync(join(aside ?? '', 'encryption.key'))]).toEqual([before, false])
  })

  test('a key that cannot be replaced leaves the database unchanged', async () => {
    await backedUp(places().keyPath)
    const folder = await open()
    await addAccount(folder, 'acc_later')
    folder.close()
    const keyPath = join(root, 'no-such-folder', 'key')
    await expect(restoreBackup({ file: backup, ...places(), keyPath, actor })).rejects.toThrow()
    expect(await idsIn(places().databasePath)).toEqual(['acc_a', 'acc_later'])
    expect(readdirSync(dir).filter((name) => /partial|before/.test(name))).toEqual([])
  })

  test('into an empty folder needs the key beside it, which is restored too', async () => {
    await backedUp(places().keyPath)
    const key = readFileSync(places().keyPath, 'utf8')
    rmSync(dir, { recursive: true })
    expect((await restore()).aside).toBeNull()
    expect(readFileSync(places().keyPath, 'utf8')).toBe(key)
    expect(getMode(places().keyPath)).toBe(0o600)
    expect(await idsIn(places().databasePath)).toEqual(['acc_a'])
  })

  test('again within the same second keeps both previous databases', async () => {
    await backedUp()
    const folder = await open()
    await addAccount(folder, 'acc_later')
    folder.close()
    const asides = [await restore(), await restore(), await restore()].map(({ aside }) => aside ?? '')
    expect(asides.map((aside) => basename(aside).replace(/^before-restore-\d{8}-\d{6}/, ''))).toEqual(['', '-2', '-3'])
    expect(await mapInOrder(asides, async (aside) => (await idsIn(join(aside, 'sluice.db'))).length)).toEqual([2, 1, 1])
  })

  test('a replaced key is moved aside with its database', async () => {
    await backedUp(places().keyPath)
    rmSync(dir, { recursive: true })
    ;(await open(2)).close()
    const present = readFileSync(places().keyPath, 'utf8')
    const { aside, revived, isForeign } = await restore()
    expect({ revived, isForeign }).toEqual({ revived: null, isForeign: true }) // nothing in it was revoked here
    expect(readFileSync(join(aside ?? '', 'encryption.key'), 'utf8')).toBe(present)
    ;(await open(3)).close() // which checks the key against the database
  })

  const refreshTokens = async (path: string): Promise<(string | null)[]> => {
    const { sqlite, db } = openDatabase(path)
    try {
      return (await db.select().from(accounts).orderBy(accounts.id).all()).map((row) => row.refreshTokenSealed)
    } finally {
      sqlite.close()
    }
  }

  test('tokens refreshed since are carried over, because those of the backup are spent', async () => {
    const folder = await open()
    for (const id of ['renewed', 'same', 'older']) await addAccount(folder, id, 5)
    await copy()
    const now = (id: string, at: number) => ({ refreshTokenSealed: `${id} now`, lastRefreshAt: at, id })
    await commit(folder.db, async (tx) => {
      for (const { id, ...set } of [now('renewed', 9), now('same', 5), now('older', 3)])
        await tx.update(accounts).set(set).where(eq(accounts.id, id)).run()
    })
    folder.close()
    expect((await restore()).tokensKept).toBe(1)
    expect(await refreshTokens(places().databasePath)).toEqual([
      'refresh of older 5',
      'renewed now',
      'refresh of same 5',
    ])
  })

  test('tokens of another installation are not carried over, because no key here decrypts them', async () => {
    await backedUp(places().keyPath)
    rmSync(dir, { recursive: true })
    const stranger = await open(2)
    await addAccount(stranger, 'acc_a', 9)
    stranger.close()
    expect((await restore()).tokensKept).toBe(0)
    expect(await refreshTokens(places().databasePath)).toEqual(['refresh of acc_a 0'])
  })

  test('signs all users out, whose sessions may have ended since', async () => {
    const folder = await open()
    const session = { method: 'guest', isComplete: true, createdAt: 0, lastSeenAt: 0, expiresAt: NOW * 2 } as const
    await commit(folder.db, (tx) =>
      tx
        .insert(sessions)
        .values({ id: 's', tokenHash: 'h', ...session })
        .run(),
    )
    await copy()
    folder.close()
    await restore()
    const restored = await open()
    expect(await restored.db.select().from(sessions).all()).toEqual([])
    restored.close()
  })

  test('is rejected while a server uses the folder', async () => {
    await backedUp()
    const lock = acquireFolderLock(dir)
    await expect(restore()).rejects.toThrow(FolderLockedError)
    lock.release()
    expect((await restore()).verdict.accounts).toBe(1)
  })

  test('rejects another key, damage, and a newer schema, and changes nothing', async () => {
    await backedUp()
    const before = readFileSync(places().databasePath)
    const { sqlite } = openDatabase(backup)
    sqlite.run("INSERT INTO migrations VALUES ('9999_future', 'x', 0)")
    sqlite.run('PRAGMA journal_mode = DELETE')
    sqlite.close()
    await expect(restore()).rejects.toThrow('newer version')
    writeFileSync(places().keyPath, `${Buffer.alloc(32, 1).toString('base64url')}\n`)
    rmSync(backup)
    await copy()
    await expect(restore()).rejects.toThrow('encryption key')
    const freePages = Buffer.from([0, 0, 0, 5]) // in the file's header: a wrong count, with everything still readable
    writeFileSync(backup, Buffer.concat([before.subarray(0, 36), freePages, before.subarray(40)]))
    await expect(restore()).rejects.toThrow(`${backup} is damaged: `)
    expect(readFileSync(places().databasePath)).toEqual(before)
    expect(readdirSync(dir).filter((name) => name.startsWith('before-restore'))).toEqual([])
  })

  test('one of the very first release is migrated', async () => {
    ;(await open()).close()
    const [first] = MIGRATIONS.toSorted((a, b) => (a.name < b.name ? -1 : 1))
    const { sqlite } = openDatabase(backup)
    migrate(sqlite, first ? [first] : [], 0)
    sqlite.run("INSERT INTO audit_logs (at, event, actor, severity) VALUES (1, 'account_imported', 'cli', 'info')")
    sqlite.run('PRAGMA journal_mode = DELETE')
    sqlite.close()
    expect(await verify()).toMatchObject({ schema: 'older', audit: { isWhole: true, rows: 1, unchained: 1 } })
    expect((await restore()).migrated).toHaveLength(MIGRATIONS.length - 1)
    expect(await verifyBackup(places().databasePath, places().keyPath)).toMatchObject({
      schema: 'current',
      audit: { isWhole: true, rows: 2, unchained: 1 },
    })
    ;(await open()).close()
  })
})

describe('the backup folder', () => {
  const at = (hour: number) => Date.UTC(2026, 0, 1, hour)
  const setUp = (write: (target: string) => Promise<string | null>) => {
    const clock = new ManualClock(at(0))
    return { clock, backups: new Backups({ dir, clock, write }) }
  }
  const writing = async (target: string) => {
    writeFileSync(target, 'a backup')
    return null
  }

  test('keeps the newest few, and never deletes other files', async () => {
    const { clock, backups } = setUp(writing)
    expect(await backups.list()).toEqual([])
    for (let hour = 0; hour < 4; hour++) {
      await backups.make('scheduled')
      await clock.advance('1h')
    }
    writeFileSync(join(dir, 'backups', 'mine.db'), '')
    writeFileSync(`${backupPath(dir, at(0), 'scheduled')}.key`, '')
    expect((await backups.keepNewest(2)).toSorted()).toEqual(['sluice-20260101-000000.db', 'sluice-20260101-010000.db'])
    expect((await backups.list()).map((backup) => backup.at)).toEqual([at(3), at(2)])
    expect(backups.newestAt).toBe(at(3))
    expect(readdirSync(join(dir, 'backups')).toSorted()).toEqual([
      'mine.db',
      'sluice-20260101-020000.db',
      'sluice-20260101-030000.db',
    ])
    expect(getMode(join(dir, 'backups'))).toBe(0o700)
  })

  test('manual backups do not displace scheduled ones, and are created at most every minute', async () => {
    const { clock, backups } = setUp(writing)
    await backups.make('scheduled')
    await expect(backups.make('manual')).rejects.toThrow('A backup was just created')
    for (let n = 0; n < 4; n++) {
      await clock.advance('1m')
      await backups.make('manual')
    }
    expect(await backups.keepNewest(2)).toEqual([
      'sluice-20260101-000200-manual.db',
      'sluice-20260101-000100-manual.db',
    ])
    expect((await backups.list()).map(({ kind }) => kind)).toEqual(['manual', 'manual', 'scheduled'])
  })

  test('one dated in the future neither counts nor is deleted', async () => {
    const { clock, backups } = setUp(writing)
    await backups.make('scheduled')
    writeFileSync(backupPath(dir, at(99_999), 'scheduled'), '')
    await backups.list()
    expect(backups.newestAt).toBe(at(0))
    await clock.advance('1h')
    await backups.make('scheduled')
    expect(await backups.keepNewest(1)).toEqual(['sluice-20260101-000000.db'])
    expect(await backups.list()).toHaveLength(2)
  })

  test('two simultaneous requests create one backup, and an error gives the reason', async () => {
    let calls = 0
    const { backups } = setUp(async (target) => {
      calls++
      return writing(target)
    })
    const [a, b] = await Promise.all([backups.make('scheduled'), backups.make('scheduled')])
    expect([calls, a.name]).toEqual([1, b.name])
    const failing = setUp(async () => 'sluice: the disk is full')
    expect(failing.backups.make('scheduled')).rejects.toThrow('The backup failed: the disk is full.')
  })

  test('reports why the folder cannot be used', async () => {
    const { backups } = setUp(writing)
    mkdirSync(dir)
    writeFileSync(join(dir, 'backups'), '')
    expect(backups.make('scheduled')).rejects.toThrow('The backup failed: EEXIST')
  })

  test('partial files of an interrupted backup are deleted with the next, unless still being written', async () => {
    const { clock, backups } = setUp(writing)
    const [old, young] = [
      `${backupPath(dir, at(0) - 1000, 'scheduled')}.partial`,
      `${backupPath(dir, at(0) - 2000, 'scheduled')}.partial`,
    ]
    await backups.make('scheduled')
    for (const [path, ageMs] of [
      [old, 2 * 3_600_000],
      [young, 60_000],
    ] as const) {
      writeFileSync(path, '')
      utimesSync(path, new Date(clock.now() - ageMs), new Date(clock.now() - ageMs))
    }
    await clock.advance('1s')
    await backups.make('scheduled')
    expect([existsSync(old), existsSync(young)]).toEqual([false, true])
  })

  test('only its own file names lead to a file', async () => {
    const { backups } = setUp(writing)
    const { name } = await backups.make('scheduled')
    expect(await backups.find(name)).toBe(join(dir, 'backups', name))
    mkdirSync(join(root, 'x'), { recursive: true })
    for (const wrong of ['../sluice.db', 'mine.db', '', 'sluice-20260101-000001.db'])
      expect(backups.find(wrong)).rejects.toThrow('Backup not found')
  })
})
