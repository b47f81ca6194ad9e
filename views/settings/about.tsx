/** Settings, About: the build, the environment it was started with, and the work of others in it. */
import type { FC } from 'hono/jsx'
import type { About } from '../../src/admin/about.ts'
import { TextCard } from '../ui/card.tsx'
import { TableHead } from '../ui/table.tsx'
import { Since } from '../ui/time.tsx'
import { SettingsFrame } from './frame.tsx'
import { Variables } from './variables.tsx'

export const AboutPage: FC<About> = ({ frame, now, version, runtime, startedAt, environment, components }) => (
  <SettingsFrame frame={frame} now={now} title="About">
    <TextCard id="build" title={`Sluice ${version}`}>
      <p>
        On {runtime}, started <Since at={startedAt} now={now} />.{' '}
        <span class="muted">Sluice is under the MIT licence.</span>
      </p>
      <p>
        <a href="/doctor">Is all well?</a> · <a href="/docs">Docs</a> · <a href="/docs/api">API reference</a>
      </p>
    </TextCard>
    {environment && (
      <TextCard id="environment" title="Environment">
        <p class="form-intro">
          From the variables of the process and the file <code>.env</code> of the data folder. A change needs a restart.
        </p>
        {environment.unknown.length > 0 && (
          <p class="note note-bad" id="unknown">
            Not known here, and without effect:{' '}
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
    <TextCard id="licences" title="Licences" count={components.length}>
      <table class="fact-table">
        <TableHead texts={['Component', 'Version', 'Licence']} />
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
