/** A router cache for plain paths returns the same as the router beneath it. */
import { describe, expect, test } from 'bun:test'
import type { Router } from 'hono/router'
import { TrieRouter } from 'hono/router/trie-router'
import type { H, RouterRoute } from 'hono/types'
import { KnownPaths } from '../../src/http/known-paths.ts'

type Mounted = [H, RouterRoute]

const ROWS = [
  ['ALL', '/*', 'every'],
  ['POST', '/v1/responses', 'create'],
  ['POST', '/v1/responses', 'second'],
  ['POST', '/v1/chat', 'alone'],
  ['GET', '/v1/responses/compact', 'compact'],
  ['GET', '/v1/responses/:id', 'one'],
] as const

const HANDLERS: Record<string, Mounted> = Object.fromEntries(
  ROWS.map(([method, path, name]) => {
    const handler = Object.assign(() => new Response(name), name === 'alone' && { isAlone: true })
    return [name, [handler, { method, path, basePath: '/', handler }]]
  }),
)

class Counting extends TrieRouter<Mounted> {
  asked: string[] = []

  override match(method: string, path: string) {
    this.asked.push(`${method} ${path}`)
    return super.match(method, path)
  }
}

const mounted = <R extends Router<Mounted>>(router: R): R => {
  for (const [method, path, name] of ROWS) router.add(method, path, HANDLERS[name]!) // one for each row
  return router
}

const found = (router: Router<Mounted>, method: string, path: string) =>
  router.match(method, path)[0].map(([[handler], parameters]) => [handler.length, handler, { ...parameters }])

describe('paths', () => {
  test.each([
    ['POST', '/v1/responses'],
    ['GET', '/v1/responses'],
    ['GET', '/v1/responses/compact'],
    ['GET', '/v1/responses/resp_1'],
    ['GET', '/v1/responses/resp_2'],
    ['FOO', '/v1/responses'],
    ['GET', '/nowhere'],
  ])('%s %s has the same handlers and parameters, also the second time', (method, path) => {
    const router = mounted(new KnownPaths(new TrieRouter(), HANDLERS.every![0]))
    const expected = found(mounted(new TrieRouter()), method, path)
    expect(found(router, method, path)).toEqual(expected)
    expect(found(router, 'GET', '/v1/responses/between')).toHaveLength(2)
    expect(found(router, method, path)).toEqual(expected)
  })

  test('without parameters are looked up once, and unknown paths are not cached', () => {
    const beneath = new Counting()
    const router = mounted(new KnownPaths(beneath, HANDLERS.every![0]))
    for (const path of ['/v1/responses', '/v1/responses', '/made/up', '/made/up']) router.match('POST', path)
    router.match('FOO', '/v1/responses')
    router.match('FOO', '/v1/responses')
    expect(beneath.asked).toEqual([
      'POST /v1/responses',
      'POST /made/up',
      'POST /made/up',
      'FOO /v1/responses',
      'FOO /v1/responses',
    ])
  })

  test('whose handler is alone have that one, from the first time on', () => {
    const router = mounted(new KnownPaths(new TrieRouter(), HANDLERS.every![0]))
    const only = [[0, HANDLERS.alone![0], {}]] // there is one
    for (let times = 0; times < 2; times++) expect(found(router, 'POST', '/v1/chat')).toEqual(only)
  })

  test('with a single handler are rejected if a gate would be skipped, or another path could match', () => {
    const router = new KnownPaths(new TrieRouter(), HANDLERS.every![0])
    const { create, alone } = HANDLERS
    for (const [method, path] of [
      ['ALL', '/v1/chat'],
      ['POST', '/v1/:kind'],
      ['POST', '/v1/*'],
    ] as const)
      expect(() => router.add(method, path, alone!)).toThrow('cannot be alone')
    router.add('POST', '/v1/*', create!)
    router.add('POST', '/v1/chat', alone!)
    expect(() => router.match('POST', '/v1/chat')).toThrow('something else stands beside it')
  })
})
