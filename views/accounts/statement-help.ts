/** The help of the cards on the tab Statement. */

export const STATEMENT_HELP = {
  statement: {
    says: 'Sluice compares each change of the meter with the requests since the previous reading. What they do not account for was used elsewhere.',
    more: 'operating#monitor',
  },
  'statement-shares': {
    says: 'How much of the quota each model and key used, in proportion to the cost at list prices. The first and last hour are included in full.',
    more: 'operating#monitor',
  },
  'percent-price': {
    says: 'The list price of the requests that moved the meter by one percent. If it falls, you get less for the same percentage.',
    more: 'operating#monitor',
  },
  oddities: {
    says: 'Jumps of the meter without requests, moved resets, short windows, and sudden changes of what one percent buys. You also see them in the events of the account.',
    more: 'operating#monitor',
  },
} as const
