/** How a command is declared: its arguments, options, help and examples. */
import type { CliIo } from './command.ts'

export interface CommandSpec {
  /** Name and arguments, as commander reads them: `import <file...>`. */
  usage: string
  alias?: string
  summary: string
  /** Further sentences for the help of the command. */
  details?: string
  options?: readonly OptionSpec[]
  /** At least two of a command that runs. */
  examples?: readonly string[]
  /** Loads what runs; a group of commands has none. */
  run?: () => Promise<LoadedRun>
  commands?: readonly CommandSpec[]
}

export interface OptionSpec {
  flags: string
  text: string
  /** Can be given several times. */
  isList?: true
}

/** A `Run` of whatever options; `program.ts` hands it those that are declared beside it. */
type LoadedRun = (io: CliIo, args: readonly string[], options: never) => number | Promise<number>

export const JSON_OPTION: OptionSpec = { flags: '--json', text: 'print JSON' }

/** The name of a command without its arguments. */
export const nameOf = ({ usage }: CommandSpec): string => usage.split(' ', 1)[0] ?? ''
