/** The alert jobs of an app, with a receiver that records messages. */
import { commit } from '../../db/commit.ts'
import { alertDeliveriesJob, sendUnstored } from '../../src/jobs/alert-deliveries.ts'
import { alertJobs } from '../../src/jobs/alerts.ts'
import { seededRandom } from '../../src/lib/random.ts'
import { NewChannel } from '../../src/model/alerts/channel-input.ts'
import { createChannel } from '../../src/model/alerts/channels.ts'
import type { AlertMessage } from '../../src/model/alerts/messages.ts'
import { GuardedFetch } from '../../src/upstream/guarded-fetch.ts'
import { testApp } from './app.ts'

export const SECOND = 1000
export const MINUTE = 60 * SECOND
export const HOUR = 60 * MINUTE
export const NEVER = new AbortController().signal

export const actor = (at: number) => ({ id: 'test', method: null, address: null, at })

/** The app with a receiver that records webhooks and answers `answer`. */
export const alerting = async (options: Parameters<typeof testApp>[0] = {}) => {
  const app = await testApp(options)
  const { bindings, clock, db } = app
  const received: AlertMessage[] = []
  const receiver = { answer: async (): Promise<Response> => new Response('ok') }
  const random = seededRandom(3)
  const guardedFetch = new GuardedFetch({
    dial: {
      isProxied: () => false,
      fetchAt: async (_url, _address, init) => {
        const answered = await receiver.answer()
        if (answered.ok) received.push(JSON.parse(String(init.body)))
        return answered
      },
    },
    lookup: async () => ['203.0.113.9'],
    own: () => ({ port: 1, publicUrl: undefined }),
  })
  const deps = { ...bindings, guardedFetch, random, env: { ...bindings.env, PUBLIC_URL: 'https://sluice.example' } }
  const { evaluate, checkAuditLog } = alertJobs({ ...deps, sendUnstored: sendUnstored(deps) })
  const deliver = alertDeliveriesJob(deps)
  const beat = async () => {
    await evaluate(NEVER)
    await deliver(NEVER)
  }
  /** Jobs every five seconds, for this long. */
  const run = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 5 * SECOND) {
      await clock.advance(5 * SECOND)
      await beat()
    }
  }
  const addChannel = (over: Record<string, unknown> = {}, mayReadAudit = true) =>
    commit(db, (tx) =>
      createChannel(
        tx,
        NewChannel.parse({ kind: 'webhook', name: 'hook', target: { url: 'https://hook.test/x' }, ...over }),
        { actor: actor(clock.now()), sealer: bindings.sealer, requireConfirmation: () => {}, mayReadAudit, random },
      ),
    )
  const needSignIn = (id: string) =>
    bindings.pool.apply(id, { kind: 'auth_failed', at: clock.now(), code: 'invalid_grant', evidence: 'secret words' })
  const signIn = (id: string) => bindings.pool.apply(id, { kind: 'reauthenticated', at: clock.now() })
  const about = (event: string) => all(received).filter((one) => one.event === event)
  return {
    ...app,
    received,
    receiver,
    run,
    beat,
    evaluate,
    deliver,
    checkAuditLog,
    addChannel,
    needSignIn,
    signIn,
    about,
    deps,
  }
}

/** With the alerts of bundles. */
export const all = (received: readonly AlertMessage[]): AlertMessage[] => received.flatMap((one) => one.alerts ?? [one])

export const edges = (messages: readonly AlertMessage[]) => messages.map(({ edge }) => edge)
