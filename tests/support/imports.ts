/** Hand-made files of other programs, in their public forms, with accounts of the stand-in upstream. */
import { Database } from 'bun:sqlite'
import { createCipheriv, createHash, createHmac } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestApp } from './app.ts'
import type { Account } from './upstream/accounts.ts'

/** A Fernet key as in the file `encryption.key`. */
export const FERNET_KEY = Buffer.alloc(32, 7).toString('base64url').concat('=')
export const OTHER_FERNET_KEY = Buffer.alloc(32, 9).toString('base64url').concat('=')

/** A Fernet token (github.com/fernet/spec). */
export const sealFernet = (text: string, key = FERNET_KEY): string => {
  const bytes = Buffer.from(key, 'base64url')
  const iv = Buffer.alloc(16, 3)
  const cipher = createCipheriv('aes-128-cbc', bytes.subarray(16), iv)
  const head = Buffer.concat([Buffer.from([0x80]), Buffer.alloc(8), iv])
  const signed = Buffer.concat([head, cipher.update(text), cipher.final()])
  const mac = createHmac('sha256', bytes.subarray(0, 16)).update(signed).digest()
  return Buffer.concat([signed, mac]).toString('base64url')
}

/** What the tables need of an account. */
export type StoredSim = Pick<
  Account,
  'chatgptAccountId' | 'email' | 'plan' | 'accessToken' | 'refreshToken' | 'idToken'
>

export interface CodexLbStore {
  accounts?: ({ sim: StoredSim } & Record<string, unknown>)[]
  keys?: ({ key: string; limits?: object[]; accounts?: string[] } & Record<string, unknown>)[]
  settings?: Record<string, unknown>
  firewall?: string[]
  encryptionKey?: string
  /** Rows of `request_logs`. */
  requests?: object[]
  /** Statements that make another version of it. */
  changes?: string[]
  revision?: string
}

/** The tables that Sluice reads, with the columns of codex-lb. */
const SCHEMA = [
  `CREATE TABLE alembic_version (version_num TEXT PRIMARY KEY)`,
  `CREATE TABLE accounts (
    id TEXT PRIMARY KEY, chatgpt_account_id TEXT, chatgpt_user_id TEXT, codex_installation_id TEXT, email TEXT NOT NULL,
    alias TEXT, workspace_id TEXT, workspace_label TEXT, seat_type TEXT, plan_type TEXT NOT NULL,
    routing_policy TEXT NOT NULL DEFAULT 'normal', access_token_encrypted BLOB NOT NULL,
    refresh_token_encrypted BLOB NOT NULL, id_token_encrypted BLOB NOT NULL, last_refresh DATETIME NOT NULL,
    created_at DATETIME, status TEXT NOT NULL DEFAULT 'active', deactivation_reason TEXT, reset_at INTEGER,
    blocked_at INTEGER, security_work_authorized INTEGER NOT NULL DEFAULT 0, delete_requested_at DATETIME)`,
  `CREATE TABLE api_keys (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, key_hash TEXT NOT NULL UNIQUE, key_prefix TEXT NOT NULL,
    allowed_models TEXT, apply_to_codex_model INTEGER NOT NULL DEFAULT 0, enforced_model TEXT,
    enforced_reasoning_effort TEXT, allowed_reasoning_efforts TEXT, enforced_service_tier TEXT,
    traffic_class TEXT NOT NULL DEFAULT 'foreground', transport_policy_override TEXT, usage_sections TEXT,
    account_assignment_scope_enabled INTEGER NOT NULL DEFAULT 0,
    source_assignment_scope_enabled INTEGER NOT NULL DEFAULT 0, expires_at DATETIME,
    is_active INTEGER NOT NULL DEFAULT 1, created_at DATETIME, last_used_at DATETIME)`,
  `CREATE TABLE api_key_accounts (api_key_id TEXT, account_id TEXT, created_at DATETIME)`,
  `CREATE TABLE api_key_limits (
    id INTEGER PRIMARY KEY, api_key_id TEXT NOT NULL, limit_type TEXT NOT NULL, limit_window TEXT NOT NULL,
    max_value BIGINT NOT NULL, current_value BIGINT NOT NULL DEFAULT 0, model_filter TEXT, reset_at DATETIME NOT NULL)`,
  `CREATE TABLE api_firewall_allowlist (ip_address TEXT PRIMARY KEY, created_at DATETIME)`,
  `CREATE TABLE request_logs (
    id INTEGER PRIMARY KEY AUTOINCREMENT, request_id TEXT NOT NULL, account_id TEXT, api_key_id TEXT, model TEXT,
    request_kind TEXT NOT NULL DEFAULT 'normal', transport TEXT, upstream_transport TEXT, reasoning_effort TEXT,
    service_tier TEXT, useragent TEXT, client_ip TEXT, input_tokens INTEGER, output_tokens INTEGER,
    cached_input_tokens INTEGER, reasoning_tokens INTEGER, cost_usd REAL, latency_ms INTEGER,
    latency_first_token_ms INTEGER, status TEXT NOT NULL, error_code TEXT, error_message TEXT,
    upstream_status_code INTEGER, requested_at DATETIME NOT NULL, deleted_at DATETIME)`,
  `CREATE TABLE dashboard_settings (
    id INTEGER PRIMARY KEY, routing_strategy TEXT, prefer_earlier_reset_accounts INTEGER, single_account_id TEXT,
    proxy_account_stream_limit INTEGER, api_key_auth_enabled INTEGER, hide_upstream_quota_from_api_keys INTEGER)`,
]

/** Creates `store.db` and `encryption.key` in `dir`, as codex-lb leaves them when it has stopped. Returns its path. */
export const createCodexLb = (dir: string, store: CodexLbStore): string => {
  const { accounts = [], keys = [], settings, firewall = [], encryptionKey = FERNET_KEY } = store
  mkdirSync(dir, { recursive: true })
  writeFileSync(join(dir, 'encryption.key'), encryptionKey)
  const path = join(dir, 'store.db')
  const db = new Database(path, { create: true })
  db.run('PRAGMA journal_mode = WAL')
  db.transaction(() => {
    for (const statement of SCHEMA) db.run(statement)
    insert(db, 'alembic_version', { version_num: store.revision ?? '20260630_000000_add_limit_warmup_staggered_idle' })
    for (const [index, { sim, ...row }] of accounts.entries()) insert(db, 'accounts', accountRow(sim, row, index))
    for (const [index, { key, limits = [], accounts: assigned, ...row }] of keys.entries()) {
      const id = `key-${index + 1}`
      const keyHash = createHash('sha256').update(key).digest('hex')
      insert(db, 'api_keys', {
        id,
        name: id,
        key_hash: keyHash,
        key_prefix: key.slice(0, 15),
        created_at: SOME_TIME,
        ...row,
      })
      for (const limit of limits) insert(db, 'api_key_limits', { api_key_id: id, ...limit })
      for (const account of assigned ?? []) insert(db, 'api_key_accounts', { api_key_id: id, account_id: account })
    }
    for (const address of firewall) insert(db, 'api_firewall_allowlist', { ip_address: address })
    for (const request of store.requests ?? []) insert(db, 'request_logs', request)
    if (settings) insert(db, 'dashboard_settings', { id: 1, ...settings })
    for (const statement of store.changes ?? []) db.run(statement)
  })()
  db.close() // checkpoints and removes the write-ahead log
  return path
}

const SOME_TIME = '2026-01-01 00:00:00.000000'

const accountRow = (sim: StoredSim, row: object, index: number): object => ({
  id: `account-${index + 1}`,
  chatgpt_account_id: sim.chatgptAccountId,
  email: sim.email,
  plan_type: sim.plan,
  access_token_encrypted: sealFernet(sim.accessToken),
  refresh_token_encrypted: sealFernet(sim.refreshToken),
  id_token_encrypted: sealFernet(sim.idToken),
  last_refresh: SOME_TIME,
  created_at: SOME_TIME,
  ...row,
})

const insert = (db: Database, table: string, row: object): void => {
  const names = Object.keys(row)
  db.query(`INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`).run(
    ...Object.values(row),
  )
}

const tokensOf = (sim: Account) => ({
  id_token: sim.idToken,
  access_token: sim.accessToken,
  refresh_token: sim.refreshToken,
})

/** One account in the form of each program that stores accounts as text. */
export const FORMS: Record<string, (sim: Account) => unknown> = {
  codex: (sim) => JSON.parse(sim.authJson()),
  cliproxyapi: (sim) => ({
    ...tokensOf(sim),
    account_id: sim.chatgptAccountId,
    last_refresh: '2026-01-01T00:00:00Z',
    email: sim.email,
    type: 'codex',
    expired: '2026-01-11T00:00:00Z',
  }),
  sub2api: (sim) => ({
    exported_at: '2026-01-01T00:00:00Z',
    proxies: [],
    accounts: [
      {
        name: sim.email,
        platform: 'openai',
        type: 'oauth',
        credentials: { ...tokensOf(sim), email: sim.email, chatgpt_account_id: sim.chatgptAccountId },
        concurrency: 3,
        priority: 50,
      },
    ],
  }),
  opencode: (sim) => ({
    openai: {
      type: 'oauth',
      refresh: sim.refreshToken,
      access: sim.accessToken,
      expires: 1_768_000_000_000,
      accountId: sim.chatgptAccountId,
    },
    anthropic: { type: 'api', key: 'sk-ant-x' },
  }),
  icebear: (sim) => ({
    accounts: [
      {
        id: 'entry-1',
        token: sim.accessToken,
        refreshToken: sim.refreshToken,
        email: sim.email,
        accountId: sim.chatgptAccountId,
        userId: sim.userId,
        planType: sim.plan,
        label: 'spare',
        addedAt: '2026-01-01T00:00:00Z',
      },
    ],
  }),
  cockpit: (sim) => [
    {
      id: 'codex_1',
      email: sim.email,
      auth_mode: 'oauth',
      tokens: tokensOf(sim),
      account_id: sim.chatgptAccountId,
      tags: ['home'],
    },
  ],
  'codex-manager': (sim) => [
    {
      tokens: { ...tokensOf(sim), account_id: 'internal-7' },
      meta: {
        label: sim.email,
        issuer: 'https://auth.openai.com',
        note: null,
        tags: 'home, spare',
        status: 'active',
        workspaceId: null,
        chatgptAccountId: sim.chatgptAccountId,
        exportedAt: 1_767_225_600,
      },
    },
  ],
}

export const jsonFile = (name: string, value: unknown) => ({ name, bytes: Buffer.from(JSON.stringify(value)) })
export const textFile = (name: string, text: string) => ({ name, bytes: Buffer.from(text) })

/** Advances the clock until `work` is done: files are read in real time, and in slices with pauses of this clock. */
export const whileReading = async <T>({ clock }: TestApp, work: Promise<T>): Promise<T> => {
  const done = Symbol('done')
  const ended = work.then(
    () => done,
    () => done,
  )
  while ((await Promise.race([ended, Bun.sleep(1)])) !== done) await clock.advance(100)
  return work
}
