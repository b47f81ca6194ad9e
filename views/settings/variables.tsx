/** Environment variables, next to the settings they belong to. */
import type { FC } from 'hono/jsx'
import { LockIcon } from '../ui/icons.tsx'
import type { Variable } from './about.tsx'

/** Read-only; changing one requires a restart. */
export const Variables: FC<{ variables: readonly Variable[] }> = ({ variables }) => (
  <dl>
    {variables.map(({ name, value, isSet, isSecret }) => (
      <div class="variable">
        <dt>
          <code>{name}</code>
        </dt>
        <dd>
          <span class={isSet ? 'variable-value' : 'variable-value muted'}>
            {isSecret ? secretText(isSet) : shown(value)}
          </span>
          <span class="tag">
            {isSet && <LockIcon />}
            {isSet ? 'set by environment' : 'default'}
          </span>
        </dd>
      </div>
    ))}
  </dl>
)

const secretText = (isSet: boolean): string => (isSet ? 'set; not shown' : 'not set')

const shown = (value: string | null): string => (value === null ? 'not set' : value === '' ? 'none' : value)
