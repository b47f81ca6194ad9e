/** A capture: which requests it keeps, until when, and how it ended. Its requests are files of the data folder. */
import { join } from 'node:path'

export const END_REASONS = ['stopped', 'time', 'size', 'disk'] as const
/** `disk`: a file could not be written, or the disk is almost full. */
export type EndReason = (typeof END_REASONS)[number]

/** Times in ms since epoch. */
export interface Capture {
  readonly id: string
  /** Its scope: requests with this key, or on this account. One of the two is null. */
  readonly keyId: string | null
  readonly accountId: string | null
  readonly startedBy: { id: string; name: string | null }
  readonly startedAt: number
  readonly endsAt: number
  readonly maxBytes: number
  endedAt: number | null
  endReason: EndReason | null
  /** On disk. */
  bytes: number
  requests: number
  /** What could not be written in time. */
  droppedBytes: number
}

export type CaptureScope = Pick<Capture, 'keyId' | 'accountId'>

const FOLDER = 'captures'
const META = 'capture.json'
const SUFFIX = '.bin'

/** Names of captures and of the requests in them; anything else in the folder is left alone. */
export const CAPTURE_ID = /^cap_[0-9A-Za-z]{1,40}$/
export const REQUEST_ID = /^trn_[0-9A-Za-z]{1,40}$/

/** The folder of all captures in data folder `dir`. */
export const capturesFolder = (dir: string): string => join(dir, FOLDER)
export const captureFolder = (dir: string, captureId: string): string => join(capturesFolder(dir), captureId)
export const metaPath = (dir: string, captureId: string): string => join(captureFolder(dir, captureId), META)
export const requestPath = (dir: string, captureId: string, requestId: string): string =>
  join(captureFolder(dir, captureId), requestId + SUFFIX)

/** Null for other files. */
export const getRequestId = (fileName: string): string | null => {
  const id = fileName.endsWith(SUFFIX) ? fileName.slice(0, -SUFFIX.length) : ''
  return REQUEST_ID.test(id) ? id : null
}

/** What the encrypted bytes of a request are bound to. */
export const sealContext = (captureId: string, requestId: string): string => `captures/${captureId}/${requestId}`
