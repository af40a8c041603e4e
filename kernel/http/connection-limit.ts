import type { Socket } from 'node:net'
import type { Log } from '../log.ts'
import type { Counter, Metrics } from '../metrics.ts'
import { createTally } from '../repeat.ts'

/** One address may have this part of a listener's connections. */
const PART_OF_ONE_ADDRESS = 1 / 4

/** Connections of all listeners, by service. */
export interface ConnectionMetrics {
  /** Idle ones that were ended for a new one. */
  ended: Counter
  /** New ones that were refused, because none was idle. */
  refused: Counter
}

export function createConnectionMetrics(metrics: Metrics): ConnectionMetrics {
  const name = 'gatehouse_http_connections'
  return {
    ended: metrics.counter(`${name}_ended`, 'Idle connections ended for new ones.'),
    refused: metrics.counter(`${name}_refused`, 'New connections refused: no other was idle.'),
  }
}

export interface ConnectionLimitOptions {
  service: string
  /** How many connections the listener may have. */
  maxConnections: number
  log: Log
  metrics: { connections: ConnectionMetrics }
}

/**
 * The bounds of a listener's connections: in all, and of one address. A new connection beyond
 * them takes the place of the one that is idle longest, so that connections without requests leave
 * room for others. Where none is idle the new one is refused.
 */
export class ConnectionLimit {
  /** With their addresses. */
  #open = new Map<Socket, string | undefined>()
  #ofAddress = new Map<string, number>()
  /** Without a request; the one that is idle longest comes first. */
  #idle = new Set<Socket>()
  #options: ConnectionLimitOptions
  #count

  constructor(options: ConnectionLimitOptions) {
    this.#options = options
    const { service, maxConnections: max, log } = options
    this.#count = createTally(['ended', 'refused'], ({ ended, refused }) => {
      log.warn('too many connections', { service, open: this.#open.size, max, ended, refused })
    })
  }

  /**
   * Takes a new connection, or ends it. `address` is undefined for a proxy's and a local one, which
   * have no bound of their own.
   */
  take(socket: Socket, address: string | undefined) {
    if (!this.#makesRoom(address)) {
      socket.destroy()
      return this.#tell('refused')
    }
    this.#open.set(socket, address)
    this.#idle.add(socket)
    if (address !== undefined) {
      this.#ofAddress.set(address, (this.#ofAddress.get(address) ?? 0) + 1)
    }
    socket.once('close', () => this.#forget(socket))
  }

  /** A request has come on the connection. */
  busy(socket: Socket) {
    this.#idle.delete(socket)
  }

  /** The connection has no request any more. */
  rests(socket: Socket) {
    if (this.#open.has(socket)) this.#idle.add(socket)
  }

  /** Whether there is room for one more connection of an address, if need be by ending one. */
  #makesRoom(address: string | undefined) {
    const { maxConnections: max } = this.#options
    const ofAddress = address === undefined ? 0 : (this.#ofAddress.get(address) ?? 0)
    if (ofAddress >= Math.ceil(max * PART_OF_ONE_ADDRESS)) {
      return this.#endIdle((idle) => this.#open.get(idle) === address)
    }
    return this.#open.size < max || this.#endIdle(() => true)
  }

  #endIdle(isMeant: (idle: Socket) => boolean) {
    const oldest = this.#idle.values().find(isMeant)
    if (oldest === undefined) return false
    this.#forget(oldest)
    oldest.destroy()
    this.#tell('ended')
    return true
  }

  #forget(socket: Socket) {
    const address = this.#open.get(socket)
    if (!this.#open.delete(socket)) return
    this.#idle.delete(socket)
    if (address === undefined) return
    const left = (this.#ofAddress.get(address) ?? 0) - 1
    if (left > 0) this.#ofAddress.set(address, left)
    else this.#ofAddress.delete(address)
  }

  #tell(what: keyof ConnectionMetrics) {
    const { service, metrics } = this.#options
    metrics.connections[what].add({ service })
    this.#count(what)
  }
}
