/** Times in the zone of the browser. */

type Style = 'time' | 'date' | 'moment'

const STYLES: Record<Style, Intl.DateTimeFormatOptions> = {
  time: { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' },
  date: { month: 'short', day: 'numeric' },
  moment: { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' },
}

/** Creating a format is slow, so a page uses one for all its times. */
export const localTimes = (zone: string, style: Style): ((at: string) => string) => {
  const format = new Intl.DateTimeFormat('en', { ...STYLES[style], timeZone: zone })
  return (at) => format.format(new Date(at))
}
