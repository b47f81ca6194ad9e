/** What may be said about an account from outside: the bodies of adding one and of changing one. */
import { z } from 'zod'
import { subjectText } from '../lib/subject.ts'
import { ExpectedVersion } from './edit-version.ts'
import { FreeUsername, Username } from './usernames.ts'

export const DisplayName = z
  .string()
  .trim()
  .max(128)
  .transform((name) => name || null)
  .nullable()
  .describe('Blank or null: none.')

/** In lower case, so that two spellings are one address. The pattern has one way to match a text: it meets bodies of strangers. */
export const Email = z
  .string()
  .trim()
  .toLowerCase()
  .max(320)
  .regex(/^[^\s@]+@[^\s@.]+(?:\.[^\s@.]+)+$/, 'must look like name@example.com')
  .nullable()
  .describe('Only one account has it. Null: none.')

/** Slug or id (decisions §2). */
const RoleReference = z.string().trim().min(1).max(64)
const roleFields = {
  role: RoleReference.optional().describe('Slug or id of the role.'),
  roleId: RoleReference.optional().describe('The same; goes before `role`.'),
}

/** `roleId` wins. */
export const roleReference = ({ role, roleId }: { role?: string; roleId?: string }): string | undefined =>
  roleId ?? role

/** Trimmed and in lower case, as the header's value is when it comes (spec §5, trusted-header mode). */
const Subject = z
  .string()
  .trim()
  .overwrite(subjectText)
  .max(512)
  .regex(/^[^,]*$/, 'must not have a comma in it')

const ExpectedIdentity = z.strictObject({
  provider: z.literal('trusted_header').describe('The reverse proxy.'),
  providerKey: z.literal('default').optional().describe('There is one.'),
  subject: Subject.describe('The value of the proxy’s header, whatever its case.'),
})

export const NewPerson = z
  .strictObject({
    username: FreeUsername,
    displayName: DisplayName.optional(),
    email: Email.optional(),
    ...roleFields,
    usernameLocked: z.boolean().default(false).describe('The invited person cannot pick another name.'),
    ssoOnly: z.boolean().default(false).describe('No link and no password: waits for `expectedIdentity`.'),
    expectedIdentity: ExpectedIdentity.nullish().describe('Whom the proxy will announce; with `ssoOnly` only.'),
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
  status: z
    .enum(['active', 'disabled'])
    .optional()
    .describe('Disabled, their sessions end and their keys are switched off; enabled again, the keys stay off.'),
  expectedVersion: ExpectedVersion,
})
export type PersonPatch = z.output<typeof PersonPatch>
