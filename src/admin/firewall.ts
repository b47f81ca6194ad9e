/** `/api/firewall/ips`: the addresses that may call the proxy routes. */
import { z } from 'zod'
import { commit } from '../../db/commit.ts'
import { actor } from '../auth/principal.ts'
import type { Ctx } from '../boot/bindings.ts'
import { body } from '../http/body.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { proceed } from '../http/reply.tsx'
import { iso } from '../lib/iso.ts'
import { addEntry, type FirewallEntry, listEntries, removeEntry } from '../model/firewall.ts'
import { holds } from '../model/users/permissions.ts'

const NewEntry = z.strictObject({ ipAddress: z.string().max(100).describe('An address, or a range in CIDR form.') })

export const showFirewall = createHandlers(requires('dashboard:read'), async (c) => c.json(await getFirewall(c)))

/** Client addresses are only for operators; other users see whether there is a list. */
export const getFirewall = async (c: Ctx) => {
  const entries = (await listEntries(c.env.db)).map(toEntry)
  const mode: 'allow_all' | 'allowlist_active' = entries.length === 0 ? 'allow_all' : 'allowlist_active'
  return { mode, entries: holds(c.var.principal.grants, 'ops:write') ? entries : [] }
}

export const addFirewallEntry = createHandlers(
  requires('security:write', { stepUp: true, audit: 'firewall_entry_added' }),
  body(NewEntry),
  async (c) => {
    const added = await commit(c.env.db, (tx) => addEntry(tx, c.req.valid('json').ipAddress, actor(c)))
    return proceed(c, toEntry(added), '/settings/network?done=firewall_entry_added')
  },
)

/** A range comes percent-encoded: `10.0.0.0%2F8`. */
export const removeFirewallEntry = createHandlers(
  requires('security:write', { stepUp: true, audit: 'firewall_entry_removed' }),
  async (c) => {
    await commit(c.env.db, (tx) => removeEntry(tx, c.req.param('ip') ?? '', actor(c)))
    return proceed(c, { status: 'deleted' }, '/settings/network?done=firewall_entry_removed')
  },
)

const toEntry = ({ ipAddress, createdAt }: FirewallEntry) => ({ ipAddress, createdAt: iso(createdAt) })
