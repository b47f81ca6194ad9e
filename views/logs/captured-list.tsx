/** `/logs/captures/:id`: the requests of one capture. */
import type { FC } from 'hono/jsx'
import { bytesText } from '../settings/words.ts'
import type { Titled } from '../titles.ts'
import { ButtonLink } from '../ui/button.tsx'
import { Card } from '../ui/card.tsx'
import { Outcome } from '../ui/form.tsx'
import { TableHead } from '../ui/table.tsx'
import { Moment } from '../ui/time.tsx'
import { type CaptureView, scopeText, When } from './captures.tsx'

/** Times are ISO 8601. Ids that the user may not see are null. */
export interface CapturedRow {
  id: string
  captureId: string
  /** Null, like the other facts: the file cannot be read, for example because it was encrypted with another key. */
  requestedAt: string | null
  method: string | null
  path: string | null
  transport: string | null
  requestKind: string | null
  model: string | null
  keyId: string | null
  keyName: string | null
  /** Null: it is still running, or its end was not stored. */
  status: string | null
  httpStatus: number | null
  errorCode: string | null
  errorMessage: string | null
  /** On disk. */
  bytes: number
  /** What could not be written in time. */
  droppedBytes: number
}

export interface CapturedList {
  generatedAt: string
  capture: CaptureView
  items: CapturedRow[]
  /** The next page; null: this is the last. */
  older: string | null
  done: string | null
  problem: string | null
}

export const CapturedListPage: Titled<CapturedList> = (view) => {
  const { capture, items, older } = view
  return (
    <div class="page" data-now={view.generatedAt}>
      <nav class="crumbs" aria-label="Breadcrumb">
        <a href="/logs/captures">Captures</a>
      </nav>
      <header class="page-head">
        <h1>{scopeText(capture)}</h1>
      </header>
      <Outcome done={view.done} problem={view.problem} />
      <p class="muted">
        <When capture={capture} now={view.generatedAt} />
      </p>
      <Card id="captured" title="Captured requests" count={capture.requests || null}>
        {items.length === 0 ? (
          <div class="empty">
            <p>{capture.isRunning ? 'No requests yet.' : 'No requests were captured.'}</p>
          </div>
        ) : (
          <div class="scroll-x">
            <table class="list captured-list">
              <TableHead texts={['Time', 'Request', 'Model', 'Result']} numbers={['Size']} />
              <tbody>
                {items.map((item) => (
                  <Row item={item} />
                ))}
              </tbody>
            </table>
          </div>
        )}
        {older && (
          <nav class="pager" aria-label="Pages">
            <ButtonLink href={older} rel="next">
              Older
            </ButtonLink>
          </nav>
        )}
      </Card>
    </div>
  )
}

CapturedListPage.title = ({ capture }) => `Capture: ${scopeText(capture)}`

const Row: FC<{ item: CapturedRow }> = ({ item }) => (
  <tr>
    <td>
      <a href={`/logs/${item.id}/captured`}>{item.requestedAt ? <Moment at={item.requestedAt} /> : item.id}</a>
    </td>
    <td>{item.path === null ? <span class="muted">Cannot be decrypted</span> : <code>{item.path}</code>}</td>
    <td>{item.model && <code>{item.model}</code>}</td>
    <td>{resultText(item)}</td>
    <td class="number">{bytesText(item.bytes)}</td>
  </tr>
)

export const resultText = ({ status, httpStatus, errorCode, droppedBytes }: CapturedRow): string => {
  if (status === null) return 'Running, or its end was not stored'
  const result = status === 'cancelled' ? 'Cancelled by the client' : `HTTP ${httpStatus}`
  const dropped = droppedBytes > 0 ? ', incomplete' : ''
  return errorCode ? `${result}, ${errorCode}${dropped}` : result + dropped
}
