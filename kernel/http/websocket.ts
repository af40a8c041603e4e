import type { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { WebSocket, WebSocketServer } from 'ws'
import type { Clock } from '../time.ts'
import { messageOf } from '../log.ts'
import { readStart } from '../net/read-start.ts'
import { isEmptyBody } from './body.ts'
import { badRequest, Fault } from '../fault.ts'
import { http } from './node-http.ts'

/** A binary message is sent in pieces of this size, so that pings pass between them. */
const PIECE = 256 * 1024

/** Both sides ping at this interval, and end a connection that is silent for two of them. */
const HEARTBEAT_MS = 10_000
const SILENT_BEATS = 2

/** `closeTimeout`: the other side's time to close. The published types lack it. */
const SETTINGS = { perMessageDeflate: false, closeTimeout: 2_000 }
const CONNECT_MS = 10_000

/** Bytes of a refusal that are read. */
const REFUSAL_BYTES = 4 * 1024

/** Answers a checked upgrade request: opens the WebSocket on the raw socket. */
export function acceptChannel(
  request: IncomingMessage,
  { socket, head }: Upgrade,
  { protocol, maxMessage, open }: ChannelReply,
  requestId: string,
  clock: Clock,
): void {
  const server = new WebSocketServer({
    ...SETTINGS,
    noServer: true,
    clientTracking: false,
    maxPayload: maxMessage,
    handleProtocols: (offered) => (offered.has(protocol) ? protocol : false),
  })
  server.on('headers', (lines) => lines.push(`x-request-id: ${requestId}`))
  server.handleUpgrade(request, socket, head, (webSocket) =>
    open(channelOf(webSocket, () => socket, clock)),
  )
}

export interface ConnectOptions {
  /** ws: or wss:. */
  url: URL
  protocol: string
  maxMessage: number
  clock: Clock
}

/**
 * Connects to a server. Messages sent before it is open are dropped. Redirects are not followed.
 */
export function connectChannel({ url, protocol, maxMessage, clock }: ConnectOptions): Channel {
  const webSocket = new WebSocket(url, [protocol], {
    ...SETTINGS,
    maxPayload: maxMessage,
    handshakeTimeout: CONNECT_MS,
  })
  let socket: Duplex | undefined
  webSocket.on('upgrade', (response) => {
    socket = response.socket
  })
  return channelOf(webSocket, () => socket, clock)
}

function channelOf(webSocket: WebSocket, socket: () => Duplex | undefined, clock: Clock): Channel {
  let pieces = 0
  return {
    send(text) {
      if (webSocket.readyState === WebSocket.OPEN) webSocket.send(text)
    },
    async sendBytes(bytes) {
      for (let at = 0; at === 0 || at < bytes.length; at += PIECE) {
        if (webSocket.readyState !== WebSocket.OPEN) return
        await sendPiece(webSocket, bytes.subarray(at, at + PIECE), at + PIECE >= bytes.length)
        pieces++
      }
    },
    close: (code, reason) => webSocket.close(code, reason),
    onMessage(callback) {
      webSocket.on('message', (data, isBinary) => {
        // Its type unless another `binaryType` is set.
        const bytes = data as Buffer
        callback(isBinary ? bytes : bytes.toString('utf8'))
      })
    },
    ended: untilEnded(webSocket, () => pieces + bytesRead(socket()), clock),
  }
}

function sendPiece(webSocket: WebSocket, piece: Buffer, fin: boolean): Promise<void> {
  return new Promise((resolve) => {
    webSocket.send(piece, { binary: true, fin }, () => resolve())
  })
}

/** Waits for the end of the connection, with pings; `moved` counts what it has carried. */
function untilEnded(webSocket: WebSocket, moved: () => number, clock: Clock): Promise<ChannelEnd> {
  let problem: string | undefined
  const ended = Promise.withResolvers<ChannelEnd>()
  const stopHeartbeat = startHeartbeat(webSocket, moved, clock, () => {
    problem = 'no sign of life from the other side'
  })

  webSocket.on('error', (error) => {
    problem ??= messageOf(error)
  })
  webSocket.on('unexpected-response', (request, response) => {
    const status = response.statusCode ?? 0
    readStart(response, REFUSAL_BYTES, (start) => {
      ended.resolve({ kind: 'refused', status, body: start.toString('utf8') })
      request.destroy()
      webSocket.terminate()
    })
  })
  webSocket.on('close', (code, reason) => {
    stopHeartbeat()
    // 1006: there was no close message.
    if (code === 1006)
      ended.resolve({ kind: 'lost', reason: problem ?? 'the connection broke off' })
    else ended.resolve({ kind: 'closed', code, reason: reason.toString('utf8') })
  })
  return ended.promise
}

/**
 * Pings at each beat, and ends a connection on which nothing has moved meanwhile: the machine
 * slept, or the network forgot the connection. A message that takes long to arrive moves bytes all
 * the time.
 */
function startHeartbeat(
  webSocket: WebSocket,
  moved: () => number,
  clock: Clock,
  onDeath: () => void,
): () => void {
  let before = -1
  let silent = 0
  return clock.every(HEARTBEAT_MS, () => {
    if (webSocket.readyState !== WebSocket.OPEN) return
    const now = moved()
    silent = now === before ? silent + 1 : 0
    before = now
    if (silent < SILENT_BEATS) return webSocket.ping()
    onDeath()
    webSocket.terminate()
  })
}

function bytesRead(socket: Duplex | undefined) {
  return socket instanceof Socket ? socket.bytesRead : 0
}

/** What the user of an open WebSocket connection, server or client, may do with it. */
export interface Channel {
  /** Sends a text message; dropped when the connection has ended. */
  send(text: string): void
  /**
   * Sends a binary message piece by piece: each waits until the previous one is sent. Resolves when
   * all are sent, or when the connection has ended. Nothing else may be sent meanwhile.
   */
  sendBytes(bytes: Buffer): Promise<void>
  /**
   * Ends the connection in order; `reason` has at most 123 bytes. Repeated calls change nothing.
   */
  close(code: CloseCode, reason: string): void
  /**
   * Where messages go: text as string, binary as Buffer. Set at once, or the first ones are
   * missed.
   */
  onMessage(callback: (message: string | Buffer) => void): void
  /** Resolves when the connection has ended, or never came about. */
  ended: Promise<ChannelEnd>
}

/**
 * Why a side ends a connection: 1000 done, 1001 it stops, 1008 the other side breaks the protocol,
 * 1013 not now, 4409 a newer connection has taken this one's place.
 */
export type CloseCode = 1000 | 1001 | 1008 | 1013 | 4409

/**
 * How a connection ended. `closed`: by a close message. `refused`: the server answered the upgrade
 * with an ordinary response, `body` is its beginning. `lost`: broken off, or nobody was there.
 */
export type ChannelEnd =
  | { kind: 'closed'; code: number; reason: string }
  | { kind: 'refused'; status: number; body: string }
  | { kind: 'lost'; reason: string }

/** The answer to the request for a WebSocket: yes, and what is done with it. */
export interface ChannelReply {
  status: 101
  /** The subprotocol that is spoken. */
  protocol: string
  /** Largest message that is taken, in bytes. */
  maxMessage: number
  /** Given the connection once it is open. */
  open: (channel: Channel) => void
}

/**
 * The raw connection of a request for a WebSocket, and what came on it behind the request's head.
 */
export interface Upgrade {
  socket: Duplex
  head: Buffer
}

/** True for a request that asks to go on as a WebSocket (RFC 6455 section 4.1). */
export function asksForWebSocket({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket'
}

/**
 * Why a request can't become a WebSocket. Its route speaks nothing else; `client` is the program
 * that does.
 */
export function handshakeFault(
  request: IncomingMessage,
  isUpgrade: boolean,
  client: string,
): Fault | undefined {
  const { headers } = request
  if (asksForWebSocket(request) && !isEmptyBody(request)) {
    return badRequest('A request for a WebSocket has no body.')
  }
  if (!isUpgrade) {
    return upgradeRequired(`This path speaks WebSocket only; connect with "${client}".`, {
      upgrade: 'websocket',
      connection: 'upgrade',
    })
  }
  if (headers['sec-websocket-version'] !== '13') {
    return upgradeRequired('Only version 13 of WebSocket is spoken here.', {
      'sec-websocket-version': '13',
    })
  }
  const key = headers['sec-websocket-key'] ?? ''
  const protocols = headers['sec-websocket-protocol']
  if (!/^[+/0-9A-Za-z]{22}==$/.test(key) || (protocols !== undefined && !isList(protocols))) {
    return badRequest('A header of the WebSocket is malformed.')
  }
  return undefined
}

/**
 * A response on a raw connection, for a request that does not become a WebSocket; the connection
 * ends with it. Undefined when the connection still belongs to an earlier response.
 */
export function responseOn(request: IncomingMessage, socket: Duplex): ServerResponse | undefined {
  // Node's server no longer handles errors of this socket; an unhandled one would end the process.
  socket.on('error', () => socket.destroy())
  const response = new http.ServerResponse(request)
  response.shouldKeepAlive = false
  try {
    response.assignSocket(socket as Parameters<ServerResponse['assignSocket']>[0])
  } catch {
    socket.destroy()
    return undefined
  }
  response.on('finish', () => socket.end(() => socket.destroy()))
  return response
}

/** Whether a text is a list of tokens, each of them once. */
function isList(text: string) {
  const tokens = text.split(',').map((token) => token.trim())
  const good = tokens.every((token) => /^[\w!#$%&'*+.^`|~-]+$/.test(token))
  return good && new Set(tokens).size === tokens.length
}

function upgradeRequired(message: string, headers: Readonly<Record<string, string>>): Fault {
  return new Fault(426, 'UPGRADE_REQUIRED', message, { headers })
}
