/** How the last reload went: written by the supervisor into the data folder, read by `sluice reload`. */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseJson } from '../lib/json.ts'

export interface ReloadReport {
  /** The supervisor. */
  pid: number
  /** Reloads so far, the present one included. */
  count: number
  /** `failed`: the earlier processes go on. */
  state: 'idle' | 'running' | 'done' | 'failed' | 'stopping'
  /** What happened, as a sentence for the operator. */
  message: string
}

const pathOf = (folder: string): string => join(folder, 'sluice.reload')

/** Replaces the file in one step, so that a reader never sees a part of it. */
export const writeReport = (folder: string, report: ReloadReport): void => {
  const path = pathOf(folder)
  writeFileSync(`${path}.new`, `${JSON.stringify(report)}\n`, { mode: 0o600 })
  renameSync(`${path}.new`, path)
}

/** Called at a clean exit, because another program may later get the supervisor's process id. */
export const removeReport = (folder: string): void => rmSync(pathOf(folder), { force: true })

/** Null when no supervisor has written one. */
export const readReport = (folder: string): ReloadReport | null => {
  try {
    return parseJson(readFileSync(pathOf(folder), 'utf8')) as ReloadReport | null // as: only `writeReport` writes it
  } catch {
    return null
  }
}
