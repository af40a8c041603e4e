// Keys for people without a mouse, the list of what they do, and the switch that turns them off.

import { element, sayProblem } from './app.js'

/** How long the letter of a page may come after g. */
const KEY_MS = 1500

/** Where a browser remembers that somebody has turned the keys of one letter off. */
const KEYS_OFF = 'gatehouse-keys-off'

function areKeysOff() {
  try {
    return localStorage.getItem(KEYS_OFF) !== null
  } catch {
    // A browser may forbid pages to remember anything.
    return false
  }
}

function setKeysOff(isOff) {
  try {
    if (isOff) localStorage.setItem(KEYS_OFF, '1')
    else localStorage.removeItem(KEYS_OFF)
  } catch {
    sayProblem('This browser lets pages remember nothing, so the keys stay on.')
  }
}

/** Gives a page keys of its own; each has a meaning for the list of the keys. */
export function addKeys(keys, meanings) {
  Object.assign(KEYS, keys)
  KEY_MEANINGS.push(...meanings)
}

/** Keys for people without a mouse; none while something is typed. */
function onKey(event) {
  const { target, key } = event
  if (areKeysOff() && key !== 'Escape') return
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
  j: () => void moveRow(1),
  k: () => void moveRow(-1),
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
  for (const [key, meaning] of [...KEY_MEANINGS, ...LAST_MEANINGS, ...pages]) {
    const term = document.createElement('dt')
    term.append(element('kbd', key))
    list.append(term, element('dd', meaning))
  }
  const close = element('button', 'Close')
  close.addEventListener('click', () => dialog.close())
  dialog.append(title, list, keysSwitch(), close)
  document.body.append(dialog)
  return dialog
}

/** Turns the keys off for those who speak to their computer, or hit keys by accident. */
function keysSwitch() {
  const box = document.createElement('input')
  box.type = 'checkbox'
  box.checked = !areKeysOff()
  box.addEventListener('change', () => setKeysOff(!box.checked))
  const label = document.createElement('label')
  label.className = 'choice'
  label.append(box, element('span', 'Keys of one letter work in this browser'))
  return label
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
]
const PALETTE = ['Ctrl K or ⌘ K', 'Search pages, actions, names and ids']
const hasPalette = document.querySelector('[data-palette]') !== null
const LAST_MEANINGS = [...(hasPalette ? [PALETTE] : []), ['?', 'These keys']]

/** False where there is nothing to focus, so that the browser does what it does with the key. */
function focusOn(element) {
  element?.focus()
  return element !== null
}

/**
 * Gives the focus to the row after the one that has it, or that is `current`; returns its link,
 * undefined at the end.
 */
export function moveRow(step, current = null) {
  const rows = [...document.querySelectorAll('.row-link')].filter((row) => row.checkVisibility())
  const focused = rows.indexOf(document.activeElement)
  const at = focused === -1 ? rows.indexOf(current) : focused
  const next = at === -1 ? rows.at(step > 0 ? 0 : -1) : rows[at + step]
  next?.focus()
  return next
}

document.addEventListener('keydown', onKey)

const keysButton = element('button', 'Keyboard shortcuts')
keysButton.className = 'plain'
keysButton.addEventListener('click', () => keysDialog().showModal())
document.querySelector('.bottom')?.append(' · ', keysButton)
