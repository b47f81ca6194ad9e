/** The SOCKS bridge is loaded with the first call through it; a failed load is retried. */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { $ } from 'bun'

const ROOT = join(import.meta.dir, '../..')

test('a bridge that could not be loaded fails its request, uses no other way, and is loaded for the next', async () => {
  const script = `
    let isThere = false
    Bun.plugin({ name: 'late', setup: (build) => void build.onLoad({ filter: /proxy-bridge.ts$/ }, ({ path }) => {
      if (!isThere) throw new Error('not there')
      return { contents: require('node:fs').readFileSync(path, 'utf8'), loader: 'ts' }
    }) })
    const { createDial } = await import('${join(ROOT, 'src/upstream/dial.ts')}')
    const ways = []
    const send = async (url, { proxy }) => (ways.push(proxy.url.replace(/:.*@|:[0-9]+$/g, '')), new Response('through'))
    const dial = createDial({ ALL_PROXY: 'socks5h://127.0.0.1:1' }, send, {
      trustsSocketEnvironment: true, random: { token: () => 'secret' },
    })
    const call = () => dial.fetch('https://a.test/x', {}, { kind: 'environment' }).then((answer) => answer.text(), (err) => err.message)
    const told = [await call()]
    isThere = true
    told.push(await call(), await call())
    isThere = false
    dial.close()
    console.log(JSON.stringify({ told, ways }))`
  const { told, ways } = JSON.parse(await $`${process.execPath} -e ${script}`.text())
  expect(told).toEqual(['not there', 'through', 'through'])
  expect(ways).toHaveLength(2)
})

test('closing a bridge that never opened is no unhandled rejection', async () => {
  const script = `
    Bun.plugin({ name: 'never', setup: (build) => void build.onLoad({ filter: /proxy-bridge.ts$/ }, () => {
      throw new Error('not there')
    }) })
    const { createDial } = await import('${join(ROOT, 'src/upstream/dial.ts')}')
    const options = { trustsSocketEnvironment: true, random: { token: () => 'secret' } }
    const dial = createDial({ ALL_PROXY: 'socks5h://127.0.0.1:1' }, fetch, options)
    const call = dial.fetch('https://a.test/x', {}, { kind: 'environment' }).catch(() => {})
    dial.close()
    await call
    await Bun.sleep(10)
    console.log('quiet')`
  expect(await $`${process.execPath} -e ${script}`.text()).toBe('quiet\n')
})
