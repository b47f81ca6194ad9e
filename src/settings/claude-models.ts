/** Which models serve requests for Claude models. A key can choose other models. */
import { z } from 'zod'
import { setting } from './setting.ts'

const Chosen = z
  .strictObject({
    model: z.string().trim().min(1).max(255),
    /** Null: as the client requests. */
    effort: z.string().trim().toLowerCase().min(1).max(64).nullable().default(null),
  })
  .nullable()
  .default(null)

/** Null: the most expensive model of the catalog for Opus, the middle one for Sonnet, the cheapest for Haiku. */
export const ClaudeModels = setting(z.strictObject({ opus: Chosen, sonnet: Chosen, haiku: Chosen }), {
  section: 'claude',
  label: 'Models for Claude names',
  help: 'Which model serves a request for a Claude model, and with which reasoning effort. A key can choose other models.',
})
