/** `sluice completion`: shell completion scripts, generated from the table of commands. */
import { type Run, UsageError } from './command.ts'
import { type CommandSpec, getName } from './command-spec.ts'

export const getCompletion =
  (commands: readonly CommandSpec[]): Run =>
  (io, [shell = '']) => {
    const script = Object.hasOwn(SCRIPTS, shell) ? SCRIPTS[shell] : undefined
    if (!script) throw new UsageError(`There is no completion for "${shell}". Use bash, zsh or fish.`)
    io.stdout(script(getPlaces(commands)))
    return 0
  }

/** What can follow a command. */
interface Place {
  /** The words so far, such as `keys create`; empty at the start. */
  path: string
  commands: readonly { name: string; summary: string }[]
  options: readonly { names: readonly string[]; text: string; takesValue: boolean }[]
  takesFiles: boolean
}

const getPlaces = (all: readonly CommandSpec[]): Place[] => {
  const help: CommandSpec = { usage: 'help [command]', summary: 'show help' }
  return [
    { ...getPlace('', { usage: '', summary: '', commands: [...all, help] }) },
    ...all.flatMap((spec) => below('', spec)),
  ]
}

const below = (parent: string, spec: CommandSpec): Place[] => {
  const path = parent === '' ? getName(spec) : `${parent} ${getName(spec)}`
  return [getPlace(path, spec), ...(spec.commands ?? []).flatMap((child) => below(path, child))]
}

const SHELLS = ['bash', 'zsh', 'fish'].map((name) => ({ name, summary: `for ${name}` }))

const getPlace = (path: string, { usage, options = [], commands = [] }: CommandSpec): Place => ({
  path,
  commands: path === 'completion' ? SHELLS : commands.map((spec) => ({ name: getName(spec), summary: spec.summary })),
  options: [...options, { flags: '--help', text: 'show help' }].map(({ flags, text }) => ({
    names: flags.replace(/ <.*$/, '').split(', '),
    text,
    takesValue: flags.includes('<'),
  })),
  takesFiles: usage.includes('<file') || options.some(({ flags }) => flags.includes('<file')),
})

const getWords = ({ commands, options }: Place): string =>
  [...commands.map(({ name }) => name), ...options.flatMap(({ names }) => names)].join(' ')

/** The path consists of the typed words that name commands. */
const bash = (places: readonly Place[]): string => `# Completion of sluice for bash: source <(sluice completion bash)
_sluice() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path="" word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "\${path:+$path }$word" in
      ${knownPaths(places)}) path="\${path:+$path }$word" ;;
    esac
  done
  case "$path" in
${places.map((place) => `    ${quoted(place.path)}) COMPREPLY=($(compgen -W ${quoted(getWords(place))} -- "$current")) ;;`).join('\n')}
  esac
}
complete -o default -F _sluice sluice
`

const zsh = (places: readonly Place[]): string => `#compdef sluice
# Completion of sluice for zsh: source <(sluice completion zsh)
_sluice() {
  local current_path="" word
  local -a choices
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "\${current_path:+$current_path }$word" in
      ${knownPaths(places)}) current_path="\${current_path:+$current_path }$word" ;;
    esac
  done
  case "$current_path" in
${places.map((place) => `    ${quoted(place.path)}) choices=(${described(place)})${place.takesFiles ? '; _files' : ''} ;;`).join('\n')}
  esac
  _describe 'sluice' choices
}
compdef _sluice sluice
`

const described = ({ commands, options }: Place): string =>
  [
    ...commands.map(({ name, summary }) => `${name}:${summary}`),
    ...options.flatMap(({ names, text }) => names.map((name) => `${name}:${text}`)),
  ]
    .map((entry) =>
      quoted(entry.replace(/:(?=.*:)/g, (colon, at, all: string) => (at === all.indexOf(':') ? colon : '\\:'))),
    )
    .join(' ')

const fish = (
  places: readonly Place[],
): string => `# Completion of sluice for fish: save as ~/.config/fish/completions/sluice.fish
function __sluice_at
    set -l typed (commandline -opc)
    set -e typed[1]
    set -l known ${places
      .filter(({ path }) => path !== '')
      .map(({ path }) => quoted(path))
      .join(' ')}
    set -l path ''
    for word in $typed
        set -l next (string trim "$path $word")
        if contains -- "$next" $known
            set path $next
        end
    end
    test "$path" = "$argv[1]"
end
complete -c sluice -f
${places.flatMap(fishLines).join('\n')}
`

const fishLines = ({ path, commands, options, takesFiles }: Place): string[] => {
  const at = `complete -c sluice -n ${quoted(`__sluice_at "${path}"`)}`
  return [
    ...commands.map(({ name, summary }) => `${at} -a ${name} -d ${quoted(summary)}`),
    ...options.map(
      ({ names, text, takesValue }) =>
        `${at} ${names.map(fishName).join(' ')} -d ${quoted(text)}${takesValue ? ' -r' : ''}`,
    ),
    ...(takesFiles ? [`${at} -F`] : []),
  ]
}

const fishName = (name: string): string => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`)

const knownPaths = (places: readonly Place[]): string =>
  places.flatMap(({ path }) => (path === '' ? [] : quoted(path))).join('|')

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

const SCRIPTS: Readonly<Record<string, (places: readonly Place[]) => string>> = { bash, zsh, fish }
