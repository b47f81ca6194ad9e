/**
 * Alerts over kill -9: accounts lose their sign-in and get it back, again and again, and the process is killed while it
 * stores and sends. Each time is raised once and recovered once. `bun run soak --only alerts` runs it with more of both.
 */
import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { commit } from '../../db/commit.ts'
import { openFolder } from '../../src/cli/open-folder.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { seededRandom, systemRandom } from '../../src/lib/random.ts'
import { NewChannel } from '../../src/model/alerts/channel-input.ts'
import { createChannel } from '../../src/model/alerts/channels.ts'
import type { AlertMessage } from '../../src/model/alerts/messages.ts'
import { httpReceiver } from '../support/receivers.ts'
import { until } from '../support/until.ts'

const ROOT = resolve(import.meta.dir, '../..')
const ROUNDS = Number(process.env.ALERT_ROUNDS ?? 4)
const ACCOUNTS = Number(process.env.ALERT_ACCOUNTS ?? 20)
const ROUND_MS = 60_000 // more than it takes on a slow machine

let dataDir = ''
afterEach(() => rmSync(dataDir, { recursive: true, force: true }))

test(
  `each time ${ACCOUNTS} accounts go and come is raised once and recovered once, over kills`,
  async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'sluice-alert-kills-'))
    const edges = new Edges()
    let beforeAnswer: (() => Promise<void>) | null = null
    const receiver = httpReceiver(async ({ body }) => {
      edges.add(JSON.parse(body) as AlertMessage) // as: from the jobs
      await beforeAnswer?.()
      return new Response('ok')
    })
    await addChannel(receiver.url)
    const downPath = join(dataDir, 'accounts')
    const setState = (state: string) => {
      writeFileSync(`${downPath}.new`, state)
      renameSync(`${downPath}.new`, downPath)
    }
    setState('up')
    const start = () =>
      Bun.spawn([process.execPath, 'tests/process/alerts-child.ts', downPath, String(ACCOUNTS)], {
        cwd: ROOT,
        env: { PATH: process.env.PATH ?? '', CODEX_LB_DATA_DIR: dataDir },
        stdio: ['ignore', 'inherit', 'inherit'],
      })
    let child = start()
    let kills = 0
    const killAndStart = async () => {
      child.kill('SIGKILL')
      await child.exited
      kills++
      child = start()
    }
    /** Kills before the message is answered, so that it is sent again. */
    const killOnMessage = () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      beforeAnswer = async () => {
        beforeAnswer = null
        await killAndStart()
        resolve()
      }
      return promise
    }
    const random = seededRandom(37)
    for (let round = 1; round <= ROUNDS; round++) {
      for (const [state, edge] of [
        ['down', 'raised'],
        ['up', 'recovered'],
      ] as const) {
        setState(state)
        if (round % 2 === 0) await killOnMessage()
        else {
          await Bun.sleep(random.float() * 1500) // while it waits, stores or sends
          await killAndStart()
        }
        await until(() => edges.count(edge) >= round * ACCOUNTS)
      }
    }
    child.kill('SIGKILL')
    await child.exited
    await receiver.stop()

    expect(kills).toBe(ROUNDS * 2)
    expect(edges.repeated).toBeGreaterThan(0)
    expect(edges.perAccount.size).toBe(ACCOUNTS * 2)
    for (const [name, ids] of edges.perAccount) expect([name, ids.size]).toEqual([name, ROUNDS])
    console.log(
      `${ACCOUNTS} accounts, ${ROUNDS} rounds, ${kills} kills: ${edges.count('raised')} raised, ` +
        `${edges.count('recovered')} recovered, in ${receiver.got.length} messages, ${edges.repeated} sent twice`,
    )
  },
  ROUNDS * ROUND_MS,
)

/** What arrived about the accounts. A message that is sent twice has the same ID twice, and counts once. */
class Edges {
  /** The IDs by `<account> <edge>`. */
  readonly perAccount = new Map<string, Set<string>>()
  repeated = 0
  readonly #ids = { raised: new Set<string>(), recovered: new Set<string>() }

  count(edge: 'raised' | 'recovered'): number {
    return this.#ids[edge].size
  }

  add(message: AlertMessage): void {
    for (const { event, id, edge, subject } of message.alerts ?? [message]) {
      if (event !== 'account.needs_sign_in') continue
      if (this.#ids[edge].has(id)) this.repeated++
      this.#ids[edge].add(id)
      this.perAccount.getOrInsertComputed(`${subject?.id} ${edge}`, () => new Set()).add(id)
    }
  }
}

const addChannel = async (url: string): Promise<void> => {
  const config = { DATA_DIR: dataDir, ENCRYPTION_KEY_FILE: undefined }
  const { db, sealer, close } = await openFolder(config, { clock: systemClock, random: systemRandom })
  const channel = NewChannel.parse({ kind: 'webhook', name: 'hook', target: { url }, allowPrivateAddress: true })
  const actor = { id: 'test', method: null, address: null, at: 1 }
  const doing = { actor, sealer, random: systemRandom, requireConfirmation: () => {}, mayReadAudit: false }
  await commit(db, (tx) => createChannel(tx, channel, doing))
  close()
}
