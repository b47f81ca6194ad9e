/** `/settings/sources`: the pages about model sources. */
import {
  type NewSourceForm,
  NewSourcePage,
  type OneSource,
  type Page,
  SourcePage,
} from '../../views/settings/source.tsx'
import { type SourceList, SourcesPage } from '../../views/settings/sources.tsx'
import type { Ctx } from '../boot/bindings.ts'
import { requires, writes } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { getPathId } from '../http/path-id.ts'
import { reply } from '../http/reply.tsx'
import { iso } from '../lib/iso.ts'
import { getSource } from '../model/sources/source-rows.ts'
import { toSource } from '../model/sources/source-view.ts'
import { mayWrite } from '../model/users/permissions.ts'
import { getFormFeedback } from './form-feedback.ts'
import { getFrame, settingsOfTab } from './settings-frame.ts'
import { isManager, shownSources } from './sources.ts'

const getPage = (c: Ctx): Page => ({
  frame: getFrame(c, 'sources'),
  now: iso(c.env.clock.now()),
  canWrite: mayWrite(c.var.principal.grants),
  ...getFormFeedback(c),
})

export const showSources = createHandlers(requires('dashboard:read'), (c) =>
  reply(
    c,
    { ...getPage(c), sources: shownSources(c), settings: settingsOfTab(c, 'sources') } satisfies SourceList,
    SourcesPage,
  ),
)

export const showNewSource = createHandlers(writes(), (c) =>
  reply(c, getPage(c) satisfies NewSourceForm, NewSourcePage),
)

/** Throws `not_found`. */
export const showSource = createHandlers(requires('dashboard:read'), (c) => {
  const source = toSource(getSource(c.env.db, getPathId(c)), { isManager: isManager(c) })
  return reply(c, { ...getPage(c), source } satisfies OneSource, SourcePage)
})
