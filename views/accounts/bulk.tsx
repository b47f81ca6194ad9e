/** Actions on the selected accounts. The bar appears once one is selected. */
import type { FC } from 'hono/jsx'
import { type Expected, expectedBadge, expectedState } from '../ui/badge.tsx'
import { opens } from '../ui/modal.ts'
import { DeleteDialog, PolicyDialog, TagsDialog } from './modal.tsx'

export const BulkBar: FC<{ mayExport: boolean; tags: readonly string[] }> = ({ mayExport, tags }) => (
  <form id="form-bulk" class="bulk" method="post" action="/api/accounts/pause">
    <span class="bulk-count">selected</span>
    <BulkButton action="/api/accounts/pause" label="Pause" expected={expectedState(SELECTED, 'paused')} />
    <BulkButton action="/api/accounts/reactivate" label="Resume" expected={expectedState(SELECTED, 'active')} />
    <BulkButton action="/api/accounts/probe" label="Probe" />
    <button class="button button-plain" type="button" {...opens('policy-selected')}>
      Set policy…
    </button>
    <PolicyDialog id="policy-selected" />
    <button class="button button-plain" type="button" {...opens('tags-selected')}>
      Tags…
    </button>
    <TagsDialog id="tags-selected" tags={tags} />
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

/** The badges of the selected accounts, in the table and as cards. */
const SELECTED = ':is(tr, li):has([name=accountIds]:checked) .badge'

const BulkButton: FC<{ action: string; label: string; expected?: Expected }> = ({ action, label, expected }) => (
  <button
    class="button button-plain"
    type="submit"
    formaction={action}
    hx-post={action}
    hx-swap="none"
    {...(expected && expectedBadge(expected))}
  >
    {label}
  </button>
)
