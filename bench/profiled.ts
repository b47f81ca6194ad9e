/** Preloaded into measured servers through BUN_OPTIONS: on SIGUSR2 they sample their main thread and write whose code it ran. */

import { profile } from 'bun:jsc'
import { renameSync, writeFileSync } from 'node:fs'

/** The files, and the native functions, of a stack from the innermost frame out, and how many samples had it. */
export type Sampled = { frames: string[]; samples: number }

/** What `profile` really gives; its type says text. */
type Traces = { traces: { frames: { name: string; sourceURL?: string }[] }[] }

const INTERVAL_US = 500
const file = process.env.BENCH_PROFILE_FILE
const seconds = Number(process.env.BENCH_PROFILE_SECONDS)

if (file && Bun.isMainThread)
  process.on('SIGUSR2', async () => {
    const { stackTraces } = await profile(() => Bun.sleep(seconds * 1000), INTERVAL_US)
    writeFileSync(`${file}.new`, JSON.stringify(getSampled(stackTraces as unknown as Traces))) // as: see above
    renameSync(`${file}.new`, file) // whole or not at all
  })

const getSampled = ({ traces }: Traces): Sampled[] => {
  const root = `${process.cwd()}/`
  const byStack = new Map<string, Sampled>()
  for (const trace of traces) {
    const frames = trace.frames.map(({ name, sourceURL }) => sourceURL?.replace(root, '') ?? name)
    const stack = frames.join('\n')
    const sampled = byStack.get(stack) ?? { frames, samples: 0 }
    sampled.samples++
    byStack.set(stack, sampled)
  }
  return [...byStack.values()]
}
