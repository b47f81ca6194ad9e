/** `/accounts/import`: imports from other tools: first the files, then a plan with checkboxes, then the result. */
import type { FC } from 'hono/jsx'
import type { ItemResult, PlanVerdict } from '../../src/model/imports/plan.ts'
import { countKind, FORMAT_NAMES, type Format, type ItemKind } from '../../src/model/imports/words.ts'
import { Badge, type Tone } from '../ui/badge.tsx'
import { ButtonLink, Submit } from '../ui/button.tsx'
import { Field, Form, Problem } from '../ui/form.tsx'
import { NumberedPager } from '../ui/pager.tsx'
import { TableHead } from '../ui/table.tsx'
import { Until } from '../ui/time.tsx'
import { accountPath } from './links.ts'

export interface ShownItem {
  id: string
  kind: ItemKind
  label: string
  verdict: PlanVerdict
  reason: string | null
  source: number
  /** Whether it is selected by default. */
  isSelected: boolean
  canSelect: boolean
  /** The environment variable that contains the key of a model source. */
  keyVariable: string | null
  result: ItemResult | null
}

export interface PlanView {
  id: string
  /** ISO 8601. */
  expiresAt: string
  generatedAt: string
  sources: readonly { kind: Format; name: string; notes: readonly string[] }[]
  items: readonly ShownItem[]
  /** The items on this page. */
  rows: readonly ShownItem[]
  page: number
  pages: number
}

export interface ImportPage {
  /** Null until files are sent. */
  plan: PlanView | null
  problem: string | null
}

export const ImportPlanPage: FC<ImportPage> = ({ plan, problem }) => (
  <div class="page" data-now={plan?.generatedAt}>
    <nav class="crumbs" aria-label="Breadcrumb">
      <a href="/accounts">Accounts</a>
    </nav>
    <header class="page-head">
      <h1>Import from another tool</h1>
    </header>
    {plan ? <Plan plan={plan} problem={problem} /> : <Choose problem={problem} />}
  </div>
)

const Choose: FC<{ problem: string | null }> = ({ problem }) => (
  <section class="card import-files" aria-labelledby="choose-title">
    <div class="card-body">
      <h2 class="sr" id="choose-title">
        Files
      </h2>
      <p>
        Bring accounts, API keys and settings from another tool. Your clients keep their keys. You see a plan first, and
        nothing is stored until you confirm it.
      </p>
      <form
        id="form-import"
        class="stack"
        method="post"
        action="/api/import/preflight"
        enctype="multipart/form-data"
        hx-post="/api/import/preflight"
        hx-swap="none"
        hx-disable="find button"
      >
        <label class="drop">
          <span class="field-label">Drop files here</span>
          <input type="file" name="files" multiple required />
          <span class="hint">
            From codex-lb, select both <code>store.db</code> and <code>encryption.key</code> in <code>~/.codex-lb</code>
            . Stop codex-lb first.
          </span>
        </label>
        <details>
          <summary class="reveal">What can be imported?</summary>
          <ul class="import-formats">
            <li>
              codex-lb: <code>store.db</code> and <code>encryption.key</code>
            </li>
            <li>
              CLIProxyAPI: the JSON files of its auth folder, and <code>config.yaml</code> for its API keys
            </li>
            <li>sub2api, icebear codex-proxy, Cockpit Tools, Codex-Manager: their JSON exports</li>
            <li>
              OpenCode and Codex CLI: <code>auth.json</code>
            </li>
            <li>LiteLLM: its YAML configuration, as model sources</li>
            <li>
              Another Sluice: the file of <code>sluice export accounts</code>
            </li>
          </ul>
        </details>
        <Field
          label="Passphrase"
          name="passphrase"
          type="password"
          autocomplete="off"
          hint="Only for a Sluice export."
        />
        <div class="actions">
          <Submit>Preview import</Submit>
          <ButtonLink href="/accounts">Cancel</ButtonLink>
        </div>
        <div id="form-import-problem" class="form-problem" role="alert">
          {problem && <Problem text={problem} />}
        </div>
      </form>
      <p class="muted small">
        Large database? On the server, run <code>sluice import PATH</code>.{' '}
        <a href="/docs/codex-lb">Coming from codex-lb</a>
      </p>
    </div>
  </section>
)

const VERDICTS: Record<PlanVerdict, [label: string, tone: Tone]> = {
  new: ['New', 'good'],
  newer: ['Newer', 'good'],
  same: ['Same', 'idle'],
  older: ['Older', 'wait'],
  broken: ['Not importable', 'bad'],
}

const OUTCOMES: Record<ItemResult['outcome'], [label: string, tone: Tone]> = {
  imported: ['Imported', 'good'],
  joined: ['Joined', 'good'],
  left_out: ['Left out', 'idle'],
}

const KINDS: Record<ItemKind, string> = {
  account: 'Account',
  key: 'API key',
  source: 'Model source',
  proxy: 'Outbound proxy',
  setting: 'Setting',
  firewall: 'Firewall',
  history: 'Request log',
}

const Plan: FC<{ plan: PlanView; problem: string | null }> = ({ plan, problem }) => {
  const { id, items, rows, page, pages, sources } = plan
  const isDone = items.some(({ result }) => result?.outcome === 'imported' || result?.outcome === 'joined')
  const canImport = items.some(({ canSelect }) => canSelect)
  return (
    <>
      <section class="card" aria-labelledby="summary-title">
        <div class="card-body">
          <h2 id="summary-title">{isDone ? 'Import finished' : 'Plan'}</h2>
          <p>{isDone ? getResults(items) : getCounts(items)}</p>
          <p class="muted small">{getOrigins(sources)}</p>
          {[...new Set(sources.flatMap(({ notes }) => notes))].map((note) => (
            <p class="small">{note}</p>
          ))}
        </div>
      </section>
      <Form name="import" action={`/api/import/${id}`} class="card" problem={problem}>
        <input type="hidden" name="page" value={String(page)} />
        <div class="scroll-x" tabindex={0}>
          <table class="list import-plan">
            <TableHead texts={['Import', 'What', 'Name', 'Result', 'Details']} />
            <tbody>
              {rows.map((item) => (
                <Row item={item} source={sources[item.source]?.name ?? ''} isAlone={sources.length < 2} />
              ))}
            </tbody>
          </table>
        </div>
        {pages > 1 && <Rest plan={plan} />}
        {canImport && (
          <div class="card-body stack">
            <label class="check">
              <input type="checkbox" name="paused" value="true" />
              <span>Pause the imported accounts. Sluice doesn’t use them until you resume them.</span>
            </label>
            <div class="actions">
              <Submit>Import selected</Submit>
              <ButtonLink href="/accounts/import">Select other files</ButtonLink>
            </div>
            <p class="muted small">
              Settings, firewall addresses, outbound proxies and request logs are imported only if you select them. This
              plan expires <Until at={plan.expiresAt} now={plan.generatedAt} />.
            </p>
          </div>
        )}
        {isDone && !canImport && (
          <div class="card-body actions">
            <ButtonLink isMain href="/accounts">
              Go to accounts
            </ButtonLink>
          </div>
        )}
      </Form>
      {pages > 1 && <NumberedPager page={page} pages={pages} at={(to) => `/accounts/import?plan=${id}&page=${to}`} />}
    </>
  )
}

const getCounts = (items: readonly ShownItem[]): string => {
  const of = (verdicts: readonly PlanVerdict[]) => items.filter(({ verdict }) => verdicts.includes(verdict))
  const kinds = Map.groupBy(of(['new', 'newer']), ({ kind }) => kind)
  const ready = [...kinds].map(([kind, { length }]) => countKind(length, kind)).join(', ')
  const others = [
    [of(['same', 'older']).length, 'without changes'],
    [of(['broken']).length, 'not importable'],
  ] as const
  const rest = others.filter(([number]) => number > 0).map(([number, what]) => `${number} ${what}`)
  return [ready ? `Ready to import: ${ready}.` : 'Nothing new to import.', ...rest.map((part) => `${part}.`)].join(' ')
}

const getResults = (items: readonly ShownItem[]): string => {
  const of = (outcome: ItemResult['outcome']) => items.filter(({ result }) => result?.outcome === outcome).length
  return `${of('imported')} imported, ${of('joined')} joined with an existing account, ${of('left_out')} left out.`
}

const getOrigins = (sources: PlanView['sources']): string => {
  const kinds = Map.groupBy(sources, ({ kind }) => FORMAT_NAMES[kind])
  return [...kinds]
    .map(([name, files]) => `${name}: ${files.length === 1 ? files[0]?.name : `${files.length} files`}`)
    .join(' · ')
}

interface RowProps {
  item: ShownItem
  source: string
  isAlone: boolean
}

const Row: FC<RowProps> = ({ item, source, isAlone }) => {
  const { id, kind, label, verdict, reason, isSelected, canSelect, keyVariable, result } = item
  const [word, tone] = result ? OUTCOMES[result.outcome] : VERDICTS[verdict]
  return (
    <tr>
      <td>
        <input
          type="checkbox"
          name="items"
          value={id}
          checked={isSelected}
          disabled={!canSelect}
          aria-label={`Import ${KINDS[kind]} ${label}`}
        />
      </td>
      <td class="import-kind muted">{KINDS[kind]}</td>
      <td class="import-name">
        <span class="personal">{result?.accountId ? <a href={accountPath(result.accountId)}>{label}</a> : label}</span>
        {!isAlone && <span class="muted small import-source">{source}</span>}
      </td>
      <td>
        <Badge tone={tone}>{word}</Badge>
      </td>
      <td class="import-why muted">
        {(result ? result.reason : null) ?? reason ?? ''}
        {keyVariable && (
          <input
            type="password"
            name={`keys.${id}`}
            autocomplete="off"
            placeholder={keyVariable}
            aria-label={`API key of ${label}`}
          />
        )}
      </td>
    </tr>
  )
}

/**
 * Selects the items on other pages, by kind: a plan can have thousands of rows, but a form only a few hundred fields.
 */
const Rest: FC<{ plan: PlanView }> = ({ plan: { items, rows } }) => {
  const listed = new Set(rows.map(({ id }) => id))
  const others = Map.groupBy(
    items.filter(({ id, isSelected }) => isSelected && !listed.has(id)),
    ({ kind }) => kind,
  )
  return (
    <div class="card-body stack">
      {[...others].map(([kind, { length }]) => (
        <label class="check">
          <input type="checkbox" name="rest" value={kind} checked />
          <span>Also import {countKind(length, kind)} listed on other pages.</span>
        </label>
      ))}
    </div>
  )
}
