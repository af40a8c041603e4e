// Instants as people say them, in English as the pages are and in the reader's time zone, and the
// days of that zone. Without this file all of them are in UTC.

const ENGLISH = 'en-GB'

const exact = new Intl.DateTimeFormat(ENGLISH, {
  ...{ year: 'numeric', month: 'short', day: 'numeric' },
  ...{ hour: '2-digit', minute: '2-digit', second: '2-digit', timeZoneName: 'short' },
})
const toMinute = new Intl.DateTimeFormat(ENGLISH, {
  ...{ year: 'numeric', month: 'short', day: 'numeric' },
  ...{ hour: '2-digit', minute: '2-digit', timeZoneName: 'short' },
})
const clock = new Intl.DateTimeFormat(ENGLISH, { timeStyle: 'medium' })
const shortClock = new Intl.DateTimeFormat(ENGLISH, { timeStyle: 'short' })
const relative = new Intl.RelativeTimeFormat(ENGLISH, { numeric: 'auto' })

const MINUTE_S = 60
const HOUR_S = 3_600
/** Nearer instants are told by hours, also across midnight. */
const NEAR_PAST_S = 6 * HOUR_S
const NEAR_FUTURE_S = 22 * HOUR_S
const DAY_MS = 86_400_000
/** Instants that are this many days away, or more, are shown as dates. */
const FAR_DAYS = 26

const { timeZone } = exact.resolvedOptions()
/** What a choice of times means depends on the zone. */
const DAYS = ['today', 'yesterday', 'night', 'days']
/** An instant in the labels of a chart, as `instantText` writes it. */
const IN_CHART = /\d{4}-\d\d-\d\d \d\d:\d\d UTC/g

/**
 * Tells instants relative to now, exactly, or the clock alone, in the reader's time zone; the title
 * says them exactly.
 */
export function showTimes(root) {
  for (const label of root.querySelectorAll('svg.chart title')) {
    label.textContent = zoned(label.textContent)
  }
  for (const chart of root.querySelectorAll('svg.chart')) {
    chart.setAttribute('aria-label', zoned(chart.getAttribute('aria-label')))
  }
  for (const zone of root.querySelectorAll('[data-zone]')) zone.textContent = timeZone
  for (const time of root.querySelectorAll('time[datetime]')) {
    const at = new Date(time.dateTime)
    if (time.dataset.clock !== undefined) {
      time.textContent = clock.format(at)
      continue
    }
    const text = exact.format(at)
    time.title = `${text} · ${time.dateTime}`
    const shown = time.dataset.exact === undefined ? relativeText(at) : text
    if (time.textContent !== shown) time.textContent = shown
  }
}

/** Minutes, hours, yesterday with its time, calendar days, a date: the first that is near enough. */
function relativeText(at) {
  const now = new Date()
  const seconds = Math.round((at - now) / 1000)
  const size = Math.abs(seconds)
  if (size < 45) return 'just now'
  if (size < 45 * MINUTE_S) return relative.format(Math.round(seconds / MINUTE_S), 'minute')
  // Midnights are 23 hours apart where the clocks go forward.
  const days = Math.round((midnight(at) - midnight(now)) / DAY_MS)
  if (days === 0 || size < (days < 0 ? NEAR_PAST_S : NEAR_FUTURE_S)) {
    return relative.format(Math.round(seconds / HOUR_S), 'hour')
  }
  if (days === -1) return `yesterday ${shortClock.format(at)}`
  return Math.abs(days) < FAR_DAYS ? relative.format(days, 'day') : exact.format(at)
}

function midnight(at) {
  return new Date(at.getFullYear(), at.getMonth(), at.getDate())
}

/** The instants in a text, in the reader's zone. */
function zoned(text) {
  return text.replace(IN_CHART, (found) => {
    return toMinute.format(new Date(found.replace(' UTC', 'Z').replace(' ', 'T')))
  })
}

/** Days are those of the reader's zone, which a filter sends along and says. */
function chooseZone({ value, form }) {
  form.elements.zone.value = DAYS.includes(value) ? timeZone : ''
  form.querySelector('.zone').textContent = timeZone
}

/** Parts of a page that renew themselves ask for the days of the reader's zone. */
export function addZone({ sourceElement, request }) {
  if (sourceElement.dataset.zoned !== undefined) request.body.set('zone', timeZone)
}

/** Whether the days of a page that has just loaded are those of another zone. */
export function isElsewhere(part) {
  return part.dataset.zoned !== timeZone
}

// Before htmx sends the form.
document.addEventListener(
  'change',
  ({ target }) => {
    if (target.name === 'when' && target.form?.elements.zone) chooseZone(target)
  },
  true,
)
