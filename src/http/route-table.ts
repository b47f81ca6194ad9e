/** Reads the route table from the app: printed by `bun run routes`, compared in tests and checked when an app is created. */
import type { Hono } from 'hono'
import type { AppEnv } from '../boot/bindings.ts'
import type { RouteInput } from './body.ts'
import type { AccessRule, CapabilityRule, Rule } from './gates.ts'

export interface RouteRow {
  method: string
  path: string
  /** Exactly one on every valid route. */
  access: AccessRule[]
  capability: CapabilityRule['capability'] | null
  /** The key check must come before the capability check (spec §1). */
  isCapabilityAfterAccess: boolean
  /** What its middleware validates. */
  inputs: RouteInput[]
  /** The handler; rows with the same one are aliases. */
  endpoint: object
  /** Not implemented yet. */
  isPlanned: boolean
}

type App = Pick<Hono<AppEnv>, 'routes'>

/** One row per method and path with a handler, in the app's order, without plain middleware. */
export const routeTable = (app: App): RouteRow[] => {
  const groups = Map.groupBy(app.routes, ({ method, path }) => `${method} ${path}`)
  return [...groups.values()].filter((group) => group.some(isEndpoint)).map(getRow)
}

/**
 * Throws when a route has no access gate or several, or checks a capability before the key. Called when an app is
 * created.
 */
export const requireOneAccessGate = (app: App): void => {
  const problems = routeTable(app).flatMap((row) => {
    const name = `${row.method} ${row.path}`
    if (row.access.length !== 1) return [`${name} has ${row.access.length} access gates`]
    return row.isCapabilityAfterAccess ? [] : [`${name} checks the capability before the key`]
  })
  if (problems.length > 0) throw new Error(`The route table is not sound: ${problems.join('; ')}.`)
}

/** The table as aligned text: method, path, access, permission, step-up, capability, audit event. */
export const formatRoutes = (rows: readonly RouteRow[]): string => {
  const lines = [HEADINGS, ...rows.map(getCells)]
  const widths = HEADINGS.map((_, column) => Math.max(...lines.map((cells) => cells[column]?.length ?? 0)))
  return lines
    .map((cells) =>
      cells
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

const HEADINGS = ['METHOD', 'PATH', 'ACCESS', 'PERMISSION', 'STEP-UP', 'CAPABILITY', 'AUDIT']

/** A handler takes only the context; middleware also takes `next`. */
const isEndpoint = ({ handler }: App['routes'][number]): boolean => handler.length < 2

const getRow = (group: App['routes']): RouteRow => {
  const endpoint = group.findLast(isEndpoint)!.handler // rows come from groups that have one
  const rules = group.flatMap(({ handler }) => getRules(handler))
  const capabilityAt = rules.findIndex((rule) => 'capability' in rule)
  const capability = rules[capabilityAt]
  const { method, path } = group[0]! // a group has at least one route
  return {
    method,
    path,
    access: rules.filter((rule) => 'access' in rule),
    capability: capability && 'capability' in capability ? capability.capability : null,
    isCapabilityAfterAccess: capabilityAt === -1 || rules.slice(0, capabilityAt).some((rule) => 'access' in rule),
    inputs: group.flatMap(({ handler }) => getInput(handler)),
    endpoint,
    isPlanned: 'isPlanned' in endpoint,
  }
}

// as: only gates have `rule`
const getRules = (handler: object): Rule[] => ('rule' in handler ? [handler.rule as Rule] : [])

// as: set by `withInput`
const getInput = (handler: object): RouteInput[] => ('input' in handler ? [handler.input as RouteInput] : [])

const getCells = (row: RouteRow): string[] => {
  const access = row.access[0]
  const [permission, stepUp] = getDemands(access)
  return [
    row.method,
    row.path,
    access ? accessName(access) : 'NONE',
    permission,
    stepUp,
    row.capability ?? '-',
    access && 'audit' in access ? (access.audit ?? '-') : '-',
  ]
}

const accessName = (rule: AccessRule): string =>
  rule.access === 'client-key'
    ? `client-key:${rule.key}`
    : rule.access === 'open'
      ? `open (${rule.reason})`
      : rule.access === 'signed-in' && rule.account
        ? 'signed-in:account'
        : rule.access

const getDemands = (rule: AccessRule | undefined): [permission: string, stepUp: string] => {
  if (rule?.access === 'permission')
    return [
      `${rule.permission}${rule.own ? ' (own)' : ''}${rule.or ? ` or ${rule.or}` : ''}${rule.and ? ` and ${rule.and}` : ''}`,
      rule.stepUp ? 'yes' : '-',
    ]
  if (rule?.access === 'signed-in') return ['-', rule.stepUp ? 'yes' : '-']
  if (rule?.access === 'writes' && rule.sometimes)
    return [`${rule.sometimes.permission} instead (${rule.sometimes.when})`, 'then']
  if (rule?.access === 'writes' && rule.ownKeys) return ['or api_keys:write (own)', '-']
  return ['-', '-']
}
