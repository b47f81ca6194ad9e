/** The help of the cards on the pages of reports. */

const SETTINGS = 'operating#settings'

export const REPORT_HELP = {
  strategies: {
    says: 'Your logged requests are replayed with the function that routes them, and with windows as large as your plans allow. Each figure is the average of 20 runs.',
    more: SETTINGS,
  },
  'move-rules': {
    says: 'From 95 % of the 5-hour window on, a conversation moves only if reading its cached tokens elsewhere costs less than staying. The second line is what always moving would have done, as the average of 5 runs.',
    more: 'operating#fix-problems',
  },
  'settings-planner': {
    says: 'The planner expects the requests of the last four weeks again and replays them with an earlier window. It needs 14 days of requests.',
    more: SETTINGS,
  },
  moves: {
    says: 'A conversation that moves to another account loses its cached tokens. A move was avoidable if the previous account could have served the request for less, but was at its stream limit, reserved, or on paid credits.',
    more: 'operating#fix-problems',
  },
  planner: {
    says: 'What an earlier start of a five-hour window would bring, computed from the requests of the last four weeks. Change it in Settings, Routing.',
    more: SETTINGS,
  },
} as const
