/** What a setting is called and does, as metadata of its schema, and the sections of the settings pages. */
import { z } from 'zod'

/** The sections of the settings pages. */
export const SECTIONS = [
  'security',
  'guests',
  'clients',
  'members',
  'routing',
  'affinity',
  'claude',
  'windows',
  'planner',
  'resets',
  'overflow',
  'limits',
  'timeouts',
  'egress',
  'retention',
  'backups',
  'alerts',
] as const
export type Section = (typeof SECTIONS)[number]

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
