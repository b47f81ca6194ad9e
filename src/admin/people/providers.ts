/** `/api/auth-providers`: sign-in methods, and the role of new users from the reverse proxy. */
import { z } from 'zod'
import type { Ctx } from '../../boot/bindings.ts'
import { body } from '../../http/body.ts'
import { requires } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { getPathId } from '../../http/path-id.ts'
import { proceed } from '../../http/reply.tsx'
import { isoOrNull } from '../../lib/iso.ts'
import {
  getProvider,
  isActive,
  listProviders,
  type ProviderRow,
  updateProvider,
} from '../../model/users/auth-providers.ts'
import { commitAsManager, requiresManaging, usersPageAfter } from './manage.ts'

const Patch = z.strictObject({
  label: z.string().trim().min(1).max(128).optional().describe('Display name.'),
  unknownIdentityRoleId: z
    .string()
    .trim()
    .min(1)
    .max(64)
    .nullable()
    .optional()
    .describe('Slug or id of the role of new users. Null: they are rejected.'),
  linkByEmail: z
    .boolean()
    .optional()
    .describe(
      'A new identity that equals the e-mail address of a user signs in as that user, also if invited. An address that users entered themselves counts only if they have `users:manage`.',
    ),
  idpMfaEnforced: z.boolean().optional().describe('Whether the proxy requires a second factor. Stored; no effect yet.'),
})

export const listAuthProviders = createHandlers(requires('security:write'), async (c) =>
  c.json((await listProviders(c.env.db)).map((row) => toProvider(c, row))),
)

export const editAuthProvider = createHandlers(
  requiresManaging('security:write', 'provider_updated'),
  body(Patch),
  async (c) => {
    const row = await commitAsManager(c, 'security:write', (tx, caller) =>
      updateProvider(tx, getPathId(c), c.req.valid('json'), caller),
    )
    return proceed(c, toProvider(c, row), usersPageAfter('provider_updated'))
  },
)

/** The reverse proxy's entry of the list. */
export const proxyProvider = async (c: Ctx) => toProvider(c, await getProvider(c.env.db))

const toProvider = (c: Ctx, row: ProviderRow) => {
  const { DASHBOARD_AUTH_MODE: mode, DASHBOARD_AUTH_PROXY_HEADER: identityHeader } = c.env.env
  const isProxy = row.kind === 'trusted_header'
  return {
    id: row.id,
    kind: row.kind,
    providerKey: 'default',
    label: row.label,
    enabled: true,
    active: isActive(row, mode),
    unknownIdentityRoleId: row.unknownIdentityRoleId,
    noMatchRoleId: null,
    linkByEmail: row.linkByEmail,
    skipRoleSync: false,
    idpMfaEnforced: row.idpMfaEnforced,
    config: isProxy ? { identityHeader } : {},
    createdAt: isoOrNull(row.createdAt || null),
    updatedAt: isoOrNull(row.updatedAt || null),
  }
}
