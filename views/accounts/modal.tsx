/** Questions over the page: native dialogs, opened by the browser itself, so that they need no script. */
import type { FC, PropsWithChildren } from 'hono/jsx'
import { shuts } from '../ui/modal.ts'

const DELETE = '/api/accounts/delete'

interface DeleteProps {
  id: string
  title: string
}

/** Stands in the form that says which accounts. Their log is kept unless the other button is taken. */
export const DeleteDialog: FC<PropsWithChildren<DeleteProps>> = ({ id, title, children }) => (
  <dialog id={id} class="dialog" aria-labelledby={`${id}-title`}>
    <div class="panel">
      <h2 id={`${id}-title`}>{title}</h2>
      {children}
      <p class="muted">
        Reports and the totals of keys stay in either case. Without the log the overview forgets what these requests
        were, and nobody can look one up. Deleting it takes a while and happens in the background.
      </p>
      <div class="actions">
        <button class="button button-bad" type="submit" formaction={DELETE} hx-post={DELETE} hx-swap="none">
          Delete, keep the log
        </button>
        <button
          class="button button-plain button-risky"
          type="submit"
          name="deleteHistory"
          value="true"
          formaction={DELETE}
          hx-post={DELETE}
          hx-swap="none"
        >
          Delete with the log
        </button>
        <button class="button button-plain" type="button" {...shuts(id)}>
          Cancel
        </button>
      </div>
    </div>
  </dialog>
)
