/** What the variables of Sluice are called in an environment. */
import type { Environment } from './env-proxy.ts'

const PREFIX = 'SLUICE_'
/** The prefix of codex-lb, accepted so that its environments keep working. */
const OLD_PREFIX = 'CODEX_LB_'
const BARE: readonly string[] = ['PORT', 'HOST']
/** Variables with our prefix that are read elsewhere: by `main.ts`, and by clients that we tell to keep their key in it. */
const OTHERS: readonly string[] = ['SLUICE_RUNTIME_IS_SET', 'SLUICE_API_KEY']

/** `LOG_LEVEL` → `SLUICE_LOG_LEVEL`, the name that messages and documentation use. */
export const variableName = (name: string): string => (BARE.includes(name) ? name : PREFIX + name)

/** Every accepted name; of several that are set the first counts. */
export const variableNames = (name: string): string[] =>
  BARE.includes(name) ? [name] : [PREFIX + name, OLD_PREFIX + name]

/** The other accepted name of a variable, or null where it has only one. */
export const otherName = (variable: string): string | null => {
  if (OTHERS.includes(variable)) return null
  if (variable.startsWith(PREFIX)) return OLD_PREFIX + variable.slice(PREFIX.length)
  return variable.startsWith(OLD_PREFIX) ? PREFIX + variable.slice(OLD_PREFIX.length) : null
}

/** Whether a variable claims to be one of ours by its prefix. */
export const hasOurPrefix = (variable: string): boolean => otherName(variable) !== null

/** The name and the text of a variable that is set to something, or null. */
export const findVariable = (environment: Environment, name: string): { variable: string; text: string } | null => {
  for (const variable of variableNames(name)) {
    const text = environment[variable]
    if (text) return { variable, text }
  }
  return null
}
