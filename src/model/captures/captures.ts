/**
 * Captures: whole requests and answers of one key or account, for a limited time and size. What a request adds waits in
 * a bounded queue and is written in the background; what does not fit is dropped and counted.
 */
import { existsSync, mkdirSync, statSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { AppError } from '../../errors.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { Random } from '../../lib/random.ts'
import type { Sealer } from '../../lib/seal.ts'
import { type Capture, type CaptureScope, captureFolder, type EndReason, REQUEST_ID, requestPath } from './capture.ts'
import { type CapturedRequest, type CaptureEntry, CaptureRecorder, type CaptureSink } from './recorder.ts'
import { type CaptureRecord, MAX_RECORD_BYTES, type RecordHead } from './records.ts'
import { getFreeBytes, getSize, makeFolder, storeCapture, storedCaptures } from './stored.ts'

export interface CapturesDeps {
  /** The data folder. */
  dir: string
  sealer: Sealer
  clock: Clock
  random: Random
  log: Log
  /** A capture ended without a user: at its time or size, or because of the disk. */
  onEnded: (capture: Capture) => void
  /** Free bytes on the disk of `dir`. */
  freeBytes?: (dir: string) => Promise<number>
}

export interface NewCapture extends CaptureScope {
  minutes: number
  maxBytes: number
  startedBy: Capture['startedBy']
}

/** Queued but not yet written, all captures together. */
const MAX_QUEUED_BYTES = 32 * 1024 * 1024
/** Memory of a queued record in addition to its bytes. */
const RECORD_OVERHEAD_BYTES = 128
/** How long records wait, so that several are written together. */
const FLUSH_MS = 250
/** Captures end while this much is still free, because the request log needs it. */
export const MIN_FREE_BYTES = 256 * 1024 * 1024
const FREE_CHECK_MS = 10_000
const MAX_RUNNING = 10

interface Queued {
  entry: CaptureEntry
  record: { head: RecordHead; pieces: readonly Uint8Array[]; bytes: number }
}

export class Captures implements CaptureSink {
  /** Whether any capture runs: all that a request checks while none does. */
  isOn = false
  readonly #deps: CapturesDeps
  readonly #all = new Map<string, Capture>()
  #running: Capture[] = []
  readonly #open = new Set<CaptureEntry>()
  #queue: Queued[] = []
  #queuedBytes = 0
  #writing: Promise<void> | null = null
  #cancelFlush: (() => void) | null = null
  #cancelExpiry: (() => void) | null = null
  #freeCheckedAt = Number.NEGATIVE_INFINITY

  constructor(deps: CapturesDeps) {
    this.#deps = deps
    for (const capture of storedCaptures(deps.dir)) this.#all.set(capture.id, capture)
    for (const capture of this.#all.values())
      if (capture.endedAt === null) Object.assign(capture, getSize(deps.dir, capture.id)) // the process may have been killed
    this.#noteRunning()
  }

  /** The data folder. */
  get dir(): string {
    return this.#deps.dir
  }

  /** Newest first. */
  list(): Capture[] {
    return [...this.#all.values()].sort((a, b) => b.startedAt - a.startedAt || (a.id < b.id ? 1 : -1))
  }

  /** Ends those whose time is over. */
  running(): readonly Capture[] {
    if (this.isOn) this.#endExpired()
    return this.#running
  }

  get(id: string): Capture | null {
    return this.#all.get(id) ?? null
  }

  /** Null where no capture wants the request. */
  record(request: CapturedRequest): CaptureRecorder | null {
    const now = this.#deps.clock.now()
    const running = this.#running.filter(({ endsAt }) => endsAt > now)
    const byKey = running.filter(({ keyId }) => keyId !== null && keyId === request.keyId)
    const byAccount = running.filter(({ accountId }) => accountId !== null)
    return byKey.length + byAccount.length === 0 ? null : new CaptureRecorder(this, request, { byKey, byAccount })
  }

  /** Throws `capture_conflict` if the scope has one, if too many run, or if the disk is almost full. */
  async requireRoom({
    keyId,
    accountId,
    maxBytes,
  }: Pick<NewCapture, 'keyId' | 'accountId' | 'maxBytes'>): Promise<void> {
    makeFolder(this.#deps.dir)
    const free = await this.#freeBytes()
    if (free - maxBytes < MIN_FREE_BYTES)
      throw conflict('There is not enough free space in the data folder for a capture of this size.')
    this.#requireFree({ keyId, accountId })
  }

  /** Starts a capture. Throws `capture_conflict`. Call it last in the commit of its audit row. */
  start({ keyId, accountId, minutes, maxBytes, startedBy }: NewCapture): Capture {
    this.#requireFree({ keyId, accountId })
    const { random, clock, dir } = this.#deps
    const startedAt = clock.now()
    const capture: Capture = {
      id: random.orderedId('cap', startedAt),
      ...{ keyId, accountId, startedBy, startedAt, maxBytes },
      endsAt: startedAt + minutes * 60_000,
      ...{ endedAt: null, endReason: null, bytes: 0, requests: 0, droppedBytes: 0 },
    }
    makeFolder(dir)
    mkdirSync(captureFolder(dir, capture.id), { mode: 0o700 })
    this.#store(capture)
    this.#all.set(capture.id, capture)
    this.#noteRunning()
    return capture
  }

  /** No effect on one that has ended. */
  end(capture: Capture, reason: EndReason): void {
    if (capture.endedAt !== null) return
    capture.endedAt = Math.min(this.#deps.clock.now(), capture.endsAt)
    capture.endReason = reason
    this.#store(capture)
    this.#noteRunning()
  }

  /** Ends a capture if it runs, and deletes it with everything it holds. */
  async remove(capture: Capture): Promise<void> {
    this.end(capture, 'stopped')
    this.#forget((entry) => entry.capture === capture)
    this.#all.delete(capture.id)
    await this.#writing
    await rm(captureFolder(this.#deps.dir, capture.id), { recursive: true, force: true })
  }

  /** Deletes one request from every capture that holds it. Returns in how many it was. */
  async removeRequest(id: string): Promise<number> {
    const { dir } = this.#deps
    this.#forget((entry) => entry.id === id)
    await this.#writing
    let removed = 0
    for (const capture of this.holding(id)) {
      const path = requestPath(dir, capture.id, id)
      const { size } = statSync(path)
      await rm(path, { force: true })
      capture.bytes = Math.max(0, capture.bytes - size)
      capture.requests = Math.max(0, capture.requests - 1)
      this.#store(capture)
      removed++
    }
    return removed
  }

  /** The captures that hold the request. */
  holding(requestId: string): Capture[] {
    if (!REQUEST_ID.test(requestId)) return []
    return this.list().filter(({ id }) => existsSync(requestPath(this.#deps.dir, id, requestId)))
  }

  /** Deletes captures that ended before `before`. */
  async purge(before: number): Promise<number> {
    this.running()
    const old = this.list().filter(({ endedAt }) => endedAt !== null && endedAt < before)
    for (const capture of old) await this.remove(capture)
    return old.length
  }

  /** Writes what is queued by now. */
  async flush(): Promise<void> {
    await this.#writing
    if (this.#queue.length > 0) await this.#pass()
  }

  /** Writes what is queued and stops. Captures continue at the next start. */
  async stop(): Promise<void> {
    this.#cancelExpiry?.()
    this.#cancelExpiry = null
    this.#running = []
    this.isOn = false
    await this.flush()
  }

  // --- for recorders

  open(capture: Capture, id: string): CaptureEntry {
    const entry = { capture, id, droppedBytes: 0, isWritten: false, isGone: false }
    this.#open.add(entry)
    return entry
  }

  write(entry: CaptureEntry, head: RecordHead, pieces: readonly Uint8Array[]): void {
    if (entry.capture.endedAt !== null || entry.isGone) return
    let bytes = 0
    for (const piece of pieces) bytes += piece.length
    const cost = bytes + RECORD_OVERHEAD_BYTES
    if (bytes > 0 && this.#queuedBytes + cost > MAX_QUEUED_BYTES) {
      entry.droppedBytes += bytes
      entry.capture.droppedBytes += bytes
      return
    }
    this.#queuedBytes += cost
    this.#queue.push({ entry, record: { head, pieces, bytes } })
    if (!this.#cancelFlush && !this.#writing) this.#flushSoon()
  }

  close(entry: CaptureEntry): void {
    this.#open.delete(entry)
  }

  now(): number {
    return this.#deps.clock.now()
  }

  // --- writing

  #forget(isGone: (entry: CaptureEntry) => boolean): void {
    const queued = this.#queue.map(({ entry }) => entry)
    for (const entry of [...this.#open, ...queued]) entry.isGone ||= isGone(entry)
  }

  #flushSoon(): void {
    this.#cancelFlush = this.#deps.clock.after(FLUSH_MS, () => void this.#pass())
  }

  #pass(): Promise<void> {
    this.#cancelFlush?.()
    this.#cancelFlush = null
    this.#writing ??= this.#writeQueued().finally(() => {
      this.#writing = null
      if (this.#queue.length > 0) this.#flushSoon()
    })
    return this.#writing
  }

  async #writeQueued(): Promise<void> {
    const queued = this.#queue
    this.#queue = []
    await this.#checkFree()
    const { appendRecords } = await import('./writer.ts')
    for (const [entry, items] of Map.groupBy(queued, ({ entry }) => entry)) {
      const { capture } = entry
      const records = items.flatMap(({ record }) => [...getRecords(record)])
      try {
        for (const written of appendRecords(this.#deps, entry, records)) {
          if (entry.isGone || isFull(capture)) break
          await written(capture.maxBytes - capture.bytes).then((bytes) => this.#noteWritten(entry, bytes))
        }
      } catch (err) {
        if (!entry.isGone) this.#endEarly(capture, 'disk', err)
      }
      for (const { record } of items) this.#queuedBytes -= record.bytes + RECORD_OVERHEAD_BYTES
    }
  }

  /** Null: it would have exceeded the size of the capture. */
  #noteWritten(entry: CaptureEntry, bytes: number | null): void {
    const { capture } = entry
    if (bytes === null) this.#endEarly(capture, 'size')
    capture.bytes += bytes ?? 0
    if (entry.isWritten || bytes === null) return
    entry.isWritten = true
    capture.requests++
  }

  async #checkFree(): Promise<void> {
    const now = this.#deps.clock.monotonic()
    if (now - this.#freeCheckedAt < FREE_CHECK_MS) return
    this.#freeCheckedAt = now
    if ((await this.#freeBytes()) >= MIN_FREE_BYTES) return
    for (const capture of [...this.#running]) this.#endEarly(capture, 'disk')
  }

  async #freeBytes(): Promise<number> {
    const { dir, freeBytes = getFreeBytes } = this.#deps
    return freeBytes(dir)
  }

  // --- ending

  #endEarly(capture: Capture, reason: EndReason, err?: unknown): void {
    if (capture.endedAt !== null) return
    this.end(capture, reason)
    this.#deps.log.warn('a capture ended early', { capture: capture.id, reason, ...(err !== undefined && { err }) })
    this.#deps.onEnded(capture)
  }

  #endExpired(): void {
    const now = this.#deps.clock.now()
    for (const capture of this.#running.filter(({ endsAt }) => endsAt <= now)) {
      this.end(capture, 'time')
      this.#deps.onEnded(capture)
    }
  }

  #noteRunning(): void {
    this.#running = this.list().filter(({ endedAt }) => endedAt === null)
    this.isOn = this.#running.length > 0
    this.#cancelExpiry?.()
    this.#cancelExpiry = null
    if (!this.isOn) return
    const next = Math.min(...this.#running.map(({ endsAt }) => endsAt))
    this.#cancelExpiry = this.#deps.clock.after(Math.max(0, next - this.#deps.clock.now()), () => this.#endExpired())
  }

  /** If the end of a capture cannot be stored, memory is right until the next start. */
  #store(capture: Capture): void {
    try {
      storeCapture(this.#deps.dir, capture)
    } catch (err) {
      if (capture.endedAt === null) throw err
      this.#deps.log.warn('the end of a capture could not be stored', { capture: capture.id, err })
    }
  }

  #requireFree({ keyId, accountId }: CaptureScope): void {
    const running = this.running()
    if (running.some((one) => one.keyId === keyId && one.accountId === accountId))
      throw conflict('A capture of this key or account is already running. Stop it first.')
    if (running.length >= MAX_RUNNING) throw conflict(`At most ${MAX_RUNNING} captures can run. Stop one first.`)
  }
}

const isFull = ({ endReason }: Capture): boolean => endReason === 'size' || endReason === 'disk'

const conflict = (message: string): AppError => new AppError('capture_conflict', { message })

/** The pieces as one, or in parts of limited size. */
function* getRecords({ head, pieces, bytes }: Queued['record']): Generator<CaptureRecord> {
  const whole = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces, bytes) // length 1
  if (whole.length <= MAX_RECORD_BYTES) return yield { head, bytes: whole }
  for (let at = 0; at < whole.length; at += MAX_RECORD_BYTES)
    yield { head, bytes: whole.subarray(at, at + MAX_RECORD_BYTES) }
}
