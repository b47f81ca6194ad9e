/** Native dialogs of the page, opened and closed by the browser (HTML invoker commands). */

/** Attributes of the button that opens the dialog `id`. */
export const opens = (id: string) => ({ command: 'show-modal', commandfor: id })

/** Attributes of the button that closes it. */
export const closes = (id: string) => ({ command: 'close', commandfor: id })
