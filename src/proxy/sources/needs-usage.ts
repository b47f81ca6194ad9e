/** Whether the limits of a key can only be kept when the answer says what it used. */
import type { KeyPolicy } from '../../model/keys/key-ring.ts'

/** A limit counts the tokens or the cost of this model. */
export const needsUsage = (key: Pick<KeyPolicy, 'limits'> | null, model: string | null): boolean =>
  key?.limits.some(({ type, modelFilter }) => type !== 'requests' && (modelFilter === '' || modelFilter === model)) ??
  false
