// Holds the event streams of all windows of this browser: one connection a stream, however many
// windows follow it. Over HTTP/1.1 a browser opens six connections to a host, so that seven windows
// with a stream each would leave none to load a page. Runs as a shared worker, which plain HTTP
// allows, too.

const REOPEN_MS = 5000

/** By path: the connection of a stream, the id of its last message, and who follows it. */
const streams = new Map()

/**
 * Serves the page at the other end of a port. It sends `{ path, last, names }` to follow a stream
 * from above an id, and null to leave it. It gets the messages of these names, as `{ name, data }`
 * with the `id` that is known then, and `live` and `reconnecting`. Where another page begins at an
 * older id, it gets some messages again.
 */
export function serve(port) {
  let stream
  const leave = () => {
    if (stream !== undefined) remove(stream, port)
    stream = undefined
  }
  port.onmessage = ({ data: wanted }) => {
    leave()
    if (wanted !== null) stream = add(wanted, port)
  }
  // A page that crashed does not say that it leaves.
  port.onclose = leave
}

function add({ path, last, names }, port) {
  const stream = streams.get(path) ?? { path, names, last, pages: new Set() }
  streams.set(path, stream)
  stream.pages.add(port)
  stream.last = Math.min(stream.last, last)
  open(stream)
  return stream
}

function remove(stream, port) {
  stream.pages.delete(port)
  if (stream.pages.size > 0) return
  close(stream)
  streams.delete(stream.path)
}

function open(stream) {
  close(stream)
  const source = new EventSource(`${stream.path}?last_event_id=${stream.last}`)
  stream.source = source
  source.onopen = () => tell(stream, { name: 'live' })
  source.onerror = () => {
    tell(stream, { name: 'reconnecting' })
    // The browser gives up on a reply that is not a stream, such as of a proxy that restarts.
    if (source.readyState !== EventSource.CLOSED) return
    stream.timer = setTimeout(() => open(stream), REOPEN_MS)
  }
  for (const name of stream.names) {
    source.addEventListener(name, ({ data, lastEventId }) => {
      if (lastEventId === '') return tell(stream, { name, data })
      stream.last = Number(lastEventId)
      tell(stream, { name, data, id: stream.last })
    })
  }
}

function close({ source, timer }) {
  clearTimeout(timer)
  source?.close()
}

function tell({ pages }, message) {
  for (const port of pages) port.postMessage(message)
}

addEventListener('connect', ({ ports: [port] }) => serve(port))
