/** Reads secrets typed without an echo, or from standard input. Never from the command line. */
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { AppError } from '../errors.ts'
import type { CliIo } from './command.ts'

/** At a terminal it is typed twice; otherwise it is the first line of standard input. Throws `validation_error`. */
export const readNewPassword = async (io: CliIo): Promise<string> => {
  if (!process.stdin.isTTY) return firstLine(await Bun.stdin.text())
  return atTerminal(async (lines) => {
    const password = await typed(io, lines, 'New password: ')
    if ((await typed(io, lines, 'Repeat it: ')) !== password)
      throw new AppError('validation_error', { message: 'The passwords do not match. Nothing was changed.' })
    return password
  })
}

/** One secret: typed at a terminal, otherwise the first line of standard input. */
export const readSecret = async (io: CliIo, prompt: string): Promise<string> =>
  process.stdin.isTTY ? atTerminal((lines) => typed(io, lines, prompt)) : firstLine(await Bun.stdin.text())

const atTerminal = async (read: (lines: AsyncIterator<string>) => Promise<string>): Promise<string> => {
  const keys = createInterface({ input: process.stdin, output: silence(), terminal: true, historySize: 0 })
  try {
    return await read(keys[Symbol.asyncIterator]()) // the iterator keeps what is pasted at once for the next question
  } finally {
    keys.close()
  }
}

const firstLine = (text: string): string => text.split(/\r?\n/, 1)[0] ?? ''

/** In place of the echo. */
const silence = () => new Writable({ write: (_chunk, _encoding, done) => done() })

/** Without a line: Ctrl-C, or Ctrl-D at its beginning. */
const typed = async (io: CliIo, lines: AsyncIterator<string>, prompt: string): Promise<string> => {
  io.stderr(prompt)
  const { value, done } = await lines.next()
  io.stderr('\n')
  if (done) throw new AppError('validation_error', { message: 'Nothing was changed.' })
  return value
}
