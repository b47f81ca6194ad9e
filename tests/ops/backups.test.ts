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
import { acquireFolderLock, FolderLockedError } from '../../db/lock.ts'
import { migrate } from '../../db/migrate.ts'
import { MIGRATIONS } from '../../db/migrations/index.ts'
import { openDatabase } from '../../db/open.ts'
import { accounts } from '../../db/schema/accounts.ts'
import { apiKeys } from '../../db/schema/keys.ts'
import { passkeys, sessions, users } from '../../db/schema/people.ts'
import { auditLogs, settings } from '../../db/schema/system.ts'
import { type Folder, openFolder } from '../../src/cli/open-folder.ts'
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

const open = (seed = 1): Folder =>
  openFolder(
    { DATA_DIR: dir, ENCRYPTION_KEY_FILE: undefined },
    { clock: new ManualClock(), random: seededRandom(seed) },
  )

const addAccount = ({ db }: Folder, id: string, lastRefreshAt = 0) =>
  commit(db, (tx) => {
    tx.insert(accounts)
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
    append(tx, actor, 'account_imported', { target: id })
  })

const idsIn = (path: string): string[] => {
  const { sqlite, db } = openDatabase(path)
  try {
    return db
      .select({ id: accounts.id })
      .from(accounts)
      .all()
      .map(({ id }) => id)
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
const backedUp = (keyFile: string | null = null) => {
  const folder = open()
  addAccount(folder, 'acc_a')
  copy(keyFile)
  folder.close()
}

describe('creating a backup', () => {
  test('copies all commits, including those only in the write-ahead log, and is private', () => {
    const folder = open()
    addAccount(folder, 'acc_a')
    const made = copy()
    folder.close()
    expect(made).toMatchObject({ file: backup, keyFile: null })
    expect(idsIn(backup)).toEqual(['acc_a'])
    expect(getMode(backup)).toBe(0o600)
    expect(existsSync(toKey(backup))).toBe(false)
  })

  test('removes the partial copy of a killed process, and none that may still be written', () => {
    const folder = open()
    addAccount(folder, 'acc_a')
    folder.close()
    const old = ['copy.db.0a1b2c3d.partial', 'copy.db.0a1b2c3d.partial.key', 'copy.db.partial']
    const others = ['copy.db.4e5f6a7b.partial', 'mine.db.0a1b2c3d.partial']
    for (const name of [...old, ...others]) writeFileSync(join(root, name), 'half a backup')
    for (const name of [...old, 'mine.db.0a1b2c3d.partial']) utimesSync(join(root, name), 0, 0)
    copy(places().keyPath)
    expect(idsIn(backup)).toEqual(['acc_a'])
    expect(
      readdirSync(root)
        .filter((name) => name.includes('partial'))
        .sort(),
    ).toEqual(others)
  })

  test('only one of two backups created in parallel under one name is complete, and the other reports it', () => {
    const folder = open()
    addAccount(folder, 'acc_a')
    folder.close()
    const { keyPath: keyFile } = places()
    const first = { source: places().databasePath, target: backup, keyFile }
    const link: typeof linkSync = (from, to) => {
      copy(keyFile) // the second begins while the first is written, and ends before it
      linkSync(from, to)
    }
    expect(() => makeBackup({ ...first, link })).toThrow(`${backup} already exists. Choose another name.`)
    expect(verify()).toMatchObject({ damage: [], accounts: 1 })
    expect(readdirSync(root).filter((name) => name.includes('partial'))).toEqual([])
    expect(readFileSync(toKey(backup))).toEqual(readFileSync(keyFile))
  })

  test('checkpoints what a server wrote since, so that no commit of the server has to', () => {
    const folder = open()
    folder.sqlite.run('PRAGMA wal_autocheckpoint = 0')
    addAccount(folder, 'ada')
    const carried = () => {
      copyFileSync(folder.databasePath, join(root, 'alone.db'))
      return idsIn(join(root, 'alone.db'))
    }
    copy()
    expect(carried()).toEqual(['ada'])
    folder.close()
  })

  test('includes the key only when requested, as privately', () => {
    backedUp(places().keyPath)
    expect(getMode(toKey(backup))).toBe(0o600)
    expect(readFileSync(toKey(backup), 'utf8')).toBe(readFileSync(places().keyPath, 'utf8'))
  })

  test('needs space for the copy, and for what the server stores during it', () => {
    open().close()
    const source = places().databasePath
    const log = statSync(`${source}-wal`, { throwIfNoEntry: false })?.size ?? 0
    const needed = statSync(source).size + log + 200 * 1024 * 1024
    const request = { source, target: backup, keyFile: null }
    expect(() => makeBackup({ ...request, roomFor: () => needed - 1 })).toThrow('Not enough free space for a backup')
    expect(readdirSync(root)).toEqual(['data'])
    expect(makeBackup({ ...request, roomFor: () => needed }).file).toBe(backup)
  })

  test('overwrites nothing, and leaves nothing incomplete', () => {
    open().close()
    writeFileSync(backup, 'mine')
    expect(() => copy()).toThrow('already exists')
    expect(readFileSync(backup, 'utf8')).toBe('mine')
    rmSync(backup)
    rmSync(places().databasePath)
    expect(() => copy()).toThrow('There is no database')
    expect(readdirSync(root)).toEqual(['data'])
  })

  test('is not placed beside the write-ahead log of another file, which SQLite would use', () => {
    open().close()
    writeFileSync(`${backup}-wal`, 'of an earlier copy')
    expect(() => copy()).toThrow('-wal already exists')
    expect(readdirSync(root).sort()).toEqual(['copy.db-wal', 'data'])
  })

  test('includes no key that cannot decrypt it, and copies no other database', () => {
    open().close()
    const other = join(root, 'other.key')
    writeFileSync(other, `${Buffer.alloc(32, 9).toString('base64url')}\n`)
    expect(() => copy(other)).toThrow('is not the encryption key of this database')
    rmSync(places().databasePath)
    writeFileSync(places().databasePath, '')
    expect(() => copy()).toThrow('is not a database of Sluice')
    expect(readdirSync(root).sort()).toEqual(['data', 'other.key'])
  })

  test('rejects a damaged database, whose copy would be damaged', () => {
    const { sqlite } = open()
    sqlite.run('CREATE TABLE notes (x UNIQUE)')
    sqlite.run("INSERT INTO notes VALUES ('a note')")
    sqlite.run('PRAGMA wal_checkpoint(TRUNCATE)')
    sqlite.close()
    const bytes = readFileSync(places().databasePath)
    bytes.write('A', bytes.lastIndexOf('a note')) // in the index, whose page comes after that of the table
    writeFileSync(places().databasePath, bytes)
    expect(() => copy()).toThrow('No backup was created, because the database is damaged: row 1 missing from index')
    expect(readdirSync(root)).toEqual(['data'])
  })

  test('leaves neither the copy nor an empty key if the key cannot be included', () => {
    open().close()
    const noKey = join(root, 'a folder')
    mkdirSync(noKey)
    expect(() => makeBackup({ source: places().databasePath, target: backup, keyFile: noKey })).toThrow('backup failed')
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

    test('a copy is created all the same, as privately', () => {
      const folder = open()
      addAccount(folder, 'acc_a')
      onAShare()
      folder.close()
      expect(readdirSync(root).sort()).toEqual(['copy.db', 'data'])
      expect(idsIn(backup)).toEqual(['acc_a'])
      expect(getMode(backup)).toBe(0o600)
    })

    test('it replaces no file created at the same time', () => {
      open().close()
      expect(() => onAShare(() => writeFileSync(backup, 'mine'))).toThrow('already exists')
      expect(readFileSync(backup, 'utf8')).toBe('mine')
      expect(readdirSync(root).sort()).toEqual(['copy.db', 'data'])
    })
  })

  test('a missing folder is named', () => {
    open().close()
    const request = { source: places().databasePath, target: join(root, 'nas', 'copy.db'), keyFile: null }
    expect(() => makeBackup(request)).toThrow(`The folder ${join(root, 'nas')} does not exist. Create it first.`)
  })
})

describe('verifying', () => {
  test('a valid one can be restored and describes its content', () => {
    backedUp()
    const verdict = verify()
    expect(verdict).toMatchObject({ damage: [], schema: 'current', key: 'fits', accounts: 1, audit: { isWhole: true } })
    expect(isRestorable(verdict)).toBe(true)
  })

  test('the wrong key and a missing one are distinguished', () => {
    backedUp()
    rmSync(places().keyPath)
    expect(verify().key).toBe('missing')
    writeFileSync(places().keyPath, `${Buffer.alloc(32, 1).toString('base64url')}\n`)
    expect(verify().key).toBe('other')
    expect(isRestorable(verify())).toBe(false)
  })

  test('one of a newer version is detected, and like a damaged one cannot be restored', () => {
    backedUp()
    const good = verify()
    const { sqlite } = openDatabase(backup)
    sqlite.run("INSERT INTO migrations VALUES ('9999_future', 'x', 0)")
    sqlite.run('PRAGMA journal_mode = DELETE')
    sqlite.close()
    expect(verify().schema).toBe('newer')
    expect(isRestorable(verify())).toBe(false)
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
  ])('%s makes it impossible to restore', (_what, statements, differences) => {
    backedUp()
    changeSchema(...statements)
    expect(verify()).toMatchObject({ schemaDifferences: differences })
    expect(isRestorable(verify())).toBe(false)
    const before = readFileSync(places().databasePath)
    expect(() => restore()).toThrow(`has a schema that no release of Sluice created: ${differences[0]}`)
    expect(readFileSync(places().databasePath)).toEqual(before)
  })

  test('statistics that SQLite keeps are no difference', () => {
    backedUp()
    changeSchema('ANALYZE')
    expect(verify().schemaDifferences).toEqual([])
  })

  test('damage is detected', () => {
    backedUp()
    const bytes = readFileSync(backup)
    bytes.fill(0xff, 8192, 20_000)
    writeFileSync(backup, bytes)
    const found = (() => {
      try {
        return verify().damage
      } catch (err) {
        return [String(err)]
      }
    })()
    expect(found).not.toEqual([])
  })

  test('a file that is not a Sluice backup is rejected with a sentence', () => {
    writeFileSync(backup, 'hello')
    expect(() => verify()).toThrow('is not a database')
    rmSync(backup)
    expect(() => verify()).toThrow('There is no file')
    mkdirSync(backup)
    expect(() => verify()).toThrow('There is no file')
    rmSync(backup, { recursive: true })
    writeFileSync(backup, 'a photograph, which is longer than a page '.repeat(200))
    expect(() => verify()).toThrow(`${backup} cannot be read: file is not a database`)
    rmSync(backup)
    openDatabase(backup).sqlite.run('CREATE TABLE notes (x)')
    expect(() => verify()).toThrow('is not a backup of Sluice')
  })

  test('a modified audit row is reported, and the rest can still be restored', () => {
    backedUp()
    const { sqlite, db } = openDatabase(backup)
    sqlite.run("UPDATE audit_logs SET target = 'somebody else'")
    expect(db.select().from(auditLogs).all()).toHaveLength(1)
    sqlite.close()
    expect(verify().audit).toMatchObject({ isWhole: false })
    expect(isRestorable(verify())).toBe(true)
  })
})

describe('saving the database of a server whose file was removed', () => {
  test('reports why it failed, and leaves nothing behind', () => {
    const folder = open()
    rmSync(folder.databasePath)
    expect(copyThroughServer(folder.sqlite, join(root, 'missing', 'copy.db'))).toStartWith('ENOENT')
    folder.sqlite.run('BEGIN')
    expect(copyThroughServer(folder.sqlite, backup)).toBe('cannot VACUUM from within a transaction')
    folder.sqlite.run('ROLLBACK')
    expect(readdirSync(root)).toEqual(['data'])
    expect([copyThroughServer(folder.sqlite, backup), idsIn(backup)]).toEqual([null, []])
    folder.close()
  })
})

describe('restoring', () => {
  test('replaces the database, keeps the previous one, and records it in the audit log', () => {
    backedUp()
    const later = open()
    addAccount(later, 'acc_later')
    later.close()
    const { aside } = restore()
    expect(idsIn(places().databasePath)).toEqual(['acc_a'])
    expect(getMode(places().databasePath)).toBe(0o600)
    expect(idsIn(join(aside ?? '', 'sluice.db'))).toEqual(['acc_a', 'acc_later'])
    const folder = open()
    const events = folder.db.select().from(auditLogs).all()
    expect(events.map(({ event }) => event)).toEqual(['account_imported', 'backup_restored'])
    folder.close()
    expect(verifyBackup(places().databasePath, places().keyPath).audit.isWhole).toBe(true)
    expect(readdirSync(dir).filter((name) => name.includes('partial'))).toEqual([])
  })

  test('removes the partial copy of a killed process', () => {
    backedUp()
    for (const name of ['restore.partial', 'restore.partial-journal']) writeFileSync(join(dir, name), 'half a database')
    restore()
    expect(idsIn(places().databasePath)).toEqual(['acc_a'])
    expect(readdirSync(dir).filter((name) => name.includes('partial'))).toEqual([])
  })

  test('does not use that copy as a backup, nor remove the one to restore', () => {
    backedUp()
    const file = join(dir, 'restore.partial')
    copyFileSync(backup, file)
    expect(() => restoreBackup({ file, ...places(), actor })).toThrow('Restore the original backup')
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

  test('replaces link targets, and keeps the previous ones under their names', () => {
    backedUp(places().keyPath)
    rmSync(dir, { recursive: true })
    open(2).close()
    const { disk, vault } = moveApart()
    const [key, other] = [readFileSync(toKey(backup), 'utf8'), readFileSync(join(vault, 'current'), 'utf8')]
    const { aside } = restore()
    expect(idsIn(join(disk, 'current'))).toEqual(['acc_a'])
    expect(readFileSync(join(vault, 'current'), 'utf8')).toBe(key)
    expect(idsIn(join(aside ?? '', 'sluice.db'))).toEqual([])
    expect(readFileSync(join(aside ?? '', 'encryption.key'), 'utf8')).toBe(other)
    const { databasePath, keyPath } = places()
    expect([databasePath, keyPath].map((path) => lstatSync(path).isSymbolicLink())).toEqual([true, true])
    expect(readdirSync(disk).filter((name) => /partial|before/.test(name))).toEqual([])
  })

  test('keeps a link target when only the database is replaced', () => {
    backedUp()
    const folder = open()
    addAccount(folder, 'acc_later')
    folder.close()
    const { disk } = moveApart()
    const { aside } = restore()
    expect(idsIn(join(disk, 'current'))).toEqual(['acc_a'])
    expect(idsIn(join(aside ?? '', 'sluice.db'))).toEqual(['acc_a', 'acc_later'])
  })

  test('rejects a dangling link, and a link target in use by a server', () => {
    backedUp()
    const { disk } = moveApart()
    const lock = acquireFolderLock(disk)
    expect(() => restore()).toThrow(FolderLockedError)
    lock.release()
    renameSync(disk, join(root, 'away'))
    expect(() => restore()).toThrow('is a link to a missing or unreadable target')
    expect(lstatSync(places().databasePath).isSymbolicLink()).toBe(true)
    renameSync(join(root, 'away'), disk)
    expect(restore().verdict.accounts).toBe(1)
  })

  test('includes the content of the write-ahead log beside the file, as after a power failure', () => {
    const folder = open()
    addAccount(folder, 'acc_a')
    for (const suffix of ['', '-wal']) copyFileSync(places().databasePath + suffix, backup + suffix)
    folder.close()
    expect(statSync(`${backup}-wal`).size).toBeGreaterThan(0)
    expect(restore().verdict).toMatchObject({ file: backup, accounts: 1 })
    expect(idsIn(places().databasePath)).toEqual(['acc_a'])
    expect(getMode(places().databasePath)).toBe(0o600)
  })

  test('lists revoked access that works again', () => {
    const folder = open()
    const key = (id: string) => ({ id, name: `name of ${id}`, keyHash: id, keyPrefix: id, createdAt: 0 })
    const person = (id: string) => ({ id, username: id, roleId: 'role_admin', createdAt: 0, status: 'active' as const })
    commit(folder.db, (tx) => {
      tx.insert(apiKeys).values(['kept', 'off', 'gone'].map(key)).run()
      tx.insert(users)
        .values(['ada', 'eve', 'bob', 'ida'].map((id) => ({ ...person(id), passwordHash: 'old' })))
        .run()
      tx.insert(passkeys)
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
      tx.insert(settings).values({ key: 'guestAccessEnabled', value: true, updatedAt: 0 }).run()
    })
    copy()
    folder.close()
    expect(restore()).toMatchObject({
      revived: { keys: [], people: [], passwords: [], passkeys: [], guests: false },
      isForeign: false,
    })
    const later = open()
    commit(later.db, (tx) => {
      tx.update(apiKeys).set({ isActive: false }).where(eq(apiKeys.id, 'off')).run()
      tx.delete(apiKeys).where(eq(apiKeys.id, 'gone')).run()
      tx.update(users).set({ status: 'disabled' }).where(eq(users.id, 'eve')).run()
      tx.delete(users).where(eq(users.id, 'bob')).run()
      tx.update(users).set({ passwordHash: 'new' }).where(eq(users.id, 'ida')).run()
      tx.delete(passkeys).run()
      tx.delete(settings).run()
    })
    later.close()
    expect(restoreBackup({ file: backup, ...places(), actor: { ...actor, at: NOW + 1000 } }).revived).toEqual({
      keys: ['name of off', 'name of gone'],
      people: ['eve', 'bob'],
      passwords: ['ida'],
      passkeys: ['phone of ada'],
      guests: true,
    })
  })

  test('a write-ahead log without its database is not used for the restored one, and is moved aside', () => {
    backedUp()
    const folder = open()
    addAccount(folder, 'acc_later')
    const log = readFileSync(`${places().databasePath}-wal`)
    folder.close()
    for (const suffix of ['', '-wal', '-shm']) rmSync(places().databasePath + suffix, { force: true })
    writeFileSync(`${places().databasePath}-wal`, log) // as after a kill, and a `mv` of the database alone
    const { aside } = restore()
    expect(idsIn(places().databasePath)).toEqual(['acc_a'])
    expect(readFileSync(join(aside ?? '', 'sluice.db-wal'))).toEqual(log)
    expect(verifyBackup(places().databasePath, places().keyPath)).toMatchObject({
      damage: [],
      audit: { isWhole: true },
    })
  })

  test('does not touch an equal key, which may be in a read-only place', () => {
    backedUp(places().keyPath)
    const before = statSync(places().keyPath).ino
    const { aside } = restore()
    expect([statSync(places().keyPath).ino, existsSync(join(aside ?? '', 'encryption.key'))]).toEqual([before, false])
  })

  test('a key that cannot be replaced leaves the database unchanged', () => {
    backedUp(places().keyPath)
    const folder = open()
    addAccount(folder, 'acc_later')
    folder.close()
    const keyPath = join(root, 'no-such-folder', 'key')
    expect(() => restoreBackup({ file: backup, ...places(), keyPath, actor })).toThrow()
    expect(idsIn(places().databasePath)).toEqual(['acc_a', 'acc_later'])
    expect(readdirSync(dir).filter((name) => /partial|before/.test(name))).toEqual([])
  })

  test('into an empty folder needs the key beside it, which is restored too', () => {
    backedUp(places().keyPath)
    const key = readFileSync(places().keyPath, 'utf8')
    rmSync(dir, { recursive: true })
    expect(restore().aside).toBeNull()
    expect(readFileSync(places().keyPath, 'utf8')).toBe(key)
    expect(getMode(places().keyPath)).toBe(0o600)
    expect(idsIn(places().databasePath)).toEqual(['acc_a'])
  })

  test('again within the same second keeps both previous databases', () => {
    backedUp()
    const folder = open()
    addAccount(folder, 'acc_later')
    folder.close()
    const asides = [restore(), restore(), restore()].map(({ aside }) => aside ?? '')
    expect(asides.map((aside) => basename(aside).replace(/^before-restore-\d{8}-\d{6}/, ''))).toEqual(['', '-2', '-3'])
    expect(asides.map((aside) => idsIn(join(aside, 'sluice.db')).length)).toEqual([2, 1, 1])
  })

  test('a replaced key is moved aside with its database', () => {
    backedUp(places().keyPath)
    rmSync(dir, { recursive: true })
    open(2).close()
    const present = readFileSync(places().keyPath, 'utf8')
    const { aside, revived, isForeign } = restore()
    expect({ revived, isForeign }).toEqual({ revived: null, isForeign: true }) // nothing in it was revoked here
    expect(readFileSync(join(aside ?? '', 'encryption.key'), 'utf8')).toBe(present)
    open(3).close() // which checks the key against the database
  })

  const refreshTokens = (path: string): (string | null)[] => {
    const { sqlite, db } = openDatabase(path)
    try {
      return db
        .select()
        .from(accounts)
        .orderBy(accounts.id)
        .all()
        .map((row) => row.refreshTokenSealed)
    } finally {
      sqlite.close()
    }
  }

  test('tokens refreshed since are carried over, because those of the backup are spent', () => {
    const folder = open()
    for (const id of ['renewed', 'same', 'older']) addAccount(folder, id, 5)
    copy()
    const now = (id: string, at: number) => ({ refreshTokenSealed: `${id} now`, lastRefreshAt: at, id })
    commit(folder.db, (tx) => {
      for (const { id, ...set } of [now('renewed', 9), now('same', 5), now('older', 3)])
        tx.update(accounts).set(set).where(eq(accounts.id, id)).run()
    })
    folder.close()
    expect(restore().tokensKept).toBe(1)
    expect(refreshTokens(places().databasePath)).toEqual(['refresh of older 5', 'renewed now', 'refresh of same 5'])
  })

  test('tokens of another installation are not carried over, because no key here decrypts them', () => {
    backedUp(places().keyPath)
    rmSync(dir, { recursive: true })
    const stranger = open(2)
    addAccount(stranger, 'acc_a', 9)
    stranger.close()
    expect(restore().tokensKept).toBe(0)
    expect(refreshTokens(places().databasePath)).toEqual(['refresh of acc_a 0'])
  })

  test('signs all users out, whose sessions may have ended since', () => {
    const folder = open()
    const session = { method: 'guest', isComplete: true, createdAt: 0, lastSeenAt: 0, expiresAt: NOW * 2 } as const
    commit(folder.db, (tx) =>
      tx
        .insert(sessions)
        .values({ id: 's', tokenHash: 'h', ...session })
        .run(),
    )
    copy()
    folder.close()
    restore()
    const restored = open()
    expect(restored.db.select().from(sessions).all()).toEqual([])
    restored.close()
  })

  test('is rejected while a server uses the folder', () => {
    backedUp()
    const lock = acquireFolderLock(dir)
    expect(() => restore()).toThrow(FolderLockedError)
    lock.release()
    expect(restore().verdict.accounts).toBe(1)
  })

  test('rejects another key, damage, and a newer schema, and changes nothing', () => {
    backedUp()
    const before = readFileSync(places().databasePath)
    const { sqlite } = openDatabase(backup)
    sqlite.run("INSERT INTO migrations VALUES ('9999_future', 'x', 0)")
    sqlite.run('PRAGMA journal_mode = DELETE')
    sqlite.close()
    expect(() => restore()).toThrow('newer version')
    writeFileSync(places().keyPath, `${Buffer.alloc(32, 1).toString('base64url')}\n`)
    rmSync(backup)
    copy()
    expect(() => restore()).toThrow('encryption key')
    const freePages = Buffer.from([0, 0, 0, 5]) // in the file's header: a wrong count, with everything still readable
    writeFileSync(backup, Buffer.concat([before.subarray(0, 36), freePages, before.subarray(40)]))
    expect(() => restore()).toThrow(`${backup} is damaged: `)
    expect(readFileSync(places().databasePath)).toEqual(before)
    expect(readdirSync(dir).filter((name) => name.startsWith('before-restore'))).toEqual([])
  })

  test('one of the very first release is migrated', () => {
    open().close()
    const [first] = MIGRATIONS.toSorted((a, b) => (a.name < b.name ? -1 : 1))
    const { sqlite } = openDatabase(backup)
    migrate(sqlite, first ? [first] : [], 0)
    sqlite.run("INSERT INTO audit_logs (at, event, actor, severity) VALUES (1, 'account_imported', 'cli', 'info')")
    sqlite.run('PRAGMA journal_mode = DELETE')
    sqlite.close()
    expect(verify()).toMatchObject({ schema: 'older', audit: { isWhole: true, rows: 1, unchained: 1 } })
    expect(restore().migrated).toHaveLength(MIGRATIONS.length - 1)
    expect(verifyBackup(places().databasePath, places().keyPath)).toMatchObject({
      schema: 'current',
      audit: { isWhole: true, rows: 2, unchained: 1 },
    })
    open().close()
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
