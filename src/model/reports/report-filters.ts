/** Values of a report's filters that are not the id of anything. */

/** Requests without an account, key, model or client. */
export const NONE_FILTER = '(none)'

/** Clients beyond the limit of an hour or of a report. No client has this name: a space ends one. */
export const OTHER_CLIENTS = 'other clients'
