/** All keys with owner, usage and limits. Every column sorts, and the order is in the URL. */
import type { Child, FC } from 'hono/jsx'
import type { KeySort, KeyState, KeysQuery } from '../../src/model/keys/key-list.ts'
import { countText, shortCount, tokenCost } from '../ui/amounts.ts'
import { Badge } from '../ui/badge.tsx'
import { ButtonLink } from '../ui/button.tsx'
import { Done } from '../ui/form.tsx'
import { KeyIcon } from '../ui/icons.tsx'
import { LivePart, live } from '../ui/live.tsx'
import { NumberedPager } from '../ui/pager.tsx'
import { SortHeading } from '../ui/table.tsx'
import { Since, Until } from '../ui/time.tsx'
import { withQuery } from '../ui/with-query.ts'
import { LimitBars } from './limits.tsx'
import { type OptionalKeys, OptionalKeysBar } from './optional.tsx'
import { type ApiKey, STATES } from './words.ts'

interface ListedKey extends ApiKey {
  state: KeyState
}

export interface KeysProps {
  /** ISO 8601: when the page was made. */
  generatedAt: string
  /** The current page's keys in the requested order. */
  keys: readonly ListedKey[]
  /** With or without a search. */
  total: number
  pages: number
  query: KeysQuery
  /** null: keys are required. */
  optional: OptionalKeys | null
  /** The user sees only their own keys. */
  isOwn: boolean
  canWrite: boolean
  done: string | null
}

export const KeysPage: FC<KeysProps> = (props) => {
  const { generatedAt, keys, total, pages, query, optional, isOwn, canWrite, done } = props
  const src = keysLink(query, { page: query.page })
  return (
    <div class="page" id="keys" data-now={generatedAt}>
      <header class="page-head page-head-actions">
        <h1>{isOwn ? 'Your keys' : 'Keys'}</h1>
        <span class="muted" {...live({ id: 'key-count', topics: ['keys'], src })}>
          {total}
        </span>
        {total > 0 && <Search query={query} isOwn={isOwn} />}
        <NewKeyLink canWrite={canWrite} />
      </header>
      <Done text={done} />
      <OptionalKeysBar optional={optional} src={src} />
      {total === 0 ? (
        <section class="card empty" {...live({ id: 'keys-none', topics: ['keys'], src })}>
          <KeyIcon />
          <h2>No keys yet</h2>
          <p>Create a key for each client. Every key has its own limits and usage.</p>
        </section>
      ) : (
        <section class="card" aria-label="Keys">
          <LivePart id="key-list" topics={['keys', 'minute']} src={src}>
            {keys.length === 0 ? (
              <NothingFound text={query.q} />
            ) : (
              <KeyTable keys={keys} query={query} isOwn={isOwn} now={generatedAt} />
            )}
            {pages > 1 && <NumberedPager page={query.page} pages={pages} at={(page) => keysLink(query, { page })} />}
          </LivePart>
        </section>
      )}
    </div>
  )
}

/** The list with a changed query. */
const keysLink = ({ q, sort, dir }: KeysQuery, change: Partial<KeysQuery>): string =>
  withQuery('/keys', { q, sort, dir, ...change })

const NothingFound: FC<{ text: string }> = ({ text }) => (
  <div class="empty">
    <h2>No key matches “{text}”</h2>
    <ButtonLink href="/keys">Clear search</ButtonLink>
  </div>
)

const NewKeyLink: FC<{ canWrite: boolean }> = ({ canWrite }) =>
  canWrite ? (
    <ButtonLink isMain href="/keys/new">
      Create key
    </ButtonLink>
  ) : (
    <span class="muted small">You have read-only access to keys.</span>
  )

const Search: FC<Pick<KeysProps, 'query' | 'isOwn'>> = ({ query: { q, sort, dir }, isOwn }) => (
  <search class="key-search">
    <form method="get" action="/keys">
      <input type="hidden" name="sort" value={sort} />
      <input type="hidden" name="dir" value={dir} />
      <input
        type="search"
        name="q"
        value={q}
        placeholder={isOwn ? 'Name or prefix' : 'Name, prefix or owner'}
        aria-label="Search keys"
      />
    </form>
  </search>
)

const KeyTable: FC<Pick<KeysProps, 'keys' | 'query' | 'isOwn'> & { now: string }> = ({ keys, query, isOwn, now }) => (
  <table class="list keys">
    <thead>
      <tr>
        <Heading by="name" query={query} label="Name" />
        {!isOwn && <Heading by="owner" query={query} label="Owner" />}
        <Heading by="tokens" query={query} label="Tokens" isNumber />
        <Heading by="cost" query={query} label="Cost" isNumber />
        <Heading by="limit" query={query} label="Limits" />
        <Heading by="used" query={query} label="Last used" />
        <Heading by="state" query={query} label="State" />
      </tr>
    </thead>
    <tbody>
      {keys.map((key) => (
        <KeyRow listed={key} isOwn={isOwn} now={now} />
      ))}
    </tbody>
  </table>
)

interface HeadingProps {
  by: KeySort
  query: KeysQuery
  label: string
  isNumber?: boolean
}

/** Amounts sort largest first. */
const Heading: FC<HeadingProps> = ({ by, query, label, isNumber }) => {
  const { sort, dir } = query
  const isSorted = sort === by
  const first = ['tokens', 'cost', 'limit', 'used'].includes(by) ? 'desc' : 'asc'
  const next = isSorted ? (dir === 'asc' ? 'desc' : 'asc') : first
  return (
    <SortHeading
      label={label}
      href={keysLink(query, { sort: by, dir: next })}
      order={isSorted ? dir : null}
      isNumber={isNumber}
    />
  )
}

const KeyRow: FC<{ listed: ListedKey; isOwn: boolean; now: string }> = ({ listed: key, isOwn, now }) => (
  <tr id={`key-${key.id}`}>
    <Cell name="name">
      <a class="key-name" href={`/keys/${key.id}`}>
        {key.name}
      </a>
      <code class="muted small">{key.keyPrefix}…</code>
    </Cell>
    {!isOwn && <Cell name="owner">{key.owner?.username ?? <span class="muted">none</span>}</Cell>}
    <Cell name="tokens" isNumber>
      <span title={`${countText(key.usageSummary.totalTokens)} tokens`}>
        {shortCount(key.usageSummary.totalTokens)}
      </span>
      <span class="muted small">
        {shortCount(key.usageSummary.requestCount)} {key.usageSummary.requestCount === 1 ? 'request' : 'requests'}
      </span>
    </Cell>
    <Cell name="cost" isNumber>
      {tokenCost(key.usageSummary.totalCostUsd, key.usageSummary.totalTokens)}
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

export const KeyBadge: FC<{ state: KeyState }> = ({ state }) => (
  <Badge tone={STATES[state][1]}>{STATES[state][0]}</Badge>
)
