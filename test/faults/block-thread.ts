import { subscribe } from 'node:diagnostics_channel'
import type { IncomingMessage } from 'node:http'

// Loaded into a server with `--import`: a request with `?block` holds its thread for BLOCK_MS, once
// it is answered.
subscribe('http.server.response.finish', (message) => {
  const { request } = message as { request: IncomingMessage }
  if (request.url?.endsWith('?block') !== true) return
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(process.env['BLOCK_MS']))
})
