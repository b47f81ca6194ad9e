/** What each capture stores of itself in its folder, so that it continues after a restart. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { CAPTURE_ID, type Capture, captureFolder, capturesFolder, getRequestId, metaPath } from './capture.ts'

/** Created if missing, accessible only to its owner. */
export const makeFolder = (dir: string): void => {
  mkdirSync(capturesFolder(dir), { recursive: true, mode: 0o700 })
  chmodSync(capturesFolder(dir), 0o700)
}

export const getFreeBytes = async (dir: string): Promise<number> => {
  const { bavail, bsize } = await statfs(capturesFolder(dir))
  return bavail * bsize
}

/** Replaces the file in one step, so that it is whole at any time. */
export const storeCapture = (dir: string, capture: Capture): void => {
  const path = metaPath(dir, capture.id)
  writeFileSync(`${path}.new`, JSON.stringify(capture), { mode: 0o600 })
  renameSync(`${path}.new`, path)
}

/** Reads what each capture stored of itself. One that cannot be read counts as ended, so that it is deleted in time. */
export const storedCaptures = (dir: string): Capture[] => {
  if (!existsSync(capturesFolder(dir))) return []
  return readdirSync(capturesFolder(dir))
    .filter((name) => CAPTURE_ID.test(name))
    .map((id) => storedCapture(dir, id) ?? unreadableCapture(dir, id))
}

const storedCapture = (dir: string, id: string): Capture | null => {
  try {
    const stored: unknown = JSON.parse(readFileSync(metaPath(dir, id), 'utf8'))
    return isCapture(stored) && stored.id === id ? stored : null
  } catch {
    return null // missing or damaged; its requests may still be read
  }
}

const isCapture = (value: unknown): value is Capture =>
  typeof value === 'object' &&
  value !== null &&
  ['startedAt', 'endsAt', 'maxBytes'].every((name) => Number.isFinite((value as Record<string, unknown>)[name])) // as: any object

const unreadableCapture = (dir: string, id: string): Capture => {
  const at = Math.floor(statSync(captureFolder(dir, id)).mtimeMs)
  const times = { startedAt: at, endsAt: at, endedAt: at, endReason: 'disk' } as const
  const scope = { keyId: null, accountId: null, startedBy: { id: 'system', name: null } }
  return { id, ...scope, ...times, maxBytes: 0, droppedBytes: 0, ...getSize(dir, id) }
}

export const getSize = (dir: string, id: string): Pick<Capture, 'bytes' | 'requests'> => {
  const folder = captureFolder(dir, id)
  const files = readdirSync(folder).filter((name) => getRequestId(name) !== null)
  const bytes = files.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)
  return { bytes, requests: files.length }
}
