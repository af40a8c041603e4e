// What the pages of links do beside htmx and app.js: Enter in a search opens the first link that was
// found, and a new link's short address can be copied at once.

/** Whether the link is opened once the results are those of what was typed. */
let isAwaited = false

function searchField() {
  return document.querySelector('#filter-q')
}

/** Opens the link whose name was typed, else the first one. False for results of another text. */
function openFirst() {
  const text = searchField().value.trim()
  const results = document.getElementById('links-results')
  if (results.dataset.q !== text) return false
  // `go/docs`, `docs/` and a whole address name the link docs.
  const parts = text.toLowerCase().split('/')
  const slug = parts.findLast((part) => part !== '') ?? ''
  const name = CSS.escape(slug)
  const named = results.querySelector(`[data-slug="${name}"] .row-link`)
  const first = named ?? results.querySelector('.row-link')
  first?.click()
  return true
}

function onEnter(event) {
  const { key, target, isComposing } = event
  if (key !== 'Enter' || isComposing || target !== searchField()) return
  if (target.value.trim() === '') return
  isAwaited = !openFirst()
  // Until the results are there, the form asks for them.
  if (!isAwaited) event.preventDefault()
}

document.addEventListener('keydown', onEnter)
document.addEventListener('htmx:after:swap', () => {
  if (isAwaited) isAwaited = !openFirst()
})
document.addEventListener('input', () => (isAwaited = false))

/** A new link: its address can be copied; a reload does not say again that it is ready. */
function showReady() {
  if (document.getElementById('ready') === null) return
  document.querySelector('[data-copy="short-link"]')?.focus()
  const address = new URL(location)
  address.searchParams.delete('created')
  history.replaceState(history.state, '', address)
}

showReady()
