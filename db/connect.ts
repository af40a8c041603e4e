import { isUtf8 } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import postgres from 'postgres'
import type { Client } from './pool.ts'
import {
  endedByServer,
  noServer,
  openSocket,
  type ServerAddress,
  type Servers,
} from './servers.ts'

/** The servers of a URL, or the embedded engine. */
export type Target = Servers | Engine

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
  const { deadlineMs, onClose, onReopen = () => undefined, onNotify } = options
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
  if ('socket' in target) {
    const sql = postgres({
      ...settings,
      host: 'embedded',
      user: 'postgres',
      database: 'postgres',
      socket: target.socket,
    } as typeof settings)
    return { name, sql, cut: () => undefined }
  }
  const opener = socketOpener(target, onReopen, onClose)
  const sql = postgres(withoutSettings(target.url, connection), {
    ...settings,
    ...(target.tls !== undefined && { ssl: target.tls }),
    ...opener.settings,
  } as typeof settings)
  return { name, sql, cut: opener.cut }
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

/** The part of the client library's own options that a socket needs. */
interface Parsed {
  /** What the server has reported so far, also on connections before. */
  parameters: Record<string, string>
}

/** What PostgreSQL reports of a server, or of a session, that takes no changes. */
const TAKES_NO_CHANGES = ['in_hot_standby', 'default_transaction_read_only']

/**
 * Opens the sockets of one connection, one after the other. A server that was not reached is left,
 * and so is one that has become a standby.
 */
function socketOpener(servers: Servers, onReopen: () => void, onClose: () => void) {
  let open: Socket | undefined
  let server: ServerAddress | undefined
  let isUsable = false
  let isCut = false

  async function socket({ parameters }: Parsed): Promise<Socket> {
    if (open !== undefined) onReopen()
    // The client library tells of a report only if it differs from the connection before.
    for (const name of TAKES_NO_CHANGES) delete parameters[name]
    isUsable = false
    try {
      server = await servers.find()
    } catch (error) {
      return failingSocket(error)
    }
    // It was given up meanwhile, and nobody would close it.
    if (isCut) return failingSocket(endedByServer())
    open = openSocket(server)
    return open
  }
  function leave() {
    if (server !== undefined) servers.leave(server)
  }
  return {
    cut() {
      isCut = true
      open?.destroy()
    },
    settings: {
      socket,
      onclose() {
        if (!isUsable) leave()
        onClose()
      },
      onparameter(name: string, value: string) {
        isUsable = true
        if (!servers.writable || !TAKES_NO_CHANGES.includes(name) || value !== 'on') return
        leave()
        open?.destroy()
        // The client library gives this error to the statement that waits for the connection.
        throw noServer('the server is a standby, or takes no changes')
      },
    },
  }
}

/** A socket that fails: the client library mishandles one that it does not get. */
function failingSocket(error: unknown): Socket {
  const socket = new Socket()
  setImmediate(() => socket.destroy(error as Error))
  return socket
}

/** int8 as a number: ids and counters stay far below 2^53. */
const BIGINT: postgres.PostgresType<number> = {
  to: 20,
  from: [20],
  serialize: String,
  parse: Number,
}

const BYTEA: postgres.PostgresType<Buffer> = {
  to: 17,
  from: [17],
  serialize: byteaText,
  parse: (text: string) => Buffer.from(text.slice(2), 'hex'),
}

/**
 * Bytes as the text of a `bytea`. Valid UTF-8, as most bodies are, goes in the escape format,
 * which is half as long as hex and a quarter cheaper to send. PostgreSQL would convert it in a
 * database that is not in UTF8: `refuseUnfitServer` refuses these.
 */
function byteaText(bytes: Buffer): string {
  return isUtf8(bytes) && !bytes.includes(0)
    ? bytes.toString('utf8').replaceAll('\\', '\\\\')
    : `\\x${bytes.toString('hex')}`
}
