/** Texts for the service level. */
import type { ServiceLevel } from '../src/model/overview/service-level.ts'
import type { Tone } from './ui/badge.tsx'

export const LEVELS: Readonly<Record<ServiceLevel, readonly [word: string, tone: Tone]>> = {
  serving: ['Serving', 'good'],
  failing: ['Failing', 'bad'],
  empty: ['No accounts yet', 'idle'],
  blocked: ['Not serving', 'bad'],
  faulty: ['The request log cannot be written', 'bad'],
  draining: ['Shutting down', 'wait'],
}

/** The text that turns the browser tab red; null: none. */
export const getAlarm = (level: ServiceLevel | undefined): string | null => {
  if (level === undefined) return null
  const [word, tone] = LEVELS[level]
  return tone === 'bad' ? word : null
}
