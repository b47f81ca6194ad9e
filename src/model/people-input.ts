/** What may be said about an account from outside: the bodies of adding one and of changing one. */
import { z } from 'zod'
import { FreeUsername, Username } from './usernames.ts'

/** Blank is none. */
export const DisplayName = z
  .string()
  .trim()
  .max(128)
  .transform((name) => name || null)
  .nullable()

/** In lower case, so that two spellings are one address. */
export const Email = z
  .string()
  .trim()
  .toLowerCase()
  .max(320)
  .regex(/^[^\s@]+@[^\s@]+\.[^\s@]+$/, 'must look like name@example.com')
  .nullable()

/** Slug or id (decisions §2). */
const RoleReference = z.string().trim().min(1).max(64)
const roleFields = { role: RoleReference.optional(), roleId: RoleReference.optional() }

/** `roleId` wins. */
export const roleReference = ({ role, roleId }: { role?: string; roleId?: string }): string | undefined =>
  roleId ?? role

/** Trimmed and in lower case, as the header's value is when it comes (spec §5, trusted-header mode). */
const Subject = z
  .string()
  .trim()
  .toLowerCase()
  .max(512)
  .regex(/^[^,]*$/, 'must not have a comma in it')

const ExpectedIdentity = z.strictObject({
  provider: z.literal('trusted_header'),
  providerKey: z.literal('default').optional(),
  subject: Subject,
})

export const NewPerson = z
  .strictObject({
    username: FreeUsername,
    displayName: DisplayName.optional(),
    email: Email.optional(),
    ...roleFields,
    /** The invited person cannot pick another name. */
    usernameLocked: z.boolean().default(false),
    /** No link and no password: waits for `expectedIdentity`. */
    ssoOnly: z.boolean().default(false),
    expectedIdentity: ExpectedIdentity.nullish(),
  })
  .refine((input) => roleReference(input) !== undefined, { path: ['role'], error: 'is missing' })
  .refine(({ ssoOnly, expectedIdentity }) => !ssoOnly || Boolean(expectedIdentity?.subject), {
    path: ['expectedIdentity'],
    error: 'is needed for an account without a password',
  })
  .refine(({ ssoOnly, expectedIdentity }) => ssoOnly || !expectedIdentity?.subject, {
    path: ['expectedIdentity'],
    error: 'is for an account without a password',
  })
export type NewPerson = z.output<typeof NewPerson>

/** `username` may repeat the reserved name of the account that has it. */
export const PersonPatch = z.strictObject({
  username: Username.optional(),
  displayName: DisplayName.optional(),
  email: Email.optional(),
  ...roleFields,
  status: z.enum(['active', 'disabled']).optional(),
})
export type PersonPatch = z.output<typeof PersonPatch>
