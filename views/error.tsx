/** What a person sees when something was refused or went wrong: as a page, and as a line in the page they are on. */
import type { FC } from 'hono/jsx'
import { WarningIcon } from './ui/icons.tsx'

export interface ErrorProps {
  code: string
  status: number
  message: string
  requestId: string | null
}

const TITLES: Readonly<Record<string, string>> = {
  bootstrap_required: 'Open this dashboard on its own machine',
  not_found: 'There is nothing here',
  cross_site_request_rejected: 'Refused: this came from another site',
}

const titleOf = ({ code, status }: ErrorProps): string => {
  const known = TITLES[code]
  if (known) return known
  if (status >= 500) return 'Something went wrong'
  return status === 401 || status === 403 ? 'You cannot do this' : 'That did not work'
}

export const ErrorPage: FC<ErrorProps> = (props) => (
  <section class="problem">
    <p class="problem-status">{props.status}</p>
    <h1>{titleOf(props)}</h1>
    <p class="problem-message">{props.message}</p>
    <p class="problem-facts">
      <code>{props.code}</code>
      {props.requestId && (
        <>
          {' · request '}
          <code>{props.requestId}</code>
        </>
      )}
    </p>
    {props.code !== 'bootstrap_required' && (
      <p>
        <a class="button" href="/dashboard">
          Back to the overview
        </a>
      </p>
    )}
  </section>
)

/** Swapped into `#flash`, which announces it. */
export const ErrorAlert: FC<ErrorProps> = ({ message, code }) => (
  <p class="alert">
    <WarningIcon />
    <span>{message}</span>
    <code>{code}</code>
  </p>
)
