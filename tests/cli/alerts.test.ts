/** `sluice alerts`: what is active, the channels, and tests of them. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { commit } from '../../db/commit.ts'
import { openFolder } from '../../src/cli/open-folder.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { systemRandom } from '../../src/lib/random.ts'
import { NewChannel } from '../../src/model/alerts/channel-input.ts'
import { createChannel } from '../../src/model/alerts/channels.ts'
import { applyPlan, openIncidents, toSeen } from '../../src/model/alerts/incidents.ts'
import { runInProcess } from '../support/cli.ts'
import { httpReceiver, ntfyReceiver } from '../support/receivers.ts'

let dataDir = ''
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'sluice-alerts-'))
})
afterEach(() => rmSync(dataDir, { recursive: true }))

const sluice = (...args: string[]) => runInProcess(args, { dataDir })

const inFolder = async (run: (folder: Awaited<ReturnType<typeof openFolder>>) => Promise<unknown>) => {
  const config = { DATA_DIR: dataDir, ENCRYPTION_KEY_FILE: undefined }
  const folder = await openFolder(config, { clock: systemClock, random: systemRandom })
  await run(folder).finally(() => folder.close())
}

const addChannel = (channel: Record<string, unknown>) =>
  inFolder(({ db, sealer }) =>
    commit(db, (tx) =>
      createChannel(tx, NewChannel.parse(channel), {
        actor: { id: 'test', method: null, address: null, at: 1 },
        sealer,
        random: systemRandom,
        requireConfirmation: () => {},
        mayReadAudit: false,
      }),
    ),
  )

test('an empty folder has no alerts and no channels', async () => {
  await inFolder(async () => {})
  expect((await sluice('alerts')).stdout).toBe('No active alerts.\n')
  expect((await sluice('alerts', 'channels')).stdout).toStartWith('No alert channels.')
  expect((await sluice('alerts', 'test')).exitCode).toBe(1)
})

test('a test is sent to every channel, and a failure is the exit code', async () => {
  const ntfy = ntfyReceiver()
  const broken = httpReceiver(() => new Response('', { status: 500 }))
  await addChannel({ kind: 'ntfy', name: 'Phone', target: { url: `${ntfy.url}/me` } })
  expect(await sluice('alerts', 'test')).toEqual({ exitCode: 0, stdout: 'Phone: sent\n', stderr: '' })
  expect(ntfy.pushes.map(({ title }) => title)).toEqual(['Test alert'])
  const target = { url: broken.url }
  await addChannel({ kind: 'webhook', name: 'Pager', target, allowPrivateAddress: true })
  const { exitCode, stdout } = await sluice('alerts', 'test')
  expect([exitCode, stdout]).toEqual([1, 'Pager: The server answered with HTTP 500.\nPhone: sent\n'])
  expect((await sluice('alerts', 'test', 'phone')).exitCode).toBe(0)
  expect((await sluice('alerts', 'test', 'nothing')).stderr).toContain('There is no alert channel "nothing"')
  expect((await sluice('alerts', 'channels')).stdout).toMatch(/Pager +webhook +failing\nPhone +ntfy +working/)
  await Promise.all([ntfy.stop(), broken.stop()])
})

test('what is active is listed, and not what waits to be raised', async () => {
  const seen = (id: string) =>
    toSeen({
      key: `key.expiring:${id}`,
      event: 'key.expiring',
      severity: 'warning',
      subject: { kind: 'key', id, name: id },
      text: `Key ${id} expires in 3 days`,
      path: `/keys/${id}`,
    })
  await inFolder(async ({ db }) => {
    const nothing = { begin: [], raise: [], forget: [], recover: [], repeat: [] }
    const doing = { now: systemClock.now() - 3 * 3_600_000, random: systemRandom }
    await commit(db, (tx) => applyPlan(tx, { ...nothing, begin: [seen('laptop'), seen('ci')] }, doing))
    const [row] = await openIncidents(db)
    await commit(db, (tx) => applyPlan(tx, { ...nothing, raise: [{ row: row!, seen: seen('laptop') }] }, doing))
  })
  expect((await sluice('alerts')).stdout).toMatch(
    /^SEVERITY +FOR +ALERT\nwarning +3 hours +Key laptop expires in 3 days\n$/,
  )
  expect(JSON.parse((await sluice('alerts', '--json')).stdout)).toMatchObject([{ key: 'key.expiring:laptop' }])
})
