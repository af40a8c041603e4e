import { Duplex } from 'node:stream'
import type { Level } from '../levels.ts'
import { createSplitter } from './protocol.ts'
import { readRequest } from './requests.ts'
import type { Client, Session } from './session.ts'

/**
 * A client's end of a connection to the session: what the `postgres` client takes for a connected
 * `net.Socket`. Passwords, TLS and cancel requests have no meaning here; start-up parameters are
 * accepted and ignored.
 */
export function createConnection(session: Session, greeting: Uint8Array, level: Level): Duplex {
  const client: Client = {
    level,
    deliver: (bytes) => {
      if (!socket.destroyed) socket.push(bytes)
    },
    end: (error) => {
      socket.destroy(error)
    },
    statements: new Map(),
  }
  const split = createSplitter({
    startup: () => client.deliver(Buffer.from(greeting)),
    encryption: () => client.deliver(Buffer.from('N')),
    cancel: () => client.end(),
    batch: (batch) => session.submit(client, readRequest(batch, client.statements)),
    terminate: () => session.finish(client),
    malformed: () => client.end(new Error('malformed message to the embedded database')),
  })
  const socket = new Duplex({
    read: () => undefined,
    write: (chunk: Buffer, _encoding, done) => {
      // Later, because an answer inside of write() confuses a client that is still in write().
      queueMicrotask(() => {
        if (!socket.destroyed) split(chunk)
        done()
      })
    },
    final: (done) => {
      session.finish(client)
      done()
    },
    destroy: (error, done) => {
      session.leave(client)
      done(error)
    },
  })
  const self = (): Duplex => socket
  Object.assign(socket, { setKeepAlive: self, setNoDelay: self, ref: self, unref: self })
  Object.defineProperty(socket, 'readyState', {
    get: () => (socket.destroyed || socket.writableEnded ? 'closed' : 'open'),
  })
  session.join(client)
  return socket
}
