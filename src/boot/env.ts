/** The process environment, read once and frozen. Everything else is a setting. */
import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { z } from 'zod'
import { type Cidr, parseCidr } from '../lib/cidr.ts'
import { findVariable, hasOurPrefix, otherName, variableName, variableNames } from '../lib/env-names.ts'
import { type Environment, PROXY_VARIABLES, withoutLogin } from '../lib/env-proxy.ts'
import { parseJson } from '../lib/json.ts'

/**
 * Set on import, because schemas read it when created. Otherwise each would compile its own parser on first use: half a
 * megabyte, without being faster for requests (Bun 1.4.5).
 */
z.config({ jitless: true })

const bool = z
  .enum(['true', 'false', '1', '0', 'yes', 'no', 'on', 'off'])
  .transform((text) => ['true', '1', 'yes', 'on'].includes(text))

const url = z
  .url({ protocol: /^https?$/, error: 'must be an http or https URL' })
  .transform((text) => text.replace(/\/+$/, ''))

/** Paths are appended to it. */
const baseUrl = url.refine((text) => !/[?#]/.test(text), 'must have no query and no fragment')

/** A comma-separated list or a JSON array. */
const cidrs = z.string().transform((text, context): Cidr[] => {
  return getParts(text)
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .flatMap((part) => {
      const cidr = parseCidr(part)
      if (cidr) return [cidr]
      context.addIssue({ code: 'custom', message: `"${part}" is not an address or CIDR range` })
      return []
    })
})

const getParts = (text: string): string[] => {
  const list = z.array(z.string()).safeParse(text.trim().startsWith('[') ? parseJson(text) : text.split(','))
  return list.success ? list.data : [text] // not an address, so it is rejected
}

/** `Number` alone reads blanks as 0, which as a port means any, and `0x10` as 16. */
const number = z
  .string()
  .trim()
  .regex(/^\d+(\.\d+)?$/, 'must be a number')
  .transform(Number)
const port = number.pipe(z.number().int().max(65_535))
const secret = z.string().min(16, 'must be at least 16 characters')

/** Name without prefix → schema; `lib/env-names.ts` adds the prefixes. */
const VARIABLES = {
  PORT: port,
  HOST: z.string().min(1),
  DATA_DIR: z.string().min(1),
  ENCRYPTION_KEY_FILE: z.string().min(1).optional(),
  DATABASE_URL: z.url({ protocol: /^postgres(ql)?$/, error: 'must be a postgres:// URL' }).optional(),
  UPSTREAM_BASE_URL: baseUrl,
  AUTH_BASE_URL: baseUrl,
  REALTIME_BASE_URL: baseUrl,
  OAUTH_CALLBACK_HOST: z.string().min(1),
  OAUTH_CALLBACK_PORT: port,
  UPSTREAM_WEBSOCKET_TRUST_ENV: bool,
  DASHBOARD_AUTH_MODE: z.enum(['standard', 'trusted_header', 'disabled']),
  DASHBOARD_AUTH_PROXY_HEADER: z.string().regex(/^[A-Za-z0-9-]+$/),
  FIREWALL_TRUST_PROXY_HEADERS: bool,
  FIREWALL_TRUSTED_PROXY_CIDRS: cidrs,
  PROXY_UNAUTHENTICATED_CLIENT_CIDRS: cidrs,
  DASHBOARD_BOOTSTRAP_TOKEN: secret.optional(),
  PUBLIC_URL: url.optional(),
  METRICS_TOKEN: secret.optional(),
  LOG_LEVEL: z.enum(['error', 'warn', 'info', 'debug']),
  LOG_FORMAT: z.enum(['text', 'json']),
  SHUTDOWN_DRAIN_SECONDS: number.pipe(z.number().max(3600)),
  RELOAD_DRAIN_SECONDS: number.pipe(z.number().max(86_400)),
} as const
type Name = keyof typeof VARIABLES
const SECRET: readonly Name[] = ['DATABASE_URL', 'DASHBOARD_BOOTSTRAP_TOKEN', 'METRICS_TOKEN']

const DEFAULTS: Partial<Record<Name, string>> = {
  PORT: '2455',
  HOST: '127.0.0.1',
  UPSTREAM_BASE_URL: 'https://chatgpt.com/backend-api',
  AUTH_BASE_URL: 'https://auth.openai.com',
  REALTIME_BASE_URL: 'https://api.openai.com',
  OAUTH_CALLBACK_HOST: '127.0.0.1',
  OAUTH_CALLBACK_PORT: '1455',
  UPSTREAM_WEBSOCKET_TRUST_ENV: 'true',
  DASHBOARD_AUTH_MODE: 'standard',
  DASHBOARD_AUTH_PROXY_HEADER: 'Remote-User',
  FIREWALL_TRUST_PROXY_HEADERS: 'false',
  FIREWALL_TRUSTED_PROXY_CIDRS: '127.0.0.1/32,::1/128',
  PROXY_UNAUTHENTICATED_CLIENT_CIDRS: '',
  LOG_LEVEL: 'info',
  LOG_FORMAT: 'text',
  SHUTDOWN_DRAIN_SECONDS: '30',
  RELOAD_DRAIN_SECONDS: '1800',
}

type Values = { [N in Name]: z.output<(typeof VARIABLES)[N]> }

export interface Config extends Readonly<Values> {
  /** The environment itself, for proxy variables. */
  readonly raw: Readonly<Record<string, string | undefined>>
  /** Unknown names with one of our prefixes, for a warning. */
  readonly unknown: readonly string[]
  /** A sentence for each variable set under both names to different values. */
  readonly conflicts: readonly string[]
}

/** An invalid variable; the message is one sentence for stderr. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

/** The data folder, read first because its `.env` adds to the environment. */
export const getDataDir = (environment: Environment): string =>
  findVariable(environment, 'DATA_DIR')?.text ?? join(homedir(), '.sluice')

/**
 * Adds the data folder's `.env` to the environment. Process variables take precedence, under any of their names. Throws
 * `ConfigError` for an unreadable file, because its settings would be ignored.
 */
export const withEnvFile = (environment: Environment): Environment => {
  const path = join(getDataDir(environment), '.env')
  try {
    const added = Object.entries(parseEnv(readFileSync(path, 'utf8'))).filter(
      ([variable]) => !environment[otherName(variable) ?? variable],
    )
    return { ...Object.fromEntries(added), ...environment }
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException // as: the file system throws nothing else
    if (code === 'ENOENT' || code === 'ENOTDIR') return environment
    throw new ConfigError(`${path} cannot be read (${code}).`, { cause })
  }
}

/** Reads and validates the environment. Throws `ConfigError` naming variable and value, without secrets. */
export const readConfig = (environment: Environment): Config => {
  const values: Record<string, unknown> = {}
  for (const name of NAMES) values[name] = readOne(environment, name)
  const config = {
    ...(values as Values), // as: every name was read
    raw: environment,
    unknown: unknownNames(environment),
    conflicts: NAMES.flatMap((name) => getConflict(environment, name)),
  }
  requireConsistent(config)
  return Object.freeze(config)
}

const NAMES = Object.keys(VARIABLES) as Name[] // as: the keys of this table

/** The variables set in `environment`, by their main names. */
export const variablesSet = (environment: Environment): { name: string; value: string; isSecret: boolean }[] => {
  const own = NAMES.flatMap((name) => {
    const found = findVariable(environment, name)
    return found ? { name: variableName(name), value: found.text, isSecret: SECRET.includes(name) } : []
  })
  const proxies = [...PROXY_VARIABLES.map((name) => name.toUpperCase()), ...PROXY_VARIABLES].flatMap((name) => {
    const value = environment[name] ?? ''
    return value === '' ? [] : { name, value, isSecret: false }
  })
  return [...own, ...proxies].map(({ name, value, isSecret }) => ({
    name,
    value,
    isSecret: isSecret || withoutLogin(value) !== value,
  }))
}

const readOne = (environment: Environment, name: Name): unknown => {
  const found = findVariable(environment, name)
  const variable = found?.variable ?? variableName(name)
  const text = found?.text ?? getDefault(name)
  const parsed = VARIABLES[name].safeParse(text)
  if (parsed.success) return parsed.data
  const shown = SECRET.includes(name) ? variable : `${variable}="${withoutLogin(text ?? '')}"`
  throw new ConfigError(`${shown} cannot be used: ${parsed.error.issues[0]?.message ?? 'not valid'}.`)
}

const getDefault = (name: Name): string | undefined => (name === 'DATA_DIR' ? getDataDir({}) : DEFAULTS[name])

const unknownNames = (environment: Environment): string[] => {
  const known = NAMES.flatMap(variableNames)
  return Object.keys(environment).filter((key) => hasOurPrefix(key) && !known.includes(key))
}

const getConflict = (environment: Environment, name: Name): string[] => {
  const [used = '', ...others] = variableNames(name).filter((variable) => environment[variable])
  return others
    .filter((other) => environment[other] !== environment[used])
    .map((other) => `${used} and ${other} are set to different values. ${used} is used; remove ${other}.`)
}

const requireConsistent = (config: Values) => {
  const { DASHBOARD_AUTH_MODE: mode, FIREWALL_TRUST_PROXY_HEADERS: trust } = config
  if (trust && config.FIREWALL_TRUSTED_PROXY_CIDRS.length === 0)
    throw new ConfigError('SLUICE_FIREWALL_TRUST_PROXY_HEADERS=true needs SLUICE_FIREWALL_TRUSTED_PROXY_CIDRS.')
  if (mode === 'trusted_header' && !trust)
    throw new ConfigError('SLUICE_DASHBOARD_AUTH_MODE=trusted_header needs SLUICE_FIREWALL_TRUST_PROXY_HEADERS=true.')
}
