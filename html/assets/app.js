// The little that the pages do beside htmx: local times, copy buttons, the words of a refused
// request, and the live stream. Without this file everything still works after a reload.

const MAX_ROWS = 20
const REOPEN_MS = 5000

const instant = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })

/** Rewrites instants into the reader's time zone; UTC stays as the title. */
function localTimes(root) {
  for (const time of root.querySelectorAll('time[datetime]:not([title])')) {
    time.title = `${time.dateTime} (UTC)`
    time.textContent = instant.format(new Date(time.dateTime))
  }
}

function timeOf(iso) {
  const time = document.createElement('time')
  time.dateTime = iso
  return time
}

/** As html/parts.ts has it. */
function sizeText(bytes) {
  if (bytes < 1024) return `${bytes} B`
  const units = ['KB', 'MB', 'GB']
  let value = bytes / 1024
  let unit = 0
  while (Math.round(value) >= 1024 && unit < 2) {
    value /= 1024
    unit += 1
  }
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`
}

async function copy(button) {
  const source = document.getElementById(button.dataset.copy)
  try {
    await navigator.clipboard.writeText(source.textContent)
  } catch {
    // No clipboard without https: the text is selected, a key press copies it.
    getSelection().selectAllChildren(source)
    return
  }
  // Only the verb changes: what was copied stays in the button's name.
  button.firstChild.data = 'Copied '
  setTimeout(() => (button.firstChild.data = 'Copy '), 2000)
}

/** Says what went wrong in the region that screen readers announce. */
function sayProblem(text, link) {
  const region = document.getElementById('problem')
  region.replaceChildren(text)
  if (link === undefined) return
  const anchor = document.createElement('a')
  anchor.href = link.href
  anchor.textContent = link.text
  region.append(' ', anchor)
}

/** As html/form.ts has it. */
function sentence(text) {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`
}

/** htmx would swap an error's body into the page: its `detail` is shown instead, the page stays. */
function afterRequest(event) {
  const { response, text } = event.detail.ctx
  if (response.status < 400) return
  const type = response.headers.get('content-type') ?? ''
  if (type.startsWith('application/problem+json')) {
    const problem = JSON.parse(text)
    sayProblem(problem.detail ?? problem.title ?? `The server answered ${response.status}.`)
  } else if (type.startsWith('application/json')) {
    sayProblem(sentence(JSON.parse(text).error ?? `the server answered ${response.status}`))
  } else if (type.startsWith('text/html') && !/^\s*<!doctype/i.test(text)) {
    return // A fragment that was made for this place, such as a form with the refused field.
  } else {
    sayProblem(`The server answered ${response.status}.`)
  }
  event.preventDefault()
}

/** Leaves out of the log's address what says nothing. */
function configRequest(event) {
  const { request, sourceElement } = event.detail.ctx
  if (request.method !== 'GET' || !(sourceElement instanceof HTMLFormElement)) return
  for (const [name, value] of [...request.body]) {
    const preset = sourceElement.elements.namedItem(name)?.dataset?.default
    if (value === '' || value === preset) request.body.delete(name)
  }
}

/**
 * Keeps an event stream open: it is opened again when the server ends it for good, and closed while the
 * page is hidden. `address` gives its URL each time; `onMessage[name]` gets messages of that name. Returns
 * what ends it.
 */
export function keepStream(address, onMessage, onState) {
  let source
  let timer
  let ended = false
  function open() {
    close()
    if (ended) return
    source = new EventSource(address())
    source.onopen = () => onState('live')
    for (const [name, handle] of Object.entries(onMessage)) source.addEventListener(name, handle)
    source.onerror = () => {
      onState('reconnecting')
      // The browser gives up for good on a reply that is not a stream, such as of a proxy that restarts.
      if (source.readyState === EventSource.CLOSED) timer = setTimeout(open, REOPEN_MS)
    }
  }
  function close() {
    clearTimeout(timer)
    source?.close()
  }
  // Browsers allow six connections to a host: tabs in the background must not use them up.
  document.addEventListener('visibilitychange', () => (document.hidden ? close() : open()))
  if (!document.hidden) open()
  return () => {
    ended = true
    close()
  }
}

function showConnection(state) {
  const strip = document.querySelector('[data-connection]')
  if (strip === null || strip.dataset.connection === state) return
  strip.dataset.connection = state
  const label = state === 'reconnecting' ? 'reconnecting…' : state
  strip.querySelector('[data-connection-label]').textContent = label
}

function showStatus(status) {
  showConnection(status.connection)
  for (const note of document.querySelectorAll('[data-trouble]')) {
    note.hidden = status[note.dataset.trouble] !== 'error'
  }
  for (const provider of status.providers) {
    const tile = tileOf(provider.name)
    if (tile === undefined) continue
    tile.querySelector('[data-recent-count]').textContent = provider.recent_count
    tile.querySelector('[data-disabled]').hidden = provider.enabled
    for (const badge of tile.querySelectorAll('[data-alarm]')) {
      badge.hidden = !provider.alarms.includes(badge.dataset.alarm)
    }
    if (provider.last_event_at !== null) showLastEvent(tile, provider.last_event_at)
  }
}

function tileOf(name) {
  const tiles = [...document.querySelectorAll('[data-provider]')]
  return tiles.find((tile) => tile.dataset.provider === name)
}

function showLastEvent(tile, iso) {
  const place = tile.querySelector('[data-last-event]')
  if (place.querySelector('time')?.dateTime === iso) return
  place.replaceChildren(timeOf(iso))
  localTimes(place)
}

/** Puts an event on top of the dashboard's list; a resumed stream may name one that is there. */
function addRow(event) {
  const rows = document.getElementById('recent-rows')
  if (rows.querySelector(`[data-id="${Number(event.id)}"]`) !== null) return
  const row = document.getElementById('event-row').content.firstElementChild.cloneNode(true)
  const cell = (name) => row.querySelector(`[data-field="${name}"]`)
  row.dataset.id = event.id
  cell('provider').textContent = event.provider
  cell('event_type').textContent = event.event_type ?? 'no type'
  cell('event_type').href = `/log/${event.id}`
  cell('received_at').replaceChildren(timeOf(event.received_at))
  cell('payload_size').firstElementChild.textContent = sizeText(event.payload_size)
  cell('payload_size').firstElementChild.title = `${event.payload_size} bytes`
  const state = event.verified ? 'verified' : event.trust_mode
  for (const badge of row.querySelectorAll('[data-verify]')) {
    if (badge.dataset.verify !== state) badge.remove()
  }
  localTimes(row)
  row.classList.add('fresh')
  rows.prepend(row)
  while (rows.children.length > MAX_ROWS) rows.lastElementChild.remove()
  document.getElementById('recent').hidden = false
  document.getElementById('first-webhook')?.remove()
  showConnection('receiving')
  const tile = tileOf(event.provider)
  if (tile !== undefined) showLastEvent(tile, event.received_at)
}

/** On the log, events that pass its filters are counted beside a link that shows them. */
function countNews(event) {
  const results = document.getElementById('log-results')
  const { logProvider, logType, logSearches } = results.dataset
  // Whether a payload would be found is known to the server alone.
  if (logSearches !== undefined) return
  // The stream goes on from before the rows were read.
  if (results.querySelector(`[data-id="${Number(event.id)}"]`) !== null) return
  if (logProvider !== '' && logProvider !== event.provider) return
  if (logType !== '' && logType !== event.event_type) return
  const link = document.querySelector('#log-news a')
  const count = Number(link.dataset.count ?? 0) + 1
  link.dataset.count = count
  link.textContent = count === 1 ? '1 new event – show' : `${count} new events – show`
  link.hidden = false
}

function gap({ skipped }) {
  const count = skipped > 0 ? `${skipped} events` : 'Some events'
  sayProblem(`${count} went by while this page was away.`, {
    href: '/log',
    text: 'Reload the log',
  })
}

document.documentElement.classList.add('js')
localTimes(document)
document.addEventListener('htmx:after:swap', () => localTimes(document))
document.addEventListener('htmx:config:request', configRequest)
document.addEventListener('htmx:before:request', () => sayProblem(''))
document.addEventListener('htmx:after:request', afterRequest)
document.addEventListener('htmx:error', () => sayProblem('Gatehouse could not be reached.'))
document.addEventListener('click', (event) => {
  const button = event.target.closest('[data-copy]')
  if (button !== null) copy(button)
})

const live = document.querySelector('[data-live]')
if (live !== null) {
  const onEvent = document.getElementById('recent-rows') === null ? countNews : addRow
  let lastId = live.dataset.live
  const read = (handle) => (message) => {
    if (message.lastEventId !== '') lastId = message.lastEventId
    handle(JSON.parse(message.data))
  }
  const onMessage = {
    'event-received': read(onEvent),
    status: read(showStatus),
    gap: read(gap),
  }
  const address = () => (lastId === '' ? '/events' : `/events?last_event_id=${lastId}`)
  keepStream(address, onMessage, (state) => state === 'reconnecting' && showConnection(state))
}
