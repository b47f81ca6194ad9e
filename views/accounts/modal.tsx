/** Confirmations as native dialogs, opened by the browser itself, so they need no script. */
import type { FC, PropsWithChildren } from 'hono/jsx'
import { shuts } from '../ui/modal.ts'
import { POLICIES } from './routing.tsx'

const DELETE = '/api/accounts/delete'

const POLICY = '/api/accounts/routing-policy'

interface DeleteProps {
  id: string
  title: string
}

/** Inside the form that names the accounts. */
export const DeleteDialog: FC<PropsWithChildren<DeleteProps>> = ({ id, title, children }) => (
  <dialog id={id} class="dialog" aria-labelledby={`${id}-title`}>
    <div class="panel">
      <h2 id={`${id}-title`}>{title}</h2>
      {children}
      <p class="muted">
        Reports and key totals stay either way. Deleting the log also removes its requests from Logs and the overview;
        this runs in the background and takes a while.
      </p>
      <div class="actions">
        <button class="button button-bad" type="submit" formaction={DELETE} hx-post={DELETE} hx-swap="none">
          Delete and keep the log
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
          Delete with its log
        </button>
        <button class="button button-plain" type="button" {...shuts(id)}>
          Cancel
        </button>
      </div>
    </div>
  </dialog>
)

/** Inside the form that names the accounts: one button per policy. */
export const PolicyDialog: FC<{ id: string }> = ({ id }) => (
  <dialog id={id} class="dialog" aria-labelledby={`${id}-title`}>
    <div class="panel">
      <h2 id={`${id}-title`}>Set the routing policy</h2>
      <ul class="policies">
        {POLICIES.map(([policy, label, hint]) => (
          <li>
            <button
              class="button button-plain"
              type="submit"
              name="routingPolicy"
              value={policy}
              formaction={POLICY}
              hx-post={POLICY}
              hx-swap="none"
            >
              {label}
            </button>
            <span class="muted small">{hint}</span>
          </li>
        ))}
      </ul>
      <div class="actions">
        <button class="button button-plain" type="button" {...shuts(id)}>
          Cancel
        </button>
      </div>
    </div>
  </dialog>
)
