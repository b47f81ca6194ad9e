/** `sluice settings …`: what the dashboard's settings page changes, from a shell. */

import { commit, type Tx } from '../../db/commit.ts'
import { parseJson } from '../lib/json.ts'
import { append } from '../model/audit.ts'
import { DEFAULTS, SETTING_NAMES, type SettingName, Settings } from '../settings/schema.ts'
import { readSettings, writeSettings } from '../settings/store.ts'
import { type Command, cliActor, dispatch, printJson, readArgs, UsageError, withFolder } from './command.ts'
import { table } from './table.ts'

const get: Command = (args, io) => {
  const { values, positionals } = readArgs(args, { json: { type: 'boolean' } })
  const names = positionals.length === 0 ? SETTING_NAMES : positionals.map(settingName)
  return withFolder(io, ({ db }) => {
    const current = readSettings(db).values
    if (values.json) printJson(io, Object.fromEntries(names.map((name) => [name, current[name]])))
    else if (positionals.length === 1) io.stdout(`${names.map((name) => text(current[name]))}\n`)
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

const text = (value: unknown): string => (value === null ? 'none' : String(value))

/** All of them in one commit, or none. */
const set: Command = (args, io) => {
  const { positionals } = readArgs(args, {})
  if (positionals.length === 0) throw new UsageError('Name what to set: sluice settings set apiKeyAuthEnabled=true')
  const patch = Object.fromEntries(positionals.map(assignment))
  return withFolder(io, ({ db }) => {
    const changed = commit(db, (tx) => change(tx, patch))
    for (const name of changed) io.stdout(`${name} = ${text(patch[name])}\n`)
    if (changed.length === 0) io.stdout('Nothing changed.\n')
    return 0
  })
}

const change = (tx: Tx, patch: Partial<Settings>): SettingName[] => {
  const actor = cliActor()
  const before = readSettings(tx).values
  const changed = writeSettings(tx, patch, { now: actor.at })
  const changes = Object.fromEntries(changed.map((name) => [name, { from: before[name], to: patch[name] }]))
  if (changed.length > 0) append(tx, actor, 'settings_updated', { details: { changes } })
  return changed
}

const assignment = (argument: string): [SettingName, unknown] => {
  const at = argument.indexOf('=')
  if (at < 1) throw new UsageError(`"${argument}" is not NAME=VALUE.`)
  const name = settingName(argument.slice(0, at))
  return [name, readValue(name, argument.slice(at + 1))]
}

/** Read as JSON where the setting is a number, a truth value or none, else taken as it stands. */
const readValue = (name: SettingName, given: string): unknown => {
  const schema = Settings.shape[name]
  const candidates = given === 'none' ? [null, given] : [parseJson(given), given]
  for (const candidate of candidates) {
    const parsed = schema.safeParse(candidate)
    if (parsed.success) return parsed.data
  }
  const reason = schema.safeParse(candidates[0] ?? given).error?.issues[0]?.message
  throw new UsageError(`${name} cannot be "${given}": ${reason}`)
}

const settingName = (given: string): SettingName => {
  const name = SETTING_NAMES.find((known) => known.toLowerCase() === given.toLowerCase())
  if (name) return name
  throw new UsageError(`There is no setting "${given}". "sluice settings get" lists them.`)
}

export const settings: Command = dispatch('settings', { get, set })
