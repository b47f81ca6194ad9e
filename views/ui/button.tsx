/** Buttons: one that sends its form, links that look like one, and small ones without words for the page's script. */
import type { FC, JSX, PropsWithChildren } from 'hono/jsx'
import { CopyIcon } from './icons.tsx'

interface Look {
  isPlain?: boolean
  isRisky?: boolean
  isWide?: boolean
}

export const Submit: FC<PropsWithChildren<Look>> = ({ children, ...look }) => (
  <button class={buttonClass(look)} type="submit">
    {children}
  </button>
)

type LinkProps = JSX.IntrinsicElements['a'] & { isMain?: boolean; isWide?: boolean }

export const ButtonLink: FC<LinkProps> = ({ isMain = false, isWide, ...link }) => (
  <a class={buttonClass({ isPlain: !isMain, isWide })} {...link} />
)

/** What would do something, and may not: the reason is told. */
export const Refused: FC<{ label: string; why: string; isMain?: boolean }> = ({ label, why, isMain = false }) => (
  <button class={buttonClass({ isPlain: !isMain })} type="button" disabled title={why}>
    {label}
  </button>
)

/** What is risky is plain, too: nothing invites to it. */
const buttonClass = ({ isPlain, isRisky, isWide }: Look): string =>
  ['button', (isPlain || isRisky) && 'button-plain', isRisky && 'button-risky', isWide && 'wide']
    .filter(Boolean)
    .join(' ')

interface IconButtonProps {
  /** What the script does. */
  action: string
  label: string
  icon: FC
  class?: string
}

export const IconButton: FC<IconButtonProps> = ({ action, label, icon: Icon, class: name }) => (
  <button class={name ? `icon-button ${name}` : 'icon-button'} type="button" data-action={action} title={label}>
    <Icon />
    <span class="sr">{label}</span>
  </button>
)

/** Copies the text of the element before it. */
export const CopyButton: FC<{ label?: string }> = ({ label = 'Copy' }) => (
  <IconButton action="copy" label={label} icon={CopyIcon} />
)

interface CommandProps {
  text: string
  class?: string
  /** It scrolls by itself, and takes the focus so that keys can do it. */
  isLong?: boolean
}

/** A text to paste, with its button. */
export const Command: FC<CommandProps> = ({ text, class: name, isLong = false }) => (
  <div class={name ? `command ${name}` : 'command'}>
    <pre tabindex={isLong ? 0 : undefined}>
      <code>{text}</code>
    </pre>
    <CopyButton />
  </div>
)
