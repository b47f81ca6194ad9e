/** The help of the cards about alerts. */
import type { Help } from '../help.ts'

const ALERTS = 'alerts'

export const ALERT_HELP: Readonly<Record<string, Help>> = {
  'settings-alerts': {
    says: 'The thresholds for these alerts. Each one is off until you set it.',
    more: ALERTS,
  },
  'alert-channels': {
    says: 'Each channel gets a message when a problem has lasted for a minute, and another when it is over. Send a test to check the channel.',
    more: ALERTS,
  },
  'alerts-standing': {
    says: 'The problems that need attention now. An acknowledged alert stays in the list but is not repeated.',
    more: ALERTS,
  },
  'alert-events': {
    says: 'The events that each channel gets. Open a channel to change them.',
    more: ALERTS,
  },
  'alert-log': {
    says: 'The messages of the last 30 days. If one fails, Sluice tries four more times within about an hour.',
    more: ALERTS,
  },
  'alert-kinds': {
    says: 'Where Sluice sends alerts. You can add several channels of the same kind.',
    more: ALERTS,
  },
  'alert-channel-state': {
    says: 'Whether the newest message arrived. The target and its secrets are stored encrypted and never shown.',
    more: ALERTS,
  },
  'alert-channel': {
    says: 'If you leave targets and secrets empty, the stored values are kept. If you change the server, enter its password and secret again.',
    more: ALERTS,
  },
}
