/** Parses a second factor: an authenticator code or a recovery code. */
import type { Tx } from '../../db/commit.ts'
import type { Bindings } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import type { Actor } from '../model/audit/audit.ts'
import { spendTotpStep, totpContext } from '../model/users/passwords.ts'
import type { UserRow } from '../model/users/people.ts'
import { isRecoveryCode, spendRecoveryCode } from '../model/users/recovery-codes.ts'
import { stepOfCode } from './totp.ts'

/** A code of valid form and, for the authenticator, of valid value. `spend` decides whether it counts. */
export type SecondFactor = { method: 'totp'; step: number } | { method: 'recovery_code'; text: string }

/** Null: the code is wrong, or the user has no authenticator. */
export const readSecondFactor = (
  { sealer, clock }: Pick<Bindings, 'sealer' | 'clock'>,
  { id, totpSecretSealed }: UserRow,
  code: string,
): SecondFactor | null => {
  if (totpSecretSealed === null) return null
  if (isRecoveryCode(code)) return { method: 'recovery_code', text: code }
  const step = stepOfCode(sealer.open(totpSecretSealed, totpContext(id)), code, clock.now())
  return step === null ? null : { method: 'totp', step }
}

/** Uses up the code. False when it was used before or is not a recovery code of this user. */
export const spendSecondFactor = async (tx: Tx, row: UserRow, factor: SecondFactor, actor: Actor): Promise<boolean> =>
  factor.method === 'totp'
    ? await spendTotpStep(tx, row, factor.step)
    : await spendRecoveryCode(tx, row, { text: factor.text, actor })

/** Throws `invalid_totp_code` where `spendSecondFactor` returns false. */
export const requireSecondFactor = async (tx: Tx, row: UserRow, factor: SecondFactor, actor: Actor): Promise<void> => {
  if (!(await spendSecondFactor(tx, row, factor, actor))) throw new AppError('invalid_totp_code')
}
