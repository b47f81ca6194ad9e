/** `bun run soak`: checks with large numbers that are too slow for `npm test`. Prints one line per step and a total. */
import { parseArgs } from 'node:util'
import { chaos } from './soak-chaos.ts'
import { fairness, sseFraming, stateWalks } from './soak-pure.ts'
import { killRounds, leakRounds } from './soak-server.ts'
import { Skipped, type SoakContext, type SoakStep } from './soak-step.ts'
import { alertTests, limitTests, nodeTests, propertyTests, reloadTests, socketTests } from './soak-tests.ts'

const STEPS: Record<string, { title: string; run: SoakStep }> = {
  sse: { title: 'SSE framing: 100,000 random documents in random pieces', run: sseFraming },
  states: { title: 'account states: 200,000 random lives', run: stateWalks },
  fairness: { title: 'fairness: 500,000 selections per strategy', run: fairness },
  properties: { title: 'property tests with 100 times the runs', run: propertyTests },
  sockets: { title: 'sockets: 100,000 random frames, 5,000 kills of either side under load', run: socketTests },
  limits: { title: 'limits: three processes admit exactly 5,000 of 10,000 requests of a key', run: limitTests },
  nodes: {
    title: 'nodes: three servers on one PostgreSQL with limits, kills, refreshes and an outage',
    run: nodeTests,
  },
  alerts: { title: 'alerts: 200 accounts go and come 100 times over 200 kills, each edge sent once', run: alertTests },
  reload: { title: 'reload: 200 streams on both transports outlive three reloads', run: reloadTests },
  leaks: { title: 'leaks: mixed load in rounds, memory, descriptors and sockets level off', run: leakRounds },
  kill: { title: 'kill -9 in the middle of 200 streams, restart, again and again', run: killRounds },
  chaos: { title: 'chaos: every fault of the strict stand-in under load', run: chaos },
}

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    quick: { type: 'boolean', default: false },
    binary: { type: 'boolean', default: false },
    seed: { type: 'string' },
    help: { type: 'boolean', short: 'h', default: false },
  },
})

if (values.help) {
  console.log('bun run soak [--quick] [--binary] [--seed N] [--only NAME …]')
  for (const [name, step] of Object.entries(STEPS)) console.log(`  ${name.padEnd(11)}${step.title}`)
} else process.exitCode = await soak()

async function soak(): Promise<number> {
  const names = (values.only ?? Object.keys(STEPS)).flatMap((name) => name.split(','))
  const seed = Number(values.seed ?? crypto.getRandomValues(new Uint32Array(1))[0])
  const context: SoakContext = { seed, scale: values.quick ? 0.05 : 1, useBinary: values.binary }
  console.log(`seed ${seed}${values.quick ? ', a twentieth of the counts' : ''}`)
  const counts = { PASS: 0, FAIL: 0, SKIP: 0 }
  for (const name of names) {
    const step = STEPS[name]
    if (!step) {
      console.error(`There is no step "${name}"; there are ${Object.keys(STEPS).join(', ')}.`)
      return 2
    }
    counts[await report(step.title, () => step.run(context))] += 1
  }
  console.log(`\n${counts.PASS} passed, ${counts.FAIL} failed${counts.SKIP > 0 ? `, ${counts.SKIP} skipped` : ''}`)
  return counts.FAIL === 0 ? 0 : 1
}

async function report(title: string, run: () => Promise<string> | string): Promise<'PASS' | 'FAIL' | 'SKIP'> {
  const started = performance.now()
  const line = (verdict: string, detail: string) => {
    const seconds = ((performance.now() - started) / 1000).toFixed(1)
    console.log(`${verdict} ${title} (${seconds} s)${detail && `: ${detail}`}`)
  }
  try {
    line('PASS', await run())
    return 'PASS'
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    line(error instanceof Skipped ? 'SKIP' : 'FAIL', message)
    return error instanceof Skipped ? 'SKIP' : 'FAIL'
  }
}
