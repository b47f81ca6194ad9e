/** Reads a password where nobody looks on: typed without an echo, or from standard input. Never from the command line. */
import { AppError } from '../errors.ts'
import type { CliIo } from './command.ts'

/** From a terminal it is asked for twice; else it is the first line of standard input. Throws `validation_error`. */
export const readNewPassword = async (io: CliIo): Promise<string> => {
  if (!process.stdin.isTTY) return firstLine(await Bun.stdin.text())
  const password = await typed(io, 'New password: ')
  if ((await typed(io, 'Once more: ')) !== password)
    throw new AppError('validation_error', { message: 'The two were not the same.' })
  return password
}

const firstLine = (text: string): string => text.split(/\r?\n/, 1)[0] ?? ''

const ENTER = ['\r', '\n', '\x04']
const INTERRUPT = '\x03'
const ERASE = ['\x7f', '\b']

/** In raw mode the terminal shows nothing, and sends every key as it is pressed. */
const typed = (io: CliIo, prompt: string): Promise<string> => {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const { stdin } = process
  const keys: string[] = []
  const finish = (end: () => void) => {
    stdin.off('data', read)
    stdin.setRawMode(false)
    stdin.pause()
    io.stderr('\n')
    end()
  }
  const read = (chunk: Buffer | string) => {
    for (const key of chunk.toString()) {
      if (ENTER.includes(key)) return finish(() => resolve(keys.join('')))
      if (key === INTERRUPT)
        return finish(() => reject(new AppError('validation_error', { message: 'Nothing was changed.' })))
      if (ERASE.includes(key)) keys.pop()
      else keys.push(key)
    }
  }
  io.stderr(prompt)
  stdin.setEncoding('utf8')
  stdin.setRawMode(true)
  stdin.on('data', read)
  stdin.resume()
  return promise
}
