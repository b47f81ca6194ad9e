/** Reads a password where nobody looks on: typed without an echo, or from standard input. Never from the command line. */
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { AppError } from '../errors.ts'
import type { CliIo } from './command.ts'

/** From a terminal it is asked for twice; else it is the first line of standard input. Throws `validation_error`. */
export const readNewPassword = async (io: CliIo): Promise<string> => {
  if (!process.stdin.isTTY) return firstLine(await Bun.stdin.text())
  const keys = createInterface({ input: process.stdin, output: silence(), terminal: true, historySize: 0 })
  const lines = keys[Symbol.asyncIterator]() // what is pasted at once waits in it for the next question
  try {
    const password = await typed(io, lines, 'New password: ')
    if ((await typed(io, lines, 'Once more: ')) !== password)
      throw new AppError('validation_error', { message: 'The two were not the same.' })
    return password
  } finally {
    keys.close()
  }
}

const firstLine = (text: string): string => text.split(/\r?\n/, 1)[0] ?? ''

/** Where the keys would be shown. */
const silence = () => new Writable({ write: (_chunk, _encoding, done) => done() })

/** Without a line: Ctrl-C, or Ctrl-D at its beginning. */
const typed = async (io: CliIo, lines: AsyncIterator<string>, prompt: string): Promise<string> => {
  io.stderr(prompt)
  const { value, done } = await lines.next()
  io.stderr('\n')
  if (done) throw new AppError('validation_error', { message: 'Nothing was changed.' })
  return value
}
