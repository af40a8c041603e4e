import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { ListenOptions, Socket } from 'node:net'
import { wrongMethod, type Fault } from '../fault.ts'
import { messageOf } from '../log.ts'
import { clientAddress, isLoopback, watchPeers, type AddressSet } from '../net/addresses.ts'
import type { Guard } from '../net/guard.ts'
import type { Identity } from '../actor.ts'
import type { IdentifiedRequest } from '../net/identity.ts'
import { createBatch } from './batch.ts'
import { bringsBody, isEmptyBody, readBody, type BodyBudget } from './body.ts'
import { ConnectionLimit } from './connection-limit.ts'
import { closeServer, Connections, endOf, HTTP_TIMES } from './connections.ts'
import { headerOf, type Context } from './context.ts'
import { ambiguity, faultOfParseError, refuseMalformed, splitTarget } from './malformed.ts'
import { http } from './node-http.ts'
import { sameOriginOnly, type FaultRequest } from './reply.ts'
import { createLogLimit, createRequestLog, requestIds, type HttpMetrics } from './request-log.ts'
import { errorReply, respond, type Exchange, type Responder } from './respond.ts'
import type { Answer, FindRoute, Match } from './router.ts'
import { peerProcess } from '../processes/marked.ts'
import { noteBegun } from '../processes/watchdog.ts'
import type { RequestLevel, WaitingRequests } from './waiting.ts'
import { asksForWebSocket, handshakeFault, responseOn, type Upgrade } from './websocket.ts'

export interface ListenerOptions extends Pick<
  Responder,
  'service' | 'faultReply' | 'log' | 'clock'
> {
  find: FindRoute
  /** The reply to a path that no route has. */
  noRoute: Fault
  guard: Guard
  trustedProxies: AddressSet
  /** Who sends a request, by what the connection shows. */
  identify: (request: IdentifiedRequest) => Identity
  bodyBudget: BodyBudget
  metrics: HttpMetrics
  /** Of all listeners of the process. */
  waiting: WaitingRequests
  /** How many connections it may have. */
  maxConnections: number
  /** `HTTP_TIMES` when absent. */
  times?: typeof HTTP_TIMES
}

export type Listener = ReturnType<typeof createListener>

/** What a request is served with. */
interface Parts extends ListenerOptions, Responder {
  batch: ReturnType<typeof createBatch>
  peerOf: ReturnType<typeof watchPeers>
  nextId: () => string
}

/** A request that has come, and where its response goes. */
interface Arrival {
  request: IncomingMessage
  response: ServerResponse
  /** The client waits for 100 Continue before it sends the body. */
  waits?: true
  upgrade?: Upgrade
}

/** A listener: request → route → guard → handler → response. Nothing else writes to a response. */
export function createListener(options: ListenerOptions) {
  const { service, find, log, metrics, waiting, trustedProxies, times = HTTP_TIMES } = options
  const limit = new ConnectionLimit(options)
  const connections = new Connections({
    limit,
    waiting,
    levelOf: (request) => requestLevel(parts, request),
    stalledMs: times.stalled,
  })
  const logLimit = createLogLimit(service, log)
  const server = http.createServer({
    requireHostHeader: false,
    // Without this, Node makes a stream for each request without a body: half the cost of a
    // redirect.
    optimizeEmptyRequests: true,
    keepAliveTimeout: times.idle,
    headersTimeout: times.head,
    requestTimeout: times.request,
    connectionsCheckingInterval: times.check,
    // Other upgrades are ignored, as HTTP allows: the request is answered like any other.
    shouldUpgradeCallback: (request) => {
      if (!asksForWebSocket(request) || !isEmptyBody(request)) return false
      // The connection still belongs to the responses before this one.
      if (connections.isBusy(request.socket)) return false
      const match = find(request.method ?? '', splitTarget(request).path)
      return match.kind === 'route' && match.route.webSocketOf !== undefined
    },
  })
  const parts: Parts = {
    ...options,
    connections,
    logLimit,
    requestLog: createRequestLog(service, log, logLimit, metrics),
    batch: createBatch((error) =>
      log.error('answer failed', { service, error: messageOf(error) }),
    ),
    peerOf: watchPeers(server),
    nextId: requestIds(),
    stopping: false,
  }
  attend(server, parts)
  server.on('connection', (socket: Socket) => {
    const peer = parts.peerOf(socket)
    if (peer === undefined) return
    const isBounded = !isLoopback(peer) && !trustedProxies(peer)
    limit.take(socket, isBounded ? peer : undefined)
  })

  return {
    /** The bound server, for its address. */
    server,
    async listen(where: ListenOptions & { fd?: number }) {
      server.listen(where, where.backlog)
      await once(server, 'listening')
      // Without a listener an error of `accept`, as for want of memory, would end the process.
      server.on('error', (error) =>
        log.error('connection not accepted', { service, error: messageOf(error) }),
      )
    },
    /**
     * Stops accepting, lets requests and WebSockets finish, and cuts what is left after `graceMs`.
     */
    close(graceMs: number) {
      parts.stopping = true
      return closeServer(server, connections, graceMs)
    },
  }
}

/** Takes what comes to the server. */
function attend(server: Server, parts: Parts) {
  const { upgraded } = parts.connections
  server.on('request', (request, response) => take(parts, { request, response }))
  server.on('checkContinue', (request, response) =>
    take(parts, { request, response, waits: true }),
  )
  // An unknown expectation may be ignored (RFC 9110 section 10.1.1); Node's own 417 lacks our
  // headers.
  server.on('checkExpectation', (request, response) => take(parts, { request, response }))
  server.on('upgrade', (request, socket, head) => {
    upgraded.add(socket)
    socket.once('close', () => upgraded.delete(socket))
    const response = responseOn(request, socket)
    if (response !== undefined) take(parts, { request, response, upgrade: { socket, head } })
  })
  server.on('clientError', (error, socket) => refuseBytes(parts, error, socket as Socket))
}

/** Answers bytes that are no request. */
function refuseBytes(parts: Parts, error: Error, socket: Socket) {
  if (parts.connections.endAfterReply(socket, error)) return
  const fault = faultOfParseError(error)
  const peer = parts.peerOf(socket)
  if (fault === undefined || peer === undefined) return void socket.destroy()
  const requestId = parts.nextId()
  refuseMalformed(socket, parts.faultReply(fault, NO_REQUEST), requestId)
  parts.requestLog.malformed(requestId, fault.status, peer)
}

function take(parts: Parts, arrival: Arrival) {
  const { request, response } = arrival
  const peer = parts.peerOf(request.socket)
  if (peer === undefined) return void request.socket.destroy()
  parts.connections.begin(response, (begun) => serve(parts, arrival, peer, begun))
}

/** The level of a request, by its head. */
function requestLevel({ find, guard, peerOf }: Parts, request: IncomingMessage): RequestLevel {
  const { method = '', headers, httpVersion, socket } = request
  const peer = peerOf(socket)
  const match = find(method, splitTarget(request).path)
  if (match.kind !== 'route' || peer === undefined) return 'strangers'
  const { access, kind } = match.route
  if (kind === 'delivery') return 'deliveries'
  if (access === 'open') return 'strangers'
  const refusal = guard({ method, headers, httpVersion, peer }, access)
  return refusal === undefined ? 'trusted' : 'strangers'
}

/** Calls `begun` when the request's handler begins, or the request is refused. */
function serve(parts: Parts, arrival: Arrival, peer: string, begun: () => void) {
  const started = performance.now()
  const { connections, find, trustedProxies, bodyBudget } = parts
  const { request, response, waits, upgrade } = arrival
  const { method = '', headers, httpVersion, rawHeaders } = request
  const { path, search } = splitTarget(request)
  const match = find(method, path)
  const unclear = ambiguity(request)
  // Behind an upgrade that is ignored, Node drops what has come of the next request.
  const isLast = upgrade !== undefined || unclear !== undefined || 'upgrade' in headers
  if (isLast) connections.stopReading(request.socket)
  const context: Context = {
    method,
    path,
    route: match.kind === 'route' ? match.route.path : '(none)',
    kind: match.kind === 'route' ? match.route.kind : undefined,
    params: match.kind === 'route' ? match.params : {},
    search,
    headers,
    httpVersion,
    rawHeaders,
    requestId: parts.nextId(),
    peer,
    client: clientAddress(peer, headerOf(request, 'x-forwarded-for'), trustedProxies),
    receivedAt: parts.clock.now(),
    actor: parts.identify({ headers, httpVersion, peer }),
    body: (limit, eachPart) =>
      readBody(request, limit, bodyBudget, {
        proceed: () => waits === true && response.writeContinue(),
        eachPart,
      }),
    peerProcess: () => peerProcessOf(peer, request.socket),
    gone: () => endOf(response),
  }
  const exchange: Exchange = { request, response, upgrade, context, isLast, started }
  function handle() {
    begun()
    if (unclear === undefined) answer(parts, exchange, match)
    else refuseNow(parts, exchange, unclear)
  }
  // A refusal goes out before what follows is read; a body must be read from its first bytes on.
  if (unclear !== undefined || bringsBody(request)) handle()
  else parts.batch.handle(handle)
}

function peerProcessOf(peer: string, { remotePort, localPort }: Socket) {
  // A unix socket has no ports.
  if (remotePort === undefined) return undefined
  const found = localPort === undefined ? 'none' : peerProcess(remotePort, localPort)
  if (found !== 'none') return found
  return isLoopback(peer) ? 'gone' : undefined
}

/** Runs the handler, unless the request is refused before. */
function answer(parts: Parts, exchange: Exchange, match: Match) {
  // Open routes may be loaded by pages of other sites: short links as images, probes.
  const isGuarded = match.kind === 'route' && match.route.access !== 'open'
  function send(reply: Answer) {
    const all = isGuarded && !('open' in reply) ? sameOriginOnly(reply) : reply
    parts.batch.write(() => respond(parts, exchange, all))
  }
  const fail = (error: unknown) => send(errorReply(parts, exchange, error))
  try {
    const refusal = refusalOf(parts, exchange, match)
    if (refusal !== undefined) return refuseNow(parts, exchange, refusal)
    if (match.kind !== 'route') return
    const { method, route, requestId } = exchange.context
    noteBegun(`${method} ${route}`, requestId)
    const reply = match.route.handle(exchange.context)
    if (reply instanceof Promise) reply.then(send, fail)
    else send(reply)
  } catch (error) {
    fail(error)
  }
}

/** At once: what follows on the connection may not be readable, and would be answered first. */
function refuseNow(parts: Parts, exchange: Exchange, fault: Fault) {
  respond(parts, exchange, parts.faultReply(fault, exchange.context))()
}

function refusalOf(
  { noRoute, guard }: Parts,
  { request, context, upgrade }: Exchange,
  match: Match,
) {
  if (match.kind === 'none') return noRoute
  if (match.kind === 'wrong-method') return wrongMethod(match.allow)
  const { access, webSocketOf } = match.route
  if (access !== 'open') {
    const refusal = guard(context, asksForWebSocket(request) ? 'strict' : access)
    if (refusal !== undefined) return refusal
  }
  if (webSocketOf === undefined) return undefined
  return handshakeFault(request, upgrade !== undefined, webSocketOf)
}

/** What stands for a request that could not be read. */
const NO_REQUEST: FaultRequest = { method: '', path: '', headers: {} }
