/** Names of Sluice's environment variables. */
import type { Environment } from './env-proxy.ts'

const PREFIX = 'SLUICE_'
/** The prefix of codex-lb, accepted so that its environments keep working. */
const OLD_PREFIX = 'CODEX_LB_'
const BARE: readonly string[] = ['PORT', 'HOST']
/** Variables with our prefix that are used elsewhere: by `main.ts`, and by clients to store their key. */
const OTHERS: readonly string[] = ['SLUICE_RUNTIME_IS_SET', 'SLUICE_API_KEY']

/** `LOG_LEVEL` → `SLUICE_LOG_LEVEL`, as used in messages and documentation. */
export const variableName = (name: string): string => (BARE.includes(name) ? name : PREFIX + name)

/** All accepted names; the first one set applies. */
export const variableNames = (name: string): string[] =>
  BARE.includes(name) ? [name] : [PREFIX + name, OLD_PREFIX + name]

/** The other accepted name of a variable, or null. */
export const otherName = (variable: string): string | null => {
  if (OTHERS.includes(variable)) return null
  if (variable.startsWith(PREFIX)) return OLD_PREFIX + variable.slice(PREFIX.length)
  return variable.startsWith(OLD_PREFIX) ? PREFIX + variable.slice(OLD_PREFIX.length) : null
}

/** Whether a variable has one of our prefixes. */
export const hasOurPrefix = (variable: string): boolean => otherName(variable) !== null

/** The name and value of a variable that is set and not empty, or null. */
export const findVariable = (environment: Environment, name: string): { variable: string; text: string } | null => {
  for (const variable of variableNames(name)) {
    const text = environment[variable]
    if (text) return { variable, text }
  }
  return null
}
