/** The allowed addresses of a model source, in every notation. */
import { describe, expect, test } from 'bun:test'
import type { Dial } from '../../src/upstream/dial.ts'
import { GuardedFetch, type Lookup } from '../../src/upstream/guarded-fetch.ts'
import { getBaseUrl, getForms, problemOfAddress } from '../../src/upstream/source-address.ts'
import { SourceFetch } from '../../src/upstream/source-fetch.ts'

/** What attackers write for 169.254.169.254, other metadata services, and this server. */
const REFUSED: readonly string[] = [
  // one address of AWS, Google Cloud, Azure and others, as numbers
  'http://169.254.169.254/v1',
  'http://169.254.169.254:80/v1',
  'https://169.254.169.254/v1',
  'http://169.254.169.254./v1',
  'http://2852039166/v1',
  'http://0xa9fea9fe/v1',
  'http://0XA9FEA9FE/v1',
  'http://0xA9.0xFE.0xA9.0xFE/v1',
  'http://0251.0376.0251.0376/v1',
  'http://0000251.0000376.0000251.0000376/v1',
  'http://025177524776/v1',
  'http://169.254.43518/v1',
  'http://169.16689662/v1',
  'http://169.0xfe.0251.254/v1',
  'http://0xa9.254.0251.254/v1',
  'http://169.254.0xa9fe/v1',
  // by letters that a URL reads as digits and dots
  'http://169。254。169。254/v1',
  'http://169．254．169．254/v1',
  'http://169｡254｡169｡254/v1',
  'http://①⑥⑨.②⑤④.①⑥⑨.②⑤④/v1',
  'http://１６９.２５４.１６９.２５４/v1',
  'http://𝟏𝟔𝟗.254.169.254/v1',
  'http://%31%36%39.254.169.254/v1',
  'http://169%2E254%2E169%2E254/v1',
  'http://169.254.169\u00ad.254/v1',
  // inside IPv6
  'http://[::ffff:169.254.169.254]/v1',
  'http://[::FFFF:A9FE:A9FE]/v1',
  'http://[0:0:0:0:0:ffff:a9fe:a9fe]/v1',
  'http://[0000:0000:0000:0000:0000:ffff:169.254.169.254]/v1',
  'http://[::169.254.169.254]/v1',
  'http://[::a9fe:a9fe]/v1',
  'http://[::ffff:0:169.254.169.254]/v1',
  'http://[64:ff9b::169.254.169.254]/v1',
  'http://[64:ff9b::a9fe:a9fe]/v1',
  'http://[0064:ff9b:0:0:0:0:a9fe:a9fe]/v1',
  'http://[64:ff9b:1::a9fe:a9fe]/v1',
  'http://[64:ff9b:1:a9fe:a9:fe00::]/v1',
  'http://[2002:a9fe:a9fe::]/v1',
  'http://[2002:A9FE:A9FE::1]/v1',
  'http://[2001:0:a9fe:a9fe::1]/v1',
  'http://[2001::5601:5601]/v1',
  'http://[fd00::5efe:a9fe:a9fe]/v1',
  'http://[2001:db8::200:5efe:169.254.169.254]/v1',
  // the rest of link-local
  'http://169.254.0.1/v1',
  'http://169.254.170.2/v1',
  'http://169.254.255.255/v1',
  'http://[fe80::1]/v1',
  'http://[FE80:0:0:0:0:0:0:1]/v1',
  'http://[febf::1]/v1',
  // metadata services elsewhere
  'http://[fd00:ec2::254]/v1',
  'http://[FD00:0EC2:0:0:0:0:0:0254]/v1',
  'http://[fd00:ec2::23]/v1',
  'http://[fd20:ce::254]/v1',
  'http://[fd00:c1::a9fe:a9fe]/v1',
  'http://[fd00:42::42]/v1',
  'http://100.100.100.200/v1',
  'http://1684301000/v1',
  'http://[::ffff:100.100.100.200]/v1',
  'http://192.0.0.192/v1',
  'http://0xc00000c0/v1',
  'http://168.63.129.16/v1',
  'http://[64:ff9b::168.63.129.16]/v1',
  // by name
  'http://metadata.google.internal/v1',
  'http://METADATA.Google.Internal/v1',
  'http://metadata.google.internal./v1',
  'http://metadata.google.internal../v1',
  'http://x.metadata.google.internal/v1',
  'http://metadata。google。internal/v1',
  'http://ⓜetadata.google.internal/v1',
  'http://metadata/v1',
  'http://metadata.goog/v1',
  'http://instance-data/v1',
  'http://instance-data.ec2.internal/v1',
  'http://metadata.tencentyun.com/v1',
  'http://metadata.azure.internal/v1',
  // names that resolve there
  'http://rebind.example/v1',
  'http://half.example/v1',
  'http://six.example/v1',
  'http://zone.example/v1',
  // this server
  'http://127.0.0.1:2455/v1',
  'http://127.1:2455/v1',
  'http://127.9.9.9:2455/v1',
  'http://2130706433:2455/v1',
  'http://0x7f.1:2455/v1',
  'http://0:2455/v1',
  'http://0.0.0.0:2455/v1',
  'http://[::1]:2455/v1',
  'http://[::]:2455/v1',
  'http://[::ffff:127.0.0.1]:2455/v1',
  'http://[64:ff9b::7f00:1]:2455/v1',
  'http://localhost:2455/v1',
  'http://LOCALHOST:2455/v1',
  'http://localhost.:2455/v1',
  'https://sluice.example/v1',
  'https://SLUICE.example:443/v1',
  // no single server
  'http://224.0.0.1/v1',
  'http://255.255.255.255/v1',
  'http://[ff02::1]/v1',
]

/** Not stored at all. */
const NO_BASE_URL: readonly string[] = [
  '',
  'localhost:11434/v1',
  'ftp://localhost/v1',
  'file:///etc/passwd',
  'unix:/var/run/docker.sock',
  'javascript:alert(1)',
  'http:169.254.169.254/v1',
  'http:/169.254.169.254/v1',
  'http:\\\\169.254.169.254\\v1',
  'http://user@localhost/v1',
  'http://user:password@localhost/v1',
  'http://localhost@169.254.169.254/v1',
  'http://:secret@localhost/v1',
  'http://localhost/v1?key=1',
  'http://localhost/v1#x',
  'http://localhost/v1?',
  'http://[fe80::1%eth0]/v1',
  'http://[fe80::1%25eth0]/v1',
  'http://169.254.169.254 /v1',
  'http://local\thost/v1',
  'http://local\nhost/v1',
  'http://256.1.1.1/v1',
  'http://1.2.3.4.5/v1',
  'http://[::g]/v1',
  'http://localhost:0/v1',
  'http://localhost:99999/v1',
  'http:///v1',
]

/** Where sources really are. */
const ALLOWED: readonly string[] = [
  'http://localhost:11434/v1',
  'http://127.0.0.1:8000/v1',
  'http://[::1]:1234/v1',
  'http://0.0.0.0:11434/v1',
  'http://10.1.2.3/v1',
  'http://172.16.0.9:8080/v1',
  'http://192.168.1.20:1234/v1',
  'http://100.64.0.9:11434/v1',
  'http://100.100.100.201/v1',
  'http://[fd12:3456::1]:8000/v1',
  'http://[fd00:ec3::1]/v1',
  'https://openrouter.ai/api/v1',
  'http://metadata-models.example/v1',
  'http://127.0.0.1:2456/v1',
  'http://gpu.lan:2455/v1',
]

const NAMES: Record<string, readonly string[]> = {
  'rebind.example': ['169.254.169.254'],
  'half.example': ['203.0.113.9', '169.254.169.254'],
  'six.example': ['::ffff:a9fe:a9fe'],
  'zone.example': ['fe80::1%eth0'],
  localhost: ['127.0.0.1', '::1'],
  'localhost.': ['127.0.0.1', '::1'],
  'openrouter.ai': ['203.0.113.7'],
  'metadata-models.example': ['203.0.113.8'],
  'gpu.lan': ['10.0.0.9'],
}
const lookup: Lookup = async (name) => NAMES[name] ?? []

/** Counts what leaves. */
const fetchWith = (over: { lookup?: Lookup; isProxied?: boolean; answer?: () => Response } = {}) => {
  const calls: { url: string; address: string; init: RequestInit }[] = []
  const dial: Pick<Dial, 'fetchAt' | 'isProxied'> = {
    isProxied: () => over.isProxied ?? false,
    fetchAt: async (url, address, init) => {
      calls.push({ url, address, init })
      return over.answer?.() ?? Response.json({})
    },
  }
  const own = () => ({ port: 2455, publicUrl: 'https://sluice.example' })
  return { calls, sources: new SourceFetch(new GuardedFetch({ dial, lookup: over.lookup ?? lookup, own })) }
}

const call = { path: '/models', accept: 'application/json', signal: new AbortController().signal }
const at = (baseUrl: string, key: string | null = null) => ({ baseUrl, key: () => key })

describe('refused', () => {
  test('there are more than sixty spellings', () => expect(new Set(REFUSED).size).toBeGreaterThan(60))

  test.each([...REFUSED])('%s', async (text) => {
    const { calls, sources } = fetchWith()
    const baseUrl = getBaseUrl(text)
    if (baseUrl === null) return // not a URL for this runtime, so it is not stored either
    expect(await sources.getProblem(baseUrl)).toMatch(/is not allowed|cannot call|belongs to no single server/)
    // Also when it was stored before the rule existed, and without our parsing in between.
    for (const url of [baseUrl, text.replace(/\/v1$/, '')])
      expect(await sources.fetch(at(url), call).catch((err) => err.code)).toBe('model_source_unreachable')
    expect(calls).toEqual([])
  })

  test('nearly all of them are URLs, so the rule and not the parser rejects them', () => {
    expect(REFUSED.filter((text) => getBaseUrl(text) === null).length).toBeLessThan(5)
  })

  test.each([...NO_BASE_URL])('not a base URL: %p', (text) => expect(getBaseUrl(text)).toBeNull())
})

test.each([...ALLOWED])('allowed: %s', async (text) => {
  const { sources } = fetchWith()
  const baseUrl = getBaseUrl(text) ?? ''
  expect([baseUrl, await sources.getProblem(baseUrl)]).toEqual([text, null])
})

test('a base URL is stored without a trailing slash', () => {
  expect(['http://a/v1/', 'HTTP://A:80/v1//', 'https://b:443'].map(getBaseUrl)).toEqual([
    'http://a/v1',
    'http://a/v1',
    'https://b',
  ])
})

test('addresses inside IPv6 addresses are found', () => {
  expect(getForms('64:ff9b::7f00:1')).toContain('127.0.0.1')
  expect(getForms('::ffff:127.0.0.1')).toEqual(['127.0.0.1'])
  expect(getForms('2001:db8::1')).toEqual(['2001:db8::1'])
  expect(problemOfAddress('not an address')).not.toBeNull()
})

test.each([
  'https://sluice.example.',
  'http://sluice.example',
  'http://sluice.example:443',
  'http://SLUICE.example.:80',
])('the public name of Sluice is its own address in every spelling: %s', async (base) => {
  const { calls, sources } = fetchWith({ lookup: async () => ['203.0.113.9'] })
  expect(await sources.getProblem(`${base}/v1`)).toContain('address of Sluice itself')
  expect(await sources.fetch(at(`${base}/v1`), call).catch((err) => err.code)).toBe('model_source_unreachable')
  expect(calls).toEqual([])
  expect(await sources.getProblem('http://sluice.example:11434/v1')).toBeNull()
})

describe('a name', () => {
  test('is resolved at each call, and the connection goes to the address that was checked', async () => {
    const answers = [['203.0.113.7'], ['169.254.169.254'], ['203.0.113.7']]
    const { calls, sources } = fetchWith({ lookup: async () => answers.shift() ?? [] })
    const go = () =>
      sources.fetch(at('https://moving.example/v1'), call).then(
        () => 'ok',
        (err) => err.code,
      )
    expect([await go(), await go(), await go()]).toEqual(['ok', 'model_source_unreachable', 'ok'])
    expect(calls.map(({ address }) => address)).toEqual(['203.0.113.7', '203.0.113.7'])
  })

  test('that cannot be resolved is passed to a proxy, without a second lookup of our own', async () => {
    const direct = fetchWith({ lookup: () => Promise.reject(new Error('NXDOMAIN')) })
    expect(await direct.sources.fetch(at('http://gone.example/v1'), call).catch((err) => err.code)).toBe(
      'model_source_unreachable',
    )
    expect(direct.calls).toEqual([])
    const proxied = fetchWith({ lookup: () => Promise.reject(new Error('NXDOMAIN')), isProxied: true })
    await proxied.sources.fetch(at('http://inside.example/v1'), call)
    expect(proxied.calls.map(({ url }) => url)).toEqual(['http://inside.example/v1/models'])
    expect(await proxied.sources.getProblem('http://metadata.google.internal')).not.toBeNull()
  })

  test('with several addresses: the next one is tried when a connection is refused', async () => {
    const { calls, sources } = fetchWith({
      answer: () => {
        if (calls.length === 1) throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
        return Response.json({})
      },
    })
    await sources.fetch(at('http://localhost:11434/v1'), call)
    expect(calls.map(({ address }) => address)).toEqual(['127.0.0.1', '::1'])
  })
})

test.each([301, 302, 303, 307, 308])('a redirect with status %d is not followed', async (status) => {
  const location = 'http://169.254.169.254/latest/meta-data/'
  const { calls, sources } = fetchWith({ answer: () => new Response(null, { status, headers: { location } }) })
  const code = await sources.fetch(at('http://10.0.0.1/v1'), call).catch((err) => err.code)
  expect([code, calls.length]).toEqual(['model_source_error', 1])
})

test('only the headers of the source are sent', async () => {
  const { calls, sources } = fetchWith()
  await sources.fetch(at('http://10.0.0.1/v1', 'sk-1'), { ...call, body: '{}', contentType: 'application/json' })
  await sources.fetch(at('http://10.0.0.1/v1'), call)
  expect(calls.map(({ init: { headers, method } }) => [method, headers])).toEqual([
    [
      'POST',
      {
        accept: 'application/json',
        'accept-encoding': 'identity',
        'content-type': 'application/json',
        authorization: 'Bearer sk-1',
      },
    ],
    [undefined, { accept: 'application/json', 'accept-encoding': 'identity' }],
  ])
})
