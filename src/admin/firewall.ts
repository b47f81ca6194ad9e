/** `/api/firewall/ips`: the addresses that may call the proxy routes. */
import { z } from 'zod'
import { commit } from '../../db/commit.ts'
import { actor } from '../auth/principal.ts'
import { body } from '../http/body.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { addEntry, type FirewallEntry, listEntries, removeEntry } from '../model/firewall.ts'
import { holds } from '../model/permissions.ts'

const NewEntry = z.strictObject({ ipAddress: z.string().max(100) })

/** Client addresses are shown to those who run the service; others learn whether there is a list. */
export const showFirewall = createHandlers(requires('dashboard:read'), (c) => {
  const entries = listEntries(c.env.db).map(toEntry)
  const mode = entries.length === 0 ? 'allow_all' : 'allowlist_active'
  return c.json({ mode, entries: holds(c.var.principal.grants, 'ops:write') ? entries : [] })
})

export const addFirewallEntry = createHandlers(
  requires('security:write', { stepUp: true, audit: 'firewall_entry_added' }),
  body(NewEntry),
  (c) => c.json(toEntry(commit(c.env.db, (tx) => addEntry(tx, c.req.valid('json').ipAddress, actor(c))))),
)

/** A range comes percent-encoded: `10.0.0.0%2F8`. */
export const removeFirewallEntry = createHandlers(
  requires('security:write', { stepUp: true, audit: 'firewall_entry_removed' }),
  (c) => {
    commit(c.env.db, (tx) => removeEntry(tx, c.req.param('ip') ?? '', actor(c)))
    return c.json({ status: 'deleted' })
  },
)

const toEntry = ({ ipAddress, createdAt }: FirewallEntry) => ({
  ipAddress,
  createdAt: new Date(createdAt).toISOString(),
})
