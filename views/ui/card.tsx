/** A titled part of a page. */
import type { Child, FC, PropsWithChildren } from 'hono/jsx'
import { HELP } from '../help.ts'

interface CardProps {
  id: string
  title: string
  /** A number or word beside the title. */
  count?: Child
  /** Other elements of the head: links, buttons. */
  aside?: Child
  /** The entry in `HELP`, if it differs from the id. */
  help?: string
  class?: string
}

export const Card: FC<PropsWithChildren<CardProps>> = ({ id, title, count, aside, help, class: name, children }) => (
  <section class={name ? `card ${name}` : 'card'} id={id} aria-labelledby={`${id}-title`}>
    <header class="card-head">
      <h2 id={`${id}-title`}>{title}</h2>
      <CardHelp id={id} title={title} entry={help ?? id} />
      {count !== undefined && count !== null && <span class="count">{count}</span>}
      {aside}
    </header>
    {children}
  </section>
)

/** For text and forms, which need padding; lists and tables do not. */
export const TextCard: FC<PropsWithChildren<CardProps>> = ({ children, ...card }) => (
  <Card {...card}>
    <div class="card-body">{children}</div>
  </Card>
)

/** A popover, which browsers open, place and close with Esc themselves. */
const CardHelp: FC<{ id: string; title: string; entry: string }> = ({ id, title, entry }) => {
  const help = HELP[entry]
  if (!help) return null
  return (
    <>
      <button class="help" type="button" popovertarget={`${id}-help`} aria-label={`Help: ${title}`}>
        ?
      </button>
      <div class="help-text" id={`${id}-help`} popover="auto">
        {help.says} <a href={`/docs/${help.more}`}>Read more</a>
      </div>
    </>
  )
}
