/** Settings, Routing, Sticky sessions: the account each conversation stays on, and how to let it go. */
import type { FC } from 'hono/jsx'
import type { STICKY_KINDS } from '../../src/model/sticky/session-key.ts'
import type { STICKY_SORTS } from '../../src/model/sticky/sticky-sessions.ts'
import { accountPath } from '../accounts/links.ts'
import { countText, plural } from '../ui/amounts.ts'
import { Submit } from '../ui/button.tsx'
import { Card, TextCard } from '../ui/card.tsx'
import { Action, Form, Outcome } from '../ui/form.tsx'
import { type Choice, Filter, FilterActions, getOptions } from '../ui/select.tsx'
import { SortHeading } from '../ui/table.tsx'
import { Since, Until } from '../ui/time.tsx'
import { type Frame, SettingsFrame } from './frame.tsx'

export type StickySort = (typeof STICKY_SORTS)[number]

/** The filter and order of the list. */
interface StickyQuery {
  kind?: (typeof STICKY_KINDS)[number] | undefined
  staleOnly?: boolean | undefined
  accountQuery: string
  keyQuery: string
  sortBy: StickySort
  sortDir: 'asc' | 'desc'
  offset: number
  limit: number
}

export interface StickyPage {
  entries: StickyEntry[]
  /** Expired sessions of any kind; the name is that of existing clients. */
  stalePromptCacheCount: number
  total: number
  hasMore: boolean
}

export interface StickySessionsPage extends StickyPage {
  frame: Frame
  /** ISO 8601: when the page was made. */
  now: string
  done: string | null
  problem: string | null
  asked: StickyQuery
  accounts: Choice[]
  mayWrite: boolean
  maxAgeDays: number
  links: {
    clear: string | null
    newer: string | null
    older: string | null
    sorts: Record<Exclude<StickySort, 'created_at'>, string>
  }
}

export interface StickyEntry {
  /** The first 16 hex digits of the hash. */
  key: string
  /** Session ids are not stored. */
  displayName: null
  kind: (typeof STICKY_KINDS)[number]
  accountId: string
  accountName: string
  /** Not stored. */
  createdAt: null
  /** ISO 8601, like the next. */
  updatedAt: string
  expiresAt: string
  isStale: boolean
}

const PATH = '/settings/routing/sessions'

export const StickyPageView: FC<StickySessionsPage> = (page) => (
  <SettingsFrame frame={page.frame} now={page.now} title="Sticky sessions">
    <nav class="crumbs" aria-label="Where you are">
      <a href="/settings/routing#affinity">Routing</a>
    </nav>
    <Outcome done={page.done} problem={page.problem} />
    <Filters {...page} />
    <Sessions {...page} />
    {page.mayWrite && page.total > 0 && <Bulk {...page} />}
  </SettingsFrame>
)

const KINDS = { conversation: 'Conversation', ciphertext: 'Ciphertext' } as const

const Filters: FC<StickySessionsPage> = ({ asked, accounts, links }) => (
  <form class="card filter-card" method="get" action={PATH} data-auto>
    <div class="filter-row">
      <Filter label="Kind" name="kind" chosen={asked.kind} options={Object.entries(KINDS)} />
      <Filter label="Account" name="accountQuery" chosen={asked.accountQuery} options={getOptions(accounts)} />
      <label class={asked.keyQuery ? 'field is-set' : 'field'}>
        <span class="field-label">Key</span>
        <input
          type="text"
          name="keyQuery"
          value={asked.keyQuery}
          maxlength={200}
          autocapitalize="none"
          spellcheck={false}
          placeholder="3fa85f64 …"
        />
      </label>
      <label class="check">
        <input type="checkbox" name="staleOnly" value="true" checked={asked.staleOnly ?? false} />
        <span>Only expired</span>
      </label>
      <FilterActions label="Filter" clear={links.clear} />
    </div>
  </form>
)

const Sessions: FC<StickySessionsPage> = (page) => (
  <Card id="sticky-sessions" title="Sessions" count={countText(page.total)}>
    {page.entries.length === 0 ? (
      <div class="card-body">
        <p>
          {page.links.clear
            ? 'No sessions match these filters.'
            : 'No sessions yet. They appear with the first requests.'}
        </p>
      </div>
    ) : page.mayWrite ? (
      <Form name="sessions" action="/api/sticky-sessions/delete">
        <Table {...page} />
        <div class="card-part actions">
          <Submit isPlain isRisky>
            Delete selected
          </Submit>
        </div>
      </Form>
    ) : (
      <Table {...page} />
    )}
    {(page.links.newer || page.links.older) && (
      <nav class="pager" aria-label="Pages">
        {page.links.newer && (
          <a href={page.links.newer} rel="prev">
            Previous
          </a>
        )}
        <span class="muted">
          {countText(page.asked.offset + 1)}–{countText(page.asked.offset + page.entries.length)} of{' '}
          {countText(page.total)}
        </span>
        {page.links.older && (
          <a href={page.links.older} rel="next">
            Next
          </a>
        )}
      </nav>
    )}
  </Card>
)

const Table: FC<StickySessionsPage> = ({ entries, asked, links, mayWrite, now }) => (
  <div class="scroll-x">
    <table class="list labelled">
      <thead>
        <tr>
          {mayWrite && (
            <th scope="col" class="cell-check">
              <input
                type="checkbox"
                class="needs-script"
                aria-label="Select all on this page"
                data-select-all="sessions"
              />
            </th>
          )}
          <Heading by="key" label="Key" asked={asked} links={links} />
          <th scope="col">Kind</th>
          <Heading by="account" label="Account" asked={asked} links={links} />
          <Heading by="updated_at" label="Last used" asked={asked} links={links} />
          <th scope="col">Expires</th>
        </tr>
      </thead>
      <tbody>
        {entries.map((entry) => (
          <Row entry={entry} mayWrite={mayWrite} now={now} />
        ))}
      </tbody>
    </table>
  </div>
)

type HeadingProps = Pick<StickySessionsPage, 'asked' | 'links'> & {
  by: keyof StickySessionsPage['links']['sorts']
  label: string
}

const Heading: FC<HeadingProps> = ({ by, label, asked, links }) => (
  <SortHeading label={label} href={links.sorts[by]} order={asked.sortBy === by ? asked.sortDir : null} />
)

const Row: FC<{ entry: StickyEntry; mayWrite: boolean; now: string }> = ({ entry, mayWrite, now }) => (
  <tr>
    {mayWrite && (
      <td class="cell-check">
        <input
          type="checkbox"
          name="sessions"
          value={`${entry.kind}:${entry.key}`}
          aria-label={`Select ${entry.key}`}
        />
      </td>
    )}
    <td>
      <code>{entry.key}</code>
    </td>
    <td class="muted">{KINDS[entry.kind]}</td>
    <td>
      <a href={accountPath(entry.accountId)}>{entry.accountName}</a>
    </td>
    <td data-label="Last used">
      <Since at={entry.updatedAt} now={now} />
    </td>
    <td data-label="Expires">
      {entry.isStale ? <span class="muted">expired</span> : <Until at={entry.expiresAt} now={now} />}
    </td>
  </tr>
)

/** Repeats the filters, so that exactly what is listed is deleted. */
const Bulk: FC<StickySessionsPage> = ({ asked, total, stalePromptCacheCount: stale, links }) => (
  <TextCard id="delete-sessions" title="Delete many">
    <p>The next request of a deleted conversation can use any account. That account has nothing cached yet.</p>
    <div class="actions">
      <Action
        name="delete-filtered"
        action="/api/sticky-sessions/delete-filtered"
        label={links.clear ? `Delete the ${plural(total, 'session')} listed` : `Delete all ${plural(total, 'session')}`}
        confirm={`Delete ${plural(total, 'session')}? This cannot be undone.`}
        values={{
          ...(asked.kind && { kind: asked.kind }),
          staleOnly: String(asked.staleOnly ?? false),
          accountQuery: asked.accountQuery,
          keyQuery: asked.keyQuery,
        }}
        isRisky
      />
      {stale > 0 && (
        <Action
          name="purge-sessions"
          action="/api/sticky-sessions/purge"
          label={`Delete ${plural(stale, 'expired session')}`}
          values={{ staleOnly: 'true' }}
        />
      )}
    </div>
  </TextCard>
)
