/** Deleting a user who signs in through the reverse proxy: the next visit recreates them, so disabling is offered instead. */
import type { FC } from 'hono/jsx'
import { Submit } from '../ui/button.tsx'
import { Form } from '../ui/form.tsx'
import { closes, opens } from '../ui/modal.ts'
import type { ListedUser } from './list.tsx'

/** What happens at the next visit of a deleted user through the proxy. */
export const returnText = ({ roleName }: NonNullable<ListedUser['afterDeletion']>): string =>
  roleName === null
    ? 'Their next visit through the reverse proxy is rejected until you add them again.'
    : `Their next visit through the reverse proxy creates them again, with the role ${roleName}.`

interface DeleteProps {
  user: ListedUser
  /** Base path of the user's routes. */
  path: string
  after: NonNullable<ListedUser['afterDeletion']>
}

export const DeleteProxyUser: FC<DeleteProps> = ({ user: { id, username, status }, path, after }) => {
  const dialog = `delete-user-${id}`
  const mayDisable = status === 'active'
  return (
    <>
      <button class="button button-plain button-risky needs-script" type="button" {...opens(dialog)}>
        Delete
      </button>
      <dialog id={dialog} class="dialog" aria-labelledby={`${dialog}-title`}>
        <div class="panel">
          <h2 id={`${dialog}-title`}>Delete {username}?</h2>
          <p>
            <strong>{returnText(after)}</strong>{' '}
            {mayDisable ? 'To keep them out, disable them instead.' : 'Disabled users cannot sign in.'}
          </p>
          <p class="muted">Their keys stay, turned off and without an owner.</p>
          <div class="actions">
            {mayDisable && (
              <Form name={`disable-instead-${id}`} method="patch" action={path}>
                <input type="hidden" name="status" value="disabled" />
                <Submit>Disable instead</Submit>
              </Form>
            )}
            <Form name={`delete-${id}`} method="delete" action={path}>
              <Submit isRisky>Delete</Submit>
            </Form>
            <button class="button button-plain" type="button" {...closes(dialog)}>
              Cancel
            </button>
          </div>
        </div>
      </dialog>
    </>
  )
}
