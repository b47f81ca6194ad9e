/** What users enter for outbound proxies. */
import { z } from 'zod'
import { EGRESS_SCHEMES } from '../../../db/schema/egress.ts'

const Name = z.string().trim().min(1).max(128).describe('Unique.')

/** A name or address, without scheme, port, user name or path; IPv6 with or without brackets. */
const Host = z
  .string()
  .trim()
  .min(1)
  .max(255)
  .overwrite((text) => text.toLowerCase().replace(/^\[(.*)\]$/, '$1'))
  .refine(isHost, 'must be a host name or an IP address')
  .describe('Host name or IP address.')

function isHost(text: string): boolean {
  if (!/^[a-z0-9._:-]+$/.test(text)) return false
  const url = URL.parse(`http://${text.includes(':') ? `[${text}]` : text}/`)
  return url !== null && url.port === '' && url.pathname === '/' && url.hostname !== ''
}

/** Lone surrogates cannot be sent; control characters could end a line of the proxy's protocol. */
const isSendable = (text: string): boolean => text.isWellFormed() && !/\p{Cc}/u.test(text)

const UNSENDABLE = 'must not contain control characters'

/** An empty user name is none. */
const Username = z
  .string()
  .max(255)
  .refine(isSendable, UNSENDABLE)
  .nullable()
  .overwrite((text) => text || null)
  .describe('Null: none.')

const Password = z.string().max(1024).refine(isSendable, UNSENDABLE).nullable()

const Port = z.int().min(1).max(65_535).describe('Port of the proxy.')
const IsActive = z.boolean().describe('Whether it is used.')
const Scheme = z.enum(EGRESS_SCHEMES).describe('With `socks5`, Sluice resolves names; with the others, the proxy does.')
const EndpointId = z.string().max(255).describe('ID of the proxy.')

export const NewEndpoint = z
  .strictObject({
    name: Name,
    scheme: Scheme,
    host: Host,
    port: Port,
    username: Username.default(null),
    password: Password.default(null).describe('Stored encrypted. Never returned.'),
    isActive: IsActive.default(true),
  })
  .superRefine(requireLogin)
export type NewEndpoint = z.output<typeof NewEndpoint>

export const EndpointEdit = z
  .strictObject({
    name: Name,
    scheme: Scheme,
    host: Host,
    port: Port,
    username: Username,
    password: Password.describe('Leave it out or empty to keep the stored one; null removes it.'),
    isActive: IsActive,
  })
  .partial()
  .superRefine(requireLogin)
export type EndpointEdit = z.output<typeof EndpointEdit>

const MAX_SOCKS_LOGIN_BYTES = 255

/** RFC 7617 §2 knows no colon in a user name, RFC 1929 no more than 255 bytes. */
function requireLogin(
  { scheme, username, password }: Pick<EndpointEdit, 'scheme' | 'username' | 'password'>,
  ctx: z.RefinementCtx,
): void {
  if (scheme?.startsWith('http') !== false && username?.includes(':'))
    ctx.addIssue({ code: 'custom', path: ['username'], message: 'must not contain a colon' })
  for (const [name, text] of Object.entries({ username, password }))
    if (scheme?.startsWith('socks') !== false && Buffer.byteLength(text ?? '') > MAX_SOCKS_LOGIN_BYTES)
      ctx.addIssue({ code: 'custom', path: [name], message: 'must not be longer than 255 bytes' })
}

export const NewPool = z.strictObject({
  name: Name,
  endpointIds: z.array(z.string().max(255)).max(100).default([]).describe('In the order in which they are used.'),
  isActive: IsActive.default(true),
})
export type NewPool = z.output<typeof NewPool>

export const PoolEdit = z.strictObject({ name: Name, isActive: IsActive }).partial()
export type PoolEdit = z.output<typeof PoolEdit>

const SortOrder = z.int().min(0).max(10_000).describe('The lowest is used first.')

export const NewMember = z.strictObject({
  endpointId: EndpointId,
  sortOrder: SortOrder.optional().describe('The lowest is used first. Default: last.'),
  isActive: IsActive.default(true),
})
export type NewMember = z.output<typeof NewMember>

export const MemberEdit = z.strictObject({ sortOrder: SortOrder, isActive: IsActive }).partial()
export type MemberEdit = z.output<typeof MemberEdit>

export const Binding = z.strictObject({
  poolId: z
    .string()
    .max(255)
    .nullable()
    .overwrite((text) => text || null)
    .describe('Null: as the settings say.'),
})
