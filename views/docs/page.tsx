/** The API reference on one page: every operation folded under its path, shared errors at the end. */
import type { FC } from 'hono/jsx'
import { Command } from '../ui/button.tsx'
import { Card, TextCard } from '../ui/card.tsx'
import { Errors } from './errors.tsx'
import { Operation, type RefusalKind, type ShownOperation } from './operation.tsx'
import type { Refusal } from './text.tsx'

export interface ShownGroup {
  id: string
  title: string
  about: string
  operations: ShownOperation[]
}

export interface SharedErrors {
  id: RefusalKind
  title: string
  refusals: Refusal[]
}

export interface Docs {
  baseUrl: string
  /** The address comes only from the Host header. */
  isGuess: boolean
  search: string
  total: number
  /** Ids of the operations that match. */
  found: readonly string[]
  groups: ShownGroup[]
  sharedErrors: readonly SharedErrors[]
  errors: { code: string; status: number; message: string }[]
}

export const DocsPage: FC<Docs> = ({ baseUrl, isGuess, search, total, found, groups, sharedErrors, errors }) => (
  <div class="page" id="docs" data-guess={isGuess ? baseUrl : undefined}>
    <header class="page-head docs-head">
      <h1>API</h1>
      <form method="get" action="/docs/api">
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
      <a href="/docs">Guides</a>
      <a href="/api/openapi.json">OpenAPI 3.1</a>
    </header>
    <Intro baseUrl={baseUrl} />
    {search !== '' && (
      <p>
        {found.length} of {total} routes match “{search}”. <a href="/docs/api">Show all</a>
      </p>
    )}
    <div id="operations" class="docs-groups">
      {groups.map((group) => (
        <Group group={group} found={new Set(found)} />
      ))}
      <p class="muted" id="operations-none" hidden={found.length > 0}>
        No route matches.
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
        This is your base address. Model clients send <code>Authorization: Bearer</code> with a <a href="/keys">key</a>.
        The dashboard API uses the session cookie, or the user name from a trusted reverse proxy. Sign in with{' '}
        <a href="#postApiDashboardAuthPasswordLogin">password/login</a> and keep the cookies; the examples store them in{' '}
        <code>cookies.txt</code>.
      </p>
      <p>
        Bodies are JSON. The dashboard API also accepts HTML forms. Unknown fields are rejected. Times are ISO 8601.
        “Confirmed” means a <a href="#postApiDashboardAuthStepUp">step-up</a> within the last five minutes.
      </p>
    </div>
  </TextCard>
)

interface GroupProps {
  group: ShownGroup
  found: ReadonlySet<string>
}

/** With so few matches they are opened. */
const FEW = 3

const Group: FC<GroupProps> = ({ group: { id, title, about, operations }, found }) => (
  <div class="docs-group" hidden={!operations.some((one) => found.has(one.id))}>
    <Card id={`group-${id}`} title={title} aside={<span class="muted">{about}</span>}>
      {operations.map((operation) => (
        <Operation operation={operation} isHidden={!found.has(operation.id)} isOpen={found.size <= FEW} />
      ))}
    </Card>
  </div>
)
