/** The alert events, with their names and titles. */
import type { Severity } from '../../../db/schema/alerts.ts'
import type { Permission } from '../users/permissions.ts'

interface EventWords {
  /** The heading of a message. */
  title: string
  /** The text in the list of events. */
  label: string
  /** The permission that is needed to see it in the dashboard. */
  needs: Permission
  /** The highest severity of its alerts. */
  severity: Severity
  /** Its state is only in memory, so it is unknown for a few minutes after a start. */
  isForgotten?: true
}

export const ALERT_EVENTS = {
  'account.needs_sign_in': {
    title: 'Account needs sign-in',
    label: 'An account needs sign-in',
    needs: 'accounts:read',
    severity: 'bad',
  },
  'account.deactivated': {
    title: 'Account deactivated',
    label: 'An account was deactivated by OpenAI',
    needs: 'accounts:read',
    severity: 'bad',
  },
  'account.blocked': {
    title: 'Account blocked for too long',
    label: 'An account is blocked for longer than its quota window',
    needs: 'accounts:read',
    severity: 'warning',
  },
  'account.meter': {
    title: 'Account near its limit',
    label: 'An account has used most of its quota in a window',
    needs: 'accounts:read',
    severity: 'warning',
  },
  'pool.exhausted': {
    title: 'No account available',
    label: 'No account can serve requests',
    needs: 'dashboard:read',
    severity: 'bad',
  },
  'pool.low': {
    title: 'Few accounts available',
    label: 'Few accounts are available',
    needs: 'accounts:read',
    severity: 'warning',
  },
  'pool.forecast': {
    title: 'Quota will run out',
    label: 'The quota of all accounts will be used up before its reset',
    needs: 'accounts:read',
    severity: 'warning',
  },
  'key.limit': {
    title: 'Key near its limit',
    label: 'A key is at 90 % or 100 % of a limit',
    needs: 'api_keys:read',
    severity: 'bad',
  },
  'key.expiring': {
    title: 'Key expires soon',
    label: 'A key expires within 7 days',
    needs: 'api_keys:read',
    severity: 'warning',
  },
  'requests.failing': {
    title: 'Requests fail',
    label: 'Several requests in a row failed',
    needs: 'dashboard:read',
    severity: 'bad',
    isForgotten: true,
  },
  'requests.rejected': {
    title: 'Requests rejected',
    label: 'Many requests are rejected before they reach an account',
    needs: 'dashboard:read',
    severity: 'warning',
  },
  'ledger.failing': {
    title: 'Database problem',
    label: 'The request log can’t be written, or the database file is missing',
    needs: 'dashboard:read',
    severity: 'bad',
    isForgotten: true,
  },
  'backup.failed': {
    title: 'Backup missing',
    label: 'A backup failed, or the last one is old',
    needs: 'ops:write',
    severity: 'warning',
    isForgotten: true,
  },
  'credit.appeared': {
    title: 'Reset credit available',
    label: 'An account has a new reset credit',
    needs: 'accounts:read',
    severity: 'info',
    isForgotten: true,
  },
  'credit.expiring': {
    title: 'Reset credit expires soon',
    label: 'A reset credit expires within 24 hours',
    needs: 'accounts:read',
    severity: 'warning',
    isForgotten: true,
  },
  'credit.redeemed': {
    title: 'Reset credit used',
    label: 'A reset credit was used',
    needs: 'accounts:read',
    severity: 'info',
  },
  'egress.down': {
    title: 'Outbound proxy down',
    label: 'An outbound proxy can’t connect',
    needs: 'ops:write',
    severity: 'bad',
    isForgotten: true,
  },
  'source.overflow': {
    title: 'Overflow in use',
    label: 'A model source serves requests for the pool',
    needs: 'dashboard:read',
    severity: 'warning',
    isForgotten: true,
  },
  'security.sign_in': {
    title: 'Sign-in from a new address',
    label: 'A user signed in from a new address',
    needs: 'audit:read',
    severity: 'warning',
  },
  'security.role': {
    title: 'Permissions changed',
    label: 'A user was created or given another role',
    needs: 'audit:read',
    severity: 'warning',
  },
  'security.audit': {
    title: 'Audit log damaged',
    label: 'The audit log was changed from outside',
    needs: 'audit:read',
    severity: 'bad',
    isForgotten: true,
  },
  'statement.odd': {
    title: 'Odd account usage',
    label: 'The usage of an account does not match its requests',
    needs: 'accounts:read',
    severity: 'warning',
  },
} as const satisfies Record<string, EventWords>

export type AlertEvent = keyof typeof ALERT_EVENTS
export const EVENT_NAMES = Object.keys(ALERT_EVENTS) as [AlertEvent, ...AlertEvent[]] // as: the keys above

export const isAlertEvent = (name: string): name is AlertEvent => Object.hasOwn(ALERT_EVENTS, name)

export const isSecurityEvent = (event: string): boolean => event.startsWith('security.')

export const wordsOf = (event: string): EventWords | null => (isAlertEvent(event) ? ALERT_EVENTS[event] : null)

export interface AlertSubject {
  kind: 'account' | 'credit' | 'key' | 'pool' | 'proxy' | 'server' | 'source' | 'user'
  id: string
  name: string
}

/** `part` distinguishes two alerts with the same event and subject. */
export const alertKey = (event: AlertEvent, subject: Pick<AlertSubject, 'id'>, part?: string): string =>
  [event, subject.id, ...(part === undefined ? [] : [part])].join(':')
