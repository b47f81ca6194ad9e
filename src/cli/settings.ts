/** `sluice settings …`: shows and changes settings, and says what a value must be. */

import { z } from 'zod'
import { commit, type Tx } from '../../db/commit.ts'
import { parseJson } from '../lib/json.ts'
import { append } from '../model/audit/audit.ts'
import { requireClaudeModels } from '../model/catalog/claude-models-check.ts'
import { DEFAULTS, SETTING_NAMES, type SettingName, Settings } from '../settings/schema.ts'
import { readSettings, writeSettings } from '../settings/store.ts'
import { cliActor, printJson, type Run, UsageError, withFolder, withNewFolder } from './command.ts'
import { table } from './table.ts'

export const getSettings: Run = (io, asked, { json }) => {
  const names = asked.length === 0 ? SETTING_NAMES : asked.map(settingName)
  return withFolder(io, async ({ db }) => {
    const current = (await readSettings(db)).values
    if (json) printJson(io, Object.fromEntries(names.map((name) => [name, current[name]])))
    else if (asked.length === 1) io.stdout(`${names.map((name) => text(current[name]))}\n`)
    else
      io.stdout(
        table(
          ['SETTING', 'VALUE', 'DEFAULT'],
          names.map((name) => row(name, current)),
        ),
      )
    return 0
  })
}

const row = (name: SettingName, current: Settings): string[] => [name, text(current[name]), text(DEFAULTS[name])]

const text = (value: unknown): string =>
  value === null ? 'none' : typeof value === 'object' ? JSON.stringify(value) : String(value)

/** In one commit, all or nothing. */
export const setSettings: Run = (io, assignments) => {
  const patch = Object.fromEntries(assignments.map(assignment))
  return withNewFolder(io, async ({ db }) => {
    const changed = await commit(db, (tx) => change(tx, patch))
    for (const name of changed) io.stdout(`${name} = ${text(patch[name])}\n`)
    if (changed.length === 0) io.stdout('Nothing changed.\n')
    return 0
  })
}

const change = async (tx: Tx, patch: Partial<Settings>): Promise<SettingName[]> => {
  const actor = cliActor()
  const before = (await readSettings(tx)).values
  const changed = await writeSettings(tx, patch, { now: actor.at })
  if (changed.includes('claudeModels')) await requireClaudeModels(tx, patch.claudeModels)
  const changes = Object.fromEntries(changed.map((name) => [name, { from: before[name], to: patch[name] }]))
  if (changed.length > 0) await append(tx, actor, 'settings_updated', { details: { changes } })
  return changed
}

const assignment = (argument: string): [SettingName, unknown] => {
  const at = argument.indexOf('=')
  if (at < 1) throw new UsageError(`Write ${argument === '' ? 'it' : `"${argument}"`} as NAME=VALUE.`)
  const name = settingName(argument.slice(0, at))
  return [name, readValue(name, argument.slice(at + 1))]
}

/** Parsed as JSON for numbers, booleans and none; otherwise text. */
const readValue = (name: SettingName, given: string): unknown => {
  const schema = Settings.shape[name]
  const candidates = given === 'none' ? [null, given] : [parseJson(given), given]
  for (const candidate of candidates) {
    const parsed = schema.safeParse(candidate)
    if (parsed.success) return parsed.data
  }
  const stated = schema.safeParse(given).error?.issues.find(({ message }) => message.startsWith('must be '))?.message
  throw new UsageError(`${name} ${stated ?? `must be ${getExpected(name)}`}, not "${given}".`)
}

const settingName = (given: string): SettingName => {
  const name = SETTING_NAMES.find((known) => known.toLowerCase() === given.toLowerCase())
  if (name) return name
  throw new UsageError(`There is no setting "${given}". "sluice settings get" shows them all.`)
}

interface Bounds {
  type?: string
  enum?: readonly string[]
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  maxLength?: number
  anyOf?: readonly Bounds[]
  properties?: Record<string, unknown>
}

/** The end of "… must be": "a whole number from 1 to 20", "true or false", "one of …", "text of at most 255 characters, or none". */
export const getExpected = (name: SettingName): string =>
  // as: JSON Schema of a single value, of which these members are read
  inWords(z.toJSONSchema(Settings.shape[name], { unrepresentable: 'any', io: 'input' }) as Bounds)

const inWords = (bounds: Bounds): string => {
  if (bounds.anyOf) return bounds.anyOf.map(inWords).join(', or ')
  if (bounds.enum) return `one of ${bounds.enum.join(', ')}`
  switch (bounds.type) {
    case 'null':
      return 'none'
    case 'boolean':
      return 'true or false'
    case 'integer':
      return `a whole number${getRange(bounds)}`
    case 'number':
      return `a number${getRange(bounds)}`
    case 'object':
      return `JSON with ${Object.keys(bounds.properties ?? {}).join(', ')}`
    default:
      return bounds.maxLength === undefined ? 'text' : `text of at most ${bounds.maxLength} characters`
  }
}

const getRange = ({ minimum, maximum, exclusiveMinimum }: Bounds): string =>
  exclusiveMinimum === undefined ? ` from ${minimum} to ${maximum}` : ` above ${exclusiveMinimum}, up to ${maximum}`
