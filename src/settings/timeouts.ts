/** How long requests may take. */
import { seconds, setting } from './setting.ts'

export const TIMEOUTS = {
  connectTimeoutSeconds: setting(seconds(60), {
    section: 'timeouts',
    label: 'Connect',
    help: 'How long to wait for a connection to ChatGPT before trying the next account.',
    unit: 'seconds',
  }),
  firstEventTimeoutSeconds: setting(seconds(3600), {
    section: 'timeouts',
    label: 'First event',
    help: 'How long to wait for the first event from an account.',
    unit: 'seconds',
  }),
  commitTimeoutSeconds: setting(seconds(3600), {
    section: 'timeouts',
    label: 'All attempts',
    help: 'How long all attempts for a request may take together before the client gets an error.',
    unit: 'seconds',
  }),
  streamIdleTimeoutSeconds: setting(seconds(7200), {
    section: 'timeouts',
    label: 'Idle stream',
    help: 'A stream with no events for this long ends with an error.',
    unit: 'seconds',
  }),
  streamTimeoutSeconds: setting(seconds(86_400), {
    section: 'timeouts',
    label: 'Total stream time',
    help: 'A stream ends after this long even if it is still active.',
    unit: 'seconds',
  }),
  compactTimeoutSeconds: setting(seconds(3600), {
    section: 'timeouts',
    label: 'Compaction',
    help: 'How long ChatGPT may take to compact a conversation.',
    unit: 'seconds',
  }),
  imageTimeoutSeconds: setting(seconds(3600), {
    section: 'timeouts',
    label: 'Images',
    help: 'How long ChatGPT may take to make or edit an image.',
    unit: 'seconds',
  }),
}
