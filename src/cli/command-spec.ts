/** How a command is declared: its arguments, options, help and examples. */
import type { CliIo } from './command.ts'

export interface CommandSpec {
  /** Name and arguments in commander's syntax: `import <file...>`. */
  usage: string
  alias?: string
  summary: string
  /** More text for the command's help. */
  details?: string
  options?: readonly OptionSpec[]
  /** At least two for a runnable command. Groups show those of their commands. */
  examples?: readonly string[]
  /** Loads the implementation; command groups have none. */
  run?: () => Promise<LoadedRun>
  commands?: readonly CommandSpec[]
}

export interface OptionSpec {
  flags: string
  text: string
  /** Can be given several times. */
  isList?: true
}

/** A `Run` with the command's own options; `program.ts` passes those declared with it. */
type LoadedRun = (io: CliIo, args: readonly string[], options: never) => number | Promise<number>

export const JSON_OPTION: OptionSpec = { flags: '--json', text: 'print JSON' }

/** The name of a command without its arguments. */
export const getName = ({ usage }: CommandSpec): string => usage.split(' ', 1)[0] ?? ''
