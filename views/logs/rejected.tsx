/** Rejected clients in a table: one row per client, reason and minute. */
import type { FC } from 'hono/jsx'
import type { RejectedClient } from '../../src/model/log/rejected-clients.ts'
import { countText } from '../ui/amounts.ts'
import { CrossIcon } from '../ui/icons.tsx'
import { TableHead } from '../ui/table.tsx'
import { LogTime } from './log-time.tsx'

export const RejectedTable: FC<{ clients: readonly RejectedClient[]; now: string }> = ({ clients, now }) => (
  <table class="list requests">
    <TableHead texts={['Time', 'Client', 'Result', 'Key', 'Model', 'Route']} numbers={['Count']} />
    <tbody>
      {clients.map((client) => (
        <tr id={`rejected-${client.id}`}>
          <td class="cell-time">
            <LogTime at={client.lastAt} now={now} />
          </td>
          <td class="cell-account" title={client.useragent ?? undefined}>
            {client.clientIp ?? <span class="muted">{client.isSeveral ? 'other clients' : 'hidden'}</span>}
          </td>
          <td class="cell-result">
            <span class="result tone-bad">
              <CrossIcon />
              <span>
                <b>{client.result}</b>
              </span>
            </span>
          </td>
          <td class="cell-key">
            <KeyOf {...client} />
          </td>
          <td class="cell-model">{client.model ? <code>{client.model}</code> : <span class="muted">–</span>}</td>
          <td class="cell-more">
            <code>{client.route}</code>
          </td>
          <td class="cell-cost number">{countText(client.count)} ×</td>
        </tr>
      ))}
    </tbody>
  </table>
)

const KeyOf: FC<RejectedClient> = ({ apiKeyId, apiKeyName, keyStart }) => {
  if (apiKeyName !== null) return <>{apiKeyName}</>
  if (keyStart !== null) return <code>{keyStart}…</code>
  return <span class="muted">{apiKeyId === null ? '–' : 'deleted key'}</span>
}
