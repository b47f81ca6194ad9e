/** The API on one page: every operation folded under its path, what they share at the end. */
import type { FC } from 'hono/jsx'
import type { Docs } from '../../src/admin/docs.ts'
import type { ShownGroup } from '../../src/api-docs/shown.ts'
import { Command } from '../ui/button.tsx'
import { Card, TextCard } from '../ui/card.tsx'
import { Errors } from './errors.tsx'
import { Operation } from './operation.tsx'

export const DocsPage: FC<Docs> = ({ baseUrl, isGuess, search, total, found, groups, sharedErrors, errors }) => (
  <div class="page" id="docs" data-guess={isGuess ? baseUrl : undefined}>
    <header class="page-head docs-head">
      <h1>API</h1>
      <form method="get" action="/docs">
        <input
          type="search"
          name="q"
          value={search}
          maxlength={100}
          placeholder="Path, field, permission, error …"
          aria-label="Search the API"
          data-filter="operations"
        />
      </form>
      <a href="/api/openapi.json">OpenAPI 3.1</a>
    </header>
    <Intro baseUrl={baseUrl} />
    {search !== '' && (
      <p>
        {found.length} of {total} routes have “{search}”. <a href="/docs">Show all</a>
      </p>
    )}
    <div id="operations" class="docs-groups">
      {groups.map((group) => (
        <Group group={group} found={new Set(found)} isSearch={search !== ''} />
      ))}
      <p class="muted" id="operations-none" hidden={found.length > 0}>
        No route has that in it.
      </p>
    </div>
    <Errors kinds={sharedErrors} errors={errors} />
  </div>
)

const Intro: FC<{ baseUrl: string }> = ({ baseUrl }) => (
  <TextCard id="start" title="Before you start">
    <div class="docs-intro">
      <Command text={baseUrl} />
      <p>
        Everything is under this address. Model clients send <code>Authorization: Bearer</code> and a{' '}
        <a href="/keys">key</a>. The dashboard API knows people by the cookie of their session, or by what a trusted
        reverse proxy says: sign in with <a href="#postApiDashboardAuthPasswordLogin">password/login</a> and keep the
        cookies, as the examples do in <code>cookies.txt</code>.
      </p>
      <p>
        Bodies are JSON; those of the dashboard may also be HTML forms. Fields nobody knows are refused. Times are ISO
        8601. “Confirmed” means <a href="#postApiDashboardAuthStepUp">step-up</a> within the last five minutes.
      </p>
    </div>
  </TextCard>
)

interface GroupProps {
  group: ShownGroup
  found: ReadonlySet<string>
  isSearch: boolean
}

/** So few that they are what was looked for. */
const FEW = 3

const Group: FC<GroupProps> = ({ group: { id, title, about, operations, planned }, found, isSearch }) => (
  <div class="docs-group" hidden={!operations.some((one) => found.has(one.id))}>
    <Card id={`group-${id}`} title={title} aside={<span class="muted">{about}</span>}>
      {operations.map((operation) => (
        <Operation operation={operation} isHidden={!found.has(operation.id)} isOpen={found.size <= FEW} />
      ))}
      {planned.length > 0 && <Planned names={planned} isHidden={isSearch} />}
    </Card>
  </div>
)

const Planned: FC<{ names: ShownGroup['planned']; isHidden: boolean }> = ({ names, isHidden }) => (
  <details class="docs-op" hidden={isHidden}>
    <summary>
      <b class="docs-method">404</b> {names.length} routes that are not built yet{' '}
      <span class="docs-does">behind their gates there is nothing</span>
    </summary>
    <ul class="docs-body">
      {names.map(({ method, path }) => (
        <li>
          <code>
            {method} {path}
          </code>
        </li>
      ))}
    </ul>
  </details>
)
