/** Builds a commander program from the table of commands: parsing, help and usage errors. */
import { type Argument, Command, CommanderError } from 'commander'
import { VERSION } from '../boot/version.ts'
import type { CliIo, Options } from './command.ts'
import type { CommandSpec, OptionSpec } from './command-spec.ts'
import { COMMANDS } from './commands.ts'

/** Runs a parsed command. */
export type Execute = (spec: CommandSpec, args: readonly string[], options: Options) => Promise<void>

/** Throws `CommanderError` instead of ending the process; see `getExitCode`. */
export const createProgram = (io: Pick<CliIo, 'stdout' | 'stderr'>, execute: Execute): Command => {
  const program = new Command('sluice')
    .description('Sluice pools your ChatGPT accounts behind one endpoint.')
    .usage('COMMAND [options]')
    .version(VERSION, '--version', 'print the version')
    .helpOption('-h, --help', 'show help')
    .helpCommand(false)
    .addHelpText('after', FOOTER)
    .exitOverride()
    .showSuggestionAfterError()
    .configureHelp({
      subcommandTerm: (command) => [command.name(), ...command.registeredArguments.map(shown)].join(' '),
    })
    .configureOutput({
      writeOut: io.stdout,
      writeErr: io.stderr,
      outputError: (text, write) => write(`sluice: ${getSentence(text)}\n`),
    })
  for (const [heading, specs] of Object.entries(COMMANDS)) {
    program.commandsGroup(heading)
    for (const spec of specs) addCommand(program, spec, execute)
  }
  return program
}

const shown = (argument: Argument): string => {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`
  return argument.required ? `<${name}>` : `[${name}]`
}

const FOOTER = `
Run "sluice help COMMAND" for its options and examples.
Commands use the data folder (SLUICE_DATA_DIR, by default ~/.sluice), also while the server runs.
Exit codes: 0 success, 1 failure, 2 wrong usage.`

const addCommand = (parent: Command, spec: CommandSpec, execute: Execute): void => {
  const command = parent
    .command(spec.usage)
    .summary(spec.summary)
    .helpOption('-h, --help', 'show help')
    .helpCommand(false)
  command.description([sentence(spec.summary), spec.details ?? []].flat().join('\n'))
  if (spec.alias) command.alias(spec.alias)
  for (const option of spec.options ?? []) addOption(command, option)
  command.addHelpText(
    'after',
    `\nExamples:\n${getExamples(spec)
      .map((line) => `  ${line}`)
      .join('\n')}`,
  )
  if (spec.run) command.action(() => execute(spec, command.args, command.opts<Options>()))
  for (const child of spec.commands ?? []) addCommand(command, child, execute)
}

const MAX_EXAMPLES = 3

/** A group shows the first example of each command, or all of its only one. */
const getExamples = ({ examples, commands = [] }: CommandSpec): readonly string[] =>
  examples ??
  commands
    .flatMap((command) => getExamples(command).slice(0, commands.length === 1 ? MAX_EXAMPLES : 1))
    .slice(0, MAX_EXAMPLES)

const addOption = (command: Command, { flags, text, isList }: OptionSpec): void => {
  if (isList) command.option(flags, text, (value: string, list: string[] = []) => [...list, value])
  else command.option(flags, text)
}

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`

/** `error: unknown option '--nmae'\n(Did you mean --name?)` → `Unknown option '--nmae'. Did you mean --name?` */
const getSentence = (text: string): string => {
  const [first = '', ...rest] = text
    .trim()
    .replace(/^error: /, '')
    .split('\n')
  const hints = rest.map((line) => line.replace(/^\((.*)\)$/, '$1'))
  return [sentence(first.replace(/\.$/, '')), ...hints].join(' ')
}

/** The exit code for a commander exit: 0 after help and version, otherwise 2. */
export const getExitCode = ({ code, exitCode }: CommanderError): number =>
  exitCode === 0 && code !== 'commander.help' ? 0 : 2

export { CommanderError }
