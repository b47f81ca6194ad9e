/**
 * A router that looks up once what answers a path without parameters: walking the tree of all routes is a fiftieth of a turn
 * (measured). A handler that is `alone` with such a request does by itself what the middleware before it would.
 */
import type { Result, Router } from 'hono/router'
import type { H, RouterRoute } from 'hono/types'

type Mounted = [H, RouterRoute]

export class KnownPaths implements Router<Mounted> {
  readonly name = 'KnownPaths'
  readonly #router: Router<Mounted>
  readonly #middleware: H
  /** As they were mounted, `METHOD /path`, so that no client can make them more; null until the first that asks for it. */
  readonly #known = new Map<string, Result<Mounted> | null>()

  /** `middleware`: what a handler that is alone does by itself, and what alone may stand before it. */
  constructor(router: Router<Mounted>, middleware: H) {
    this.#router = router
    this.#middleware = middleware
  }

  /** Throws for a handler that is alone and could be reached by another path than its own. */
  add(method: string, path: string, handler: Mounted): void {
    const isPlain = !HAS_PARAMETERS.test(path) && method !== 'ALL'
    if (isAlone(handler) && !isPlain) throw new Error(`${method} ${path} cannot be alone with its request.`)
    this.#router.add(method, path, handler)
    if (isPlain) this.#known.set(`${method} ${path}`, null)
  }

  match(method: string, path: string): Result<Mounted> {
    const name = `${method} ${path}`
    const known = this.#known.get(name)
    if (known) return known
    const found = this.#router.match(method, path)
    if (known === undefined) return found
    const kept = this.#narrowed(found, name)
    this.#known.set(name, kept)
    return kept
  }

  /** Throws where a gate would be passed over. */
  #narrowed(found: Result<Mounted>, name: string): Result<Mounted> {
    const [handlers] = found
    const one = handlers.find(([handler]) => isAlone(handler))
    if (!one) return found
    if (handlers.some((other) => other !== one && other[0][0] !== this.#middleware))
      throw new Error(`${name} is not alone: something else stands beside it.`)
    return [[one]] as Result<Mounted> // as: there are no parameters
  }
}

const isAlone = ([handler]: Mounted): boolean => 'isAlone' in handler

const HAS_PARAMETERS = /[:*{]/
