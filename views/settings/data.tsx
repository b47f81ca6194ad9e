/** Settings, Data: how long things are kept, what they take on the disk, and backups. */
import type { FC } from 'hono/jsx'
import type { Data } from '../../src/admin/settings-pages.ts'
import type { TableSizes } from '../../src/model/table-sizes.ts'
import { Action } from '../people/list.tsx'
import { Since } from '../ui/time.tsx'
import { SettingsFrame } from './frame.tsx'
import { Outcome } from './parts.tsx'
import { SettingsCard } from './section.tsx'
import { bytesText, numberText } from './words.ts'

export const DataPage: FC<Data> = (data) => {
  const { frame, now, done, problem, settings, file, backups } = data
  return (
    <SettingsFrame frame={frame} now={now} title="Data">
      <Outcome done={done} problem={problem} isSaid={settings?.saved != null} />
      {settings && <SettingsCard section="retention" settings={settings} />}
      <section class="card" aria-labelledby="size-title">
        <header class="card-head">
          <h2 id="size-title">Size</h2>
          <span class="count">{bytesText(file.bytes)}</span>
        </header>
        <div class="card-body">
          <p>
            The database takes {bytesText(file.bytes)}
            {file.freeBytes > 0 && `, ${bytesText(file.freeBytes)} of it free for new rows`}.
          </p>
          <div id="sizes" hx-get="/settings/data/sizes" hx-trigger="load" hx-target="#sizes" hx-swap="innerHTML">
            <a href="/settings/data/sizes">What each table takes</a>
          </div>
        </div>
      </section>
      {backups && <Backups {...data} backups={backups} />}
      {settings && <SettingsCard section="backups" settings={settings} />}
    </SettingsFrame>
  )
}

const Backups: FC<Data & { backups: NonNullable<Data['backups']> }> = ({ backups, download, now }) => (
  <section class="card" id="backup-list" aria-labelledby="backup-list-title">
    <header class="card-head">
      <h2 id="backup-list-title">Backups</h2>
      {backups.length > 0 && <span class="count">{backups.length}</span>}
    </header>
    {backups.length > 0 && (
      <ul class="rows">
        {backups.map(({ name, bytes, createdAt }) => (
          <li class="row">
            <span class="row-main">
              <code>{name}</code>{' '}
              <span class="muted small">
                {bytesText(bytes)}, <Since at={createdAt} now={now} />
              </span>
            </span>
            {download === 'ready' && (
              <a class="button button-plain" href={`/api/backups/${name}`} download>
                Download
              </a>
            )}
          </li>
        ))}
      </ul>
    )}
    <div class={backups.length > 0 ? 'card-part split' : 'card-body split'}>
      <p>
        {backups.length === 0 && 'No backup was made yet. '}
        <span class="muted">A backup is the whole database; without the key file its secrets stay sealed.</span>
      </p>
      <div class="actions">
        {download === 'confirm' && backups.length > 0 && (
          <a class="button button-plain" href="/confirm?return=%2Fsettings%2Fdata%23backup-list">
            Confirm to download
          </a>
        )}
        <Action name="backup" action="/api/backups" label="Back up now" />
      </div>
    </div>
  </section>
)

/** Fetched when the page is there; a page of its own without script. The small ones are folded away. */
export const Sizes: FC<TableSizes> = ({ tables, isExact }) => (
  <>
    {!isExact && <p class="hint">Estimated from a few rows of each table; the number of rows is exact.</p>}
    <SizeTable tables={tables.slice(0, LARGEST)} caption="The largest tables" />
    {tables.length > LARGEST && (
      <details>
        <summary class="reveal small">{tables.length - LARGEST} smaller tables</summary>
        <SizeTable tables={tables.slice(LARGEST)} caption="The smaller tables" />
      </details>
    )}
  </>
)

const LARGEST = 6

const SizeTable: FC<Pick<TableSizes, 'tables'> & { caption: string }> = ({ tables, caption }) => (
  <table class="fact-table">
    <caption class="sr">{caption}</caption>
    <thead>
      <tr>
        <th scope="col">Table</th>
        <th scope="col" class="number">
          Rows
        </th>
        <th scope="col" class="number size-column">
          Size
        </th>
      </tr>
    </thead>
    <tbody>
      {tables.map(({ name, rows, bytes }) => (
        <tr>
          <td>
            <code>{name}</code>
          </td>
          <td class="number">{numberText(rows)}</td>
          <td class="number">{bytesText(bytes)}</td>
        </tr>
      ))}
    </tbody>
  </table>
)
