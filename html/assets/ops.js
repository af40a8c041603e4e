// The live output of a session, which becomes its story at the end. Without this file a reload
// shows what came meanwhile.

import { keepStream } from './app.js'

const MAX_LINES = 5000

const box = document.getElementById('lines')

/** Streams the lines that come after those on the page, until the session ends. */
function followOutput(session) {
  const row = document.getElementById('line-row').content.firstElementChild
  const state = document.getElementById('live-state')
  const follow = document.getElementById('follow')
  let last = Number(box.dataset.last)
  let waiting = []

  function say(text) {
    if (state.textContent !== text) state.textContent = text
  }

  function rowOf({ seq, at, kind, text }) {
    const line = row.cloneNode(true)
    line.dataset.seq = seq
    line.dataset.kind = kind
    line.title = at
    line.querySelector('.at').textContent = at.slice(11, 19)
    line.querySelector('.kind').textContent = kind
    line.querySelector('.said').textContent = text
    return line
  }

  /** Many lines at once cost one layout. */
  function show() {
    if (waiting.length === 0) return
    document.getElementById('no-lines')?.remove()
    box.append(...waiting.map(rowOf))
    waiting = []
    while (box.childElementCount > MAX_LINES) box.firstElementChild.remove()
    toEnd()
  }

  function toEnd() {
    if (follow.checked) box.scrollTop = box.scrollHeight
  }

  function onLine({ data }) {
    const line = JSON.parse(data)
    if (line.seq <= last) return
    last = line.seq
    if (waiting.push(line) === 1) setTimeout(show, 50)
  }

  function onDone({ data }) {
    end()
    show()
    say(JSON.parse(data).status.replace('_', ' '))
    document.getElementById('session').dispatchEvent(new CustomEvent('session-done'))
  }

  follow.addEventListener('change', toEnd)
  toEnd()
  const end = keepStream(
    () => `/sessions/${session}/stream?last_event_id=${last}`,
    { line: onLine, done: onDone },
    (now) => say(now === 'live' ? now : 'reconnecting…'),
  )
}

if (box !== null && box.dataset.session !== undefined) followOutput(box.dataset.session)
