/** Models for Claude names, of the settings or of a key: their fields, and their values in one sentence. */
import type { FC } from 'hono/jsx'
import type { ClaudeOffers } from '../../src/settings/fields.ts'
import type { Settings } from '../../src/settings/schema.ts'
import { Options, plainOptions, withChosenOption } from '../ui/select.tsx'

type ClaudeModels = Settings['claudeModels']
type ClaudeSize = keyof ClaudeModels

const NAMES: Readonly<Record<ClaudeSize, string>> = { opus: 'Opus', sonnet: 'Sonnet', haiku: 'Haiku' }
const CLAUDE_SIZES = Object.keys(NAMES) as ClaudeSize[] // as: Object.keys forgets the literal types

export const isClaudeModels = (value: unknown): value is ClaudeModels =>
  typeof value === 'object' && value !== null && 'opus' in value

/** `defaults`: the models that serve where none is chosen; null leaves those out. */
export const claudeModelsText = (models: ClaudeModels, defaults: ClaudeOffers['defaults'] | null): string =>
  CLAUDE_SIZES.flatMap((size) => {
    const chosen = models[size]
    if (chosen) return `${NAMES[size]} → ${chosen.model}${chosen.effort === null ? '' : ` (${chosen.effort})`}`
    return defaults === null ? [] : `${NAMES[size]} → ${defaults[size] ?? 'automatic'}`
  }).join(' · ')

interface InputProps {
  name: string
  models: ClaudeModels | null
  offers: ClaudeOffers
  /** The option that chooses no model. */
  none: string
}

export const ClaudeModelsInput: FC<InputProps> = ({ name, models, offers, none }) => (
  <div class="claude-models">
    {CLAUDE_SIZES.map((size) => {
      const { model = '', effort = null } = models?.[size] ?? {}
      const automatic = offers.defaults[size]
      return (
        <div class="claude-model">
          <span class="field-label">{NAMES[size]}</span>
          <select name={`${name}.${size}.model`} aria-label={`Model for ${NAMES[size]}`}>
            <option value="">{automatic === null ? none : `${none} (${automatic})`}</option>
            <Options
              of={withChosenOption(plainOptions(offers.models), model, `${model} (not available)`)}
              chosen={model}
            />
          </select>
          <select name={`${name}.${size}.effort`} aria-label={`Reasoning effort for ${NAMES[size]}`}>
            <option value="">Automatic effort</option>
            <Options
              of={withChosenOption(
                offers.efforts.map((one) => [one, `Effort ${one}`]),
                effort,
              )}
              chosen={effort}
            />
          </select>
        </div>
      )
    })}
  </div>
)
