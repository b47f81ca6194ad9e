/** The terminal events of a Responses stream; everything after one is ignored. */

export type Terminal = 'response.completed' | 'response.incomplete' | 'response.failed' | 'error'

export const isTerminal = (type: string | null): type is Terminal => type !== null && TERMINALS.has(type)

const TERMINALS: ReadonlySet<string> = new Set([
  'response.completed',
  'response.incomplete',
  'response.failed',
  'error',
] satisfies Terminal[])
