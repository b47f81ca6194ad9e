/** Idle limit of a connection between requests, in seconds. A route that lifts it must restore it. */
export const IDLE_SECONDS = 30
