/** What the settings pages share beside their forms: the word on the last change, and what the environment says. */
import type { FC } from 'hono/jsx'
import type { Variable } from '../../src/admin/about.ts'
import { Done, NeedsScript } from '../ui/form.tsx'

/** A section that was saved says so itself. */
export const Outcome: FC<{ done: string | null; problem: string | null; isSaid?: boolean }> = (props) => (
  <>
    {!props.isSaid && <Done text={props.done} />}
    {props.problem && <p class="note note-bad">{props.problem}</p>}
    <NeedsScript />
  </>
)

/** Read-only: it changes by a restart. */
export const Variables: FC<{ variables: readonly Variable[] }> = ({ variables }) => (
  <dl class="variables">
    {variables.map(({ name, value, isSet, isSecret }) => (
      <div class="variable">
        <dt>
          <code>{name}</code>
        </dt>
        <dd>
          <span class={isSet ? 'variable-value' : 'variable-value muted'}>
            {isSecret ? secretText(isSet) : shown(value)}
          </span>
          <span class="tag">{isSet ? 'environment' : 'default'}</span>
        </dd>
      </div>
    ))}
  </dl>
)

const secretText = (isSet: boolean): string => (isSet ? 'set; not shown' : 'not set')

const shown = (value: string | null): string => (value === null ? 'not set' : value === '' ? 'none' : value)
