import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import postgres from 'postgres'
import { splitDatabaseUrl } from '../kernel/database-url.ts'
import { messageOf } from '../kernel/log.ts'
import { isPort } from '../kernel/net/addresses.ts'

/** Where a server accepts connections. */
export interface ServerAddress {
  host: string
  port: number
  /** A unix socket instead. */
  path?: string
}

/** The servers of a database's URL: all connections of a process go to the same one of them. */
export interface Servers {
  /** The URL for the client library, which is given sockets: its host has no meaning. */
  url: string
  /** How certificates are checked, where the URL names a file with who vouches for them. */
  tls: ConnectionOptions | undefined
  /** Whether only a server that takes changes is used. */
  writable: boolean
  /** The server for the next connection. Rejects while none of several takes changes. */
  find(): Promise<ServerAddress>
  /** Looks for another server, if connections still go to this one. */
  leave(server: ServerAddress): void
}

const DEFAULT_PORT = '5432'
/** Values of target_session_attrs. The others are for programs that only read. */
const WRITABLE = ['read-write', 'primary']
const READ_HERE = ['host', 'port', 'target_session_attrs', 'sslrootcert']
/** How long a server may take to say whether it takes changes. */
const FIND_MS = 2_000
const LATE = `no answer in ${FIND_MS / 1_000} s`

/**
 * Reads the servers of a URL as libpq does: several hosts with commas between them, in the URL or
 * as its parameter `host`. A host that begins with `/` is the folder of a unix socket. The client
 * library can do neither: it takes a standby for writable, and tries hosts without a pause.
 */
export function parseServers(text: string): Servers {
  const { start, hosts, path, query } = splitDatabaseUrl(text)
  const params = new URLSearchParams(query)
  const attributes = params.get('target_session_attrs')
  if (attributes !== null && !WRITABLE.includes(attributes)) {
    throw new Error(`target_session_attrs ${attributes} is not supported; expected read-write`)
  }
  const servers = addressesOf(params.get('host') ?? hosts, params.get('port') ?? '')
  // PostgreSQL has no TLS on unix sockets.
  const isLocal = servers.every((server) => server.path !== undefined)
  if (isLocal) params.delete('sslmode')
  const isPlain = isLocal || params.get('sslmode') === 'disable'
  const authorities = isPlain ? null : params.get('sslrootcert')
  // The authorities that everybody knows, as libpq names them. Node has them.
  if (authorities === 'system') params.set('sslmode', 'verify-full')
  const tls = authorities === null || authorities === 'system' ? undefined : trusting(authorities)
  for (const name of READ_HERE) params.delete(name)
  const url = `${start}localhost${path}?${params.toString()}`
  const writable = servers.length > 1 || attributes !== null
  const [only] = servers
  if (servers.length === 1 && only !== undefined) {
    return { url, tls, writable, find: () => Promise.resolve(only), leave: () => undefined }
  }
  return { url, tls, writable, ...createFinder(url, tls, servers) }
}

/** Only certificates of these authorities are taken, and for this server's name or address. */
function trusting(file: string): ConnectionOptions {
  try {
    return { ca: readFileSync(file) }
  } catch (error) {
    throw new Error(`sslrootcert ${file} can't be read (${messageOf(error)})`)
  }
}

function addressesOf(hosts: string, ports: string): readonly ServerAddress[] {
  const listed = ports.split(',')
  return hosts.split(',').map((text, at) => {
    const [, name = text, ownPort] = /^(\[[^\]]*\]|[^:]*)(?::(\d+))?$/.exec(text) ?? []
    const host = decodeURIComponent(name).replace(/^\[|\]$/g, '') || 'localhost'
    const port = ownPort ?? listed[at] ?? listed[0]
    const address = { host, port: portOf(port || DEFAULT_PORT) }
    if (!host.startsWith('/')) return address
    return { ...address, path: `${host}/.s.PGSQL.${address.port}` }
  })
}

function portOf(text: string): number {
  const port = Number(text)
  if (isPort(port)) return port
  throw new Error(`the URL of the database has the port ${text}; expected 1 to 65535`)
}

/** Finds the one of several servers that takes changes, and keeps to it until it is left. */
function createFinder(url: string, tls: Servers['tls'], servers: readonly ServerAddress[]) {
  let found: ServerAddress | undefined
  let search: Promise<ServerAddress> | undefined

  async function searchAll() {
    try {
      found = await Promise.any(servers.map((server) => refuseReadOnly(url, tls, server)))
      return found
    } catch (error) {
      const reasons = error instanceof AggregateError ? error.errors : [error]
      const texts = servers.map(({ host, port }, at) => `${host}:${port}: ${reasons[at]?.message}`)
      throw noServer(`none of the servers takes changes (${texts.join('; ')})`)
    } finally {
      search = undefined
    }
  }
  return {
    find: async () => found ?? (await (search ??= searchAll())),
    leave(server: ServerAddress) {
      if (server === found) found = undefined
    },
  }
}

async function refuseReadOnly(url: string, tls: Servers['tls'], server: ServerAddress) {
  let socket: Socket | undefined
  // The time limit of the client library ends when it is connected.
  const late = setTimeout(() => socket?.destroy(new Error(LATE)), FIND_MS)
  const sql = postgres(url, {
    max: 1,
    connect_timeout: 0,
    fetch_types: false,
    onnotice: () => undefined,
    ...(tls !== undefined && { ssl: tls }),
    socket: () => (socket = openSocket(server)),
  } as postgres.Options<{}>)
  try {
    const [row] = await sql`show transaction_read_only`
    if (row?.['transaction_read_only'] !== 'off') throw new Error('it is a standby')
    return server
  } finally {
    clearTimeout(late)
    void sql.end({ timeout: 0 }).catch(() => undefined)
  }
}

/** What is read of a socket when it goes on with TLS. */
interface Named {
  /** By the client library, which asks for the certificate of this name, but not of an address. */
  host: string
  port: number
  /** By Node, which checks the certificate against it where no name was asked for. */
  _host: string
}

/**
 * A socket for the client library. A proxy without its database ends a connection before the first
 * message. With its own sockets the library then reconnects at once, thousands of times a second.
 * Here that is an error like any other.
 */
export function openSocket({ host, port, path }: ServerAddress): Socket & Named {
  const socket = path === undefined ? connect(port, host) : connect(path)
  // Else the end of a large statement waits until the server has acknowledged its beginning.
  socket.setNoDelay()
  socket.on('end', () => socket.destroy(endedByServer()))
  return Object.assign(socket, { host, port, _host: host } satisfies Named)
}

/** An error by which a statement counts as unavailable. */
export function noServer(message: string): Error {
  return Object.assign(new Error(message), { code: 'ECONNREFUSED' })
}

export function endedByServer(): Error {
  const error = new Error('the server has ended the connection')
  return Object.assign(error, { code: 'ECONNRESET' })
}
