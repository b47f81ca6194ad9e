/** Who may assign or change which role: users cannot grant, or act on, more than they hold (spec §5, delegation). */
import type { Db, Tx } from '../../../db/commit.ts'
import { AppError } from '../../errors.ts'
import type { Actor } from '../audit/audit.ts'
import { findPerson, type Person } from './people.ts'
import { holds, isSubset, type Permission } from './permissions.ts'
import { ADMIN_ROLE_ID, listRoles, missingPermissionText, type Role } from './roles.ts'

/** A user who changes users or roles, as of the commit. */
export interface Caller {
  person: Person
  actor: Actor
}

/**
 * Rereads the caller, because the command line writes to the same database and permissions may have changed since the
 * gate. Throws `authentication_required`, `permission_required`.
 */
export const callerNow = async (tx: Tx, actor: Actor, permission: Permission): Promise<Caller> => {
  const person = await findPerson(tx, actor.id)
  if (person?.row.status !== 'active') throw new AppError('authentication_required')
  if (!holds(person.role.grants, permission))
    throw new AppError('permission_required', { param: permission, message: missingPermissionText(permission, false) })
  return { person, actor }
}

/** Changing, disabling or deleting a user with this role requires holding its permissions (spec §5 Delegation 1). */
export const mayActOn = (person: Person, role: Role): boolean => isSubset(role.grants, person.role.grants)

/** Only an Admin can create an Admin, whatever a custom role includes (spec §5 Delegation 1). */
const mayGrant = (person: Person, role: Role): boolean =>
  mayActOn(person, role) && (role.id !== ADMIN_ROLE_ID || person.role.id === ADMIN_ROLE_ID)

/** Whether `person` may still grant the role they offered. */
export const mayInviteAs = (person: Person, role: Role): boolean =>
  person.row.status === 'active' && holds(person.role.grants, 'users:manage') && mayGrant(person, role)

/** Throws `insufficient_delegation`. */
export const requireDelegation = ({ person }: Pick<Caller, 'person'>, role: Role): void => {
  if (!mayActOn(person, role)) throw new AppError('insufficient_delegation')
}

/** Throws `role_not_assignable` before `insufficient_delegation`. */
export const requireGrantable = ({ person }: Pick<Caller, 'person'>, role: Role): void => {
  if (!role.isAssignable) throw new AppError('role_not_assignable', { param: 'role' })
  if (!mayGrant(person, role)) throw new AppError('insufficient_delegation')
}

/** The roles `person` may assign. */
export const grantableRoles = async (db: Db, person: Person): Promise<Role[]> =>
  holds(person.role.grants, 'users:manage')
    ? (await listRoles(db)).filter((role) => role.isAssignable && mayGrant(person, role))
    : []
