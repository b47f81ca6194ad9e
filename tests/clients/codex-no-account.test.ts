/** The real Codex CLI without an available account: the user sees the reason immediately, and only once. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { faults } from '../support/upstream/faults.ts'
import { installCodex } from './support/codex.ts'
import { startWorld, type World, type WorldOptions } from './support/world.ts'

const IN_AN_HOUR_MS = Date.now() + 3_600_000
const TRANSPORTS = ['HTTP', 'WebSocket'] as const
type Transport = (typeof TRANSPORTS)[number]

// Longer than the CLI's timeout, so that a hang is reported with its output.
setDefaultTimeout(120_000)

/** The CLI's output for one prompt. */
const run = async (world: World, transport: Transport, key = world.key) => {
  const baseUrl = `${world.url}/backend-api/codex`
  await using codex = installCodex({ baseUrl, auth: { key }, sockets: transport === 'WebSocket' })
  const { exitCode, complaints, seconds } = await codex.exec('hello')
  return { exitCode, complaints: [...new Set(complaints)], seconds }
}

const needSignIn = (world: World): void => {
  for (const account of world.upstream.accounts) account.revoke('refresh_token_reused')
}

const waiting: [string, WorldOptions, (world: World) => void, string][] = [
  ['every account needs sign-in', { accounts: [{}, {}, {}] }, needSignIn, '3 need sign-in'],
  ['there are no accounts', { accounts: [] }, () => {}, 'No ChatGPT account has been added'],
]
test.each(waiting)(
  '%s: the reason is shown immediately, over both transports',
  async (_why, options, prepare, words) => {
    await using world = await startWorld(options)
    prepare(world)
    for (const transport of TRANSPORTS) {
      const { exitCode, complaints } = await run(world, transport)
      expect([transport, exitCode, complaints]).toEqual([transport, 1, [expect.stringContaining(words)]])
    }
    // One over HTTP, a prewarm and one over the socket: a status that the CLI retries would have more.
    await world.log(3)
  },
)

test('every account is used up: the client shows when to try again, and no upgrade hint', async () => {
  await using world = await startWorld({ accounts: [{ plan: 'plus' }, { plan: 'free' }] })
  for (const account of world.upstream.accounts) account.always(faults.usageLimit({ resetsAt: IN_AN_HOUR_MS }))
  for (const transport of TRANSPORTS) {
    const { exitCode, complaints } = await run(world, transport)
    const words = expect.stringMatching(/^You.ve hit your usage limit\. Try again at (\w+ \w+, \d+ )?\d+:\d+ [AP]M\.$/) // with the date if that is tomorrow
    expect([transport, exitCode, complaints]).toEqual([transport, 1, [words]])
  }
})

test('the workspace reached its spend cap on every account: the client shows it', async () => {
  await using world = await startWorld({ accounts: [{}, {}] })
  const headers = { 'x-codex-rate-limit-reached-type': 'workspace_member_usage_limit_reached' }
  for (const account of world.upstream.accounts) account.always(faults.usageLimit({ headers }))
  for (const transport of TRANSPORTS) {
    const { exitCode, complaints } = await run(world, transport)
    expect([transport, exitCode, complaints]).toEqual([transport, 1, [expect.stringContaining('spend cap')]])
  }
})

test('a wrong key: the client shows that the key is invalid', async () => {
  await using world = await startWorld({ accounts: [{}] })
  const { exitCode, complaints } = await run(world, 'HTTP', 'sk-clb-wrong')
  expect([exitCode, complaints.at(-1)]).toEqual([1, expect.stringMatching(/401 Unauthorized.*Invalid API key/)])
})
