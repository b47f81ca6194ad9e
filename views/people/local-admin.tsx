/** Offers to create the local administrator that an install behind a reverse proxy does not have yet. */
import type { FC } from 'hono/jsx'
import { ButtonLink } from '../ui/button.tsx'
import { withReturn } from '../ui/centered-card.tsx'

export const LocalAdminOffer: FC<{ returnTo: string }> = ({ returnTo }) => (
  <p class="split">
    <span class="muted">No local administrator yet. You need one to sign in when the reverse proxy is down.</span>
    <ButtonLink href={withReturn('/setup', returnTo)}>Create local administrator</ButtonLink>
  </p>
)
