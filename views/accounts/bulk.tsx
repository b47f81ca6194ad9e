/** What is done with the accounts that are ticked: one request for all of them. It shows itself once one is. */
import type { FC } from 'hono/jsx'
import { opens } from '../ui/modal.ts'
import { DeleteDialog } from './modal.tsx'

export const BulkBar: FC = () => (
  <form id="form-bulk" class="bulk" method="post" action="/api/accounts/pause">
    <span class="bulk-count">selected</span>
    <BulkButton action="/api/accounts/pause" label="Pause" />
    <BulkButton action="/api/accounts/reactivate" label="Resume" />
    <button class="button button-plain button-risky" type="button" {...opens('delete-selected')}>
      Delete…
    </button>
    <DeleteDialog id="delete-selected" title="Delete the selected accounts?">
      <p>Their credentials are erased, and conversations they own cannot go on. Turns under way still end.</p>
    </DeleteDialog>
  </form>
)

const BulkButton: FC<{ action: string; label: string }> = ({ action, label }) => (
  <button class="button button-plain" type="submit" formaction={action} hx-post={action} hx-swap="none">
    {label}
  </button>
)
