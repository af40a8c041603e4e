import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { ListenOptions, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { wrongMethod, type Fault } from '../fault.ts'
import { messageOf, type Log } from '../log.ts'
import { clientAddress, watchPeers, type AddressSet } from '../net/addresses.ts'
import type { Guard } from '../net/guard.ts'
import type { Clock } from '../time.ts'
import { createBatch } from './batch.ts'
import { bringsBody, isEmptyBody, readBody, type BodyBudget } from './body.ts'
import { closeServer, createConnections, endOf, HTTP_TIMES, type HttpTimes } from './connections.ts'
import { headerOf, type Context } from './context.ts'
import { ambiguity, faultOfParseError, refuseMalformed, splitTarget } from './malformed.ts'
import { sameOriginOnly, type Reply } from './reply.ts'
import { createLogLimit, createRequestLog, type HttpMetrics } from './request-log.ts'
import { createResponder, faultOfError, type Exchange } from './respond.ts'
import type { Answer, FindRoute, Match } from './router.ts'
import { asksForWebSocket, handshakeFault, responseOn, type Upgrade } from './websocket.ts'

/** The parts of a request that an error body may depend on. */
export type FaultRequest = Pick<Context, 'method' | 'path' | 'headers'>

/** Renders a fault in the error shape of a service's contract. */
export type FaultReply = (fault: Fault, request: FaultRequest) => Reply

export interface ListenerOptions {
  readonly service: string
  readonly find: FindRoute
  /** The reply to a path that no route has. */
  readonly noRoute: Fault
  readonly faultReply: FaultReply
  readonly guard: Guard
  readonly trustedProxies: AddressSet
  readonly bodyBudget: BodyBudget
  readonly log: Log
  readonly metrics: HttpMetrics
  readonly clock: Clock
  /** `HTTP_TIMES` when absent. */
  readonly times?: HttpTimes
}

export interface Listener {
  /** The bound server, for its address. */
  readonly server: Server
  listen(options: ListenOptions & { fd?: number }): Promise<void>
  /**
   * Stops accepting, lets requests and WebSockets finish, and cuts what is left after `graceMs`.
   */
  close(graceMs: number): Promise<void>
}

/** A listener: request → route → guard → handler → response. Nothing else writes to a response. */
export function createListener(options: ListenerOptions): Listener {
  const { service, find, noRoute, faultReply, guard, trustedProxies, bodyBudget } = options
  const { log, metrics, clock, times = HTTP_TIMES } = options
  const nextId = requestIds()
  let stopping = false
  /** Connections that became WebSockets: Node's server no longer knows them. */
  const upgraded = new Set<Duplex>()
  const connections = createConnections(times.stalled)
  const logLimit = createLogLimit(service, log)
  const requestLog = createRequestLog(service, log, logLimit, metrics)

  /** The reply for what a handler threw. Where even that can't be made, an empty 500. */
  function errorReply(error: unknown, context: Context): Reply {
    try {
      return faultReply(faultOfError(error, log, logLimit, service, context), context)
    } catch (second) {
      log.error('answer failed', { service, error: messageOf(second) })
      return { status: 500, headers: {}, body: null }
    }
  }
  const batch = createBatch((error) =>
    log.error('answer failed', { service, error: messageOf(error) }),
  )
  const respond = createResponder({
    ...{ connections, requestLog, clock, errorReply },
    isStopping: () => stopping,
  })

  const server = createServer({
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
      return match.kind === 'route' && match.route.speaksWebSocket === true
    },
  })
  const peerOf = watchPeers(server)
  server.on('request', (request, response) => take(request, response, {}))
  server.on('checkContinue', (request, response) => take(request, response, { waits: true }))
  // An unknown expectation may be ignored (RFC 9110 section 10.1.1); Node's own 417 lacks our
  // headers.
  server.on('checkExpectation', (request, response) => take(request, response, {}))
  server.on('upgrade', (request, socket, head) => {
    upgraded.add(socket)
    socket.once('close', () => upgraded.delete(socket))
    const response = responseOn(request, socket)
    if (response !== undefined) take(request, response, { upgrade: { socket, head } })
  })
  server.on('clientError', (error, socket) => {
    if (connections.endAfterReply(socket as Socket, error)) return
    const fault = faultOfParseError(error)
    const peer = peerOf(socket)
    if (fault === undefined || peer === undefined) return void socket.destroy()
    const requestId = nextId()
    refuseMalformed(socket as Socket, faultReply(fault, NO_REQUEST), requestId)
    requestLog.malformed(requestId, fault.status, peer)
  })

  /** `waits`: the client waits for 100 Continue before it sends the body. */
  function take(
    request: IncomingMessage,
    response: ServerResponse,
    how: { readonly waits?: true; readonly upgrade?: Upgrade },
  ): void {
    const peer = peerOf(request.socket)
    if (peer === undefined) return void request.socket.destroy()
    connections.begin(response, () => serve(request, response, peer, how))
  }

  function serve(
    request: IncomingMessage,
    response: ServerResponse,
    peer: string,
    { waits, upgrade }: { readonly waits?: true; readonly upgrade?: Upgrade },
  ): void {
    const started = performance.now()
    const method = request.method ?? ''
    const { path, search } = splitTarget(request)
    const match = find(method, path)
    const unclear = ambiguity(request)
    // Behind an upgrade that is ignored, Node drops what has come of the next request.
    const isLast = upgrade !== undefined || unclear !== undefined || 'upgrade' in request.headers
    if (isLast) connections.stopReading(request.socket)
    const context: Context = {
      method,
      path,
      route: match.kind === 'route' ? match.route.path : '(none)',
      params: match.kind === 'route' ? match.params : {},
      search,
      headers: request.headers,
      httpVersion: request.httpVersion,
      rawHeaders: request.rawHeaders,
      requestId: nextId(),
      peer,
      client: clientAddress(peer, headerOf(request, 'x-forwarded-for'), trustedProxies),
      receivedAt: clock.now(),
      body: (limit, eachPart) =>
        readBody(request, limit, bodyBudget, {
          proceed: () => waits === true && response.writeContinue(),
          eachPart,
        }),
      gone: () => endOf(response),
    }
    const exchange: Exchange = { request, response, upgrade, context, isLast, started }
    // Open routes may be loaded by pages of other sites: short links as images, probes.
    const isGuarded = match.kind === 'route' && match.route.access !== 'open'
    function send(reply: Answer): void {
      const all = isGuarded && !('open' in reply) ? sameOriginOnly(reply) : reply
      batch.write(() => respond(exchange, all))
    }
    function fail(error: unknown): void {
      send(errorReply(error, context))
    }
    /** At once: what follows on the connection may not be readable, and would be answered first. */
    function refuseNow(fault: Fault): void {
      respond(exchange, faultReply(fault, context))()
    }
    function run(): void {
      try {
        const refusal = refuse(request, context, match, upgrade !== undefined)
        if (refusal !== undefined) return refuseNow(refusal)
        if (match.kind !== 'route') return
        const answer = match.route.handle(context)
        if (answer instanceof Promise) answer.then(send, fail)
        else send(answer)
      } catch (error) {
        fail(error)
      }
    }
    if (unclear !== undefined) refuseNow(unclear)
    // A body must be read from its first bytes on.
    else if (bringsBody(request)) run()
    else batch.handle(run)
  }

  /** Why a request is refused before its handler runs. */
  function refuse(
    request: IncomingMessage,
    context: Context,
    match: Match,
    isUpgrade: boolean,
  ): Fault | undefined {
    if (match.kind === 'none') return noRoute
    if (match.kind === 'wrong-method') return wrongMethod(match.allow)
    const { access, speaksWebSocket } = match.route
    if (access !== 'open') {
      const refusal = guard(context, asksForWebSocket(request) ? 'strict' : access)
      if (refusal !== undefined) return refusal
    }
    return speaksWebSocket === true ? handshakeFault(request, isUpgrade) : undefined
  }

  return {
    server,
    async listen(where) {
      server.listen(where, where.backlog)
      await once(server, 'listening')
    },
    close(graceMs) {
      stopping = true
      return closeServer({ server, unsent: connections.unsent, upgraded }, graceMs)
    },
  }
}

/** What stands for a request that could not be read. */
const NO_REQUEST: FaultRequest = { method: '', path: '', headers: {} }

/** Ids of requests: unique in a process, and hardly ever the same in another. */
function requestIds(): () => string {
  const start = Math.random().toString(36).slice(2, 8)
  let counter = 0
  return () => `${start}-${(++counter).toString(36)}`
}
