/** Quotas of single models or features, beside the account's own, for dashboard clients. */
import { type AdditionalQuota, type UsageSnapshot, type UsageWindow, usedNow } from './usage-windows.ts'

/** Quotas with a fixed name here, whatever the upstream calls them. */
const KNOWN: readonly { quotaKey: string; displayLabel: string; names: readonly string[] }[] = [
  {
    quotaKey: 'codex_spark',
    displayLabel: 'GPT-5.3-Codex-Spark',
    names: ['codex_spark', 'codex_other', 'codex_bengalfox', 'gpt_5_3_codex_spark'],
  },
]

/** Percent used as of `now` (ms since epoch). `resetAt` is in seconds, unlike elsewhere. */
export const additionalQuotas = (usage: UsageSnapshot | null, now: number) =>
  (usage?.additional ?? []).map((quota) => ({
    ...getIdentity(quota),
    limitName: quota.limitName,
    meteredFeature: quota.meteredFeature,
    /** Routing does not use these quotas. */
    routingPolicy: 'inherit' as const,
    primaryWindow: getWindow(quota.primary, now),
    secondaryWindow: getWindow(quota.secondary, now),
  }))

const getIdentity = ({ limitName, meteredFeature }: AdditionalQuota) => {
  const names = [limitName, meteredFeature ?? limitName].map(toKey)
  const known = KNOWN.find((quota) => quota.names.some((name) => names.includes(name)))
  return {
    quotaKey: known?.quotaKey ?? toKey(meteredFeature ?? limitName),
    displayLabel: known?.displayLabel ?? limitName,
  }
}

const toKey = (name: string): string =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^_|_$/g, '')

const getWindow = (window: UsageWindow | null, now: number) =>
  window && {
    usedPercent: usedNow(window, now),
    resetAt: window.resetAt === null ? null : Math.floor(window.resetAt / 1000),
    windowMinutes: window.windowMinutes,
  }
