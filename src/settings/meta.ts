/** What every setting says about itself. */
import { z } from 'zod'
import type { Section } from './schema.ts'

interface SettingMeta {
  section: Section
  label: string
  /** What the setting does, in one or two sentences. */
  help: string
  /** Unit of a number, as a word. */
  unit?: string
  /** Asks for `security:write` and a recent confirmation when the value changes. */
  security?: true
}

/** `words` as metadata of `schema`, read by `settings/fields.ts`. */
export const setting = <S extends z.ZodType>(schema: S, words: SettingMeta): S => schema.meta({ ...words })

export const seconds = (max: number) => z.int().min(1).max(max)
