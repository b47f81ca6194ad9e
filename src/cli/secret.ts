/** Reads secrets without echo at a terminal, or from standard input. Never from the command line. */
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { AppError } from '../errors.ts'
import type { CliIo } from './command.ts'

/** Typed twice at a terminal; otherwise the first line of standard input. Throws `validation_error`. */
export const readNewPassword = async (io: CliIo): Promise<string> => {
  if (!process.stdin.isTTY) return firstLine(await Bun.stdin.text())
  return atTerminal(async (lines) => {
    const password = await typed(io, lines, 'New password: ')
    if ((await typed(io, lines, 'Repeat it: ')) !== password)
      throw new AppError('validation_error', { message: 'The passwords do not match. Nothing was changed.' })
    return password
  })
}

/** A secret typed at a terminal, otherwise the first line of standard input. */
export const readSecret = async (io: CliIo, prompt: string): Promise<string> =>
  process.stdin.isTTY ? atTerminal((lines) => typed(io, lines, prompt)) : firstLine(await Bun.stdin.text())

const atTerminal = async (read: (lines: AsyncIterator<string>) => Promise<string>): Promise<string> => {
  const keys = createInterface({ input: process.stdin, output: silence(), terminal: true, historySize: 0 })
  try {
    return await read(keys[Symbol.asyncIterator]()) // the iterator keeps pasted lines for the next question
  } finally {
    keys.close()
  }
}

const firstLine = (text: string): string => text.split(/\r?\n/, 1)[0] ?? ''

/** Discards the echo. */
const silence = () => new Writable({ write: (_chunk, _encoding, done) => done() })

/** No line means Ctrl-C, or Ctrl-D at the start. */
const typed = async (io: CliIo, lines: AsyncIterator<string>, prompt: string): Promise<string> => {
  io.stderr(prompt)
  const { value, done } = await lines.next()
  io.stderr('\n')
  if (done) throw new AppError('validation_error', { message: 'Nothing was changed.' })
  return value
}
