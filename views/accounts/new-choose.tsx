/** The ways to add an account, or to sign one in again, with what each is good for. */
import type { FC } from 'hono/jsx'
import type { KnownAccount } from '../../src/admin/sign-in-value.ts'
import { withQuery } from '../ui/with-query.ts'
import { Frame, Leave, titleOf } from './new-frame.tsx'

interface Way {
  path: string
  title: string
  text: string
}

const WAYS: readonly Way[] = [
  {
    path: '/accounts/new/browser',
    title: 'Sign in with this browser',
    text: 'The usual way. When Sluice runs on another machine, you paste one address at the end.',
  },
  {
    path: '/accounts/new/device',
    title: 'Sign in with a code',
    text: 'You type a short code on any device. Nothing has to reach this machine.',
  },
]

const IMPORT: Way = {
  path: '/accounts/new/import',
  title: 'Import auth.json files',
  text: 'What the Codex CLI wrote after a sign-in: one file, many, or a ZIP of them.',
}

export const NewAccount: FC<{ target: KnownAccount | null }> = ({ target }) => (
  <Frame title={titleOf(target, 'Add an account')}>
    {target && <p class="muted">Only the same user in the same workspace is taken; anybody else is refused.</p>}
    <ul class="ways">
      {[...WAYS, ...(target ? [] : [IMPORT])].map(({ path, title, text }) => (
        <li>
          <a class="way" href={withQuery(path, { account: target?.accountId })}>
            <strong>{title}</strong>
            <span class="muted">{text}</span>
          </a>
        </li>
      ))}
    </ul>
    <div class="actions">
      <Leave label="Cancel" />
    </div>
  </Frame>
)
