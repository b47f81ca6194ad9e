/** Offers the local administrator that an install behind a reverse proxy does not have yet. */
import type { FC } from 'hono/jsx'
import { ButtonLink } from '../ui/button.tsx'
import { withReturn } from '../ui/entrance.tsx'

export const LocalAdminOffer: FC<{ returnTo: string }> = ({ returnTo }) => (
  <p class="split">
    <span class="muted">There is no local administrator for when the reverse proxy is down.</span>
    <ButtonLink href={withReturn('/setup', returnTo)}>Create local administrator</ButtonLink>
  </p>
)
