/** `sluice import`: shows the plan of an import, and carries it out with `--apply`. */
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import type { Db } from '../../db/commit.ts'
import { systemClock } from '../lib/clock.ts'
import { systemRandom } from '../lib/random.ts'
import type { Sealer } from '../lib/seal.ts'
import { append } from '../model/audit/audit.ts'
import { EgressRoutes } from '../model/egress/routes.ts'
import { type Applying, applyPlan } from '../model/imports/apply.ts'
import { type ImportPlan, isInAll, makePlan, type PlanItem } from '../model/imports/plan.ts'
import { countKind, FORMAT_NAMES, FORMATS, type ItemKind } from '../model/imports/words.ts'
import { readImportFiles } from '../ops/import-files.ts'
import type { Settings } from '../settings/schema.ts'
import { readSettings, writeSettings } from '../settings/store.ts'
import { accountOfRefreshToken } from '../upstream/code-exchanges.ts'
import { getBaseUrl, problemOfAddress, problemOfName } from '../upstream/source-address.ts'
import { getOauth, SILENT } from './accounts-add.ts'
import { type CliIo, cliActor, printJson, type Run, UsageError, withNewFolder } from './command.ts'
import { getImportFiles } from './import-path.ts'
import { table } from './table.ts'

interface Options {
  from?: string
  apply?: true
  pause?: true
  replace?: true
  settings?: true
  firewall?: true
  proxies?: true
  history?: true
  key?: string
  passphraseFile?: string
  json?: true
}

export const importFrom: Run<Options> = async (io, [path = ''], options) => {
  const format = getFormat(options.from)
  const files = await getImportFiles(path, options.key)
  const passphrase = options.passphraseFile === undefined ? null : await readPassphrase(options.passphraseFile)
  return withNewFolder(io, async ({ db, dir, sealer }) => {
    const found = await readImportFiles(files, { dir, clock: systemClock, db, passphrase, format })
    const { values: settings } = await readSettings(db)
    const plan = await makePlan(db, found, { sealer, clock: systemClock, settings, assignsProxies: true })
    if (!options.apply) return show(io, plan, options)
    const choice = {
      items: getChosen(plan, options),
      isPaused: Boolean(options.pause),
      replaces: Boolean(options.replace),
    }
    const done = await applyPlan(plan, choice, getApplying(io, { db, sealer, settings }))
    return showResult(io, done, options)
  })
}

/** Reads the passphrase, without the line break that editors add. */
export const readPassphrase = async (path: string): Promise<string> => {
  const text = await readFile(path, 'utf8').catch(() => {
    throw new UsageError(`The passphrase file ${path} cannot be read.`)
  })
  return text.replace(/\r?\n$/, '')
}

const getFormat = (given = 'auto') => {
  const format = FORMATS.find((one) => one === given)
  if (given !== 'auto' && !format) throw new UsageError(`--from must be auto, ${FORMATS.join(', ')}, not "${given}".`)
  return format ?? null
}

const OPTIONAL: Partial<Record<ItemKind, 'settings' | 'firewall' | 'proxies' | 'history'>> = {
  setting: 'settings',
  firewall: 'firewall',
  proxy: 'proxies',
  history: 'history',
}

const isWanted = (item: PlanItem, options: Options): boolean => {
  if (item.content === null) return false
  const option = OPTIONAL[item.kind]
  if (option) return Boolean(options[option]) && (item.verdict === 'new' || item.verdict === 'newer')
  return isInAll(item) || (item.kind === 'account' && Boolean(options.replace))
}

const getChosen = ({ items }: ImportPlan, options: Options): string[] =>
  items.filter((item) => isWanted(item, options)).map(({ id }) => id)

const getApplying = (
  io: CliIo,
  { db, sealer, settings }: { db: Db; sealer: Sealer; settings: Settings },
): Applying => ({
  db,
  sealer,
  random: systemRandom,
  clock: systemClock,
  actor: cliActor,
  scope: 'all',
  exchange: async (refreshToken) => {
    const deps = { db, sealer, clock: systemClock, log: SILENT, settings: () => settings }
    const route = (await EgressRoutes.open(deps)).of(null)
    return accountOfRefreshToken({ ...getOauth(io), route }, refreshToken)
  },
  maxExchanges: Number.POSITIVE_INFINITY,
  storeSettings: async (tx, patch) => {
    const actor = cliActor()
    const before = (await readSettings(tx)).values
    const changed = await writeSettings(tx, patch, { now: actor.at })
    const changes = Object.fromEntries(changed.map((name) => [name, { from: before[name], to: patch[name] }]))
    if (changed.length > 0) await append(tx, actor, 'settings_updated', { details: { changes } })
  },
  getSourceAddress: async (text) => getSourceAddress(text),
  onProgress: reportProgress(io),
})

const REPORT_MS = 5000

/** Shows progress for large imports, such as refresh tokens, which are exchanged one per second. */
const reportProgress = (io: CliIo) => {
  let reportedAt = systemClock.now()
  return (done: number, total: number): void => {
    if (systemClock.now() - reportedAt < REPORT_MS) return
    reportedAt = systemClock.now()
    io.stderr(`${done} of ${total} accounts\n`)
  }
}

/** The server checks the address again at each call. */
const getSourceAddress = (text: string): { baseUrl: string } | { problem: string } => {
  const baseUrl = getBaseUrl(text)
  if (baseUrl === null) return { problem: 'This is not a base URL.' }
  const host = new URL(baseUrl).hostname.replace(/^\[|\]$/g, '')
  const problem = isIP(host) ? problemOfAddress(host) : problemOfName(host)
  return problem === null ? { baseUrl } : { problem }
}

const WORDS: Record<PlanItem['verdict'], string> = {
  new: 'new',
  newer: 'newer',
  same: 'same',
  older: 'older',
  broken: 'left out',
}

/** Rows shown in the terminal. `--json` prints all. */
const MAX_ROWS = 100

const show = (io: CliIo, plan: ImportPlan, options: Options): number => {
  const chosen = getChosen(plan, options)
  if (options.json) printJson(io, facts(plan))
  else {
    printSources(io, plan)
    printRows(io, ['KIND', 'NAME', 'RESULT', 'NOTE'], plan.items, (item) => [WORDS[item.verdict], item.reason ?? ''])
    io.stdout(`\n${chosen.length === 0 ? 'There is nothing to import.' : `To import: ${countKinds(plan, chosen)}.`}\n`)
    printOptional(io, plan, options)
    if (chosen.length > 0) io.stdout('Nothing is stored yet. To import it, run the same command with --apply.\n')
  }
  return chosen.length === 0 ? 1 : 0
}

/** The plan without secrets. */
const facts = ({ sources, items }: ImportPlan) => ({
  sources: sources.map(({ format: kind, name, notes }) => ({ kind, name, notes })),
  items: items.map(({ id, kind, label, verdict, reason, source, result }) => ({
    id,
    kind,
    label,
    verdict,
    reason,
    source,
    result,
  })),
})

const printSources = (io: CliIo, { sources }: ImportPlan): void => {
  for (const { format, name } of sources.slice(0, MAX_ROWS)) io.stdout(`${name} (${FORMAT_NAMES[format]})\n`)
  for (const note of new Set(sources.flatMap(({ notes }) => notes))) io.stdout(`${note}\n`)
  io.stdout('\n')
}

const printRows = (
  io: CliIo,
  headings: string[],
  items: readonly PlanItem[],
  cells: (item: PlanItem) => string[],
): void => {
  const shown = items.slice(0, MAX_ROWS)
  io.stdout(
    table(
      headings,
      shown.map((item) => [item.kind, item.label, ...cells(item)]),
    ),
  )
  if (items.length > shown.length) io.stdout(`and ${items.length - shown.length} more; --json prints all\n`)
}

const countKinds = ({ items }: ImportPlan, ids: readonly string[]): string => {
  const chosen = new Set(ids)
  const kinds = Map.groupBy(
    items.filter(({ id }) => chosen.has(id)),
    ({ kind }) => kind,
  )
  return [...kinds].map(([kind, { length }]) => countKind(length, kind)).join(', ')
}

const printOptional = (io: CliIo, plan: ImportPlan, options: Options): void => {
  for (const [kind, option] of Object.entries(OPTIONAL)) {
    const { length } = plan.items.filter((item) => item.kind === kind && item.content !== null)
    if (length > 0 && !options[option])
      io.stdout(
        `Not included: ${countKind(length, kind as ItemKind)}. Add --${option} to import ${length === 1 ? 'it' : 'them'}.\n`,
      ) // as: its keys
  }
}

const showResult = (io: CliIo, plan: ImportPlan, options: Options): number => {
  const results = plan.items.filter(({ result }) => result !== null)
  const of = (outcome: string) => results.filter(({ result }) => result?.outcome === outcome)
  if (options.json) printJson(io, facts(plan))
  else {
    const cells = ({ result, reason }: PlanItem) => [
      OUTCOMES[result?.outcome ?? 'left_out'],
      result?.reason ?? reason ?? '',
    ]
    printRows(
      io,
      ['KIND', 'NAME', 'RESULT', 'NOTE'],
      plan.items.filter((item) => item.result !== null || item.verdict === 'broken' || item.verdict === 'same'),
      cells,
    )
    const left = plan.items.length - of('imported').length - of('joined').length
    io.stdout(
      `\n${of('imported').length} imported, ${of('joined').length} joined with an existing account, ${left} left out.\n`,
    )
    for (const note of new Set(plan.sources.flatMap(({ notes }) => notes))) io.stdout(`${note}\n`)
    io.stdout('A running server uses them within two seconds.\n')
  }
  return of('left_out').length === 0 ? 0 : 1
}

const OUTCOMES = { imported: 'imported', joined: 'joined', left_out: 'left out' }
