/** The second factor as users send it: a code of their authenticator app, or one of their recovery codes. */
import type { Tx } from '../../db/commit.ts'
import type { Bindings } from '../bindings.ts'
import { AppError } from '../errors.ts'
import type { Actor } from '../model/audit.ts'
import { spendTotpStep, totpContext } from '../model/credentials.ts'
import type { UserRow } from '../model/people.ts'
import { isRecoveryCode, spendRecoveryCode } from '../model/recovery-codes.ts'
import { stepOfCode } from './totp.ts'

/** A code that has the right form, and for the authenticator the right value. `spend` decides whether it counts. */
export type SecondFactor = { method: 'totp'; step: number } | { method: 'recovery_code'; text: string }

/** null: the code is wrong, or the user has no authenticator. */
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

/** Uses the code up. False: it was used before, or is no recovery code of this user. */
export const spendSecondFactor = (tx: Tx, row: UserRow, factor: SecondFactor, actor: Actor): boolean =>
  factor.method === 'totp'
    ? spendTotpStep(tx, row, factor.step)
    : spendRecoveryCode(tx, row, { text: factor.text, actor })

/** Throws `invalid_totp_code` where `spendSecondFactor` is false. */
export const demandSecondFactor = (tx: Tx, row: UserRow, factor: SecondFactor, actor: Actor): void => {
  if (!spendSecondFactor(tx, row, factor, actor)) throw new AppError('invalid_totp_code')
}
