/** All keys: whose they are, what they used, how full their limits are. Every column sorts, and the order is in the address. */
import type { Child, FC } from 'hono/jsx'
import type { KeySort, KeyState, KeysQuery } from '../../src/model/key-list.ts'
import { Done } from '../ui/form.tsx'
import { KeyIcon } from '../ui/icons.tsx'
import { Since, Until } from '../ui/time.tsx'
import { LimitBars } from './limits.tsx'
import { type ApiKey, countText, dollarText, STATES } from './words.ts'

export interface ListedKey extends ApiKey {
  state: KeyState
}

export interface KeysProps {
  /** ISO 8601: when the page was made. */
  generatedAt: string
  /** Of this page, in the order asked for. */
  keys: readonly ListedKey[]
  /** Searched for or not. */
  total: number
  pages: number
  query: KeysQuery
  canWrite: boolean
  done: string | null
}

export const KeysPage: FC<KeysProps> = ({ generatedAt, keys, total, pages, query, canWrite, done }) => (
  <div class="page" id="keys" data-now={generatedAt}>
    <header class="page-head keys-head">
      <h1>Keys</h1>
      <span class="muted">{total}</span>
      {total > 0 && <Search query={query} />}
      <NewKeyLink canWrite={canWrite} />
    </header>
    <Done text={done} />
    {total === 0 ? (
      <Empty
        title="No keys yet"
        text="A key lets one client in, with its own limits and its own account of what it used."
      />
    ) : keys.length === 0 ? (
      <section class="card keys-empty">
        <h2>No key matches “{query.q}”</h2>
        <a class="button button-plain" href="/keys">
          Clear the search
        </a>
      </section>
    ) : (
      <>
        <KeyTable keys={keys} query={query} now={generatedAt} />
        {pages > 1 && <Pages pages={pages} query={query} />}
      </>
    )}
  </div>
)

const Pages: FC<{ pages: number; query: KeysQuery }> = ({ pages, query: { q, sort, dir, page } }) => {
  const at = (n: number) => `/keys?${new URLSearchParams({ ...(q && { q }), sort, dir, page: String(n) })}`
  return (
    <nav class="keys-pages" aria-label="Pages of keys">
      {page > 1 && (
        <a href={at(page - 1)} rel="prev">
          Back
        </a>
      )}
      <span class="muted">
        Page {page} of {pages}
      </span>
      {page < pages && (
        <a href={at(page + 1)} rel="next">
          Next
        </a>
      )}
    </nav>
  )
}

const Empty: FC<{ title: string; text: string }> = ({ title, text }) => (
  <section class="card keys-empty">
    <KeyIcon />
    <h2>{title}</h2>
    <p class="muted">{text}</p>
  </section>
)

const NewKeyLink: FC<{ canWrite: boolean }> = ({ canWrite }) =>
  canWrite ? (
    <a class="button keys-head-end" href="/keys/new">
      New key
    </a>
  ) : (
    <span class="muted small keys-head-end">Your role can look at keys, not change them.</span>
  )

const Search: FC<{ query: KeysQuery }> = ({ query: { q, sort, dir } }) => (
  <search class="key-search">
    <form method="get" action="/keys">
      <input type="hidden" name="sort" value={sort} />
      <input type="hidden" name="dir" value={dir} />
      <input
        type="search"
        name="q"
        value={q}
        placeholder="Name, prefix or owner"
        aria-label="Search keys"
        data-hotkey="/"
      />
    </form>
  </search>
)

const KeyTable: FC<{ keys: readonly ListedKey[]; query: KeysQuery; now: string }> = ({ keys, query, now }) => (
  <section class="card">
    <table class="keys">
      <thead>
        <tr>
          <Heading by="name" query={query} label="Name" />
          <Heading by="owner" query={query} label="Owner" />
          <Heading by="tokens" query={query} label="Tokens" isNumber />
          <Heading by="cost" query={query} label="Cost" isNumber />
          <Heading by="limit" query={query} label="Limits" />
          <Heading by="used" query={query} label="Last used" />
          <Heading by="state" query={query} label="State" />
        </tr>
      </thead>
      <tbody>
        {keys.map((key) => (
          <KeyRow listed={key} now={now} />
        ))}
      </tbody>
    </table>
  </section>
)

interface HeadingProps {
  by: KeySort
  query: KeysQuery
  label: string
  isNumber?: boolean
}

/** Amounts begin with the largest: that is what one looks for. */
const Heading: FC<HeadingProps> = ({ by, query: { q, sort, dir }, label, isNumber = false }) => {
  const isSorted = sort === by
  const first = ['tokens', 'cost', 'limit', 'used'].includes(by) ? 'desc' : 'asc'
  const next = isSorted ? (dir === 'asc' ? 'desc' : 'asc') : first
  const href = `/keys?${new URLSearchParams({ ...(q && { q }), sort: by, dir: next })}`
  const order = isSorted ? (dir === 'asc' ? 'ascending' : 'descending') : undefined
  return (
    <th scope="col" class={isNumber ? 'number' : undefined} aria-sort={order}>
      <a class="key-sort" href={href}>
        {label}
        {isSorted && <span aria-hidden="true">{dir === 'asc' ? ' ↑' : ' ↓'}</span>}
      </a>
    </th>
  )
}

const KeyRow: FC<{ listed: ListedKey; now: string }> = ({ listed: key, now }) => (
  <tr id={`key-${key.id}`}>
    <Cell name="name">
      <a class="key-name" href={`/keys/${key.id}`}>
        {key.name}
      </a>
      <code class="muted small">{key.keyPrefix}…</code>
    </Cell>
    <Cell name="owner">{key.owner?.username ?? <span class="muted">nobody</span>}</Cell>
    <Cell name="tokens" isNumber>
      <span title={`${key.usageSummary.totalTokens.toLocaleString('en')} tokens`}>
        {countText(key.usageSummary.totalTokens)}
      </span>
      <span class="muted small">
        {countText(key.usageSummary.requestCount)} {key.usageSummary.requestCount === 1 ? 'request' : 'requests'}
      </span>
    </Cell>
    <Cell name="cost" isNumber>
      {dollarText(key.usageSummary.totalCostUsd)}
    </Cell>
    <Cell name="limits">
      <LimitBars limits={key.limits} />
    </Cell>
    <Cell name="used">
      {key.lastUsedAt ? <Since at={key.lastUsedAt} now={now} /> : <span class="muted">never</span>}
    </Cell>
    <Cell name="state">
      <KeyBadge state={key.state} />
      {key.state === 'active' && key.expiresAt && (
        <span class="muted small">
          expires <Until at={key.expiresAt} now={now} />
        </span>
      )}
    </Cell>
  </tr>
)

const Cell: FC<{ name: string; isNumber?: boolean; children?: Child }> = ({ name, isNumber = false, children }) => (
  <td class={`cell-${name}${isNumber ? ' number' : ''}`}>{children}</td>
)

export const KeyBadge: FC<{ state: KeyState }> = ({ state }) => {
  const [label, tone] = STATES[state]
  return (
    <span class={`badge tone-${tone}`}>
      <span class="dot" aria-hidden="true" />
      {label}
    </span>
  )
}
