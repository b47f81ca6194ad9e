/** A conversation stays with the account that can read it, across turns and restarts, and moves only if necessary. */
import { describe, expect, test } from 'bun:test'
import { announceAll, commit } from '../../db/commit.ts'
import { AppError } from '../../src/errors.ts'
import { deleteAccount } from '../../src/model/accounts/accounts.ts'
import { sha256 } from '../../src/proxy/pool/affinity.ts'
import { isMove } from '../../src/proxy/pool/preference.ts'
import { bodyFor, getOwner } from '../../src/proxy/turn/continuity.ts'
import type { Turn } from '../../src/proxy/turn/turn.ts'
import { accountTag } from '../../src/upstream/headers.ts'
import {
  advanceClockDuring,
  codexBody,
  expectNothingLeft,
  getAnswer,
  parseEvents,
  type StreamEvent,
  type TestApp,
  type TestOptions,
  testApp,
} from '../support/app.ts'
import { faults } from '../support/upstream/faults.ts'

const NATIVE = 'POST /backend-api/codex/responses'
const CHAT = 'POST /v1/chat/completions'
type Item = Record<string, unknown>

const setUp = (options: TestOptions = {}) =>
  testApp({ accounts: 3, ...options, settings: { routingStrategy: 'round_robin', ...options.settings } })
/** Which account answered each turn. */
const servedBy = async (app: TestApp) =>
  (await app.rows()).map(({ accountId }) => app.members.findIndex(({ id }) => id === accountId))
const lastBody = (app: TestApp) => app.upstream.requests.at(-1)!.bodyText
const getOutput = (events: StreamEvent[]): Item[] =>
  events.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => item as Item) // as: what this event carries

/** A client that keeps its history and sends it again, as the native one does. */
const conversation = (app: TestApp, headers: Record<string, string> = { 'session-id': 'one' }) => {
  const history: Item[] = []
  const say = async (text: string) => {
    history.push({ type: 'message', role: 'user', content: [{ type: 'input_text', text }] })
    const body = JSON.stringify({ ...codexBody(), input: history }, null, 1)
    const answer = await getAnswer(app, NATIVE, { body, headers })
    if (answer.status === 200) history.push(...getOutput(answer.events))
    app.clock.advance(1)
    return { ...answer, body }
  }
  return { history, say }
}
/** A named conversation on one account, whose client replays what another one produced for it without a name. */
const replaying = async (app: TestApp) => {
  const unnamed = conversation(app, {})
  await unnamed.say('one')
  const owner = app.members[(await servedBy(app))[0]!]!
  const headers = { 'session-id': 'two' }
  const home = app.members.find(({ id }) => id !== owner.id)!
  await app.prefer(home.id)
  await getAnswer(app, NATIVE, { json: codexBody(), headers })
  expect((await app.rows())[1]!.accountId).toBe(home.id)
  const body = JSON.stringify({ ...codexBody(), input: [...unnamed.history, ...codexBody().input] })
  return { owner, home, body, goOn: () => getAnswer(app, NATIVE, { body, headers }) }
}
const ACTOR = { id: 'test', method: null, address: null, at: 0 }
const isReasoning = ({ type }: Item) => type === 'reasoning'
const getInput = (bodyText: string): Item[] => JSON.parse(bodyText).input

describe('the requests of one conversation use one account', () => {
  const names: Record<string, Record<string, string>> = Object.fromEntries(
    ['session-id', 'session_id', 'conversation_id', 'thread-id', 'x-session-affinity', 'x-session-id'].map((name) => [
      name,
      { [name]: 's1' },
    ]),
  )
  for (const [name, headers] of Object.entries(names))
    test(`named by ${name}`, async () => {
      const app = await setUp()
      for (let turn = 0; turn < 4; turn++) await getAnswer(app, NATIVE, { json: codexBody(), headers })
      expect(new Set(await servedBy(app)).size).toBe(1)
      for (let turn = 0; turn < 3; turn++) {
        await app.clock.advance(10)
        await getAnswer(app, NATIVE, { json: codexBody(), headers: { [name]: `other-${turn}` } })
      }
      expect(new Set(await servedBy(app)).size).toBe(3)
      await expectNothingLeft(app)
    })

  test('named by prompt_cache_key', async () => {
    const app = await setUp()
    for (let turn = 0; turn < 4; turn++) {
      await getAnswer(app, NATIVE, { json: codexBody('hello', { prompt_cache_key: 'k' }) })
      await app.clock.advance(10)
    }
    expect(new Set(await servedBy(app)).size).toBe(1)
  })

  const V1_BODY = { model: 'gpt-5.5', input: 'hello' }
  const CHAT_BODY = { model: 'gpt-5.5', messages: [{ role: 'user', content: 'hello' }] }
  const askedUnder = async (app: TestApp, route: string, json: object, headers: Record<string, string> = {}) => {
    await getAnswer(app, route, { json, headers })
    return app.upstream.requests.at(-1)!.headers['session-id']
  }

  test.each([
    ['POST /v1/responses', V1_BODY],
    ['POST /v1/chat/completions', CHAT_BODY],
  ])('%s uses its cached prompts, however the client names it', async (route, body) => {
    const app = await setUp({ settings: { apiKeyAuthEnabled: true } })
    const [one, other] = [await app.key({ name: 'a' }), await app.key({ name: 'b' })]
    const as = ({ key }: { key: string }) => ({ authorization: `Bearer ${key}` })
    const named = await askedUnder(app, route, { ...body, prompt_cache_key: 'ключ' }, as(one))
    expect(named).toMatch(/^[\w-]{43}$/)
    expect(await askedUnder(app, route, { ...body, prompt_cache_key: 'ключ' }, as(one))).toBe(named)
    expect(await askedUnder(app, route, body, { ...as(one), 'x-session-affinity': 's1' })).toMatch(/^[\w-]{43}$/)
    expect(await askedUnder(app, route, { ...body, prompt_cache_key: 'ключ' }, as(other))).not.toBe(named)
    expect(await askedUnder(app, route, body, { ...as(one), 'session-id': 'its own' })).toBe('its own')
    expect(await askedUnder(app, route, body, as(one))).toBeUndefined()
    await expectNothingLeft(app)
  })

  describe('without a name from the client', () => {
    const answered = (...said: string[]) =>
      said.map((content, index) => ({ role: index % 2 === 0 ? 'user' : 'assistant', content }))
    const chat = (...said: string[]) => ({ model: 'gpt-5.5', messages: answered(...said) })

    test('from the second request on, recognized by its first message', async () => {
      const app = await setUp({ settings: { apiKeyAuthEnabled: true } })
      const [one, other] = [await app.key({ name: 'a' }), await app.key({ name: 'b' })]
      const asked = async (json: object, { key } = one, route = CHAT) => {
        await app.clock.advance(10)
        return askedUnder(app, route, json, { authorization: `Bearer ${key}` })
      }
      const first = await asked(chat('hello', 'hi', 'how are you'))
      expect(first).toMatch(/^[\w-]{43}$/)
      expect(await asked(chat('hello', 'hi', 'how are you', 'well', 'good'))).toBe(first)
      expect(await asked({ model: 'gpt-5.5', input: answered('hello', 'hi', 'good') }, one, 'POST /v1/responses')).toBe(
        first,
      )
      expect(new Set(await servedBy(app)).size).toBe(1)
      expect(await asked(chat('hullo', 'hi', 'how are you'))).not.toBe(first)
      expect(await asked(chat('hello', 'hi', 'how are you'), other)).not.toBe(first)
      await expectNothingLeft(app)
    })

    const openings = Array.from({ length: 30 }, (_, n) => `question ${n}`)
    const asText = (said: string[]) => (said.length === 1 ? said[0] : answered(...said))
    test.each<[string, (said: string[]) => [route: string, json: object]]>([
      ['in chat', (said) => [CHAT, chat(...said)]],
      ['on /v1/responses', (said) => ['POST /v1/responses', { model: 'gpt-5.5', input: asText(said) }]],
      [
        'streamed, under a system message',
        (said) => [
          CHAT,
          { model: 'gpt-5.5', stream: true, messages: [{ role: 'system', content: 'be brief' }, ...answered(...said)] },
        ],
      ],
    ])('%s, continues where its first request was answered', async (_, request) => {
      const app = await setUp()
      const say = async (...said: string[]) => {
        const [route, json] = request(said)
        expect((await getAnswer(app, route, { json })).status).toBe(200)
      }
      for (const opening of openings) await say(opening)
      for (const opening of openings) await say(opening, 'an answer', 'and then?')
      for (const opening of openings) await say(opening, 'an answer', 'and then?', 'another', 'and now?')
      const served = await servedBy(app)
      expect(served.slice(30, 60)).toEqual(served.slice(0, 30))
      expect(served.slice(60)).toEqual(served.slice(0, 30))
      expect(new Set(served).size).toBe(3)
      await expectNothingLeft(app)
    })

    test('moves freely when the account of its first request was deleted, or that was long ago', async () => {
      const app = await setUp()
      await getAnswer(app, CHAT, { json: chat('hello') })
      const [first] = await servedBy(app)
      app.sqlite.run('DELETE FROM accounts WHERE id = ?', [app.members[first!]!.id])
      await announceAll(app.db)
      await getAnswer(app, CHAT, { json: chat('hello', 'hi', 'go on') })
      expect((await app.rows()).at(-1)).toMatchObject({ status: 'ok', moved: false })
      await getAnswer(app, CHAT, { json: chat('hullo') })
      await app.clock.advance(15 * 60_000 + 1)
      const { affinity } = app.bindings
      expect(affinity.counts().conversation).toBe(1)
      await getAnswer(app, CHAT, { json: chat('hullo', 'hi', 'go on') })
      expect((await app.rows()).at(-1)).toMatchObject({ status: 'ok', moved: false })
      await expectNothingLeft(app)
    })

    test('parallel conversations with the same start are separate, and spread', async () => {
      const app = await setUp()
      const examples = (asked: string) => chat('two', '2', 'three', '3', asked)
      await getAnswer(app, CHAT, { json: examples('four') })
      const asking = ['five', 'six', 'seven'].map((asked) => getAnswer(app, CHAT, { json: examples(asked) }))
      await Promise.all(asking)
      expect(new Set(await servedBy(app)).size).toBe(3)
      expect((await app.rows()).filter(({ conversationHash }) => conversationHash !== null)).toHaveLength(2)
      await app.clock.advance(10)
      expect(await askedUnder(app, CHAT, examples('eight'))).toMatch(/^[\w-]{43}$/)
      await expectNothingLeft(app)
    })

    test('with ciphertext uses its creator, whichever account has the same start', async () => {
      const app = await setUp()
      const { affinity, clock } = app.bindings
      const json = { model: 'gpt-5.5', input: answered('hello', 'hi', 'go on') }
      await getAnswer(app, 'POST /v1/responses', { json })
      const [owner] = await servedBy(app)
      const maker = (owner! + 1) % 3
      const { id } = app.members[maker]!
      affinity.remember('ciphertext', sha256('enc.own'), id, { now: clock.now(), mixed: false })
      const thought = { type: 'reasoning', summary: [], encrypted_content: 'enc.own' }
      const carrying = { ...json, input: [...json.input.slice(0, 1), thought, ...json.input.slice(1)] }
      expect(await askedUnder(app, 'POST /v1/responses', carrying)).toMatch(/^[\w-]{43}$/)
      expect(await servedBy(app)).toEqual([owner!, maker])
      expect((await app.rows()).at(-1)?.conversationHash).toBeNull()
    })

    test('is not recognized for the native client, which names its conversations', async () => {
      const app = await setUp()
      await getAnswer(app, NATIVE, { json: { ...codexBody(), input: answered('hello', 'hi', 'go on') } })
      expect((await app.rows()).map(({ conversationHash }) => conversationHash)).toEqual([null])
    })

    test('is not recognized before the first answer: its requests are spread', async () => {
      const app = await setUp()
      for (let turn = 0; turn < 3; turn++) {
        expect(await askedUnder(app, CHAT, chat('hello'))).toBeUndefined()
        await app.clock.advance(10)
      }
      expect(new Set(await servedBy(app)).size).toBe(3)
      expect((await app.rows()).map(({ conversationHash }) => conversationHash)).toEqual([null, null, null])
    })
  })

  test('the native client names its session', async () => {
    expect(await askedUnder(await setUp(), NATIVE, codexBody('hello', { prompt_cache_key: 'k' }))).toBeUndefined()
  })

  test('but not those of another API key under the same name', async () => {
    const app = await setUp({ settings: { apiKeyAuthEnabled: true } })
    const keys = [await app.key({ name: 'a' }), await app.key({ name: 'b' })]
    for (const { key } of [...keys, ...keys]) {
      await getAnswer(app, NATIVE, {
        json: codexBody(),
        headers: { authorization: `Bearer ${key}`, 'session-id': 'same' },
      })
      await app.clock.advance(10)
    }
    const [a, b, ...again] = await servedBy(app)
    expect(a).not.toBe(b!)
    expect(again).toEqual([a!, b!])
  })

  test('also after a restart', async () => {
    const app = await setUp()
    const first = conversation(app)
    await first.say('hello')
    await app.restart()
    for (let turn = 0; turn < 2; turn++) {
      await getAnswer(app, NATIVE, { json: codexBody(), headers: { 'session-id': `noise-${turn}` } })
      await app.clock.advance(10)
    }
    await first.say('again')
    expect((await servedBy(app)).at(-1)).toBe((await servedBy(app))[0]!)
    await expectNothingLeft(app)
  })
})

describe('encrypted content', () => {
  test('without a name uses the account that produced it, after a restart too', async () => {
    const app = await setUp()
    const talk = conversation(app, {})
    await talk.say('hello')
    const [owner] = await servedBy(app)
    await app.restart()
    for (let turn = 0; turn < 4; turn++) await talk.say(`and ${turn}`)
    expect(new Set(await servedBy(app))).toEqual(new Set([owner!]))
    expect(await app.attemptRows()).toHaveLength(5)
    await expectNothingLeft(app)
  })

  test('received by a client that disconnected midway is remembered as well', async () => {
    const app = await setUp()
    const reader = (await app.ask(NATIVE, { json: codexBody(), headers: { 'session-id': 'one' } })).body!.getReader()
    let seen = ''
    while (!seen.includes('"output_text') && !seen.includes('output_text.delta'))
      seen += new TextDecoder().decode((await reader.read()).value)
    await reader.cancel()
    const [owner] = await servedBy(app)
    await app.clock.advance(10)
    await conversation(app).say('again')
    expect((await servedBy(app))[1]).toBe(owner!)
    await expectNothingLeft(app)
  })

  test('a move drops only the reasoning the new account cannot read, and keeps every other byte', async () => {
    const app = await setUp({ accounts: 2 })
    const talk = conversation(app)
    await talk.say('one')
    const [owner] = await servedBy(app)
    app.members[owner!]!.sim.always(faults.usageLimit({ resetsAt: app.clock.now() + 3_600_000 }))
    const { status, body } = await talk.say('two')
    expect(status).toBe(200)
    expect(await servedBy(app)).toEqual([owner!, 1 - owner!])
    expect((await app.rows()).map(({ moved }) => moved)).toEqual([false, true])
    const sent = getInput(lastBody(app))
    expect(sent).toEqual(getInput(body).filter((item) => !isReasoning(item)))
    const [head, tail] = [body.slice(0, body.indexOf('"input"')), body.slice(body.lastIndexOf(']'))]
    expect(lastBody(app)).toStartWith(head)
    expect(lastBody(app)).toEndWith(tail)
    await expectNothingLeft(app)
  })

  test('later requests of a moved conversation still omit it, even if they could return', async () => {
    const app = await setUp({ accounts: 2 })
    const talk = conversation(app)
    await talk.say('one')
    const [owner] = await servedBy(app)
    app.members[owner!]!.sim.always(faults.usageLimit({ resetsAt: app.clock.now() + 3_600_000 }))
    await talk.say('two')
    app.members[owner!]!.sim.always(null)
    await app.restart()
    await app.clock.advance('2h')
    app.bindings.pool.tick()
    await talk.say('three')
    await talk.say('four')
    expect(await servedBy(app)).toEqual([owner!, 1 - owner!, 1 - owner!, 1 - owner!])
    const own = talk.history.filter(isReasoning).slice(1)
    expect(getInput(lastBody(app)).filter(isReasoning)).toEqual(own.slice(0, 2))
    expect((await app.attemptRows()).filter(({ code }) => code === 'invalid_encrypted_content')).toEqual([])
    await expectNothingLeft(app)
  })

  test('of an unknown owner is tried, then omitted once on the same account', async () => {
    const app = await setUp({ accounts: 2 })
    const json = {
      ...codexBody(),
      input: [
        { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'enc.stranger.1' },
        ...codexBody().input,
      ],
    }
    const answer = await getAnswer(app, NATIVE, { json })
    expect(answer.status).toBe(200)
    const asked = await app.attemptRows()
    expect(asked.map(({ code }) => code)).toEqual(['invalid_encrypted_content', null])
    expect(asked[1]!.accountId).toBe(asked[0]!.accountId)
    expect(getInput(lastBody(app))).toEqual(codexBody().input)
    await expectNothingLeft(app)
  })

  const codes = async (app: TestApp) => (await app.attemptRows()).map(({ code }) => code)
  const MOVED = [null, 'invalid_encrypted_content', null, null, null]

  test('of an unknown owner is rejected once per conversation, and new reasoning of the account continues', async () => {
    const app = await setUp({ accounts: 2 })
    const talk = conversation(app)
    talk.history.push({ type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'enc.stranger.1' })
    for (const text of ['one', 'two', 'three']) await talk.say(text)
    expect(await codes(app)).toEqual(MOVED.slice(1))
    expect(getInput(lastBody(app)).filter(isReasoning)).toEqual(talk.history.filter(isReasoning).slice(1, 3))
    await expectNothingLeft(app)
  })

  test('of a deleted account is rejected once, too', async () => {
    const app = await setUp({ accounts: 2 })
    const talk = conversation(app)
    await talk.say('one')
    const [owner] = await servedBy(app)
    await commit(app.db, (tx) => deleteAccount(tx, app.members[owner!]!.id, ACTOR))
    await app.bindings.pool.reload()
    for (const text of ['two', 'three', 'four']) await talk.say(text)
    expect(await codes(app)).toEqual(MOVED)
    expect(getInput(lastBody(app)).filter(isReasoning)).toEqual(talk.history.filter(isReasoning).slice(1, 3))
  })

  test('whose owner was forgotten before the conversation moves is omitted, and the rest continues', async () => {
    const app = await setUp({ accounts: 2, settings: { conversationAffinityMaxAgeDays: 1 } })
    const talk = conversation(app)
    for (const text of ['one', 'two']) {
      await talk.say(text)
      await app.clock.advance('20h')
    }
    const [owner] = await servedBy(app)
    app.members[owner!]!.sim.always(faults.usageLimit({ resetsAt: app.clock.now() + 3_600_000 }))
    for (const text of ['three', 'four', 'five']) await talk.say(text)
    expect(await codes(app)).toEqual(Array(6).fill(null)) // one of them is the move
    expect(getInput(lastBody(app)).filter(isReasoning)).toEqual(talk.history.filter(isReasoning).slice(2, 4))
  })

  test('of two parallel requests on two accounts is never rejected', async () => {
    const app = await setUp({ accounts: 2 })
    const talk = conversation(app)
    const first = talk.say('one') // its body is read behind that of the other, so that one settles last
    await getAnswer(app, NATIVE, { json: codexBody('a title'), headers: { 'session-id': 'one' } })
    await first
    for (const text of ['two', 'three']) await talk.say(text)
    expect(new Set((await servedBy(app)).slice(0, 2)).size).toBe(2)
    expect(await codes(app)).toEqual([null, null, null, null])
    await expectNothingLeft(app)
  })

  test.each([
    ['has failed the turn', () => {}],
    ['is paused', (app: TestApp, id: string) => app.bindings.pool.apply(id, { kind: 'pause', at: app.clock.now() })],
  ])(
    'whose owner %s is omitted on an account in cooldown, too, that is used because others failed',
    async (_, strike) => {
      const app = await setUp({ accounts: 2 })
      const { owner, home, goOn } = await replaying(app)
      strike(app, owner.id)
      for (const { sim } of [owner, await app.addAccount()]) sim.always(faults.forbidden())
      for (let n = 0; n < 3; n++)
        app.bindings.pool.health(home.id, { kind: 'error', at: app.clock.now(), evidence: '500' })
      expect((await goOn()).status).toBe(200)
      expect((await app.rows())[2]!.accountId).toBe(home.id)
      expect(getInput(lastBody(app)).filter(isReasoning)).toEqual([])
      await expectNothingLeft(app)
    },
  )

  test('sent to the wrong account is sent once to its recorded owner', async () => {
    const app = await setUp({ accounts: 2 })
    const { owner, home, body, goOn } = await replaying(app)
    home.sim.next(faults.invalidEncryptedContent())
    expect((await goOn()).status).toBe(200)
    expect((await app.rows())[2]!.accountId).toBe(owner.id)
    expect(lastBody(app)).toBe(body)
    await expectNothingLeft(app)
  })

  test('is not tried on an eleventh account: ten is the limit for this too', async () => {
    const app = await setUp({ accounts: 11 })
    const unnamed = conversation(app, {})
    await unnamed.say('one')
    const owner = app.members[(await servedBy(app))[0]!]!
    const others = app.members.filter(({ id }) => id !== owner.id)
    for (const { id } of others) await app.prefer(id)
    await getAnswer(app, NATIVE, { json: codexBody(), headers: { 'session-id': 'two' } })
    for (const { sim } of others) sim.always(faults.invalidEncryptedContent())
    let calls = 0
    app.wire.before = async () => {
      if (++calls <= 9) throw new AppError('upstream_auth_failed')
    }
    const before = (await app.attemptRows()).length
    const body = JSON.stringify({ ...codexBody(), input: [...unnamed.history, ...codexBody().input] })
    await getAnswer(app, NATIVE, { body, headers: { 'session-id': 'two' } })
    const asked = (await app.attemptRows()).slice(before)
    expect(asked.map(({ code }) => code).slice(0, 10)).toEqual([
      ...Array<string>(9).fill('upstream_auth_failed'),
      'invalid_encrypted_content',
    ])
    expect(new Set(asked.map(({ accountId }) => accountId))).toEqual(new Set(others.map(({ id }) => id)))
    await expectNothingLeft(app)
  })

  test('all from one owner needs no second scan of the text', async () => {
    const { proxyDeps, affinity, clock, settings } = (await setUp()).bindings
    for (const [text, id] of [
      ['enc.own', 'acc_1'],
      ['enc.other', 'acc_2'],
    ] as const)
      affinity.remember('ciphertext', sha256(text), id, { now: clock.now(), mixed: false })
    const json = { input: [{ type: 'reasoning', encrypted_content: 'enc.own' }] }
    // What only a reader of the text would find.
    const bytes = new TextEncoder().encode('{"input":[{"type":"reasoning","encrypted_content":"enc.other"}]}')
    const turn = { hasCiphertext: true, conversation: null, body: { bytes, json }, settings: settings.current() }
    expect(bodyFor(proxyDeps, turn as unknown as Turn, 'acc_1')).toBe(bytes) // as: no more of a turn is read
  })

  test('is also removed from an extremely nested body', async () => {
    const { proxyDeps, affinity, clock, settings } = (await setUp()).bindings
    affinity.remember('ciphertext', sha256('enc.other'), 'acc_2', { now: clock.now(), mixed: false })
    const deep = `${'['.repeat(2000)}${']'.repeat(2000)}`
    const text = `{"input":[{"type":"reasoning","encrypted_content":"enc.other"},${deep}]}`
    const body = { bytes: new TextEncoder().encode(text), json: JSON.parse(text) }
    const turn = { hasCiphertext: true, conversation: null, body, settings: settings.current() }
    const cut = bodyFor(proxyDeps, turn as unknown as Turn, 'acc_1') // as: no more of a turn is read
    expect(new TextDecoder().decode(cut)).toBe(`{"input":[${deep}]}`)
  })

  test('of a conversation moved by a sub-agent without history is omitted where it cannot be read', async () => {
    const app = await setUp({ accounts: 2 })
    const root = conversation(app)
    await root.say('one')
    const [owner] = await servedBy(app)
    app.members[owner!]!.sim.always(faults.usageLimit({ resetsAt: app.clock.now() + 3_600_000 }))
    // It shares the session of its root, and moves both.
    await getAnswer(app, NATIVE, { json: codexBody('sub'), headers: { 'session-id': 'one' } })
    expect((await root.say('two')).status).toBe(200)
    expect(await servedBy(app)).toEqual([owner!, 1 - owner!, 1 - owner!])
    expect((await app.attemptRows()).filter(({ code }) => code === 'invalid_encrypted_content')).toEqual([])
    await expectNothingLeft(app)
  })

  const awayFrom: Record<string, (app: TestApp, home: string) => void> = {
    'whose owner is paused': (app, home) => {
      for (const { id } of app.members)
        if (id !== home) app.bindings.pool.apply(id, { kind: 'pause', at: app.clock.now() })
    },
    'of four accounts, when three are the limit and all others are used up': (app, home) => {
      for (const { id, sim } of app.members)
        if (id !== home) sim.always(faults.usageLimit({ resetsAt: app.clock.now() + 3_600_000 }))
    },
  }
  test.each(Object.entries(awayFrom))(
    '%s returns without reasoning to an account that could not read it',
    async (_, strike) => {
      const app = await setUp({ accounts: 4 })
      const { home, goOn } = await replaying(app)
      strike(app, home.id)
      expect((await goOn()).status).toBe(200)
      expect((await app.rows())[2]!.accountId).toBe(home.id)
      expect(getInput(lastBody(app)).filter(isReasoning)).toEqual([])
      expect((await app.attemptRows()).filter(({ code }) => code === 'invalid_encrypted_content')).toHaveLength(1)
      await expectNothingLeft(app)
    },
  )

  test('whose owner failed before is omitted where it could not be read, without another account', async () => {
    const app = await setUp({ accounts: 3 })
    const { owner, home, goOn } = await replaying(app)
    await app.prefer(owner.id)
    app.bindings.affinity.remember('conversation', (await app.rows())[1]!.conversationHash!, owner.id, {
      now: app.clock.now(),
      mixed: false,
    })
    owner.sim.always(faults.forbidden())
    home.sim.next(faults.invalidEncryptedContent())
    expect((await goOn()).status).toBe(200)
    const asked = (await app.attemptRows()).slice(2)
    expect(asked.map(({ accountId }) => accountId)).toEqual([owner.id, home.id, home.id])
    await expectNothingLeft(app)
  })

  test('that remains unreadable ends with the upstream’s error', async () => {
    const app = await setUp({ accounts: 2 })
    for (const { sim } of app.members) sim.always(faults.invalidEncryptedContent())
    const answer = await getAnswer(app, NATIVE, { json: codexBody() })
    expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([400, 'invalid_encrypted_content'])
    expect((await app.attemptRows()).length).toBeLessThanOrEqual(2)
    await expectNothingLeft(app)
  })
})

describe('a conversation whose history is inside a compaction item', () => {
  const compacted = async (app: TestApp) => {
    const json = { ...codexBody(), input: [...codexBody().input, { type: 'compaction_trigger' }] }
    const answer = await getAnswer(app, NATIVE, { json, headers: { 'session-id': 'one' } })
    const input = [...getOutput(answer.events), ...codexBody('go on').input]
    const owner = app.members[(await servedBy(app))[0]!]!
    const goOn = () => getAnswer(app, NATIVE, { json: { ...codexBody(), input }, headers: { 'session-id': 'one' } })
    return { owner, goOn }
  }

  test('stays', async () => {
    const app = await setUp()
    const { owner, goOn } = await compacted(app)
    await app.prefer(app.members.find(({ id }) => id !== owner.id)!.id)
    expect((await goOn()).status).toBe(200)
    expect((await app.rows()).at(-1)!.accountId).toBe(owner.id)
    await expectNothingLeft(app)
  })

  test('answers 429 about its owner when that is used up', async () => {
    const app = await setUp()
    const { owner, goOn } = await compacted(app)
    const resetsAt = app.clock.now() + 3_600_000
    owner.sim.always(faults.usageLimit({ resetsAt }))
    for (let turn = 0; turn < 2; turn++) {
      const answer = await goOn()
      const { error } = JSON.parse(answer.text)
      expect([answer.status, error.type, error.resets_at]).toEqual([429, 'usage_limit_reached', resetsAt / 1000])
      expect(error.message).toContain('owns this conversation')
    }
    expect(new Set((await app.attemptRows()).map(({ accountId }) => accountId))).toEqual(new Set([owner.id]))
    await expectNothingLeft(app)
  })

  test('stays with the account that compacted it, even if a sub-agent moved their session', async () => {
    const app = await setUp({ accounts: 2 })
    const { owner, goOn } = await compacted(app)
    owner.sim.next(faults.rateLimited(5))
    await getAnswer(app, NATIVE, { json: codexBody('sub'), headers: { 'session-id': 'one' } })
    const sibling = (await app.rows()).at(-1)!.accountId!
    expect(sibling).not.toBe(owner.id)
    await app.clock.advance('1h')
    app.bindings.pool.apply(sibling, { kind: 'pause', at: app.clock.now() })
    expect((await goOn()).status).toBe(200)
    expect((await app.rows()).at(-1)!.accountId).toBe(owner.id)
    await expectNothingLeft(app)
  })

  test('answers 400 when its owner is paused, which only a user can end', async () => {
    const app = await setUp()
    const { owner, goOn } = await compacted(app)
    app.bindings.pool.apply(owner.id, { kind: 'pause', at: app.clock.now() })
    const answer = await goOn()
    expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([400, 'continuity_owner_unavailable'])
    expect([answer.headers.get('retry-after'), answer.headers.get('x-should-retry')]).toEqual([null, 'false'])
    await expectNothingLeft(app)
  })

  test('created by an account that was removed during it has no owner', async () => {
    const app = await setUp({ accounts: 2 })
    const [gone, other] = app.members as [TestApp['members'][0], TestApp['members'][0]]
    await app.prefer(gone.id)
    gone.sim.next({ dripMs: 1_000 })
    const headers = { 'session-id': 'one' }
    const json = { ...codexBody(), input: [...codexBody().input, { type: 'compaction_trigger' }] }
    const running = await advanceClockDuring(app, app.ask(NATIVE, { json, headers }))
    await commit(app.db, (tx) => deleteAccount(tx, gone.id, ACTOR))
    await app.bindings.pool.reload()
    app.bindings.affinity.keepOnly(new Set([other.id]))
    const output = getOutput(parseEvents(await advanceClockDuring(app, running.text())))
    expect(output.map(({ type }) => type)).toContain('compaction')
    expect(app.bindings.affinity.counts()).toEqual({ conversation: 0, ciphertext: 0, file: 0 })
    other.sim.next(faults.invalidEncryptedContent())
    const input = [...output, ...codexBody('go on').input]
    const answer = await getAnswer(app, NATIVE, { json: { ...codexBody(), input }, headers })
    expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([400, 'invalid_encrypted_content'])
    await expectNothingLeft(app)
  })

  test('created by the compact route is recognized by its item alone', async () => {
    const app = await setUp()
    const { model, instructions, input } = codexBody()
    const reply = await getAnswer(app, 'POST /backend-api/codex/responses/compact', {
      json: { model, instructions, input },
    })
    const [owner] = await servedBy(app)
    const { output } = JSON.parse(reply.text)
    await app.prefer(app.members[(owner! + 1) % 3]!.id)
    await app.restart()
    const answer = await getAnswer(app, NATIVE, { json: { ...codexBody(), input: [...output, ...input] } })
    expect(answer.status).toBe(200)
    expect(await servedBy(app)).toEqual([owner!, owner!])
    expect(await app.attemptRows()).toHaveLength(2)
    await expectNothingLeft(app)
  })
})

describe('the issuer of a turn state after a move', () => {
  const owners = async (known: Partial<Turn>) => {
    const { proxyDeps, affinity, clock, settings, pool } = (await setUp({ accounts: 2 })).bindings
    const [issuer, other] = pool.all().map(({ id }) => id) as [string, string]
    affinity.remember('conversation', 'two', other, { now: clock.now(), mixed: false })
    const body = { json: { input: [{ type: 'compaction', encrypted_content: 'enc.unknown' }] } }
    const turn = {
      chain: null,
      fileOwner: null,
      turnStateOwner: accountTag(issuer),
      conversation: 'two',
      settings: settings.current(),
    }
    const asked = { ...turn, hasCiphertext: true, body, ...known } as unknown as Turn // as: no more of a turn is read
    return { owner: getOwner(proxyDeps, asked), issuer, other }
  }

  test('over HTTP the issuer is from this turn, and the other its successor', async () => {
    const { owner, issuer, other } = await owners({ transport: 'http', isAnchored: false })
    expect(owner).toMatchObject({ id: issuer, hard: false, successor: other, lastUse: { accountId: other } })
  })

  test('on a socket the issuer is older, and returning to it would be a move', async () => {
    const { owner, issuer, other } = await owners({ transport: 'websocket', isAnchored: false })
    expect(owner).toMatchObject({ id: other, hard: false, successor: null, lastUse: { accountId: other } })
    expect(isMove(owner, issuer)).toBe(true)
  })

  test('a compacted history of unknown origin follows the issuer over HTTP, because a sub-agent may have moved the session', async () => {
    const { owner, issuer } = await owners({ transport: 'http', isAnchored: true })
    expect(owner).toMatchObject({ id: issuer, hard: true })
  })
})

describe('turn state', () => {
  test('of an account that becomes unavailable does not scatter the rest of the turn', async () => {
    const app = await setUp({ accounts: 4 })
    const headers: Record<string, string> = { 'session-id': 'one' }
    const talk = conversation(app, headers)
    const first = await talk.say('one')
    headers['x-codex-turn-state'] = first.headers.get('x-codex-turn-state')!
    const [issuer] = await servedBy(app)
    app.members[issuer!]!.sim.always(faults.usageLimit({ resetsAt: app.clock.now() + 3_600_000 }))
    for (let n = 0; n < 5; n++) await talk.say(`and ${n}`)
    const [, ...after] = await servedBy(app)
    expect(new Set(after).size).toBe(1)
    expect((await app.rows()).map(({ moved }) => moved)).toEqual([false, true, false, false, false, false])
    expect(getInput(lastBody(app)).filter(isReasoning)).toHaveLength(4)
    await expectNothingLeft(app)
  })

  test('returns unchanged to the account that issued it', async () => {
    const app = await setUp()
    const first = await getAnswer(app, NATIVE, { json: codexBody() })
    const state = first.headers.get('x-codex-turn-state')!
    for (let turn = 0; turn < 3; turn++) {
      const answer = await getAnswer(app, NATIVE, { json: codexBody(), headers: { 'x-codex-turn-state': state } })
      expect(answer.headers.get('x-codex-turn-state')).toBe(state)
      await app.clock.advance(10)
    }
    expect(new Set(await servedBy(app)).size).toBe(1)
    expect(state).toEndWith(app.upstream.requests.at(-1)!.headers['x-codex-turn-state']!)
    await expectNothingLeft(app)
  })

  test('is sent to no other account, and an invented one is sent nowhere', async () => {
    const app = await setUp({ accounts: 2 })
    const first = await getAnswer(app, NATIVE, { json: codexBody() })
    const state = first.headers.get('x-codex-turn-state')!
    app.members[(await servedBy(app))[0]!]!.sim.always(faults.forbidden())
    await getAnswer(app, NATIVE, { json: codexBody(), headers: { 'x-codex-turn-state': state } })
    expect(app.upstream.requests.at(-1)!.headers['x-codex-turn-state']).toBeUndefined()
    await getAnswer(app, NATIVE, { json: codexBody(), headers: { 'x-codex-turn-state': 'invented' } })
    expect(app.upstream.requests.at(-1)!.headers['x-codex-turn-state']).toBeUndefined()
    await expectNothingLeft(app)
  })
})
