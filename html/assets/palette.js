// The palette on Ctrl-K: a dialog with a combobox over the service's search, which is a page of
// links without this file. The pattern is that of the ARIA Authoring Practices Guide: the focus
// stays in the field, and the arrows choose an option of the list.

import { showTimes } from './times.js'

const WAIT_MS = 120
const isMac = /Mac|iPhone|iPad/.test(navigator.platform)
const link = document.querySelector('[data-palette]')

function make(name, attributes) {
  const made = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  return made
}

const dialog = make('dialog', { id: 'palette', class: 'panel', 'aria-label': 'Search' })
const field = make('input', {
  ...{ type: 'search', role: 'combobox', 'aria-label': 'Search', 'aria-autocomplete': 'list' },
  ...{ 'aria-controls': 'palette-list', 'aria-expanded': 'true', autocomplete: 'off' },
  ...{ autocapitalize: 'off', spellcheck: 'false', maxlength: '200' },
  placeholder: 'Pages, actions, names and ids',
})
const list = make('div', { id: 'palette-list', role: 'listbox', 'aria-label': 'Found' })
const note = make('p', { class: 'muted', role: 'status' })
dialog.append(field, list, note)

let timer
let request = new AbortController()

/** Asks the server for what has the words in the field. */
async function search() {
  request.abort()
  request = new AbortController()
  const { signal } = request
  const url = `${link.getAttribute('href')}?${new URLSearchParams({ q: field.value })}`
  try {
    const response = await fetch(url, { headers: { 'HX-Request': 'true' }, signal })
    // A redirect leads to the login of a proxy.
    if (!response.ok || response.redirected) throw new Error(`status ${response.status}`)
    show(await response.text())
  } catch {
    if (signal.aborted) return
    list.replaceChildren()
    choose(undefined)
    note.textContent = 'The search could not be reached.'
  }
}

/** Shows the results as options, the first one chosen. */
function show(text) {
  const page = new DOMParser().parseFromString(text, 'text/html')
  const groups = page.querySelectorAll('#palette-results > section')
  list.replaceChildren(...groups)
  for (const group of list.children) group.setAttribute('role', 'group')
  for (const part of list.querySelectorAll('h2, ul, li')) part.setAttribute('role', 'presentation')
  options().forEach((option, at) => {
    option.id = `palette-option-${at}`
    option.setAttribute('role', 'option')
    option.tabIndex = -1
    // What stands beside a link belongs to its option.
    const detail = option.nextElementSibling
    if (detail !== null) option.append(' ', detail)
  })
  showTimes(list)
  const count = options().length
  note.textContent =
    count === 0 ? 'Nothing found.' : `${count} ${count === 1 ? 'result' : 'results'}`
  choose(options()[0])
}

function options() {
  return [...list.querySelectorAll('a')]
}

function chosen() {
  return list.querySelector('[aria-selected="true"]')
}

function choose(option) {
  for (const other of options()) other.setAttribute('aria-selected', String(other === option))
  if (option === undefined) {
    field.removeAttribute('aria-activedescendant')
    return
  }
  field.setAttribute('aria-activedescendant', option.id)
  option.scrollIntoView({ block: 'nearest' })
}

function move(step) {
  const all = options()
  const at = all.indexOf(chosen())
  choose(all.at((at + step) % all.length))
}

const KEYS = {
  ArrowDown: () => move(1),
  ArrowUp: () => move(-1),
  Enter: () => chosen()?.click(),
}

function open() {
  // On the page of the search, its own field is there.
  if (location.pathname === link.pathname) {
    document.getElementById('find-q').focus()
    return
  }
  if (!dialog.isConnected) document.body.append(dialog)
  if (dialog.open) return
  dialog.showModal()
  field.select()
  void search()
}

if (link !== null) {
  if (isMac) link.querySelector('kbd').textContent = '⌘ K'
  field.addEventListener('input', () => {
    clearTimeout(timer)
    timer = setTimeout(search, WAIT_MS)
  })
  field.addEventListener('keydown', (event) => {
    if (event.isComposing || KEYS[event.key] === undefined) return
    event.preventDefault()
    KEYS[event.key]()
  })
  // A link to a place on the same page leaves the dialog open otherwise.
  list.addEventListener('click', () => dialog.close())
  dialog.addEventListener('close', () => {
    clearTimeout(timer)
    request.abort()
  })
  link.addEventListener('click', (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return
    event.preventDefault()
    open()
  })
  document.addEventListener('keydown', (event) => {
    // On a Mac, Ctrl-K edits the text of a field.
    const isAsked = isMac ? event.metaKey : event.ctrlKey
    if (!isAsked || event.altKey || event.shiftKey || event.key.toLowerCase() !== 'k') return
    event.preventDefault()
    open()
  })
}
