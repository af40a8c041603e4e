// The little that the pages do beside htmx: relative times, copy buttons, keys, the words of a
// refused request, and streams. Without this file everything still works after a reload.

const REOPEN_MS = 5000
const UNREACHED = 'Gatehouse could not be reached.'

const MINUTE_MS = 60_000
const KEY_MS = 1500

const exact = new Intl.DateTimeFormat(undefined, {
  ...{ year: 'numeric', month: 'short', day: 'numeric' },
  ...{ hour: '2-digit', minute: '2-digit', second: '2-digit', timeZoneName: 'short' },
})
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' })
/** Times up to this many seconds away are shown in the unit, others as a date. */
const UNITS = [
  [45, 'second', 1],
  [45 * 60, 'minute', 60],
  [22 * 3_600, 'hour', 3_600],
  [26 * 86_400, 'day', 86_400],
]

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

function relativeText(at) {
  const seconds = Math.round((at - Date.now()) / 1000)
  const unit = UNITS.find(([most]) => Math.abs(seconds) < most)
  if (unit === undefined) return exact.format(at)
  const [, name, size] = unit
  return name === 'second' ? 'just now' : relative.format(Math.round(seconds / size), name)
}

async function copy(button) {
  const source = document.getElementById(button.dataset.copy)
  if (!(await copyText(source))) {
    sayProblem('Not copied: the browser forbids it. The text is selected; press Ctrl+C or ⌘C.')
    return
  }
  // Icon and name change, but no width: the button moves nothing beside it.
  const name = button.querySelector('.hidden')
  name.textContent = name.textContent.replace(/^Copy /, 'Copied ')
  button.classList.add('copied')
  setTimeout(() => {
    name.textContent = name.textContent.replace(/^Copied /, 'Copy ')
    button.classList.remove('copied')
  }, 2000)
}

/** True if it was copied; else the text of the element is selected. */
export async function copyText(source) {
  try {
    await navigator.clipboard.writeText(source.textContent)
    return true
  } catch {
    // Without https a page has no clipboard, but may copy what is selected.
    getSelection().selectAllChildren(source)
    return document.execCommand('copy')
  }
}

/** Puts a button's value into the field that it names, as if it had been typed. */
function fill(button) {
  const input = document.getElementById(button.dataset.fill)
  input.value = button.value
  input.dispatchEvent(new Event('input', { bubbles: true }))
  input.focus()
}

/** Keys for people without a mouse; none while something is typed. */
function onKey(event) {
  const { target, key } = event
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return
  if (target.closest('input, textarea, select, dialog, [contenteditable]') !== null) return
  const act = Date.now() < goUntil ? () => goTo(key) : KEYS[key]
  goUntil = 0
  if (act !== undefined && act() !== false) event.preventDefault()
}

/** Until then, a letter goes to an entry of the navigation. */
let goUntil = 0

const KEYS = {
  '/': () => focusOn(document.querySelector('[role="search"] input:not([type="hidden"])')),
  '?': () => keysDialog().showModal(),
  g: () => void (goUntil = Date.now() + KEY_MS),
  j: () => moveRow(1),
  k: () => moveRow(-1),
}

/** What the keys do, made when it is first asked for. */
function keysDialog() {
  const there = document.getElementById('keys')
  if (there !== null) return there
  const entries = [...document.querySelectorAll('#navigation [data-key]')]
  const dialog = document.createElement('dialog')
  dialog.id = 'keys'
  dialog.className = 'panel'
  dialog.setAttribute('aria-labelledby', 'keys-title')
  const title = element('h2', 'Keyboard shortcuts')
  title.id = 'keys-title'
  const list = document.createElement('dl')
  const pages = entries.map(({ dataset, textContent }) => [`g ${dataset.key}`, textContent])
  for (const [key, meaning] of [...KEY_MEANINGS, ...pages]) {
    const term = document.createElement('dt')
    term.append(element('kbd', key))
    list.append(term, element('dd', meaning))
  }
  const close = element('button', 'Close')
  close.addEventListener('click', () => dialog.close())
  dialog.append(title, list, close)
  document.body.append(dialog)
  return dialog
}

export function element(name, text) {
  const made = document.createElement(name)
  made.textContent = text
  return made
}

function goTo(key) {
  const entry = document.querySelector(`#navigation [data-key="${CSS.escape(key)}"]`)
  if (entry === null) return false
  entry.click()
  return true
}

const KEY_MEANINGS = [
  ['/', 'Search'],
  ['j', 'Next row'],
  ['k', 'Previous row'],
  ['Enter', 'Open the row'],
  ['Ctrl K or ⌘ K', 'Search pages, actions, names and ids'],
  ['?', 'These keys'],
]

/** False where there is nothing to focus, so that the browser does what it does with the key. */
function focusOn(element) {
  element?.focus()
  return element !== null
}

function moveRow(step) {
  const rows = [...document.querySelectorAll('.row-link')].filter((row) => row.checkVisibility())
  const at = rows.findIndex((row) => row === document.activeElement)
  const next = at === -1 ? rows.at(step > 0 ? 0 : -1) : rows[at + step]
  next?.focus()
}

/** Hides the rows of a list on the page that lack one of the words in the field above it. */
function filterRows(field) {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean)
  const rows = [...document.getElementById(field.dataset.filters).children]
  for (const row of rows) {
    const text = row.dataset.find.toLowerCase()
    row.hidden = !words.every((word) => text.includes(word))
  }
  const shown = rows.filter((row) => !row.hidden).length
  const found = document.getElementById(`${field.dataset.filters}-found`)
  found.textContent = words.length === 0 ? '' : `${shown} of ${rows.length}`
}

/** How many times "Show more" was used is kept with the page's entry of the history. */
function countMore({ detail: { ctx } }) {
  if (ctx.response.status >= 400 || ctx.sourceElement.closest('.more') === null) return
  // htmx would replace a state that it does not know as its own.
  const state = { ...history.state, htmx: true, more: (history.state?.more ?? 0) + 1 }
  history.replaceState(state, '')
}

function keepPlace() {
  if (history.state?.more) history.replaceState({ ...history.state, y: scrollY }, '')
}

/** Back shows the rows again that "Show more" had added, where they were. */
async function restoreRows() {
  const [visit] = performance.getEntriesByType('navigation')
  const { more = 0, y = 0 } = history.state ?? {}
  if (visit?.type === 'navigate' || more === 0) return
  history.replaceState({ ...history.state, more: 0 }, '')
  for (let page = 0; page < more; page++) {
    const link = document.querySelector('.more a[hx-get]')
    if (link === null) break
    const added = new Promise((resolve) => {
      document.addEventListener('htmx:after:swap', resolve, { once: true })
    })
    link.click()
    await added
  }
  scrollTo(0, y)
}

/** Says what went wrong in the region that screen readers announce. */
export function sayProblem(text, link) {
  const region = document.getElementById('problem')
  region.replaceChildren(text)
  if (link === undefined) return
  const anchor = document.createElement('a')
  anchor.href = link.href
  anchor.textContent = link.text
  region.append(' ', anchor)
}

/** Says what a form has done: the reply's header has it. */
function sayDone(text) {
  document.getElementById('done').textContent = text
}

/** A reload must not say again what was done. */
function forgetDone() {
  const address = new URL(location)
  if (!address.searchParams.has('done')) return
  address.searchParams.delete('done')
  address.searchParams.delete('of')
  history.replaceState(history.state, '', address)
}

/** As html/form.ts has it. */
function sentence(text) {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`
}

/** htmx would swap an error's body into the page: its `detail` is shown instead, the page stays. */
function afterRequest(event) {
  const { response, text } = event.detail.ctx
  if (document.getElementById('problem').textContent === UNREACHED) sayProblem('')
  const done = response.headers.get('gatehouse-done')
  if (done !== null) sayDone(decodeURIComponent(done))
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

/** Leaves out of the address of a filter what says nothing; other forms send every field. */
function configRequest(event) {
  const { request, sourceElement } = event.detail.ctx
  if (request.method !== 'GET' || !sourceElement.matches('form[hx-push-url]')) return
  for (const [name, value] of [...request.body]) {
    const preset = sourceElement.elements.namedItem(name)?.dataset?.default
    if (value === '' || value === preset) request.body.delete(name)
  }
}

/**
 * Follows the event stream that `data-stream` of an element names, from `data-last` on, while the
 * page is shown. Messages of these names become events of the element, which scripts and htmx
 * listen to; so do `live` and `reconnecting`. Returns what ends it.
 */
export function follow(element, names) {
  let source
  let timer
  let isOver = false
  const tell = (name, detail) => element.dispatchEvent(new CustomEvent(name, { detail }))

  function hear(message) {
    if (message.lastEventId !== '') element.dataset.last = message.lastEventId
    tell(message.type, JSON.parse(message.data))
  }

  function open() {
    close()
    if (isOver) return
    const { stream, last } = element.dataset
    source = new EventSource(`${stream}?last_event_id=${last}`)
    source.onopen = () => tell('live')
    for (const name of names) source.addEventListener(name, hear)
    source.onerror = () => {
      tell('reconnecting')
      // The browser gives up on a reply that is not a stream, such as of a proxy that restarts.
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
    isOver = true
    close()
  }
}

document.documentElement.classList.add('js')
forgetDone()
showTimes(document)
setInterval(() => showTimes(document), MINUTE_MS / 2)
document.addEventListener('htmx:after:swap', () => {
  showTimes(document)
  // Rows that were renewed are all in sight.
  document.querySelectorAll('[data-filters]').forEach(filterRows)
})
document.addEventListener('htmx:after:request', countMore)
document.addEventListener('keydown', onKey)
// htmx begins in a timer, too: that one is due first.
addEventListener('load', () => setTimeout(restoreRows))

const keysButton = element('button', 'Keyboard shortcuts')
keysButton.className = 'plain'
keysButton.addEventListener('click', () => keysDialog().showModal())
document.querySelector('.bottom')?.append(' · ', keysButton)
document.addEventListener('input', ({ target }) => {
  if (target.dataset.filters !== undefined) filterRows(target)
})
document.addEventListener('htmx:config:request', configRequest)
document.addEventListener('htmx:before:request', ({ detail: { ctx } }) => {
  // A part that renews itself leaves the message to those who read it: its events are our own.
  if (!(ctx.sourceEvent instanceof CustomEvent)) sayProblem('')
  if (ctx.sourceEvent?.isTrusted) sayDone('')
})
document.addEventListener('htmx:after:request', afterRequest)
document.addEventListener('htmx:error', () => sayProblem(UNREACHED))
/** Closes open menus but the one of this element. */
function closeMenus(within) {
  for (const menu of document.querySelectorAll('.more-menu[open]')) {
    if (!menu.contains(within)) menu.open = false
  }
}

document.addEventListener('keydown', ({ key, target }) => {
  const menu = target.closest('.more-menu[open]')
  if (key !== 'Escape' || menu === null) return
  menu.open = false
  menu.querySelector('summary').focus()
})
document.addEventListener('focusin', ({ target }) => closeMenus(target))
document.addEventListener('click', (event) => {
  closeMenus(event.target)
  const button = event.target.closest('[data-copy]')
  if (button !== null) copy(button)
  const filling = event.target.closest('[data-fill]')
  if (filling !== null) fill(filling)
  if (event.target.closest('.row-link') !== null) keepPlace()
})
