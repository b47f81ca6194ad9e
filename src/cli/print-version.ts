/** `sluice version`. */
import { VERSION } from '../boot/version.ts'
import type { Run } from './command.ts'

export const printVersion: Run = (io) => {
  io.stdout(`${VERSION}\n`)
  return 0
}
