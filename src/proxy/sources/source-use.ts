/** The model source that serves a turn, and what settling the turn needs of it. Types only. */
import type { SourceModel } from '../../model/sources/sources.ts'

export interface SourceUse {
  readonly id: string
  readonly name: string
  /** With its prices. */
  readonly model: SourceModel
  /** The pool is at its usage limit, so this source serves the turn in its place. */
  readonly isOverflow: boolean
  /** For the start of the answer, and for each silence in a stream. */
  readonly timeoutMs: number
  /** The key has limits that cannot be kept without the usage. */
  readonly demandsUsage: boolean
  /** Called once with what the turn cost; null where no budget applies. */
  readonly charge: ((costMicros: number) => void) | null
}
