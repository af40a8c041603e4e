// The live output of a session, which becomes its story at the end. Without this file a reload
// shows what came meanwhile. And the key that mutes a check on its page.

import { follow } from './app.js'
import { addKeys } from './keys.js'
import { showTimes } from './times.js'

const MAX_LINES = 5000

/** Adds the lines that come after those on the page, until the session ends. */
function followOutput(box) {
  const row = document.getElementById('line-row').content.firstElementChild
  const state = document.getElementById('live-state')
  const keepsUp = document.getElementById('follow')
  let waiting = []
  let newest = Number(box.dataset.last)

  function say(text) {
    if (state.textContent !== text) state.textContent = text
  }

  function rowOf({ seq, at, kind, text }) {
    const line = row.cloneNode(true)
    line.dataset.seq = seq
    line.dataset.kind = kind
    line.title = at
    line.querySelector('.at').dateTime = at
    line.querySelector('.kind').textContent = kind
    line.querySelector('.said').textContent = text
    showTimes(line)
    return line
  }

  /** Many lines at once cost one layout. */
  function show() {
    document.getElementById('no-lines')?.remove()
    box.append(...waiting.map(rowOf))
    waiting = []
    while (box.childElementCount > MAX_LINES) box.firstElementChild.remove()
    toEnd()
  }

  function toEnd() {
    if (keepsUp.checked) box.scrollTop = box.scrollHeight
  }

  keepsUp.addEventListener('change', toEnd)
  toEnd()
  box.addEventListener('live', () => say('live'))
  box.addEventListener('reconnecting', () => say('reconnecting…'))
  box.addEventListener('line', ({ detail }) => {
    // Another window has begun further back.
    if (detail.seq <= newest) return
    newest = detail.seq
    if (waiting.push(detail) === 1) setTimeout(show, 50)
  })
  // htmx then asks for the session, which is its story.
  box.addEventListener('done', ({ detail }) => {
    end()
    say(detail.status.replace('_', ' '))
  })
  const end = follow(box, ['line', 'done'])
}

const box = document.querySelector('[data-stream]')
if (box !== null) followOutput(box)

/** Opens the times of a mute, with the focus on the first one; false where the check is muted. */
function openMute() {
  const menu = document.querySelector('#check-now .more-menu')
  if (menu === null) return false
  menu.open = true
  menu.querySelector('button').focus()
  return true
}

if (document.getElementById('check-now') !== null) {
  addKeys({ m: openMute }, [['m', 'Mute the check']])
}
