/** `bun run sim`: the stand-in upstream on a port, with accounts to import, until it is stopped. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createUpstream } from './app.ts'
import { describeAccount } from './control.ts'

const USAGE = `Stand-in upstream. Options:
  --port <n>       port on 127.0.0.1 (default: a free one)
  --accounts <n>   accounts to start with (default: 2)
  --auth-dir <dir> write one auth.json per account into this directory
  --keep <n>       requests to remember (default: 1000)
Point the service's upstream and auth addresses at the url printed on standard output.
Control it under <url>/_sim: GET accounts, requests, handshakes, oddities, stats;
POST accounts, accounts/<id>/faults, accounts/<id>/expire, usage/<id>, answer, release, close-sockets, reset.
`

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    accounts: { type: 'string', default: '2' },
    keep: { type: 'string' },
    'auth-dir': { type: 'string' },
    help: { type: 'boolean', short: 'h', default: false },
  },
})

if (process.stderr.isTTY || values.help) process.stderr.write(USAGE)
if (values.help) process.exit(0)

const upstream = createUpstream(values.keep === undefined ? {} : { keepRequests: Number(values.keep) })
for (let index = 0; index < Number(values.accounts); index += 1) upstream.addAccount()
const authFiles = values['auth-dir'] === undefined ? [] : writeAuthFiles(values['auth-dir'])
const { url } = upstream.listen(Number(values.port))
process.stdout.write(`${JSON.stringify({ url, accounts: upstream.accounts.map(describeAccount), authFiles })}\n`)

function writeAuthFiles(directory: string): string[] {
  mkdirSync(directory, { recursive: true })
  return upstream.accounts.map((account, index) => {
    const path = join(directory, `auth-${index + 1}.json`)
    writeFileSync(path, account.authJson(), { mode: 0o600 })
    return path
  })
}
