/** A user of codex-lb moves: one command, then the server, and the old client is answered with its old key. */
import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createCodexLb, type StoredSim } from '../support/imports.ts'
import { runCommand, spawnServer } from '../support/spawn.ts'
import { answers } from '../support/upstream/script.ts'
import { decodeJwt } from '../support/upstream/tokens.ts'
import { eventsUntilEnd, isTerminal, sendTurn, startWorld } from './world.ts'

const KEY = 'sk-clb-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG'

/** An account of the stand-in, which runs as another process. */
const simOf = (authFile: string): StoredSim => {
  const { tokens } = JSON.parse(readFileSync(authFile, 'utf8'))
  return {
    chatgptAccountId: tokens.account_id,
    email: String(decodeJwt(tokens.id_token).email),
    plan: 'plus',
    accessToken: tokens.access_token,
    refreshToken: tokens.refresh_token,
    idToken: tokens.id_token,
  }
}

test('one command moves a codex-lb folder, and the old key is answered', async () => {
  await using world = await startWorld({ accounts: 12 })
  await world.sim.answer(answers.text('moved'))
  const folder = mkdtempSync(join(tmpdir(), 'sluice-move-'))
  try {
    createCodexLb(join(folder, 'codex-lb'), {
      accounts: world.sim.authFiles.map((file) => ({ sim: simOf(file) })),
      keys: [{ key: KEY, name: 'laptop' }],
      settings: { routing_strategy: 'round_robin', api_key_auth_enabled: 1 },
    })
    const dataDir = join(folder, 'sluice')
    const env = world.spawn.env
    const moved = await runCommand(['import', join(folder, 'codex-lb'), '--apply', '--settings'], { dataDir, env })
    expect(moved).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('15 imported, 0 joined') })
    await using server = await spawnServer({ dataDir, env })
    expect((await sendTurn(server.url, 'sk-clb-another')).status).toBe(401)
    const answer = await sendTurn(server.url, KEY)
    expect(answer.status).toBe(200)
    expect((await eventsUntilEnd(answer)).find(isTerminal)?.type).toBe('response.completed')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}, 120_000)
