/** Finds stop sequences in streamed text. The upstream does not support them, so the response is cut here. */
export class StopSequences {
  readonly #sequences: readonly string[]
  /** Text held back because it may be the start of a sequence. */
  #held = ''
  #matched: string | null = null

  constructor(sequences: readonly string[]) {
    this.#sequences = sequences
  }

  /** The sequence that ended the response. Everything after it is dropped. */
  get matched(): string | null {
    return this.#matched
  }

  /** Adds text and returns the part that can be sent now. */
  push(delta: string): string {
    if (this.#sequences.length === 0) return delta
    if (this.#matched !== null) return ''
    const text = this.#held + delta
    let first = text.length
    for (const sequence of this.#sequences) {
      const at = text.indexOf(sequence)
      if (at === -1 || at >= first) continue
      first = at
      this.#matched = sequence
    }
    const shown = this.#matched === null ? text.length - this.#possibleStart(text) : first
    this.#held = this.#matched === null ? text.slice(shown) : ''
    return text.slice(0, shown)
  }

  /** Returns the text that was held back. Call it at the end of a text. */
  end(): string {
    const rest = this.#held
    this.#held = ''
    return rest
  }

  /** The length of the longest end of `text` that could begin a sequence. */
  #possibleStart(text: string): number {
    const longest = Math.max(...this.#sequences.map(({ length }) => length)) - 1
    for (let length = Math.min(longest, text.length); length > 0; length--)
      if (this.#sequences.some((sequence) => sequence.startsWith(text.slice(-length)))) return length
    return 0
  }
}
