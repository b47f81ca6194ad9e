/** `/settings/sources`: the pages about model sources. */
import { NewSourcePage, SourcePage } from '../../views/settings/source.tsx'
import { SourcesPage } from '../../views/settings/sources.tsx'
import type { Ctx } from '../boot/bindings.ts'
import { requires, writes } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { getPathId } from '../http/path-id.ts'
import { reply } from '../http/reply.tsx'
import { iso } from '../lib/iso.ts'
import { getSource } from '../model/sources/source-rows.ts'
import { type ShownSource, toSource } from '../model/sources/source-view.ts'
import { mayWrite } from '../model/users/permissions.ts'
import { getFormFeedback } from './form-feedback.ts'
import { type Frame, getFrame, type ShownSettings, settingsOfTab } from './settings-frame.ts'
import { isManager, shownSources } from './sources.ts'

interface Page {
  frame: Frame
  /** ISO 8601: when the page was made. */
  now: string
  done: string | null
  problem: string | null
  /** The user may change sources. */
  canWrite: boolean
}

const getPage = (c: Ctx): Page => ({
  frame: getFrame(c, 'sources'),
  now: iso(c.env.clock.now()),
  canWrite: mayWrite(c.var.principal.grants),
  ...getFormFeedback(c),
})

export interface SourceList extends Page {
  sources: ShownSource[]
  settings: ShownSettings | null
}

export const showSources = createHandlers(requires('dashboard:read'), (c) =>
  reply(
    c,
    { ...getPage(c), sources: shownSources(c), settings: settingsOfTab(c, 'sources') } satisfies SourceList,
    SourcesPage,
  ),
)

export type NewSourceForm = Page

export const showNewSource = createHandlers(writes(), (c) =>
  reply(c, getPage(c) satisfies NewSourceForm, NewSourcePage),
)

export interface OneSource extends Page {
  source: ShownSource
}

/** Throws `not_found`. */
export const showSource = createHandlers(requires('dashboard:read'), (c) => {
  const source = toSource(getSource(c.env.db, getPathId(c)), { isManager: isManager(c) })
  return reply(c, { ...getPage(c), source } satisfies OneSource, SourcePage)
})
