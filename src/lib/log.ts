/** One line per event, as text or JSON. Callers must never pass secrets. */
import { escapeControls } from './controls.ts'

const LEVELS = ['error', 'warn', 'info', 'debug'] as const
export type Level = (typeof LEVELS)[number]

export type Fields = Record<string, unknown>

export interface Log {
  error(message: string, fields?: Fields): void
  warn(message: string, fields?: Fields): void
  info(message: string, fields?: Fields): void
  debug(message: string, fields?: Fields): void
  /** Whether lines of `level` are written; if not, callers can skip building them. */
  writes(level: Level): boolean
}

export interface LogOptions {
  /** The most verbose level written. */
  level: Level
  format: 'text' | 'json'
  /** Added to every line. */
  fields?: Fields
  /** Milliseconds since epoch. */
  now: () => number
  /** Receives one line without line break; values cannot add another. */
  write: (line: string) => void
}

/** Undefined fields are left out; an Error is written with its stack and causes. Never throws. */
export function createLog(options: LogOptions): Log {
  const line = options.format === 'json' ? jsonLine : textLine
  const writes = (level: Level) => LEVELS.indexOf(level) <= LEVELS.indexOf(options.level)
  const at = (level: Level) =>
    writes(level)
      ? (message: string, fields: Fields = {}) =>
          options.write(line(new Date(options.now()).toISOString(), level, message, { ...options.fields, ...fields }))
      : () => {}
  return { error: at('error'), warn: at('warn'), info: at('info'), debug: at('debug'), writes }
}

/** Names used by every line; fields of the same name get a `_` prefix. */
const RESERVED = new Set(['time', 'level', 'message'])
const MAX_CAUSES = 5

function jsonLine(time: string, level: Level, message: string, fields: Fields): string {
  const own = Object.entries({ time, level, message })
  const others = present(fields).map(([name, value]) => [RESERVED.has(name) ? `_${name}` : name, value] as const)
  return `{${[...own, ...others].map(([name, value]) => `${encode(name)}:${encode(value)}`).join(',')}}`
}

function textLine(time: string, level: Level, message: string, fields: Fields): string {
  const pairs = present(fields).map(([name, value]) => ` ${word(name)}=${word(value)}`)
  return `${time} ${level.toUpperCase().padEnd(5)} ${escapeControls(message)}${pairs.join('')}`
}

function present(fields: Fields): [name: string, value: unknown][] {
  return Object.entries(fields).filter(([, value]) => value !== undefined)
}

/** Unquoted if unambiguous, otherwise JSON. */
function word(value: unknown): string {
  return typeof value === 'string' && /^[\w./:@+-]+$/.test(value) ? value : encode(value)
}

function encode(value: unknown): string {
  try {
    return escapeControls(JSON.stringify(value, plain) ?? 'null')
  } catch {
    return '"[not serializable]"' // a cycle, or a getter that throws: still write the line
  }
}

function plain(_name: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString()
  return value instanceof Error ? describe(value, MAX_CAUSES) : value
}

function describe(error: Error, causesLeft: number): Fields {
  const code = 'code' in error ? { code: error.code } : {}
  const base = { name: error.name, message: error.message, ...code, stack: error.stack }
  if (error.cause === undefined || causesLeft === 0) return base
  return { ...base, cause: error.cause instanceof Error ? describe(error.cause, causesLeft - 1) : error.cause }
}
