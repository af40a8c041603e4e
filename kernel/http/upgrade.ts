import { ServerResponse, type IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { isEmptyBody } from './body.ts'
import { badRequest, Fault } from '../fault.ts'

/** The raw connection of a request for a WebSocket, and what came on it behind the request's head. */
export interface Upgrade {
  readonly socket: Duplex
  readonly head: Buffer
}

/** True for a request that asks to go on as a WebSocket (RFC 6455 section 4.1). */
export function asksForWebSocket({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket'
}

/** Why a request can't become a WebSocket. Its route speaks nothing else. */
export function handshakeFault(request: IncomingMessage, isUpgrade: boolean): Fault | undefined {
  const { headers } = request
  if (asksForWebSocket(request) && !isEmptyBody(request)) {
    return badRequest('A request for a WebSocket has no body.')
  }
  if (!isUpgrade) {
    return upgradeRequired('This path speaks WebSocket only; connect with "gatehouse forward".', {
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
 * A response on a raw connection, for a request that does not become a WebSocket; the connection ends
 * with it. Undefined when the connection still belongs to an earlier response.
 */
export function responseOn(request: IncomingMessage, socket: Duplex): ServerResponse | undefined {
  // Node's server no longer handles errors of this socket; an unhandled one would end the process.
  socket.on('error', () => socket.destroy())
  const response = new ServerResponse(request)
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
function isList(text: string): boolean {
  const tokens = text.split(',').map((token) => token.trim())
  const good = tokens.every((token) => /^[\w!#$%&'*+.^`|~-]+$/.test(token))
  return good && new Set(tokens).size === tokens.length
}

function upgradeRequired(message: string, headers: Readonly<Record<string, string>>): Fault {
  return new Fault(426, 'UPGRADE_REQUIRED', message, { headers })
}
