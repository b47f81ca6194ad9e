/** Settings, About: the build, the environment it was started with, and the work of others in it. */
import type { FC } from 'hono/jsx'
import type { About } from '../../src/admin/about.ts'
import { Since } from '../ui/time.tsx'
import { SettingsFrame } from './frame.tsx'
import { Variables } from './parts.tsx'

export const AboutPage: FC<About> = ({ frame, now, version, runtime, startedAt, environment, components }) => (
  <SettingsFrame frame={frame} now={now} title="About">
    <section class="card" aria-labelledby="build-title">
      <header class="card-head">
        <h2 id="build-title">Sluice {version}</h2>
      </header>
      <div class="card-body">
        <p>
          On {runtime}, started <Since at={startedAt} now={now} />.{' '}
          <span class="muted">Sluice is under the MIT licence.</span>
        </p>
        <p>
          <a href="/doctor">Is all well?</a>
        </p>
      </div>
    </section>
    {environment && (
      <section class="card" id="environment" aria-labelledby="environment-title">
        <header class="card-head">
          <h2 id="environment-title">Environment</h2>
        </header>
        <div class="card-body">
          <p class="form-intro">
            From the variables of the process and the file <code>.env</code> of the data folder. A change needs a
            restart.
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
        </div>
      </section>
    )}
    <section class="card" aria-labelledby="licences-title">
      <header class="card-head">
        <h2 id="licences-title">Licences</h2>
        <span class="count">{components.length}</span>
      </header>
      <div class="card-body">
        <table class="fact-table">
          <thead>
            <tr>
              <th scope="col">Component</th>
              <th scope="col">Version</th>
              <th scope="col">Licence</th>
            </tr>
          </thead>
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
      </div>
    </section>
  </SettingsFrame>
)
