// The little that the pages do beside htmx: relative times, copy buttons, the words of a
// refused request, and streams. Without this file everything still works after a reload.

import './drafts.js'
import './places.js'
import { addZone, isElsewhere, showTimes } from './times.js'

const RECONNECT_MS = 5000
const UNREACHED = 'Gatehouse could not be reached.'
const INTERRUPTED = 'New entries do not arrive. Connecting again…'

const SHOW_TIMES_MS = 30_000
/** Parts of the page that ask for themselves every few seconds. */
const POLLED = '[hx-trigger^="every "]'

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
  sayTyped(input)
  input.focus()
}

function sayTyped(input) {
  input.dispatchEvent(new Event('input', { bubbles: true }))
}

/** What was typed before the scripts were there is heard now. */
function hearTyped() {
  const { activeElement: field } = document
  if (field.defaultValue !== undefined && field.value !== field.defaultValue) sayTyped(field)
}

export function element(name, text) {
  const made = document.createElement(name)
  made.textContent = text
  return made
}

/** Hides the rows of a list on the page that lack one of the words in the field above it. */
function filterRows(field) {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean)
  const rows = [...document.querySelectorAll(`#${field.dataset.filters} [data-find]`)]
  for (const row of rows) {
    const text = row.dataset.find.toLowerCase()
    row.hidden = !words.every((word) => text.includes(word))
  }
  const shown = rows.filter((row) => !row.hidden).length
  const found = document.getElementById(`${field.dataset.filters}-found`)
  found.textContent = words.length === 0 ? '' : `${shown} of ${rows.length}`
}

/** What a problem is of: one of these, or the id of a part that renews itself. */
const CONNECTION = 'the connection'
const STREAM = 'the stream'
/** What the problem on the page is of: once that works again, the problem is gone. */
let problemOf
/** What has failed and is about to be said, unless it works again before. */
const failing = new Set()

/** Says what went wrong in the region that screen readers announce; the same only once. */
export function sayProblem(text, link, of) {
  const region = document.getElementById('problem')
  problemOf = of
  const told = link === undefined ? text : `${text} ${link.text}`
  if (region.textContent === told) return
  region.replaceChildren(text)
  if (link === undefined) return
  const anchor = element('a', link.text)
  anchor.href = link.href
  region.append(' ', anchor)
}

function takeBack(of) {
  failing.delete(of)
  if (problemOf === of) sayProblem('')
}

/**
 * Says that nothing answered. A login before Gatehouse whose session has ended looks the same where
 * it redirects to another origin: no script may follow.
 */
export async function sayUnreached(text = UNREACHED, of = CONNECTION) {
  failing.add(of)
  const isSignedOut = await isRedirected()
  if (!failing.delete(of)) return
  if (!isSignedOut) {
    sayProblem(text, undefined, of)
    return
  }
  const href = location.pathname + location.search
  sayProblem('You are no longer signed in.', { href, text: 'Sign in again' }, of)
}

async function isRedirected() {
  try {
    const { type } = await fetch(location, { redirect: 'manual' })
    return type === 'opaqueredirect'
  } catch {
    return false
  }
}

/** Something answered. */
export function reached() {
  takeBack(CONNECTION)
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

/** Whether a part of the page has asked to be renewed: the events for that are our own. */
function isByItself({ sourceEvent }) {
  return sourceEvent instanceof CustomEvent
}

/** A page in the background stops polling, and polls as soon as it is shown. */
function holdPoll(event) {
  if (document.hidden && event.detail.ctx.sourceEvent.type === 'every') event.preventDefault()
}

function pollNow(isDue = () => true) {
  if (document.hidden) return
  for (const part of document.querySelectorAll(POLLED)) {
    if (isDue(part)) htmx.trigger(part, 'every', {}, false)
  }
}

/**
 * A poll that is under way when a form's reply comes may have the state from before: it would take
 * the reply back, and is given up. The next one is due in seconds.
 */
function dropPolls({ detail: { ctx } }) {
  if (ctx.request.method === 'GET') return
  for (const part of document.querySelectorAll(POLLED)) htmx.trigger(part, 'htmx:abort')
}

/** htmx would swap an error's body into the page: its `detail` is shown instead, the page stays. */
function afterRequest(event) {
  const { response, text, sourceElement } = event.detail.ctx
  // The next request of a part that renews itself takes back what this one says.
  const of = isByItself(event.detail.ctx) ? sourceElement.id : undefined
  // Gatehouse redirects no script: this is the page of a login before it.
  if (response.raw.redirected) {
    void sayUnreached(UNREACHED, of ?? CONNECTION)
    event.preventDefault()
    return
  }
  reached()
  const done = response.headers.get('gatehouse-done')
  if (done !== null) sayDone(decodeURIComponent(done))
  if (response.status < 400) {
    takeBack(sourceElement.id)
    return
  }
  const answered = `The server answered ${response.status}.`
  const type = response.headers.get('content-type') ?? ''
  if (/^application\/(?:problem\+)?json/.test(type)) {
    sayProblem(problemIn(text) ?? answered, undefined, of)
  } else if (type.startsWith('text/html') && !/^\s*<!doctype/i.test(text)) {
    return // A fragment that was made for this place, such as a form with the refused field.
  } else {
    sayProblem(answered, undefined, of)
  }
  event.preventDefault()
}

/**
 * The sentence in an error of one of the services; undefined for that of a proxy, whose JSON may be
 * anything, and even none.
 */
function problemIn(text) {
  try {
    const { detail, title, error } = JSON.parse(text)
    return detail ?? title ?? sentence(error)
  } catch {
    return undefined
  }
}

/** Leaves empty fields out of the address of a filter; other forms send every field. */
function configRequest(event) {
  const { request, sourceElement } = event.detail.ctx
  addZone(event.detail.ctx)
  const isFilter = sourceElement.matches('form:is([hx-push-url], [hx-replace-url])')
  if (request.method !== 'GET' || !isFilter) return
  for (const [name, value] of [...request.body]) {
    if (value === '') request.body.delete(name)
  }
}

/**
 * Follows the event stream that `data-stream` of an element names, from `data-last` on, while the
 * page is shown. Messages of these names become events of the element, which scripts and htmx
 * listen to; so do `live` and `reconnecting`. Returns what ends it. A page follows one stream.
 */
export function follow(element, names) {
  let port
  let isOver = false

  function hear({ data: { name, data, id } }) {
    if (isOver) return
    if (id !== undefined) element.dataset.last = id
    if (name === 'live') takeBack(STREAM)
    if (name === 'reconnecting') void sayUnreached(INTERRUPTED, STREAM)
    const detail = data && JSON.parse(data)
    element.dispatchEvent(new CustomEvent(name, { detail }))
  }

  function connect() {
    port = streamPort(() => {
      hear({ data: { name: 'reconnecting' } })
      setTimeout(connect, RECONNECT_MS)
    })
    port.onmessage = hear
    join()
  }

  const leave = () => port.postMessage(null)

  function join() {
    if (document.hidden || isOver) return
    const { stream: path, last } = element.dataset
    port.postMessage({ path, last: Number(last), names })
  }

  connect()
  // A page that nobody looks at holds no connection.
  document.addEventListener('visibilitychange', () => (document.hidden ? leave() : join()))
  addEventListener('pagehide', leave)
  addEventListener('pageshow', ({ persisted }) => persisted && join())
  return () => {
    isOver = true
    leave()
  }
}

/**
 * Leads to what holds the streams: a worker for all windows, or this page where the browser has
 * none. Tells when the worker's script can't be loaded.
 */
function streamPort(failed) {
  const script = new URL('streams.js', import.meta.url)
  if (window.SharedWorker !== undefined) {
    // A worker outlives an upgrade of the server: other messages than these need another name.
    const worker = new SharedWorker(script, { type: 'module', name: 'streams-1' })
    worker.onerror = failed
    return worker.port
  }
  const { port1, port2 } = new MessageChannel()
  import(script).then(({ serve }) => serve(port2), failed)
  return port1
}

/** Opens once what begins to ask for attention: a renewed part keeps what people opened or closed. */
function openNew() {
  for (const box of document.querySelectorAll('[data-opened]:not([data-opens])')) {
    box.removeAttribute('data-opened')
  }
  for (const box of document.querySelectorAll('[data-opens]:not([data-opened])')) {
    box.open = true
    box.dataset.opened = ''
  }
}

/** Closes open menus but the one of this element. */
function closeMenus(within) {
  for (const menu of document.querySelectorAll('.more-menu[open]')) {
    if (!menu.contains(within)) menu.open = false
  }
}

document.documentElement.classList.add('js')
// The browser's own autofocus comes too early for a field that only the script shows.
document.querySelector('.js-only [autofocus]')?.focus()
forgetDone()
showTimes(document)
setInterval(() => showTimes(document), SHOW_TIMES_MS)
openNew()

document.addEventListener('htmx:after:swap', () => {
  showTimes(document)
  openNew()
  // Rows that were renewed are all in sight.
  document.querySelectorAll('[data-filters]').forEach(filterRows)
})

document.addEventListener('input', ({ target }) => {
  if (target.dataset.filters !== undefined) filterRows(target)
})
document.addEventListener('htmx:config:request', configRequest)
document.addEventListener('htmx:before:request', ({ detail: { ctx } }) => {
  // A part that renews itself leaves the message to those who read it.
  if (!isByItself(ctx)) sayProblem('')
  if (ctx.sourceEvent?.isTrusted) sayDone('')
})
document.addEventListener('htmx:after:request', afterRequest)
document.addEventListener('htmx:before:swap', dropPolls)
document.addEventListener('htmx:error', ({ detail: { ctx } }) => {
  void sayUnreached(UNREACHED, isByItself(ctx) ? ctx.sourceElement.id : CONNECTION)
})
document.addEventListener('htmx:config:request', holdPoll)
document.addEventListener('visibilitychange', () => pollNow())
// htmx starts by a timeout that it asked for before this one. The server does not know the reader's
// zone before.
setTimeout(() => {
  pollNow((part) => part.dataset.zoned !== undefined && isElsewhere(part))
  hearTyped()
})

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
})
