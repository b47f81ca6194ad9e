/** Confirmations as native dialogs, opened by the browser itself, so they need no script. */
import type { Child, FC, PropsWithChildren } from 'hono/jsx'
import { closes } from '../ui/modal.ts'
import { POLICIES } from './routing.tsx'

const DELETE = '/api/accounts/delete'

const POLICY = '/api/accounts/routing-policy'

const TAGS = '/api/accounts/tags'

interface DialogProps {
  id: string
  title: string
}

/** A dialog inside the form that names the accounts. `actions` are its buttons besides Cancel. */
const AccountsDialog: FC<PropsWithChildren<DialogProps & { actions?: Child }>> = ({ id, title, actions, children }) => (
  <dialog id={id} class="dialog" aria-labelledby={`${id}-title`}>
    <div class="panel">
      <h2 id={`${id}-title`}>{title}</h2>
      {children}
      <div class="actions">
        {actions}
        <button class="button button-plain" type="button" {...closes(id)}>
          Cancel
        </button>
      </div>
    </div>
  </dialog>
)

export const DeleteDialog: FC<PropsWithChildren<DialogProps>> = ({ id, title, children }) => (
  <AccountsDialog
    id={id}
    title={title}
    actions={
      <>
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
      </>
    }
  >
    {children}
    <p class="muted">
      Reports and key totals stay either way. Deleting the log also removes its requests from Logs and the overview;
      this runs in the background and takes a while.
    </p>
  </AccountsDialog>
)

/** One button per policy. */
export const PolicyDialog: FC<{ id: string }> = ({ id }) => (
  <AccountsDialog id={id} title="Set the routing policy">
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
  </AccountsDialog>
)

/** Two buttons per tag. New tags are created on the page of an account. */
export const TagsDialog: FC<{ id: string; tags: readonly string[] }> = ({ id, tags }) => (
  <AccountsDialog id={id} title="Change tags">
    {tags.length === 0 && <p class="muted">No tags yet. Add one under Routing on the page of an account.</p>}
    <ul class="policies">
      {tags.map((tag) => (
        <li>
          <TagButton change="add" tag={tag} label={`Add ${tag}`} />
          <TagButton change="remove" tag={tag} label={`Remove ${tag}`} />
        </li>
      ))}
    </ul>
  </AccountsDialog>
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
