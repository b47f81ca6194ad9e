/** Settings, About: version, environment, and the licences of included software. */
import type { FC } from 'hono/jsx'
import { TextCard } from '../ui/card.tsx'
import { TableHead } from '../ui/table.tsx'
import { Since } from '../ui/time.tsx'
import { type Frame, SettingsFrame } from './frame.tsx'
import { Variables } from './variables.tsx'

export interface Variable {
  name: string
  /** null: no value. Secrets are shown as empty. */
  value: string | null
  /** Set in the environment; otherwise the value is the default. */
  isSet: boolean
  isSecret: boolean
}

export interface About {
  frame: Frame
  version: string
  runtime: string
  /** ISO 8601 */
  startedAt: string
  now: string
  /** null: hidden from the user. */
  environment: Environment | null
  components: Component[]
}

interface Environment {
  variables: Variable[]
  /** Unknown names with one of our prefixes. */
  unknown: string[]
}

export interface Component {
  name: string
  version: string
  licence: string
}

export const AboutPage: FC<About> = ({ frame, now, version, runtime, startedAt, environment, components }) => (
  <SettingsFrame frame={frame} now={now} title="About">
    <TextCard id="build" title={`Sluice ${version}`}>
      <p>
        Runs on {runtime}, started <Since at={startedAt} now={now} />. <span class="muted">MIT license.</span>
      </p>
      <p>
        <a href="/doctor">Health check</a> · <a href="/docs">Docs</a> · <a href="/docs/api">API reference</a>
      </p>
    </TextCard>
    {environment && (
      <TextCard id="environment" title="Environment">
        <p class="form-intro">
          Read from the environment and from <code>.env</code> in the data folder. Restart Sluice to apply a change.
        </p>
        {environment.unknown.length > 0 && (
          <p class="note note-bad" id="unknown">
            Unknown variables, ignored:{' '}
            {environment.unknown.map((name, i) => (
              <>
                {i > 0 && ', '}
                <code>{name}</code>
              </>
            ))}
            .
          </p>
        )}
        <Variables variables={environment.variables} />
      </TextCard>
    )}
    <TextCard id="licences" title="Licenses" count={components.length}>
      <table class="fact-table">
        <TableHead texts={['Component', 'Version', 'License']} />
        <tbody>
          {components.map((component) => (
            <tr>
              <td>{component.name}</td>
              <td>{component.version}</td>
              <td>{component.licence}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </TextCard>
  </SettingsFrame>
)
