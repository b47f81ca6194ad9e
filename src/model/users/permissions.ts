/** Permissions and their implications, the preset roles' grants, and the subset test for delegation. */

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

/** A role that holds one of these is administrator-level (spec §2). */
export const PRIVILEGED: readonly Permission[] = [
  'security:write',
  'users:manage',
  'roles:manage',
  'accounts:export',
  'conversations:read',
  'audit:read',
]

export const OWN_SUPPORTED: readonly Permission[] = ['dashboard:read', 'api_keys:read', 'api_keys:write']

export const IMPLIES: Partial<Record<Permission, readonly Permission[]>> = {
  'accounts:export': ['accounts:read'],
  'api_keys:assign': ['api_keys:write'],
  'security:write': ['ops:write'],
}

/** Descriptions for the role editor and 403 pages. */
export const DESCRIPTIONS: Record<Permission, string> = {
  'dashboard:read': 'See the dashboard',
  'accounts:read': 'See accounts, their limits and usage',
  'accounts:write': 'Add, pause, probe and route accounts',
  'accounts:export': 'Export account credentials',
  'api_keys:read': 'See API keys',
  'api_keys:write': 'Create, edit and delete API keys',
  'api_keys:assign': 'Assign API keys to other users',
  'ops:write': 'Change settings other than security',
  'security:write': 'Change security settings, the firewall and sign-in providers',
  'users:manage': 'Manage users and invites',
  'roles:manage': 'Manage custom roles',
  'conversations:read': 'Read conversations and sensitive log metadata',
  'audit:read': 'Read the audit log',
}

/** The general write check: all three, at `all`. */
export const WRITE: readonly Permission[] = ['accounts:write', 'api_keys:write', 'ops:write']

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

/** Whether `outer` includes everything in `inner`: decides who may grant or act on a role (spec §5, delegation). */
export const isSubset = (inner: Grants, outer: Grants): boolean =>
  [...inner].every(([permission, scope]) => holds(outer, permission, scope))

export const isAdminLevel = (held: Grants): boolean => PRIVILEGED.some((permission) => held.has(permission))

/** What is wrong with a grant table, or null: implied permissions must be present, and `own` must be supported. */
export const grantProblem = (held: Grants): string | null => {
  for (const [permission, scope] of held) {
    if (scope === 'own' && !OWN_SUPPORTED.includes(permission)) return `${permission} has no own scope`
    const missing = IMPLIES[permission]?.find((implied) => !holds(held, implied, scope))
    if (missing) return `${permission} needs ${missing}`
  }
  return null
}

/** For the session response: the coarse names first, then every grant (spec §2). */
export const grantNames = (held: Grants): string[] => [
  ...(holds(held, 'dashboard:read', 'own') ? ['read'] : []),
  ...(mayWrite(held) ? ['write'] : []),
  ...[...held].map(([permission, scope]) => `${permission}:${scope}`).sort(),
]
