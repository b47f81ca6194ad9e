/** The tab “Captured” of a request: what the client sent, and what ChatGPT answered, event by event. */
import type { FC } from 'hono/jsx'
import { bytesText } from '../settings/words.ts'
import type { Titled } from '../titles.ts'
import { countText } from '../ui/amounts.ts'
import { ButtonLink, CopyButton, Submit } from '../ui/button.tsx'
import { Action } from '../ui/form.tsx'
import { CrossIcon } from '../ui/icons.tsx'
import { durationText, Moment } from '../ui/time.tsx'
import { type CapturedRow, resultText } from './captured-list.tsx'
import { RequestTabs } from './request-tabs.tsx'

interface Side {
  headers: { name: string; value: string }[]
  /** Null where it is not UTF-8, or is listed as events. */
  body: string | null
  bodyBase64: string | null
}

export interface CapturedAnswer extends Side {
  /** Null: a model source served, or the user may not see accounts. */
  accountId: string | null
  accountName: string | null
  sourceId: string | null
  sourceName: string | null
  startedAt: string
  status: number | null
  error: { code: string | null; message: string } | null
  /** Null: the answer is no event stream. */
  events: { at: string; type: string | null; data: string }[] | null
}

export interface CapturedView extends CapturedRow {
  request: Side & { bodyBytes: number }
  attempts: CapturedAnswer[]
  /** More is stored than is shown; `part` downloads all of it. */
  isCut: boolean
  /** Null: it was a WebSocket. */
  curl: string | null
}

export interface CapturedTab extends CapturedView {
  generatedAt: string
  q: string
  /** Events beyond those shown. */
  moreEvents: number
  isGuard: boolean
}

export const CapturedPage: Titled<CapturedTab> = (view) => (
  <div class="page page-narrow" data-now={view.generatedAt}>
    <h1 class="sr">Captured request</h1>
    <article class="card request" data-request={view.id}>
      <header class="card-head request-head">
        <h2 tabindex={-1}>{resultText(view)}</h2>
        <a class="request-close" href="/logs" data-drawer-close>
          <CrossIcon />
          <span class="sr">Close</span>
        </a>
      </header>
      <RequestTabs id={view.id} current="captured" />
      {(view.isCut || view.droppedBytes > 0) && (
        <div class="card-part">
          {view.isCut && <p class="note">This is only the beginning. Download the rest.</p>}
          {view.droppedBytes > 0 && (
            <p class="note note-bad">{bytesText(view.droppedBytes)} could not be written in time and are missing.</p>
          )}
        </div>
      )}
      <Sent {...view} />
      <Search {...view} />
      {view.attempts.map((attempt) => (
        <Answer attempt={attempt} at={view.requestedAt} isOnly={view.attempts.length === 1} />
      ))}
      {view.attempts.length === 0 && (
        <section class="card-part">
          <h3>Response</h3>
          <p class="muted">{view.errorMessage ?? 'No account was used, so ChatGPT answered nothing.'}</p>
        </section>
      )}
    </article>
  </div>
)

CapturedPage.title = () => 'Captured request'

const Sent: FC<CapturedTab> = ({ id, method, path, requestedAt, request, curl, isGuard }) => (
  <section class="card-part">
    <h3>Request</h3>
    <p>
      <code>
        {method} {path}
      </code>
      {requestedAt && (
        <span class="muted">
          {' '}
          <Moment at={requestedAt} />
        </span>
      )}
    </p>
    <Headers headers={request.headers} />
    <Body {...request} />
    <div class="actions">
      {request.bodyBytes > 0 && (
        <ButtonLink href={`/api/conversation-archive/${id}?part=request`} download>
          Download
        </ButtonLink>
      )}
      {isGuard && (
        <Action
          name="delete-captured"
          action={`/api/conversation-archive/${id}`}
          method="delete"
          label="Delete"
          confirm="Delete this captured request?"
          isRisky
        />
      )}
      {curl === null ? (
        <span class="muted small">A WebSocket cannot be repeated with curl.</span>
      ) : (
        <details class="as-curl">
          <summary class="reveal small">Copy as curl</summary>
          <div class="copied">
            <pre class="captured-text" tabindex={0}>
              <code>{curl}</code>
            </pre>
            <CopyButton />
          </div>
          <p class="small muted">Set SLUICE_API_KEY to a key first.</p>
        </details>
      )}
    </div>
  </section>
)

/** Filters the events on the server, so it works without scripts and finds what is not shown. */
const Search: FC<CapturedTab> = ({ id, q, attempts, moreEvents }) =>
  attempts.some(({ events }) => events !== null) ? (
    <section class="card-part">
      <form
        class="captured-search"
        method="get"
        action={`/logs/${id}/captured`}
        hx-get={`/logs/${id}/captured`}
        hx-target="closest article"
        hx-select="article"
        hx-swap="outerHTML"
      >
        <input
          type="search"
          name="q"
          value={q}
          maxlength={200}
          placeholder="Search events"
          aria-label="Search events"
        />
        <Submit isPlain>Search</Submit>
      </form>
      {moreEvents > 0 && (
        <p class="small muted">{countText(moreEvents)} more events are not shown. Search, or download.</p>
      )}
    </section>
  ) : null

const Answer: FC<{ attempt: CapturedAnswer; at: string | null; isOnly: boolean }> = ({ attempt, at, isOnly }) => (
  <section class="card-part">
    <h3>
      {isOnly
        ? 'Answer'
        : `Answer of ${attempt.sourceName ?? attempt.accountName ?? attempt.accountId ?? 'an account'}`}
    </h3>
    <p>
      {attempt.status !== null && `HTTP ${attempt.status}`}
      {attempt.error && ` ${attempt.error.message}`}
      {attempt.status === null && attempt.error === null && <span class="muted">Nothing was stored.</span>}
    </p>
    <Headers headers={attempt.headers} />
    {attempt.events ? <Events events={attempt.events} at={at} /> : <Body {...attempt} />}
  </section>
)

const Headers: FC<{ headers: CapturedAnswer['headers'] }> = ({ headers }) =>
  headers.length === 0 ? null : (
    <details>
      <summary class="reveal small">{headers.length} headers</summary>
      <pre class="captured-text" tabindex={0}>
        {headers.map(({ name, value }) => `${name}: ${value}`).join('\n')}
      </pre>
    </details>
  )

const Body: FC<{ body: string | null; bodyBase64: string | null }> = ({ body, bodyBase64 }) => {
  if (body)
    return (
      <pre class="captured-text" tabindex={0}>
        {body}
      </pre>
    )
  return bodyBase64 ? <p class="muted">Binary data. Download it to read it.</p> : null
}

const MAX_LINE_CHARS = 4000

const Events: FC<{ events: NonNullable<CapturedAnswer['events']>; at: string | null }> = ({ events, at }) =>
  events.length === 0 ? (
    <p class="muted">No events match.</p>
  ) : (
    <ol class="captured-events">
      {events.map((event) => (
        <li>
          <span class="muted number">{at && durationText(Date.parse(event.at) - Date.parse(at))}</span>
          <code>{event.data.length > MAX_LINE_CHARS ? `${event.data.slice(0, MAX_LINE_CHARS)} …` : event.data}</code>
        </li>
      ))}
    </ol>
  )
