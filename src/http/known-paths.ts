/**
 * A router that caches the handlers of paths without parameters: walking the route tree costs 2 % of a turn (Bun
 * 1.4.5). A handler marked `alone` replaces the middleware before it.
 */
import type { Result, Router } from 'hono/router'
import type { H, RouterRoute } from 'hono/types'

type Mounted = [H, RouterRoute]

export class KnownPaths implements Router<Mounted> {
  readonly name = 'KnownPaths'
  readonly #router: Router<Mounted>
  readonly #middleware: H
  /** Mounted routes only, as `METHOD /path`, so that clients cannot grow it; null until first used. */
  readonly #known = new Map<string, Result<Mounted> | null>()

  /** `middleware`: the one that `alone` handlers replace; only it may be mounted before them. */
  constructor(router: Router<Mounted>, middleware: H) {
    this.#router = router
    this.#middleware = middleware
  }

  /** Throws for an `alone` handler on a path with parameters. */
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

  /** Throws when a gate would be skipped. */
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
