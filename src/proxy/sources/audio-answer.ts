/** A transcription by a model source: how long the audio is, and where a streamed one ends. */
import { openAiError } from '../../errors.ts'
import { getObject } from '../../lib/json.ts'
import { getPieces, type SseEvent } from '../../lib/sse.ts'
import { eventJson, frame } from '../../lib/sse-payload.ts'
import type { Contract } from '../downstream/contracts.ts'
import { toSeconds } from '../formats/audio-length.ts'
import { keepaliveComment } from '../formats/failed-event.ts'
import { Meter } from '../turn/meter.ts'
import { toErrorEvent } from './call.ts'
import { getTokens, isUsage } from './chat-answer.ts'

export class AudioMeter extends Meter {
  audioSeconds: number | null = null

  override get hasUsage(): boolean {
    return this.usage !== null || this.audioSeconds !== null
  }

  override see(event: SseEvent): void {
    const { type } = event
    if (type === null) return
    this.events += event.count
    if (type === 'error') {
      this.terminal = 'error'
      this.terminalEvent = toErrorEvent(eventJson(event.bytes))
    }
    if (type !== 'transcript.text.done') return
    this.terminal = 'response.completed'
    const json = getObject(eventJson(event.bytes))
    if (isUsage(json.usage)) this.usage = getTokens(json.usage)
    this.audioSeconds = toSeconds(json)
  }
}

/** The events as they came. */
export const audioCopy: Contract = {
  write: (events) => getPieces(events),
  fail: (err) => frame({ type: 'error', error: openAiError(err) }),
  keepalive: keepaliveComment,
}
