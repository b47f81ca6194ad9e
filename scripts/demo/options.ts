/** What `npm run demo` is started with. */
import { parseArgs } from 'node:util'
import { DEFAULT_REQUESTS, DEFAULT_SEED, parseSeed, wholeNumber } from './seed.ts'

const LARGEST_PORT = 65_535
const MAX_REQUESTS = 1_000_000

export const USAGE = `Start Sluice with made-up accounts and a week of made-up requests.

  --port <n>      port on 127.0.0.1 (default: PORT, then 2455; 0: a free one)
  --seed <n>      another week: a whole number (default: ${DEFAULT_SEED})
  --requests <n>  requests in the week (default: ${DEFAULT_REQUESTS})
  --no-traffic    send no requests while it runs
`

interface Options {
  port: string
  seed: number
  requests: number
  hasTraffic: boolean
}

/** Null: only help was requested. Throws a message for the user about an invalid option. */
export const readOptions = (argv: readonly string[], env: NodeJS.ProcessEnv): Options | null => {
  try {
    const { values } = parseArgs({
      args: withNegativeValues(argv),
      allowNegative: true,
      options: {
        port: { type: 'string', default: env.PORT || '2455' },
        seed: { type: 'string', default: String(DEFAULT_SEED) },
        requests: { type: 'string', default: String(DEFAULT_REQUESTS) },
        traffic: { type: 'boolean', default: true },
        help: { type: 'boolean', short: 'h' },
      },
    })
    if (values.help) return null
    return {
      port: String(wholeNumber('--port', values.port, LARGEST_PORT)),
      seed: parseSeed(values.seed),
      requests: wholeNumber('--requests', values.requests, MAX_REQUESTS),
      hasTraffic: values.traffic,
    }
  } catch (cause) {
    throw new Error(getSentence(cause), { cause })
  }
}

/** `--seed -5` as `--seed=-5`, because the parser takes a value with a dash for another option. */
const withNegativeValues = (args: readonly string[]): string[] =>
  args.flatMap((arg, at) => {
    const next = args[at + 1] ?? ''
    if (arg.startsWith('--') && NEGATIVE.test(next)) return `${arg}=${next}`
    return NEGATIVE.test(arg) && args[at - 1]?.startsWith('--') ? [] : arg
  })

const NEGATIVE = /^-\d/

const getSentence = (err: unknown): string => {
  const message = err instanceof Error ? err.message : String(err)
  const option = /^Option '(--\w+)\b.*argument (?:is ambiguous|missing)/.exec(message)?.[1]
  return option === undefined ? message : `${option} needs a value.`
}
