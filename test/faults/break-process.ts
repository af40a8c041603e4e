import { subscribe } from 'node:diagnostics_channel'
import type { IncomingMessage } from 'node:http'
import { Server } from 'node:net'

// Loaded into a server with `--import`. BREAK says what goes wrong: a listener that can't be closed
// (`close`), or is never closed (`hang`). A request with `?throw` throws where nobody catches.
const { BREAK: how } = process.env
if (how === 'close' || how === 'hang') {
  Server.prototype.close = function close() {
    if (how === 'close') throw new Error('a listener was not closed')
    return this
  }
}
subscribe('http.server.response.finish', (message) => {
  const { request } = message as { request: IncomingMessage }
  if (request.url?.endsWith('?throw') !== true) return
  setImmediate(() => {
    throw new Error('nobody catches this')
  })
})
