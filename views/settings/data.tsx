/** Settings, Data: how long things are kept, what they take on the disk, and backups. */
import type { FC } from 'hono/jsx'
import type { Data } from '../../src/admin/settings-pages.ts'
import type { TableSizes } from '../../src/model/table-sizes.ts'
import { countText } from '../ui/amounts.ts'
import { ButtonLink } from '../ui/button.tsx'
import { Card, TextCard } from '../ui/card.tsx'
import { Action, NeedsScript, Outcome } from '../ui/form.tsx'
import { TableHead } from '../ui/table.tsx'
import { Since } from '../ui/time.tsx'
import { SettingsFrame } from './frame.tsx'
import { SettingsCard } from './section.tsx'
import { bytesText } from './words.ts'

export const DataPage: FC<Data> = (data) => {
  const { frame, now, done, problem, settings, file, backups } = data
  return (
    <SettingsFrame frame={frame} now={now} title="Data">
      <Outcome done={done} problem={problem} isSaid={settings?.saved != null} />
      <NeedsScript />
      {settings && <SettingsCard section="retention" settings={settings} />}
      <TextCard id="size" title="Size" count={bytesText(file.bytes)}>
        <p>
          The database takes {bytesText(file.bytes)}
          {file.freeBytes > 0 && `, ${bytesText(file.freeBytes)} of it free for new rows`}.
        </p>
        {data.hasSizes && (
          <div id="sizes" hx-get="/settings/data/sizes" hx-trigger="load" hx-target="#sizes" hx-swap="innerHTML">
            <a href="/settings/data/sizes">What each table takes</a>
          </div>
        )}
      </TextCard>
      {backups && <Backups {...data} backups={backups} />}
      {settings && <SettingsCard section="backups" settings={settings} />}
    </SettingsFrame>
  )
}

const Backups: FC<Data & { backups: NonNullable<Data['backups']> }> = ({ backups, download, now }) => (
  <Card id="backup-list" title="Backups" count={backups.length || null}>
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
              <ButtonLink href={`/api/backups/${name}`} download>
                Download
              </ButtonLink>
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
          <ButtonLink href="/confirm?return=%2Fsettings%2Fdata%23backup-list">Confirm to download</ButtonLink>
        )}
        <Action name="backup" action="/api/backups" label="Back up now" />
      </div>
    </div>
  </Card>
)

/** The same by itself, for a browser without script. */
export const SizesPage: FC<TableSizes> = (sizes) => (
  <div class="page page-narrow">
    <nav class="crumbs" aria-label="Where you are">
      <a href="/settings/data">Data</a>
    </nav>
    <header class="page-head">
      <h1>What each table takes</h1>
    </header>
    <section class="card card-body" aria-label="Tables">
      <Sizes {...sizes} />
    </section>
  </div>
)

/** Fetched when the page is there. The small ones are folded away. */
export const Sizes: FC<TableSizes> = ({ tables, isExact }) => (
  <>
    {!isExact && <p class="hint">Estimated from a few rows of each table; the number of rows is exact.</p>}
    <SizeTable tables={tables.slice(0, LARGEST)} caption="The largest tables" />
    {tables.length > LARGEST && (
      <details class="as-table">
        <summary class="reveal small">{tables.length - LARGEST} smaller tables</summary>
        <SizeTable tables={tables.slice(LARGEST)} caption="The smaller tables" />
      </details>
    )}
  </>
)

const LARGEST = 6

const SizeTable: FC<Pick<TableSizes, 'tables'> & { caption: string }> = ({ tables, caption }) => (
  <table class="figures">
    <caption class="sr">{caption}</caption>
    <TableHead texts={['Table']} numbers={['Rows', 'Size']} />
    <tbody>
      {tables.map(({ name, rows, bytes }) => (
        <tr>
          <th scope="row">
            <code>{name}</code>
          </th>
          <td>{countText(rows)}</td>
          <td>{bytesText(bytes)}</td>
        </tr>
      ))}
    </tbody>
  </table>
)
