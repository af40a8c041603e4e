// What is live on the pages of hooks: new rows on top of a list, the status of the dashboard, and
// the event beside the log. Without this file a reload shows what came meanwhile. Names in a tree
// of JSON copy their paths.

import { copyText, element, follow, reached, sayProblem, sayUnreached } from './app.js'
import './filter.js'
import { addKeys, moveRow } from './keys.js'
import { showTimes } from './times.js'

/** A list that has grown to this many rows is drawn again. */
const MAX_ROWS = 500
const PAUSE_MS = 1000
const RETRY_MS = 5000

const wide = matchMedia('(min-width: 80rem)')

/** What follows the stream; its `data-last` is the id of the newest event. */
const live = document.querySelector('[data-stream]')

/** The list that new rows are added to: the log, or the newest events of the dashboard. */
function liveList() {
  return document.querySelector('[data-newest]')
}

function openBox() {
  return document.getElementById('log-open')
}

/** Whether an event is beside the list. */
function isOpen() {
  return openBox()?.childElementCount > 0
}

/**
 * Runs a task when it is asked for: one at a time, and once a second at most. A task that gives
 * false is tried again.
 */
function coalesced(task) {
  let isAsked = false
  let isRunning = false
  return async () => {
    isAsked = true
    if (isRunning) return
    isRunning = true
    while (isAsked) {
      isAsked = false
      const isDone = await task()
      if (!isDone) isAsked = true
      await new Promise((resolve) => setTimeout(resolve, isDone ? PAUSE_MS : RETRY_MS))
    }
    isRunning = false
  }
}

/** Asks the server for the rows that are newer than the list: it alone filters, and makes rows. */
const refresh = coalesced(async () => {
  const list = liveList()
  if (list === null) return true
  const isHeld = holdsStill(list)
  const isWhole = !isHeld && beginsAnew(list)
  const newest = live.dataset.last
  const answer = await read(list, isWhole ? {} : { above: list.dataset.position })
  if (answer === undefined) return false
  // A filter has replaced the list meanwhile.
  if (!list.isConnected) return true
  const isNew = answer.rows.length > 0
  const isAll = isNew && !isHeld && (isWhole || takesAll(list, answer))
  if (isAll) replace(list, answer)
  else if (isNew && isHeld) announce(list, answer)
  else if (isNew) prepend(list, answer)
  passed(isAll ? answer.results : list, answer.position, newest)
  return true
})

/** Records up to which event a list has all rows; the positions are known from before its read. */
function passed(list, ...positions) {
  list.dataset.position = Math.max(list.dataset.position, ...positions)
}

/** Whether the list is asked for as a whole: it has grown long, or lacks what was announced. */
function beginsAnew(list) {
  return list.querySelectorAll('tbody > tr').length > MAX_ROWS || list.dataset.news !== undefined
}

/** Whether what is newer becomes the list: it fills a page, or the log had no rows. */
function takesAll(list, { isFull }) {
  return list.id === 'log-results' && (isFull || list.querySelector('tbody') === null)
}

/** The first page of a list, or what is newer than its rows; undefined when the server is away. */
async function read(list, query) {
  const url = new URL(list.dataset.newest, location)
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  try {
    const response = await fetch(url, { headers: { 'HX-Request': 'true' } })
    reached()
    if (!response.ok) return undefined
    const page = new DOMParser().parseFromString(await response.text(), 'text/html')
    const results = page.getElementById('log-results')
    const rows = [...results.querySelectorAll('tbody > tr')]
    const isFull = results.querySelector('a#log-rows-more-link') !== null
    return { results, rows, isFull, position: results.dataset.position }
  } catch {
    await sayUnreached()
    return undefined
  }
}

/** Rows must not move under somebody who reads them. */
function holdsStill(list) {
  if (list.id !== 'log-results') return false
  return (
    document.getElementById('log-pause')?.getAttribute('aria-pressed') !== 'false' ||
    list.getBoundingClientRect().top < 0 ||
    list.contains(document.activeElement) ||
    isOpen()
  )
}

function announce(list, { rows, isFull }) {
  const count = Number.parseInt(list.dataset.news ?? '0', 10) + rows.length
  const atLeast = isFull || list.dataset.news?.endsWith('+') === true ? '+' : ''
  list.dataset.news = `${count}${atLeast}`
  const link = list.querySelector('#log-news a')
  link.textContent = `${list.dataset.news} new ${count === 1 ? 'event' : 'events'} – show`
  link.hidden = false
}

function replace(list, { results, rows }) {
  markFresh(list, rows)
  list.replaceWith(results)
  htmx.process(results)
  showTimes(results)
  markOpen()
}

function prepend(list, { rows }) {
  markFresh(list, rows)
  const body = list.querySelector('tbody')
  // The position is read before the rows, so that a list may have some of what is newer.
  for (const { dataset } of rows) body.querySelector(`tr[data-id="${dataset.id}"]`)?.remove()
  body.prepend(...rows)
  const most = Number(list.dataset.max ?? Infinity)
  while (body.childElementCount > most) body.lastElementChild.remove()
  showTimes(list)
}

/** Lets those rows light up that the list does not have yet. */
function markFresh(list, rows) {
  const newest = Number(list.querySelector('tbody > tr')?.dataset.id ?? 0)
  for (const row of rows) row.classList.toggle('fresh', Number(row.dataset.id) > newest)
}

/** Says which row is the event beside the list. */
function markOpen() {
  const id = openBox()?.dataset.open
  for (const link of document.querySelectorAll('#log-rows .row-link')) {
    if (link.pathname === `/log/${id}`) link.setAttribute('aria-current', 'true')
    else link.removeAttribute('aria-current')
  }
}

/** The links that open an event beside the log: of its rows, and to the events before and after. */
function opensBeside(link, event) {
  if (link === null || openBox() === null || !wide.matches) return false
  if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) {
    return false
  }
  return (
    link.closest('#log-rows') !== null || link.matches('#log-open a:is([rel=prev],[rel=next])')
  )
}

/** Shows an event beside the list; the address says which, so that Back and a reload show it. */
async function openBeside(link) {
  const id = link.pathname.split('/').at(-1)
  const { more } = history.state ?? {}
  const place = { more, y: scrollY }
  const box = openBox()
  await htmx.ajax('GET', link.pathname, { source: box, target: box, swap: 'innerHTML' })
  // Another one was opened meanwhile, or this one could not be reached.
  if (box.dataset.open !== id) return
  // The filters are those of now: one may have been set while the event was on its way.
  history.pushState({ ...history.state, ...place, htmx: true }, '', addressWith(id))
}

/** The next row; where there is room, it opens beside the list. */
function step(by) {
  const link = moveRow(by, document.querySelector('#log-rows [aria-current]'))
  if (link !== undefined && openBox() !== null && wide.matches) void openBeside(link)
}

/** Closes the event beside the list; its row has the focus then. False where there is none. */
function closeByKey() {
  if (!isOpen() || document.querySelector('.more-menu[open]')) return false
  const row = document.querySelector('#log-rows [aria-current]')
  closeBeside()
  row?.focus()
}

/** A replay sends something, so the key only leads to the first target; Enter chooses it. */
function toReplay() {
  const menu = document.getElementById('replay-menu')
  if (menu === null) return false
  menu.open = true
  menu.querySelector('ul :is(button, input:not([type="hidden"]))').focus()
}

/** Presses the button; there is none for a large payload, which is downloaded. */
function copyPayload() {
  const button = document.querySelector('#event [data-copy="payload-text"]')
  button?.click()
  return button !== null
}

/** The focus stays in the list, so that the next row is one key away: screen readers are told. */
function announceOpened(box) {
  const title = box.querySelector('.event-title')?.innerText ?? 'Event removed'
  opened.textContent = `Opened beside the list: ${title}, event ${box.dataset.open}`
}

const opened = element('p', '')
opened.id = 'log-opened'
opened.className = 'hidden'
opened.setAttribute('role', 'status')
document.querySelector('main').append(opened)

function closeBeside() {
  const box = openBox()
  box.replaceChildren()
  box.dataset.open = 0
  // Back loads the page of the address, as after what htmx does.
  history.pushState({ ...history.state, htmx: true }, '', addressWith(null))
  markOpen()
}

/** htmx asks for a list or an event. */
function beforeRequest({ detail: { ctx } }) {
  ctx.newest = live?.dataset.last
}

/** htmx has put it into the page. */
function afterSwap({ detail: { ctx } }) {
  const box = openBox()
  if (box !== null && ctx.target === box) {
    box.dataset.open = ctx.request.action.split('/').at(-1)
    box.scrollTop = 0
    announceOpened(box)
  }
  makeNamesButtons()
  markOpen()
  const list = liveList()
  if (list === null) return
  if (ctx.target.id === list.id) passed(list, ctx.newest)
  // The stream may have named an event while the rows were on their way.
  if (Number(live.dataset.last) > Number(list.dataset.position)) void refresh()
}

/** The address of the log with an event beside it, or with null without one. */
function addressWith(id) {
  const { pathname, searchParams } = new URL(location)
  searchParams.delete('open')
  if (id !== null) searchParams.set('open', id)
  return searchParams.size === 0 ? pathname : `${pathname}?${searchParams}`
}

/** The state alone changes: a changed label as well would be read as "Resume, pressed". */
function pause(button) {
  const isPaused = button.getAttribute('aria-pressed') === 'false'
  button.setAttribute('aria-pressed', isPaused)
  if (!isPaused) void refresh()
}

/** Says on the dashboard that the stream is away; the next status says when it is back. */
function showReconnecting() {
  const line = document.querySelector('.connection')
  if (line === null) return
  line.className = 'connection warn'
  line.lastElementChild.textContent = 'reconnecting…'
}

function gap({ detail: { requested, oldest, skipped } }) {
  // It may be of another window that was away longer. Ids from before a restore are unknown.
  const isUnknown = requested >= oldest
  if (!isUnknown && Number(live.dataset.last) >= oldest - 1) return
  const count = skipped > 0 ? `${skipped} events` : 'Some events'
  sayProblem(`${count} went by while this page was away.`, {
    href: '/log',
    text: 'Reload the log',
  })
}

/** Listens to the stream. htmx asks for the status of the dashboard when a message says so. */
function followEvents() {
  live.addEventListener('event-received', refresh)
  live.addEventListener('gap', gap)
  live.addEventListener('reconnecting', showReconnecting)
  follow(live, ['event-received', 'status', 'gap'])
}

/**
 * Names in a payload's tree copy their paths, by mouse and by keyboard. A name in a summary can't be
 * a button itself: one stands after what the summary folds.
 */
function makeNamesButtons() {
  for (const name of document.querySelectorAll('.json span.key:not(.named)')) {
    const isFolding = name.parentElement.matches('summary')
    const button = element('button', isFolding ? 'Copy path' : name.textContent)
    button.type = 'button'
    button.className = isFolding ? 'path plain' : 'key'
    if (!isFolding) {
      button.title = 'Copy path'
      name.replaceWith(button)
      continue
    }
    button.setAttribute('aria-label', `Copy path of ${name.textContent}`)
    name.classList.add('named')
    name.closest('li').append(button)
  }
}

/** Shows the address of a provider that is to be added, while its name is typed. */
function showAddress({ value, dataset }) {
  document.querySelector('#new-url code').textContent = `${dataset.url}${value || '…'}`
}

/** Copies the path of a name in a payload's tree, as the filters of the log have it. */
async function copyPath(name) {
  const steps = []
  for (
    let item = name.closest('li');
    item !== null;
    item = item.parentElement.closest('.json li')
  ) {
    const step = item.querySelector('.key').textContent
    steps.unshift(step.replace(/[^\p{L}\p{M}\p{N}_-]/gu, '\\$&'))
  }
  const note = element('span', steps.join('.'))
  note.className = 'copied'
  note.setAttribute('role', 'status')
  name.after(note)
  if (await copyText(note)) {
    getSelection().removeAllRanges()
    note.prepend('Copied ')
    setTimeout(() => note.remove(), 2000)
  } else {
    // It stays, selected, to be copied by hand.
    note.prepend('Not copied: ')
    setTimeout(() => note.remove(), 30_000)
  }
}

document.addEventListener('click', (event) => {
  const link = event.target.closest('a')
  if (opensBeside(link, event)) {
    event.preventDefault()
    void openBeside(link)
  }
  if (event.target.closest('#log-close') !== null) {
    event.preventDefault()
    closeBeside()
  }
  const button = event.target.closest('#log-pause')
  if (button !== null) pause(button)
  const name = event.target.closest('.json :is(.key, .path)')
  if (name !== null) {
    // A name may stand in the summary of what it contains, which a click would fold.
    event.preventDefault()
    void copyPath(name.closest('li').querySelector('.key'))
  }
})
document.addEventListener('input', ({ target }) => {
  if (target.dataset.url !== undefined) showAddress(target)
})
document.addEventListener('htmx:before:request', beforeRequest)
document.addEventListener('htmx:after:swap', afterSwap)

makeNamesButtons()
if (live !== null) followEvents()

addKeys({ r: toReplay, c: copyPayload }, [
  ['r', 'Open the targets of a replay'],
  ['c', 'Copy the payload'],
])
if (openBox() !== null) {
  addKeys({ j: () => step(1), k: () => step(-1), Escape: closeByKey }, [
    ['Esc', 'Close the event beside the list'],
  ])
}
