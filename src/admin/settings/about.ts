/** `/settings/about`: the build, the environment variables, and third-party components. */
import { dependencies } from '../../../package.json'
import { type About, AboutPage, type Component, type Variable } from '../../../views/settings/about.tsx'
import type { Ctx } from '../../boot/bindings.ts'
import type { Config } from '../../boot/env.ts'
import { VERSION } from '../../boot/version.ts'
import { requires } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { reply } from '../../http/reply.tsx'
import { type Cidr, formatCidr } from '../../lib/cidr.ts'
import { findVariable, variableName } from '../../lib/env-names.ts'
import { PROXY_VARIABLES, withoutLogin } from '../../lib/env-proxy.ts'
import { iso } from '../../lib/iso.ts'
import { holds } from '../../model/users/permissions.ts'
import { getFrame } from './frame.ts'

/** The environment contains paths and addresses, so it is only for operators. */
export const showAbout = createHandlers(requires('dashboard:read'), (c) => reply(c, getAbout(c), AboutPage))

const getAbout = (c: Ctx): About => {
  const { env, clock, lifecycle } = c.env
  const mayRun = holds(c.var.principal.grants, 'ops:write')
  return {
    frame: getFrame(c, 'about'),
    version: VERSION,
    runtime: `Bun ${Bun.version}`,
    startedAt: iso(lifecycle.startedAt),
    now: iso(clock.now()),
    environment: mayRun ? { variables: getVariables(env), unknown: [...env.unknown].toSorted() } : null,
    components: COMPONENTS,
  }
}

/** Every variable that is read, with its effective value. Secrets and passwords in URLs are left out. */
export const getVariables = (config: Config): Variable[] => {
  const { raw, unknown: _, conflicts: __, ...values } = config
  const own = Object.entries(values).map(([name, value]) => ownVariable(name, value, raw))
  return [...own, ...PROXY_VARIABLES.flatMap((name) => egressVariable(name, raw))]
}

const ownVariable = (key: string, value: unknown, raw: Config['raw']): Variable => {
  const isSecret = /(TOKEN|SECRET|PASSWORD)$/.test(key)
  const text = getText(value)
  const isSet = findVariable(raw, key) !== null
  return { name: variableName(key), value: isSecret && text !== null ? '' : text, isSet, isSecret }
}

const egressVariable = (name: string, raw: Config['raw']): Variable[] => {
  const found = [name, name.toUpperCase()].find((variable) => raw[variable]?.trim())
  if (found === undefined) return []
  return [{ name: found, value: withoutLogin(raw[found] ?? ''), isSet: true, isSecret: false }]
}

const getText = (value: unknown): string | null => {
  if (value === undefined) return null
  if (Array.isArray(value)) return (value as Cidr[]).map(formatCidr).join(', ') // as: the only lists in there
  return withoutLogin(String(value))
}

/** Package → licence (SPDX), including what a release is built from. */
const LICENCES: Readonly<Record<keyof typeof dependencies, string>> = {
  '@hono/zod-validator': 'MIT',
  '@modelcontextprotocol/sdk': 'MIT',
  '@node-rs/argon2': 'MIT',
  '@simplewebauthn/server': 'MIT',
  commander: 'MIT',
  'drizzle-orm': 'Apache-2.0',
  hono: 'MIT',
  'htmx.org': '0BSD',
  nodemailer: 'MIT-0',
  otpauth: 'MIT',
  'reflect-metadata': 'Apache-2.0',
  socks: 'MIT',
  uqr: 'MIT',
  zod: 'MIT',
}

const COMPONENTS: Component[] = [
  { name: 'Bun', version: Bun.version, licence: 'MIT; its JavaScriptCore LGPL-2.0' },
  ...Object.entries(dependencies).map(([name, version]) => ({
    name,
    version,
    licence: LICENCES[name as keyof typeof dependencies], // as: Object.entries loses the literal types
  })),
]
