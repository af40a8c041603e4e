// Instants as people say them, in English as the pages are and in the reader's time zone. Without
// this file they stand in UTC.

const ENGLISH = 'en-GB'

const exact = new Intl.DateTimeFormat(ENGLISH, {
  ...{ year: 'numeric', month: 'short', day: 'numeric' },
  ...{ hour: '2-digit', minute: '2-digit', second: '2-digit', timeZoneName: 'short' },
})
const relative = new Intl.RelativeTimeFormat(ENGLISH, { numeric: 'auto' })

const MINUTE_S = 60
const HOUR_S = 3_600
const DAY_MS = 86_400_000
/** Times that are this many days away, or more, are shown as dates. */
const FAR_DAYS = 26

/** Tells instants relative to now, or exactly in the reader's time zone; both say it as title. */
export function showTimes(root) {
  for (const time of root.querySelectorAll('time[datetime]')) {
    const at = new Date(time.dateTime)
    const text = exact.format(at)
    time.title = `${text} · ${time.dateTime}`
    const shown = time.dataset.exact === undefined ? relativeText(at) : text
    if (time.textContent !== shown) time.textContent = shown
  }
}

/** Minutes, then hours within a day and within today, then calendar days, then a date. */
function relativeText(at) {
  const now = new Date()
  const seconds = Math.round((at - now) / 1000)
  const size = Math.abs(seconds)
  if (size < 45) return 'just now'
  if (size < 45 * MINUTE_S) return relative.format(Math.round(seconds / MINUTE_S), 'minute')
  // Midnights are 23 hours apart where the clocks go forward.
  const days = Math.round((midnight(at) - midnight(now)) / DAY_MS)
  if (days === 0 || size < 22 * HOUR_S) {
    return relative.format(Math.round(seconds / HOUR_S), 'hour')
  }
  return Math.abs(days) < FAR_DAYS ? relative.format(days, 'day') : exact.format(at)
}

function midnight(at) {
  return new Date(at.getFullYear(), at.getMonth(), at.getDate())
}
