/** A router that is asked once for each plain path, and answers as the one beneath it does. */
import { describe, expect, test } from 'bun:test'
import { TrieRouter } from 'hono/router/trie-router'
import { KnownPaths } from '../../src/http/known-paths.ts'

class Counting extends TrieRouter<string> {
  asked: string[] = []

  override match(method: string, path: string) {
    this.asked.push(`${method} ${path}`)
    return super.match(method, path)
  }
}

const routers = () => {
  const beneath = new Counting()
  const router = new KnownPaths(beneath)
  const plain = new TrieRouter<string>()
  mount(router)
  mount(plain)
  return { beneath, router, plain }
}

const mount = (router: TrieRouter<string> | KnownPaths<string>) => {
  router.add('ALL', '/*', 'every')
  router.add('POST', '/v1/responses', 'create')
  router.add('POST', '/v1/responses', 'second')
  router.add('GET', '/v1/responses/compact', 'compact')
  router.add('GET', '/v1/responses/:id', 'one')
}

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
    const { router, plain } = routers()
    const expected = plain.match(method, path)
    expect(router.match(method, path)).toEqual(expected)
    expect(router.match('GET', '/v1/responses/between')[0]).toHaveLength(2)
    expect(router.match(method, path)).toEqual(expected)
  })

  test('without parameters are looked up once, and whatever else clients ask for is not kept', () => {
    const { router, beneath } = routers()
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
})
