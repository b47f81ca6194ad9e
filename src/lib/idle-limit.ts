/** What the server allows an idle connection between requests, in seconds. A route that lifts it gives it back at its end. */
export const IDLE_SECONDS = 30
