/** The demo's second user: a Member with a key of their own. */
import type { Tx } from '../../db/commit.ts'
import { systemRandom } from '../../src/lib/random.ts'
import type { Actor } from '../../src/model/audit/audit.ts'
import { acceptInvite, invitePerson } from '../../src/model/users/invites.ts'
import type { Person } from '../../src/model/users/people.ts'

export const MEMBER = 'noor'

/** Returns the user's ID. */
export const addMember = async (
  tx: Tx,
  { inviter, actor, passwordHash }: { inviter: Person; actor: Actor; passwordHash: string },
): Promise<string> => {
  const { person, link } = await invitePerson(
    tx,
    { username: MEMBER, role: 'member', usernameLocked: false, ssoOnly: false },
    { caller: { person: inviter, actor }, random: systemRandom, isProxyTrusted: false },
  )
  await acceptInvite(tx, { token: link?.token ?? '', username: MEMBER, passwordHash, now: actor.at })
  return person.row.id
}
