/** Settings, Data: retention, database size and backups. */
import type { FC } from 'hono/jsx'
import type { FileSize, TableSizes } from '../../src/model/table-sizes.ts'
import { countText } from '../ui/amounts.ts'
import { ButtonLink } from '../ui/button.tsx'
import { Card, TextCard } from '../ui/card.tsx'
import { Action, NeedsScript, Outcome } from '../ui/form.tsx'
import { TableHead } from '../ui/table.tsx'
import { Since } from '../ui/time.tsx'
import { SettingsFrame } from './frame.tsx'
import type { Page } from './network.tsx'
import { SettingsCard, type ShownSettings, UnsavedBar } from './section.tsx'
import { bytesText } from './words.ts'

interface BackupsView {
  /** Newest first. */
  backups: { name: string; bytes: number /** ISO 8601 */; createdAt: string }[]
  backupIntervalHours: number
  backupKeep: number
}

export interface Data extends Page {
  settings: ShownSettings | null
  file: FileSize
  /** null: hidden from the user. */
  backups: BackupsView['backups'] | null
  /** What a download requires: `confirm` means a confirmation first; null: hidden from the user. */
  download: 'ready' | 'confirm' | null
  /** Whether the user may see table sizes. */
  hasSizes: boolean
}

export const DataPage: FC<Data> = (data) => {
  const { frame, now, done, problem, settings, file, backups } = data
  return (
    <SettingsFrame frame={frame} now={now} title="Data">
      <Outcome done={done} problem={problem} isSaid={settings?.saved != null} />
      <NeedsScript />
      {settings && <SettingsCard section="retention" settings={settings} />}
      <TextCard id="size" title="Size" count={bytesText(file.bytes)}>
        <p>
          The database is {bytesText(file.bytes)}
          {file.freeBytes > 0 && `, including ${bytesText(file.freeBytes)} of free space`}.
        </p>
        {data.hasSizes && (
          <div id="sizes" hx-get="/settings/data/sizes" hx-trigger="load" hx-target="#sizes" hx-swap="innerHTML">
            <a href="/settings/data/sizes">Show table sizes</a>
          </div>
        )}
      </TextCard>
      {backups && <Backups {...data} backups={backups} />}
      {settings && <SettingsCard section="backups" settings={settings} />}
      {settings && <UnsavedBar />}
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
        {backups.length === 0 && 'No backups yet. '}
        <span class="muted">
          A backup contains the whole database. Its secrets can only be read with the key file, so keep a copy of both.
        </span>
      </p>
      <div class="actions">
        {download === 'confirm' && backups.length > 0 && (
          <ButtonLink href="/confirm?return=%2Fsettings%2Fdata%23backup-list">Confirm it’s you to download</ButtonLink>
        )}
        <Action name="backup" action="/api/backups" label="Back up now" />
      </div>
    </div>
  </Card>
)

/** The same as a page, for browsers without scripts. */
export const SizesPage: FC<TableSizes> = (sizes) => (
  <div class="page page-narrow">
    <nav class="crumbs" aria-label="Breadcrumb">
      <a href="/settings/data">Data</a>
    </nav>
    <header class="page-head">
      <h1>Table sizes</h1>
    </header>
    <section class="card card-body" aria-label="Tables">
      <Sizes {...sizes} />
    </section>
  </div>
)

/** Loaded after the page. Small tables are folded away. */
export const Sizes: FC<TableSizes> = ({ tables, isExact }) => (
  <>
    {!isExact && <p class="hint">This database is large, so some of these numbers are estimates.</p>}
    <SizeTable tables={tables.slice(0, LARGEST)} caption="Largest tables" />
    {tables.length > LARGEST && (
      <details class="as-table">
        <summary class="reveal small">Show {tables.length - LARGEST} smaller tables</summary>
        <SizeTable tables={tables.slice(LARGEST)} caption="Smaller tables" />
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
