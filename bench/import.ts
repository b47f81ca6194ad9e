/**
 * What importing accounts costs as the pool grows: the processor time of each thousand, in process, over the same route as
 * the dashboard: `bun bench/import.ts [thousands]`. Fails when the last thousand costs more than 1.3 times the first.
 */
import { testApp } from '../tests/support/app.ts'
import { people } from '../tests/support/people.ts'
import { AUTH_CLAIM, unsignedJwt } from '../tests/support/upstream/tokens.ts'

const thousands = Number(process.argv[2] ?? 3)
const MOST = 1.3

const app = testApp({ accounts: 0 })
const admin = people(app).as('admin')

/** Seats of their own; half of them share one workspace, as those of a company do. */
const thousand = (n: number): [string, string][] =>
  Array.from({ length: 1000 }, (_, i) => {
    const claim = {
      chatgpt_account_id: i % 2 === 0 ? 'workspace-shared' : `workspace-${n}-${i}`,
      chatgpt_user_id: `user-${n}-${i}`,
      chatgpt_plan_type: 'team',
    }
    const id_token = unsignedJwt({ email: `seat-${n}-${i}@example.test`, [AUTH_CLAIM]: claim })
    const tokens = { id_token, access_token: `access-${n}-${i}`, refresh_token: `refresh-${n}-${i}` }
    return [`${n}-${i}.json`, JSON.stringify({ tokens })]
  })

const importFiles = async (files: readonly [string, string][]): Promise<void> => {
  const form = new FormData()
  for (const [name, text] of files) form.append('auth_json', new File([text], name))
  const request = new Request('http://localhost', { method: 'POST', body: form })
  const headers = { 'content-type': request.headers.get('content-type') ?? '' }
  const answer = admin.ask('POST /api/accounts/import', { body: await request.arrayBuffer(), headers })
  let isDone = false
  void answer.finally(() => {
    isDone = true
  })
  while (!isDone) await app.clock.advance(5)
  const { status } = await answer
  if (status !== 200) throw new Error(`The import was answered with ${status}.`)
}

const seconds: number[] = []
for (let n = 0; n < thousands; n++) {
  const files = thousand(n)
  Bun.gc(true)
  const before = process.cpuUsage()
  await importFiles(files)
  const { user, system } = process.cpuUsage(before)
  seconds.push((user + system) / 1e6)
  console.log(`accounts ${n * 1000 + 1} to ${(n + 1) * 1000}: ${seconds[n]?.toFixed(2)} s of processor time`)
}
if (app.bindings.pool.all().length !== thousands * 1000) throw new Error('Not all accounts were imported.')
const ratio = (seconds.at(-1) ?? 0) / (seconds[0] ?? 1)
console.log(`the last thousand costs ${ratio.toFixed(2)} times the first (at most ${MOST})`)
process.exit(ratio <= MOST ? 0 : 1)
