/** Buttons: form buttons, links styled as buttons, and icon buttons for the page's script. */
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

/** A disabled button with the reason. */
export const DisabledButton: FC<{ label: string; why: string; isMain?: boolean }> = ({
  label,
  why,
  isMain = false,
}) => (
  <button class={buttonClass({ isPlain: !isMain })} type="button" disabled title={why}>
    {label}
  </button>
)

/** Risky buttons are plain too, so that they do not stand out. */
const buttonClass = ({ isPlain, isRisky, isWide }: Look): string =>
  ['button', (isPlain || isRisky) && 'button-plain', isRisky && 'button-risky', isWide && 'wide']
    .filter(Boolean)
    .join(' ')

interface IconButtonProps {
  /** The script's action. */
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

/** Copies the text of the preceding element. */
export const CopyButton: FC<{ label?: string }> = ({ label = 'Copy' }) => (
  <IconButton action="copy" label={label} icon={CopyIcon} />
)

interface CommandProps {
  text: string
  class?: string
  /** Scrolls on its own, and is focusable for the keyboard. */
  isLong?: boolean
}

/** Text to paste, with a copy button. */
export const Command: FC<CommandProps> = ({ text, class: name, isLong = false }) => (
  <div class={name ? `command ${name}` : 'command'}>
    <pre tabindex={isLong ? 0 : undefined}>
      <code>{text}</code>
    </pre>
    <CopyButton />
  </div>
)
