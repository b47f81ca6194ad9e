/** Reading captured requests that are larger than memory should hold. */
import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readRequest, streamCapturedBytes } from '../../src/model/captures/archive.ts'
import { captureFolder } from '../../src/model/captures/capture.ts'
import type { CaptureEntry } from '../../src/model/captures/recorder.ts'
import type { CaptureRecord } from '../../src/model/captures/records.ts'
import { appendRecords } from '../../src/model/captures/writer.ts'

const ID = 'trn_1'
const PART = 200 * 1024
/** Does not encrypt, because only the kept part matters here. */
const sealer = { sealBytes: (bytes: Buffer) => bytes, openBytes: (bytes: Buffer) => bytes } as never // as: all that is used

const part = (kind: 'body' | 'answer'): CaptureRecord => ({
  head: { kind, at: 1 },
  bytes: new Uint8Array(PART).fill(97),
})

test.each([0, PART / 2, PART * 2])('keeps at most %d bytes of each side', async (maxBytes) => {
  const dir = mkdtempSync(join(tmpdir(), 'captures-'))
  try {
    mkdirSync(captureFolder(dir, 'cap_1'), { recursive: true })
    const entry = { capture: { id: 'cap_1' }, id: ID } as CaptureEntry // as: all that is used
    const attempt: CaptureRecord = { head: { kind: 'attempt', at: 1, accountId: 'acc_1' }, bytes: new Uint8Array() }
    const records = [part('body'), part('body'), part('body'), attempt, part('answer'), part('answer'), part('answer')]
    for (const step of appendRecords({ dir, sealer }, entry, records)) await step(Number.POSITIVE_INFINITY)
    const deps = { dir, sealer }
    const content = await readRequest(deps, 'cap_1', { id: ID, maxBytes })
    const sides = [content?.body ?? [], content?.attempts[0]?.parts.map(({ bytes }) => bytes) ?? []]
    for (const pieces of sides) {
      expect(pieces.reduce((sum, { length }) => sum + length, 0)).toBe(maxBytes)
      const held = new Set(pieces.map(({ buffer }) => buffer))
      expect(held.size).toBe(Math.ceil(maxBytes / PART))
    }
    expect([content?.attempts.length, content?.isCut]).toEqual([1, true])
    const whole = streamCapturedBytes(deps, 'cap_1', { id: ID, side: 'answer', attempts: 1 })
    expect((await new Response(whole).bytes()).length).toBe(3 * PART)
  } finally {
    rmSync(dir, { recursive: true })
  }
})
