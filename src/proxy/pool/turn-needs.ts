/** What a turn requires of its account. */
import type { Client } from '../../auth/client-key.ts'
import { getOwner } from '../turn/continuity.ts'
import type { ProxyDeps } from '../turn/proxy-deps.ts'
import type { Turn } from '../turn/turn.ts'
import type { SelectionNeeds } from './selection-needs.ts'

/** What the client's key decides. */
export const keyNeeds = (key: Client['key']): Pick<SelectionNeeds, 'scope' | 'keyOwnerId' | 'isOpportunistic'> => ({
  scope: key?.scope ?? null,
  keyOwnerId: key?.ownerUserId ?? null,
  isOpportunistic: key?.trafficClass === 'opportunistic',
})

/** `tried`: ids of the accounts already tried. */
export const getNeeds = (proxyDeps: ProxyDeps, turn: Turn, tried: ReadonlySet<string>): SelectionNeeds => ({
  model: turn.model,
  surface: turn.surface,
  ...keyNeeds(turn.client.key),
  restricted: turn.restricted,
  tried,
  owner: turn.relay?.owner ?? getOwner(proxyDeps, turn),
  streamCap: turn.settings.proxyAccountStreamLimit,
})
