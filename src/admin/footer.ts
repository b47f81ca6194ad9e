/** `/footer`: the footer of every page, fetched again when what it says has changed. */
import { Footer, type FooterProps } from '../../views/footer.tsx'
import { VERSION } from '../boot/version.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { reply } from '../http/reply.tsx'
import { getService } from '../http/service.ts'

export const showFooter = createHandlers(requires('dashboard:read'), (c) => {
  const value: FooterProps = {
    version: VERSION,
    isGuest: c.var.principal.kind === 'guest',
    service: getService(c),
  }
  return reply(c, value, Footer)
})
