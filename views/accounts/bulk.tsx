/** Actions on the selected accounts. The bar appears once one is selected. */
import type { FC } from 'hono/jsx'
import { opens } from '../ui/modal.ts'
import { DeleteDialog, PolicyDialog } from './modal.tsx'

export const BulkBar: FC<{ mayExport: boolean }> = ({ mayExport }) => (
  <form id="form-bulk" class="bulk" method="post" action="/api/accounts/pause">
    <span class="bulk-count">selected</span>
    <BulkButton action="/api/accounts/pause" label="Pause" />
    <BulkButton action="/api/accounts/reactivate" label="Resume" />
    <BulkButton action="/api/accounts/probe" label="Probe" />
    <button class="button button-plain" type="button" {...opens('policy-selected')}>
      Set policy…
    </button>
    <PolicyDialog id="policy-selected" />
    {mayExport && (
      <button class="button button-plain" type="submit" formaction="/api/accounts/export">
        Export
      </button>
    )}
    <button class="button button-plain button-risky" type="button" {...opens('delete-selected')}>
      Delete…
    </button>
    <DeleteDialog id="delete-selected" title="Delete the selected accounts?">
      <p>Their credentials are erased and their conversations can't continue. Running requests will finish.</p>
    </DeleteDialog>
  </form>
)

const BulkButton: FC<{ action: string; label: string }> = ({ action, label }) => (
  <button class="button button-plain" type="submit" formaction={action} hx-post={action} hx-swap="none">
    {label}
  </button>
)
