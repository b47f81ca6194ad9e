/** Light traffic while the demo runs: a request every few seconds, with the keys and models of its week. */
import type { Random } from '../../src/lib/random.ts'
import { CLIENTS } from './clients.ts'
import { MODELS } from './pool.ts'

const SHORTEST_PAUSE_MS = 4000
const LONGEST_PAUSE_MS = 20_000
const INPUTS = [
  'Explain what this function does.',
  'Write a test for the parser.',
  'Why does the build fail?',
  'Rename this variable and update its callers.',
]

/** Appended to the question, so that requests have a realistic size. */
const CODE = `\n\nfunction getTotal(rows) {\n  return rows.reduce((sum, row) => sum + row.amount, 0)\n}`.repeat(10)

/** Runs until the process ends. Failed requests are visible in the request log. */
export const sendTraffic = async (url: string, keys: ReadonlyMap<string, string>, random: Random): Promise<void> => {
  const clients = CLIENTS.filter(({ endedMs }) => endedMs === undefined)
  for (;;) {
    const client = oneOf(clients, random)
    const model = client.key === 'ci' ? 'gpt-5.4-mini' : oneOf(MODELS, random)
    await fetch(`${url}/v1/responses`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${keys.get(client.key)}`,
        'user-agent': client.userAgent,
      },
      body: JSON.stringify({
        model,
        input: oneOf(INPUTS, random) + CODE.repeat(1 + Math.floor(random.float() * 40)),
        stream: true,
      }),
    })
      .then((response) => response.text())
      .catch(() => {})
    await Bun.sleep(SHORTEST_PAUSE_MS + random.float() * (LONGEST_PAUSE_MS - SHORTEST_PAUSE_MS))
  }
}

const oneOf = <T>(choices: readonly T[], random: Random): T => {
  const choice = choices[Math.floor(random.float() * choices.length)]
  if (choice === undefined) throw new Error('There is nothing to choose from.')
  return choice
}
