/** Confirmations as native dialogs, opened by the browser itself, so they need no script. */
import type { FC, PropsWithChildren } from 'hono/jsx'
import { shuts } from '../ui/modal.ts'
import { POLICIES } from './routing.tsx'

const DELETE = '/api/accounts/delete'

const POLICY = '/api/accounts/routing-policy'

const TAGS = '/api/accounts/tags'

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

/** Inside the form that names the accounts: two buttons per tag. New tags are made on the page of an account. */
export const TagsDialog: FC<{ id: string; tags: readonly string[] }> = ({ id, tags }) => (
  <dialog id={id} class="dialog" aria-labelledby={`${id}-title`}>
    <div class="panel">
      <h2 id={`${id}-title`}>Change tags</h2>
      {tags.length === 0 && <p class="muted">No tags yet. Add one under Routing on the page of an account.</p>}
      <ul class="policies">
        {tags.map((tag) => (
          <li>
            <TagButton change="add" tag={tag} label={`Add ${tag}`} />
            <TagButton change="remove" tag={tag} label={`Remove ${tag}`} />
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

const TagButton: FC<{ change: 'add' | 'remove'; tag: string; label: string }> = ({ change, tag, label }) => (
  <button
    class="button button-plain"
    type="submit"
    name={change}
    value={tag}
    formaction={TAGS}
    hx-post={TAGS}
    hx-swap="none"
  >
    {label}
  </button>
)
