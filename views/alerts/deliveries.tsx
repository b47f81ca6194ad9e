/** The log of messages, and the state of a channel. */
import type { FC } from 'hono/jsx'
import type { ChannelView, DeliveryView } from '../../src/model/alerts/views.ts'
import { Badge, type Tone } from '../ui/badge.tsx'
import { Card } from '../ui/card.tsx'
import { LivePart } from '../ui/live.tsx'
import { TableHead } from '../ui/table.tsx'
import { Since } from '../ui/time.tsx'

export const State: FC<{ channel: ChannelView }> = ({ channel: { isActive, lastDelivery } }) => {
  if (!isActive) return <Badge tone="idle">Off</Badge>
  if (lastDelivery === null) return <Badge tone="idle">Not used yet</Badge>
  return lastDelivery.ok ? <Badge tone="good">Working</Badge> : <Badge tone="bad">Failing</Badge>
}

const STATUS: Record<DeliveryView['status'], readonly [name: string, tone: Tone]> = {
  pending: ['Waiting', 'wait'],
  sent: ['Sent', 'good'],
  failed: ['Failed', 'bad'],
  dropped: ['Not sent', 'idle'],
}

interface Props {
  deliveries: DeliveryView[]
  now: string
  /** The current page's URL. */
  src: string
  /** Whether to show the channel's name. */
  hasChannel?: boolean
}

export const Deliveries: FC<Props> = ({ deliveries, now, src, hasChannel = false }) => (
  <Card id="alert-log" title="Messages">
    <LivePart id="alert-log-list" topics={['alerts']} src={src}>
      {deliveries.length === 0 ? (
        <div class="card-body">
          <p class="muted">No messages in the last 30 days. Tests are not listed.</p>
        </div>
      ) : (
        <div class="scroll-x" tabindex={0}>
          <table class="list alert-log">
            <caption class="sr">The newest messages</caption>
            <TableHead texts={['Time', 'Alert', ...(hasChannel ? ['Channel'] : []), 'Result']} />
            <tbody>
              {deliveries.map((delivery) => (
                <tr>
                  <td class="text nowrap">
                    <Since at={delivery.at} now={now} />
                  </td>
                  <td class="text">
                    {delivery.edge === 'recovered' && 'Resolved: '}
                    {delivery.title} <span class="muted">{delivery.subjectName}</span>
                  </td>
                  {hasChannel && <td class="text">{delivery.channelName}</td>}
                  <td class="text">
                    <Badge tone={STATUS[delivery.status][1]}>{STATUS[delivery.status][0]}</Badge>{' '}
                    {delivery.status !== 'sent' && <span class="muted small">{resultText(delivery)}</span>}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </LivePart>
  </Card>
)

const resultText = ({ tries, lastError }: DeliveryView): string => {
  const tried = tries === 0 ? '' : tries === 1 ? 'Tried once.' : `Tried ${tries} times.`
  return [lastError, tried].filter(Boolean).join(' ')
}
