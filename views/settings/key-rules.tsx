/** The setting `memberKeyDefaults`: its fields, and its value in one sentence. */
import type { FC } from 'hono/jsx'
import type { Settings } from '../../src/settings/schema.ts'
import { LimitRows } from '../keys/form-limits.tsx'
import { plural } from '../ui/amounts.ts'
import { plainOptions } from '../ui/select.tsx'
import type { ShownField } from './section.tsx'

type KeyRules = Settings['memberKeyDefaults']

const NAME = 'memberKeyDefaults'

export const isKeyRules = (value: ShownField['value']): value is KeyRules =>
  typeof value === 'object' && value !== null && 'maxKeys' in value

export const keyRulesText = ({ maxKeys, models, limits, expiresDays }: KeyRules): string =>
  [
    maxKeys === 0 ? 'no keys' : `up to ${plural(maxKeys, 'key')}`,
    models === null ? 'all models' : models.join(', '),
    limits.length === 0 ? 'unlimited' : plural(limits.length, 'limit'),
    expiresDays === null ? 'never expire' : `expire within ${plural(expiresDays, 'day')}`,
  ].join(' · ')

export const KeyRulesInput: FC<{ rules: KeyRules; models: readonly string[] }> = ({ rules, models }) => {
  const offered = [...models, ...(rules.models ?? []).filter((model) => !models.includes(model))]
  return (
    <fieldset class="stack key-rules" aria-labelledby={`label-${NAME}`}>
      <label class="field">
        <span class="field-label">Keys per Member</span>
        <input type="number" name={`${NAME}.maxKeys`} min="0" max="1000" value={String(rules.maxKeys)} required />
      </label>
      <label class="field">
        <span class="field-label">Days until a key expires</span>
        <input
          type="number"
          name={`${NAME}.expiresDays`}
          min="1"
          max="3650"
          value={rules.expiresDays === null ? '' : String(rules.expiresDays)}
          placeholder="never"
        />
      </label>
      <fieldset class="key-ticks">
        <legend class="field-label">Models</legend>
        <input type="hidden" name={`${NAME}.models`} value="" />
        <div class="key-tick-list">
          {offered.map((model) => (
            <label class="key-tick">
              <input
                type="checkbox"
                name={`${NAME}.models`}
                value={model}
                checked={rules.models?.includes(model) ?? false}
              />
              <span>{model}</span>
            </label>
          ))}
        </div>
        <span class="hint">Leave empty to allow all models.</span>
      </fieldset>
      <LimitRows limits={rules.limits} models={plainOptions(offered)} prefix={`${NAME}.`} />
    </fieldset>
  )
}
