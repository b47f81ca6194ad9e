/** Shows an error in a format its client can read; mounted as `onError` and `notFound`. */
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { Confirm } from '../../views/confirm.tsx'
import { ErrorAlert, ErrorPage, type ErrorProps } from '../../views/error.tsx'
import { Problem, SignedOut } from '../../views/ui/form.tsx'
import { fieldText, problemText } from '../../views/words.ts'
import type { Principal } from '../auth/principal.ts'
import { resolve } from '../auth/resolve.ts'
import type { Ctx } from '../boot/bindings.ts'
import { AppError, type Code, openAiError } from '../errors.ts'
import { errorAnswer, getMessage, problemJson } from './error-answer.ts'
import type { Typed } from './form-drafts.ts'
import { representation } from './representation.ts'
import { getPage, withReturn } from './return-path.ts'
import { looksLikeModelTraffic, wrongBaseUrl } from './wrong-base-url.ts'

/** Answers with the envelope of the route, or with a page. */
export const renderError = errorAnswer((c, err, requestId) => renderForDashboard(c, err, requestId))

/** For `app.notFound`. A model client with a wrong base path gets OpenAI's envelope, and a page its usual shell. */
export const renderNotFound = async (c: Ctx): Promise<Response> => {
  if (representation(c) === 'page') {
    const resolution = await resolve(c)
    if (resolution.kind === 'principal' && !resolution.mustEnroll) c.set('principal', resolution.principal)
  }
  if (representation(c) !== 'json' || !looksLikeModelTraffic(c.req.path))
    return renderError(new AppError('not_found'), c)
  const err = wrongBaseUrl(c)
  return c.json({ error: openAiError(err) }, err.status as ContentfulStatusCode) // as: 404 or 405
}

const renderForDashboard = (c: Ctx, err: AppError, requestId: string | null): Response | Promise<Response> => {
  const kind = representation(c)
  const message = getMessage(err, requestId)
  if (kind === 'json') return problemJson(c, err, requestId)
  const shown: ErrorProps = {
    code: err.code,
    status: err.status,
    message: spoken(err, message),
    requestId,
    ...getArrived(c, err),
  }
  return kind === 'page' ? asPage(c, err, shown) : asFragment(c, err, shown)
}

const getArrived = (c: Ctx, { code }: AppError): Pick<ErrorProps, 'arrived'> =>
  code === 'cross_site_request_rejected'
    ? { arrived: { host: c.req.header('host') ?? null, origin: c.req.header('origin') ?? null } }
    : {}

/** Redirects a browser to where the user can act: sign in, confirm, or the form it came from. */
const asPage = (c: Ctx, err: AppError, shown: ErrorProps): Response | Promise<Response> => {
  const next = placeFor(c, err) ?? getForm(c, err, getDraft(c, err, shown.message))
  return next === null ? c.render(<ErrorPage {...shown} />, { title: ErrorPage.title(shown) }) : c.redirect(next, 303)
}

const asFragment = (c: Ctx, err: AppError, shown: ErrorProps): Response | Promise<Response> => {
  const next = err.code === 'username_required' ? getForm(c, err, null) : placeFor(c, err)
  if (err.code === 'step_up_required') return openConfirm(c, err)
  const form = SOURCE_FORM.exec(c.req.header('hx-source') ?? '')?.[1]
  if (next !== null && !(form && isLeftOpen(c, next))) {
    c.header('HX-Redirect', next)
    return c.body(null)
  }
  c.header('HX-Retarget', form ? `#${form}-problem` : '#flash')
  c.header('HX-Reswap', 'innerHTML')
  if (!form) return c.html(<ErrorAlert {...shown} />)
  return c.html(next === null ? <Problem text={shown.message} /> : <SignedOut />)
}

/**
 * When a session ends in the middle of a form, the user signs in separately and keeps the form; pages of the sign-in
 * flow redirect.
 */
const isLeftOpen = (c: Ctx, next: string): boolean =>
  next.startsWith('/login') && !Object.values(PLACES).includes(getPage(c)?.pathname ?? '')

/** Our form ids start like this, and each has an error element named after it. */
const SOURCE_FORM = /^form#(form-[\w-]+)$/

/** Opens the confirmation over the rejected form, which the script then sends again. */
const openConfirm = (c: Ctx, err: AppError): Response | Promise<Response> => {
  const principal = c.get('principal') as Principal | undefined // as: an error can occur before any gate
  c.header('HX-Retarget', '#dialog')
  c.header('HX-Reswap', 'innerHTML')
  return c.html(
    <Confirm
      methods={(err.extra.details?.methods ?? []) as string[]} // as: set by `requireStepUp`
      username={principal?.kind === 'account' ? principal.person.row.username : ''}
      returnTo={here(c)}
    />,
  )
}

const PLACES: Partial<Record<Code, string>> = {
  authentication_required: '/login',
  bootstrap_required: '/setup',
  totp_required: '/totp',
  totp_enrollment_required: '/me/two-factor',
  identity_not_provisioned: '/auth/pending',
  account_disabled: '/auth/pending',
  step_up_required: '/confirm',
}

/** Null when there is none, or the browser is already there. */
const placeFor = (c: Ctx, err: AppError): string | null => {
  const hasFallback = err.code === 'proxy_auth_required' && err.extra.details?.fallback === true
  const place = hasFallback ? '/login' : PLACES[err.code]
  const page = getPage(c)
  if (place === undefined || page?.pathname === place) return null
  const next = withReturn(place, page?.searchParams.get('return') ?? here(c))
  return err.code === 'step_up_required' ? `${next}${next.includes('?') ? '&' : '?'}problem=${err.code}` : next
}

const here = (c: Ctx): string => {
  const page = getPage(c)
  return page ? page.pathname + page.search : '/dashboard'
}

/** Passes only codes, never text: a link must not be able to inject text into our pages. */
const getForm = (c: Ctx, err: AppError, draft: string | null): string | null => {
  const isOver = err.status >= 500 && err.code !== 'database_unavailable' // pages work without writing
  if (c.req.method === 'GET' || isOver || err.code === 'cross_site_request_rejected') return null
  const page = getPage(c)
  if (page === null) return null
  page.searchParams.set('problem', err.code)
  if (err.extra.param) page.searchParams.set('field', err.extra.param)
  if (err.extra.retryAfterSeconds) page.searchParams.set('wait', String(Math.ceil(err.extra.retryAfterSeconds)))
  if (draft) page.searchParams.set('draft', draft)
  return page.pathname + page.search
}

/** as: also null before any gate */
const getDraft = (c: Ctx, err: AppError, problem: string): string | null => {
  const typed = c.get('typed') as Typed | undefined // as: an error can occur before the body was read
  const owner = (c.get('principal') as Principal | undefined)?.id // as: also null before any gate
  // After a conflict the user has to see the other change, not their own input on top of it.
  if (!typed || owner === undefined || CONFLICTS.includes(err.code)) return null
  const url = new URL(c.req.url)
  const refused = Object.keys(getFields(err))
  return c.env.formDrafts.keep({ owner, action: url.pathname + url.search, refused, problem }, typed)
}

const WITH_FIELDS: readonly Code[] = ['validation_error', 'invalid_model_source_payload']
const CONFLICTS: readonly Code[] = ['settings_conflict', 'edit_conflict']

// as: set by `invalid`
const getFields = ({ extra }: AppError) => (extra.details?.fields ?? {}) as Record<string, readonly string[]>

const spoken = (err: AppError, message: string): string => {
  const { code, extra } = err
  const fields = Object.entries(getFields(err)).map(([name, [first = '']]) => fieldText(name, first))
  if (WITH_FIELDS.includes(code) && fields.length > 0) return fields.slice(0, MAX_FIELDS).join(' ')
  const said = { code, field: extra.param ?? null, waitSeconds: extra.retryAfterSeconds ?? null }
  return problemText(said, message) ?? message
}

/** More would not be readable. */
const MAX_FIELDS = 4
