import { connect, type Socket } from 'node:net'

/** A server's address as the client has read it from the URL; several hosts are tried in turn. */
interface Address {
  readonly host: readonly string[]
  readonly port: readonly number[]
  /** A unix socket instead. */
  readonly path: string | false
}

/** What the client expects its sockets to know when it goes on with TLS. */
interface Named {
  host?: string | undefined
  port?: number | undefined
}

/**
 * Gives what makes the sockets of one connection, one after the other. With its own sockets the client takes
 * a server that ends a connection before its first word, such as a proxy whose database is away, for one to
 * be asked again at once, some thousand times a second: here that is an error like any other.
 */
export function socketMaker(): (address: Address) => Socket {
  let made = 0
  return ({ host: hosts, port: ports, path }) => {
    const at = made++ % hosts.length
    const [host, port] = [hosts[at], ports[at] ?? ports[0] ?? 0]
    const socket: Socket & Named =
      path === false ? connect({ port, ...(host !== undefined && { host }) }) : connect({ path })
    // The end of a large statement would wait for the server's word on its beginning.
    socket.setNoDelay()
    socket.host = host
    socket.port = port
    socket.on('end', () => socket.destroy(endedByServer()))
    return socket
  }
}

function endedByServer(): Error {
  return Object.assign(new Error('the server has ended the connection'), { code: 'ECONNRESET' })
}
