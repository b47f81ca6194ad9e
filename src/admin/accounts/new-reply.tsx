/** The response to a step of adding an account: JSON, an updated dialog, or a page that can be reloaded. */
import type { FC } from 'hono/jsx'
import { NewBrowser } from '../../../views/accounts/new-browser.tsx'
import { NewDevice } from '../../../views/accounts/new-device.tsx'
import type { SignInValue } from '../../../views/accounts/new-frame.tsx'
import { type ImportValue, NewImport } from '../../../views/accounts/new-import.tsx'
import type { Ctx } from '../../boot/bindings.ts'
import { replyAndOpen } from '../../http/reply.tsx'
import { representation } from '../../http/representation.ts'
import { getPage } from '../../http/return-path.ts'

const HERE = '/accounts/new'

/** Requested by htmx from another page, to show a dialog there. */
const isDialog = (c: Ctx): boolean => representation(c) === 'fragment' && !getPage(c)?.pathname.startsWith(HERE)

/** Response after starting or changing a sign-in. */
export const replyWithSignIn = (c: Ctx, value: SignInValue): Response | Promise<Response> => {
  const view = { flow: value, target: value.target, pools: [], problem: null }
  return showOrOpen(
    c,
    { value, path: `${HERE}/${value.method}?flow=${value.flowId}`, view },
    value.method === 'device' ? NewDevice : NewBrowser,
  )
}

/** The same for an import. */
export const replyWithImport = (c: Ctx, value: ImportValue): Response | Promise<Response> =>
  showOrOpen(
    c,
    { value, path: `${HERE}/import?draft=${value.preflightId}`, view: { draft: value, problem: null } },
    NewImport,
  )

const showOrOpen = <T extends object>(
  c: Ctx,
  { value, path, view }: { value: object; path: string; view: T },
  View: FC<T>,
): Response | Promise<Response> => {
  if (!isDialog(c)) return replyAndOpen(c, value, path)
  c.header('Vary', 'Accept, HX-Request')
  return c.render(<View {...view} />)
}
