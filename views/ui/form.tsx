/** Forms: posted as they stand by any browser, and in place by htmx, with what went wrong beside them. */
import type { FC, PropsWithChildren } from 'hono/jsx'
import { type Expected, expects } from './badge.tsx'
import { IconButton, Submit } from './button.tsx'
import { CheckIcon, EyeIcon, WarningIcon } from './icons.tsx'

interface FormProps {
  /** Unique on the page, `[\w-]+`; the server answers errors into the form of this name. */
  name: string
  action: string
  method?: 'post' | 'patch' | 'put' | 'delete'
  /** Where the answer goes; without it the page is renewed. */
  target?: string
  /** Asked before it is sent. */
  confirm?: string
  class?: string
  /** What the last attempt came to, in a browser without script. */
  problem?: string | null
  /** Shown while it is sent. */
  expected?: Expected
}

/** A browser cannot send another method by itself: without script such a form is read, and `dialog` sends nothing. */
export const Form: FC<PropsWithChildren<FormProps>> = ({ name, action, method = 'post', target, problem, ...rest }) => (
  <form
    id={`form-${name}`}
    class={method === 'post' ? rest.class : `${rest.class ?? ''} sent-by-script`.trim()}
    method={method === 'post' ? 'post' : 'dialog'}
    action={action}
    {...{ [`hx-${method}`]: action }}
    hx-target={target}
    hx-swap={target ? 'innerHTML' : 'none'}
    hx-confirm={rest.confirm}
    hx-disable="find [type=submit]"
    {...(rest.expected && expects(rest.expected))}
  >
    {rest.children}
    {rest.confirm && method === 'post' && <AskedFirst question={rest.confirm} />}
    <div id={`form-${name}-problem`} class="form-problem" role="alert">
      {problem && <Problem text={problem} />}
    </div>
  </form>
)

/**
 * Where no script asks, the browser wants the box ticked before it sends the form. The script takes it away: in a `noscript`
 * it would come to life when the page is swapped.
 */
const AskedFirst: FC<{ question: string }> = ({ question }) => (
  <label class="check without-script asked-first">
    <input type="checkbox" required />
    <span>{question}</span>
  </label>
)

interface ActionProps extends FormProps {
  label: string
  values?: Readonly<Record<string, string>>
  isRisky?: boolean
}

/** A form that is one button, with what stands beside it. */
export const Action: FC<PropsWithChildren<ActionProps>> = ({ label, values = {}, isRisky, children, ...form }) => (
  <Form
    {...form}
    class={form.method && form.method !== 'post' ? `${form.class ?? ''} needs-script`.trim() : form.class}
  >
    {Object.entries(values).map(([name, value]) => (
      <input type="hidden" name={name} value={value} />
    ))}
    <Submit isPlain isRisky={isRisky}>
      {label}
    </Submit>
    {children}
  </Form>
)

/** The line below a form that says what was wrong. */
export const Problem: FC<PropsWithChildren<{ text: string }>> = ({ text, children }) => (
  <p class="problem-line">
    <WarningIcon />
    <span>
      {text}
      {children}
    </span>
  </p>
)

/** The form stays as it is: the cookie of the other tab is this one's, too. */
export const SignedOut: FC = () => (
  <Problem text="You are signed out. ">
    <a href="/login" target="_blank" rel="noopener">
      Sign in in another tab
    </a>
    , then submit this again.
  </Problem>
)

interface FieldProps {
  label: string
  name: string
  type?: 'text' | 'password' | 'email'
  value?: string | null
  hint?: string
  autocomplete?: string
  required?: boolean
  autofocus?: boolean
  minlength?: number
  maxlength?: number
  placeholder?: string
  /** Id of the `datalist` with what to suggest. */
  list?: string
  class?: string
}

export const Field: FC<FieldProps> = (props) =>
  props.type === 'password' ? <PasswordField {...props} /> : <PlainField {...props} />

const PlainField: FC<FieldProps> = ({ label, hint, value, class: name, type = 'text', ...input }) => (
  <label class={name ? `field ${name}` : 'field'}>
    <span class="field-label">{label}</span>
    <input
      type={type}
      value={value ?? undefined}
      autocapitalize={type === 'text' ? 'none' : undefined}
      spellcheck={type === 'text' ? false : undefined}
      {...input}
    />
    {hint && <span class="hint">{hint}</span>}
  </label>
)

/** With a button that shows the password, where scripts run. It stands beside the label, whose text names the field. */
const PasswordField: FC<FieldProps & { strength?: string }> = ({ label, hint, strength, ...input }) => (
  <div class="field password-field">
    <PlainField label={label} {...input} />
    <IconButton action="show-password" label="Show password" icon={EyeIcon} />
    {hint && (
      <span class="hint" data-strength={strength} aria-live={strength && 'polite'}>
        {hint}
      </span>
    )}
  </div>
)

/** What the hint below a new password says as it grows; the script chooses. */
const STRENGTHS = ['Weak. Add more words.', 'Fair. Longer is stronger.', 'Strong.']

/** At least eight characters; the name goes along for password managers and is not sent. */
export const NewPassword: FC<{ name?: string; label?: string; username?: string; autofocus?: boolean }> = ({
  name = 'password',
  label = 'Password',
  username,
  autofocus,
}) => (
  <>
    {username !== undefined && <input type="text" value={username} autocomplete="username" hidden readonly />}
    <PasswordField
      label={label}
      name={name}
      type="password"
      autocomplete="new-password"
      minlength={8}
      maxlength={1024}
      hint="At least 8 characters. Several random words are easy to remember and hard to guess."
      strength={STRENGTHS.join('|')}
      autofocus={autofocus}
      required
    />
  </>
)

interface CodeProps {
  label?: string
  autofocus?: boolean
  /** Accepts recovery codes too, for forms that are used rarely: the phone then shows all keys instead of digits. */
  takesRecoveryCodes?: boolean
}

/** Six digits, offered by phones and password managers. */
export const CodeField: FC<CodeProps> = ({
  autofocus,
  takesRecoveryCodes = false,
  label = 'Code from your authenticator app',
}) => (
  <label class="field">
    <span class="field-label">{label}</span>
    <input
      class={takesRecoveryCodes ? undefined : 'code-input'}
      name="code"
      autocomplete="one-time-code"
      placeholder="000000"
      autofocus={autofocus}
      required
      {...(takesRecoveryCodes
        ? { maxlength: MAX_CODE_CHARS, autocapitalize: 'none', spellcheck: false }
        : { inputmode: 'numeric', pattern: '[0-9 ]{6,7}', maxlength: 7, title: 'Six digits' })}
    />
  </label>
)

const MAX_CODE_CHARS = 32

export const RecoveryCodeField: FC = () => (
  <Field
    label="Recovery code"
    name="code"
    autocomplete="off"
    maxlength={MAX_CODE_CHARS}
    placeholder="xxxx-xxxx-xxxx-xxxx"
    required
  />
)

interface CheckProps {
  label: string
  name: string
  isOn: boolean
  hint?: string
}

/** Off is said, too: a form leaves an unchecked box out. */
export const Check: FC<CheckProps> = ({ label, name, isOn, hint }) => (
  <label class="check">
    <input type="hidden" name={name} value="false" />
    <input type="checkbox" name={name} value="true" checked={isOn} />
    <span>
      {label}
      {hint && <span class="hint">{hint}</span>}
    </span>
  </label>
)

/** The same as a switch. Its children show while it is off. */
export const Switch: FC<PropsWithChildren<CheckProps>> = ({ label, name, isOn, hint, children }) => (
  <div class="switched">
    <label class="check">
      <input type="hidden" name={name} value="false" />
      <input class="switch" type="checkbox" name={name} value="true" checked={isOn} />
      <span>
        {label}
        {hint && <span class="hint">{hint}</span>}
      </span>
    </label>
    <div class="switched-off stack">{children}</div>
  </div>
)

/** What the last change came to. */
export const Done: FC<{ text: string | null }> = ({ text }) =>
  text === null ? null : (
    <p class="done" role="status">
      <CheckIcon />
      <span>{text}</span>
    </p>
  )

interface OutcomeProps {
  done: string | null
  problem: string | null
  /** Whether what was done is told elsewhere on the page. */
  isSaid?: boolean
}

/** Above a page with forms: what the last change came to. */
export const Outcome: FC<OutcomeProps> = ({ done, problem, isSaid = false }) => (
  <>
    {!isSaid && <Done text={done} />}
    {problem && (
      <p class="note note-bad" role="alert">
        {problem}
      </p>
    )}
  </>
)

/** For what only works with script: these changes need methods a plain form does not have. */
export const NeedsScript: FC = () => (
  <noscript>
    <p class="note">Some changes on this page need JavaScript. Without it, use the sluice command.</p>
  </noscript>
)
