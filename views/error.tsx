/** Errors as a page, and as a line in the current page. */
import type { FC } from 'hono/jsx'
import { ButtonLink } from './ui/button.tsx'
import { WarningIcon } from './ui/icons.tsx'

export interface ErrorProps {
  code: string
  status: number
  message: string
  requestId: string | null
  /** For a request that looks like another site's: the headers it came with. */
  arrived?: { host: string | null; origin: string | null }
}

const TITLES: Readonly<Record<string, string>> = {
  database_unavailable: 'The database is unavailable',
  not_found: 'Page not found',
  automation_not_found: 'Automation not found',
  automation_run_not_found: 'Run not found',
  invite_not_found: 'This invite no longer works',
  proxy_auth_required: 'Open Sluice through your reverse proxy',
  cross_site_request_rejected: 'Request from another site rejected',
}

const getTitle = ({ code, status }: ErrorProps): string => {
  const known = TITLES[code]
  if (known) return known
  if (status >= 500) return 'Something went wrong'
  return status === 401 || status === 403 ? 'You don’t have access' : 'Something is wrong with this request'
}

export const ErrorPage: FC<ErrorProps> & { title: typeof getTitle } = (props) => (
  <section class="problem">
    <p class="problem-status">{props.status}</p>
    <h1>{getTitle(props)}</h1>
    <p class="problem-message">{props.message}</p>
    {props.arrived && <HostLost {...props.arrived} />}
    <p class="problem-facts">
      <code>{props.code}</code>
      {props.requestId && (
        <>
          {' · request '}
          <code>{props.requestId}</code>
        </>
      )}
    </p>
    <p>
      <NextStep {...props} />
    </p>
  </section>
)

ErrorPage.title = getTitle

const WAYS: Readonly<Record<string, [label: string, href: string]>> = {
  proxy_auth_required: ['Try again', '/dashboard'],
  import_not_found: ['Choose files again', '/accounts/new/import'],
  oauth_flow_not_found: ['Add an account', '/accounts/new'],
}

const NextStep: FC<ErrorProps> = ({ code }) => {
  const [label, href] = WAYS[code] ?? ['Back to the overview', '/dashboard']
  return (
    <ButtonLink isMain href={href}>
      {label}
    </ButtonLink>
  )
}

/** Almost always caused by a reverse proxy that rewrites Host. */
const HostLost: FC<NonNullable<ErrorProps['arrived']>> = ({ host, origin }) => (
  <>
    <p>
      Your browser sent this from <code>{origin ?? 'an unknown address'}</code>, but it arrived for{' '}
      <code>{host ?? 'no host'}</code>. If both are this dashboard, make your reverse proxy forward the Host header:
    </p>
    <ul class="bullets">
      <li>
        nginx, Nginx Proxy Manager: <code>proxy_set_header Host $http_host;</code>
      </li>
      <li>Caddy and Traefik forward it by default. Remove any setting that overrides the Host header.</li>
      <li>
        Or set <code>SLUICE_PUBLIC_URL</code> to the address in the browser.
      </li>
    </ul>
  </>
)

/** Swapped into `#flash`, which announces it. */
export const ErrorAlert: FC<ErrorProps> = ({ message, code }) => (
  <p class="alert">
    <WarningIcon />
    <span>{message}</span>
    <code>{code}</code>
  </p>
)
