import { isUtf8 } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import postgres from 'postgres'
import type { Client } from './pool.ts'

/** Connection URL of a server, or the embedded engine. */
export type Target = string | Engine

/** The embedded engine, as its client sees it. */
export interface Engine {
  /** Opens a connection and ends the previous one. */
  socket: () => Duplex
  /** Has PostgreSQL end the running statement, which is answered with SQLSTATE 57014. */
  cancel: () => void
}

export interface ConnectOptions {
  /** Longest run of a statement, in milliseconds. */
  deadlineMs: number
  onClose: () => void
  /** Called when it connects again to listen: that is its client's part. */
  onReopen?: () => void
  /** Called for each NOTIFY of a channel that this connection listens on. */
  onNotify?: (channel: string, payload: string) => void
}

/** Makes a client of one connection, which connects at its first statement. */
export function connectTo(target: Target, options: ConnectOptions): Client {
  const { deadlineMs, onClose, onReopen, onNotify } = options
  const name = `gatehouse ${randomUUID()}`
  const connection = connectionSettings(name, deadlineMs)
  // The options `socket` and `onnotify` are missing from the published types.
  const settings = {
    connection,
    max: 1,
    onclose: onClose,
    onnotify: onNotify,
    onnotice: () => undefined,
    connect_timeout: Math.ceil(deadlineMs / 1000),
    idle_timeout: 0,
    max_lifetime: null,
    fetch_types: false,
    backoff: (retries: number) => Math.min(0.05 * 2 ** retries, 0.5),
    types: { bigint: BIGINT, bytea: BYTEA },
  }
  if (typeof target !== 'string') {
    const sql = postgres({
      ...settings,
      host: 'embedded',
      user: 'postgres',
      database: 'postgres',
      socket: target.socket,
    } as typeof settings)
    return { name, sql, cut: () => undefined }
  }
  const openSocket = socketOpener()
  let open: Socket | undefined
  function socket(address: Address): Socket {
    if (open !== undefined) onReopen?.()
    open = openSocket(address)
    return open
  }
  const sql = postgres(withoutSettings(target, connection), {
    ...settings,
    socket,
  } as typeof settings)
  return { name, sql, cut: () => open?.destroy() }
}

/** Session settings; the server knows the connection by its name. */
function connectionSettings(name: string, deadlineMs: number) {
  return {
    application_name: name,
    client_encoding: 'UTF8',
    statement_timeout: deadlineMs,
    // A transaction whose connection was lost must not keep its locks for hours.
    idle_in_transaction_session_timeout: 4 * deadlineMs,
    // If this host is gone in the middle of a message, that timeout does not run, but these do.
    tcp_keepalives_idle: 30,
    tcp_keepalives_interval: 10,
    tcp_keepalives_count: 3,
    TimeZone: 'UTC',
    // Answers are parsed in these formats, whatever the role or the database has configured.
    DateStyle: 'ISO, MDY',
    bytea_output: 'hex',
    // To compile a plan takes longer than any of our statements.
    jit: 'off',
  }
}

/**
 * A URL without our settings, which would win in it; PostgreSQL ignores the case of their names.
 */
function withoutSettings(url: string, settings: object) {
  const [address = '', ...rest] = url.split('?')
  if (rest.length === 0) return url
  const ours = new Set(Object.keys(settings).map((name) => name.toLowerCase()))
  const others = [...new URLSearchParams(rest.join('?'))].filter(
    ([name]) => !ours.has(name.toLowerCase()),
  )
  return `${address}?${new URLSearchParams(others).toString()}`
}

/**
 * A server's address as the client has parsed it from the URL; several hosts are tried in turn.
 */
interface Address {
  host: readonly string[]
  port: readonly number[]
  /** A unix socket instead. */
  path: string | false
}

/** Properties of a socket that the client reads when it goes on with TLS. */
interface Named {
  host?: string | undefined
  port?: number | undefined
}

/**
 * Opens the sockets of one connection, one after the other. A proxy without its database ends a
 * connection before the first message. With its own sockets the client then reconnects at once,
 * thousands of times a second. Here that is an error like any other.
 */
function socketOpener(): (address: Address) => Socket {
  let opened = 0
  return ({ host: hosts, port: ports, path }) => {
    const at = opened++ % hosts.length
    const host = hosts[at]
    const port = ports[at] ?? ports[0] ?? 0
    const socket: Socket & Named = path === false ? connect(port, host) : connect(path)
    // Else the end of a large statement waits until the server has acknowledged its beginning.
    socket.setNoDelay()
    socket.host = host
    socket.port = port
    socket.on('end', () => socket.destroy(endedByServer()))
    return socket
  }
}

function endedByServer(): Error {
  const error = new Error('the server has ended the connection')
  return Object.assign(error, { code: 'ECONNRESET' })
}

/** int8 as a number: ids and counters stay far below 2^53. */
const BIGINT: postgres.PostgresType<number> = {
  to: 20,
  from: [20],
  serialize: String,
  parse: Number,
}

/** Arguments of this type come as text: `runQuery` in client.ts converts them. */
const BYTEA: postgres.PostgresType<Buffer> = {
  to: 17,
  from: [17],
  serialize: String,
  parse: (text: string) => Buffer.from(text.slice(2), 'hex'),
}

/**
 * Bytes as the text of a `bytea`. Valid UTF-8, as most bodies are, goes in the escape format,
 * which is half as long as hex and a quarter cheaper to send. PostgreSQL would convert it in a
 * database that is not in UTF8: `refuseUnfitServer` refuses these.
 */
export function byteaText(bytes: Buffer): string {
  return isUtf8(bytes) && !bytes.includes(0)
    ? bytes.toString('utf8').replaceAll('\\', '\\\\')
    : `\\x${bytes.toString('hex')}`
}
