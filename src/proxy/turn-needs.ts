/** What a turn requires of its account. */
import { ownerOf } from './continuity.ts'
import type { Plane } from './plane.ts'
import type { SelectionNeeds } from './select.ts'
import type { Turn } from './turn.ts'

/** `tried`: ids of the accounts already tried. */
export const needsOf = (plane: Plane, turn: Turn, tried: ReadonlySet<string>): SelectionNeeds => ({
  model: turn.model,
  surface: turn.surface,
  scope: turn.client.key?.scope ?? null,
  restricted: turn.restricted,
  isOpportunistic: turn.client.key?.trafficClass === 'opportunistic',
  keyOwnerId: turn.client.key?.ownerUserId ?? null,
  tried,
  owner: turn.relay?.owner ?? ownerOf(plane, turn),
  streamCap: turn.settings.proxyAccountStreamLimit,
})
