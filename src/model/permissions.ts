/** The permission vocabulary, the preset roles, and the one test whether something is held. */

export const PERMISSIONS = [
  'dashboard:read',
  'accounts:read',
  'accounts:write',
  'accounts:export',
  'api_keys:read',
  'api_keys:write',
  'api_keys:assign',
  'ops:write',
  'security:write',
  'users:manage',
  'roles:manage',
  'conversations:read',
  'audit:read',
] as const
export type Permission = (typeof PERMISSIONS)[number]
export type Scope = 'all' | 'own'
export type Grants = ReadonlyMap<Permission, Scope>

/** The generic write check: all three, at `all`. */
const WRITE: readonly Permission[] = ['accounts:write', 'api_keys:write', 'ops:write']

const grants = (permissions: readonly Permission[], scope: Scope = 'all'): Grants =>
  new Map(permissions.map((permission) => [permission, scope]))

export const PRESETS = {
  admin: grants(PERMISSIONS),
  operator: grants([
    'dashboard:read',
    'accounts:read',
    'accounts:write',
    'api_keys:read',
    'api_keys:write',
    'api_keys:assign',
    'ops:write',
  ]),
  viewer: grants(['dashboard:read', 'accounts:read']),
  member: grants(['dashboard:read', 'api_keys:read', 'api_keys:write'], 'own'),
  guest: grants(['dashboard:read', 'accounts:read']),
} as const satisfies Record<string, Grants>
export type PresetSlug = keyof typeof PRESETS

/** `all` satisfies `own`, never the reverse. */
export const holds = (held: Grants, permission: Permission, scope: Scope = 'all'): boolean => {
  const own = held.get(permission)
  return own === 'all' || (own === 'own' && scope === 'own')
}

export const mayWrite = (held: Grants): boolean => WRITE.every((permission) => holds(held, permission))
