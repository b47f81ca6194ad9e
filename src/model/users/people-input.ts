/** The request bodies that add and change a user. */
import { z } from 'zod'
import { normalizeSubject } from '../../lib/subject.ts'
import { ExpectedVersion } from '../edit-version.ts'
import { ShareInput } from '../shares/share-input.ts'
import { FreeUsername, Username } from './usernames.ts'

export const DisplayName = z
  .string()
  .trim()
  .max(128)
  .transform((name) => name || null)
  .nullable()
  .describe('Blank or null: none.')

/**
 * In lower case, so that spellings do not differ. The pattern matches in only one way, because it is applied to
 * untrusted bodies.
 */
export const Email = z
  .string()
  .trim()
  .toLowerCase()
  .max(320)
  .regex(/^[^\s@]+@[^\s@.]+(?:\.[^\s@.]+)+$/, 'must look like name@example.com')
  .nullable()
  .describe('Must be unique. Null: none.')

/** Slug or id (decisions §2). */
const RoleReference = z.string().trim().min(1).max(64)
const roleFields = {
  role: RoleReference.optional().describe('Slug or id of the role.'),
  roleId: RoleReference.optional().describe('Same as `role`; wins over it.'),
}

/** `roleId` takes precedence. */
export const roleReference = ({ role, roleId }: { role?: string; roleId?: string }): string | undefined =>
  roleId ?? role

/** Trimmed and in lower case, like the header's value (spec §5, trusted-header mode). */
const Subject = z
  .string()
  .trim()
  .overwrite(normalizeSubject)
  .max(512)
  .regex(/^[^,]*$/, 'must not contain a comma')

const ExpectedIdentity = z.strictObject({
  provider: z.literal('trusted_header').describe('The reverse proxy.'),
  providerKey: z.literal('default').optional().describe('Always `default`.'),
  subject: Subject.describe('The value of the proxy’s header, in any case.'),
})

export const NewPerson = z
  .strictObject({
    username: FreeUsername,
    displayName: DisplayName.optional(),
    email: Email.optional(),
    ...roleFields,
    usernameLocked: z.boolean().default(false).describe('The invited user cannot choose a different name.'),
    ssoOnly: z.boolean().default(false).describe('No link and no password: the user signs in as `expectedIdentity`.'),
    expectedIdentity: ExpectedIdentity.nullish().describe('The name the proxy will send. Only with `ssoOnly`.'),
  })
  .refine((input) => roleReference(input) !== undefined, { path: ['role'], error: 'is missing' })
  .refine(({ ssoOnly, expectedIdentity }) => !ssoOnly || Boolean(expectedIdentity?.subject), {
    path: ['expectedIdentity'],
    error: 'is required for a user without a password',
  })
  .refine(({ ssoOnly, expectedIdentity }) => ssoOnly || !expectedIdentity?.subject, {
    path: ['expectedIdentity'],
    error: 'is only for a user without a password',
  })
export type NewPerson = z.output<typeof NewPerson>

/** `username` may repeat the reserved name of the user who has it. */
export const PersonPatch = z.strictObject({
  username: Username.optional(),
  displayName: DisplayName.optional(),
  email: Email.optional(),
  ...roleFields,
  status: z
    .enum(['active', 'disabled'])
    .optional()
    .describe(
      '`disabled` signs the user out and turns off their keys. The keys stay off after enabling the user again.',
    ),
  share: ShareInput.optional().describe(
    'The user’s own share of the pool. Null means the share of their role, if it has one.',
  ),
  expectedVersion: ExpectedVersion,
})
export type PersonPatch = z.output<typeof PersonPatch>
