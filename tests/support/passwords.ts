/** The real password hashes at the lowest cost: a real one takes 25 ms of a processor and 19 MiB. */
import { createPasswords } from '../../src/auth/passwords.ts'

export const passwords = await createPasswords({ memoryCost: 32, timeCost: 1 })
