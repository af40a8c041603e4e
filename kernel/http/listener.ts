import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { ListenOptions, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { createAnswers, endOf } from './in-flight.ts'
import { bringsBody, isEmptyBody, readBody, type BodyBudget } from './body.ts'
import type { ChannelReply } from './channel.ts'
import type { Clock } from '../time.ts'
import { closeServer } from './close-server.ts'
import { headerOf, type Context } from './context.ts'
import { createDepartures, type Exchange } from './departure.ts'
import { faultOfFailure } from './failure.ts'
import { wrongMethod, type FaultValue } from '../fault.ts'
import type { Guard } from '../net/guard.ts'
import { createLogLimit, createRequestLog } from './request-log.ts'
import { messageOf, type Log } from '../log.ts'
import type { HttpMetrics } from './http-metrics.ts'
import { HTTP_TIMES, type HttpTimes } from './http-times.ts'
import { clientAddress, watchPeers, type AddressSet } from '../net/addresses.ts'
import { ambiguity, faultOfBrokenRequest, refuseBrokenRequest } from './malformed.ts'
import { sameOriginOnly, type Reply } from './reply.ts'
import { splitTarget } from './request-target.ts'
import type { FindRoute } from './router.ts'
import { createTurn } from './turn.ts'
import { asksForWebSocket, handshakeFault, responseOn, type Upgrade } from './upgrade.ts'

/** The parts of a request that an error body may depend on. */
export type FaultRequest = Pick<Context, 'method' | 'path' | 'headers'>

/** Renders a fault in the error shape of a service's contract. */
export type FaultReply = (fault: FaultValue, request: FaultRequest) => Reply

export interface ListenerOptions {
  readonly service: string
  readonly find: FindRoute
  /** What a path that no route has is answered with. */
  readonly noRoute: FaultValue
  readonly faultReply: FaultReply
  readonly guard: Guard
  readonly trustedProxies: AddressSet
  readonly bodyBudget: BodyBudget
  readonly log: Log
  readonly metrics: HttpMetrics
  readonly clock: Clock
  /** The product's own when absent. */
  readonly times?: HttpTimes
}

export interface Listener {
  /** The bound server, for its address. */
  readonly server: Server
  listen(options: ListenOptions & { fd?: number }): Promise<void>
  /** Stops accepting, lets requests and WebSockets finish, and cuts what is left after `graceMs`. */
  close(graceMs: number): Promise<void>
}

/** Makes a listener: guard → route → handler → socket. Nothing else writes to a response. */
export function createListener(options: ListenerOptions): Listener {
  const {
    service,
    find,
    noRoute,
    faultReply,
    guard,
    trustedProxies,
    bodyBudget,
    log,
    metrics,
    clock,
    times = HTTP_TIMES,
  } = options
  const boot = Math.random().toString(36).slice(2, 8)
  let counter = 0
  const nextId = (): string => `${boot}-${(++counter).toString(36)}`
  let stopping = false
  /** Connections that are no longer Node's: of WebSockets. */
  const upgraded = new Set<Duplex>()
  const answers = createAnswers(times.stalled)
  const answerFailed = (error: unknown): void =>
    log.error('answer failed', { service, error: messageOf(error) })
  const turn = createTurn(answerFailed)
  const logLimit = createLogLimit(service, log)
  const requestLog = createRequestLog(service, log, logLimit, metrics)
  /** Throws nothing: a client whose answer can't even be refused gets an empty 500. */
  function failure(error: unknown, context: Context): Reply {
    try {
      return faultReply(faultOfFailure(error, log, logLimit, service, context), context)
    } catch (again) {
      answerFailed(again)
      return { status: 500, headers: {}, body: null }
    }
  }
  const departures = createDepartures({
    ...{ turn, answers, requestLog, clock, failure },
    isStopping: () => stopping,
  })

  const server = createServer({
    requireHostHeader: false,
    // A stream of nothing costs as much as the rest of a redirect: `bringsBody` says when there is one.
    optimizeEmptyRequests: true,
    keepAliveTimeout: times.idle,
    headersTimeout: times.head,
    requestTimeout: times.request,
    connectionsCheckingInterval: times.look,
    // Elsewhere an upgrade is ignored, as HTTP allows: the request is answered like any other.
    shouldUpgradeCallback: (request) => {
      if (!asksForWebSocket(request) || !isEmptyBody(request)) return false
      // The connection still belongs to the answers before it.
      if (answers.isBusy(request.socket)) return false
      const match = find(request.method ?? '', splitTarget(request).path)
      return match.kind === 'route' && match.route.speaksWebSocket === true
    },
  })
  const peerOf = watchPeers(server)
  server.on('request', (request, response) => take(request, response, false))
  server.on('upgrade', (request, socket, head) => {
    upgraded.add(socket)
    socket.once('close', () => upgraded.delete(socket))
    const response = responseOn(request, socket)
    if (response !== undefined) take(request, response, false, { socket, head })
  })
  server.on('checkContinue', (request, response) => take(request, response, true))
  // An unknown expectation may be ignored (RFC 9110); Node's own 417 bears no header of ours.
  server.on('checkExpectation', (request, response) => take(request, response, false))
  server.on('clientError', (error, socket) => {
    if (answers.endsWithAnswer(socket as Socket, error)) return
    const fault = faultOfBrokenRequest(error)
    const peer = peerOf(socket)
    if (fault === undefined || peer === undefined) return void socket.destroy()
    const reply = faultReply(fault, { method: '', path: '', headers: {} })
    const requestId = nextId()
    refuseBrokenRequest(socket as Socket, reply, requestId)
    requestLog.malformed(requestId, fault.status, peer)
  })

  function take(
    request: IncomingMessage,
    response: ServerResponse,
    waits: boolean,
    upgrade?: Upgrade,
  ): void {
    const peer = peerOf(request.socket)
    if (peer === undefined) return void request.socket.destroy()
    answers.begin(response, () => serve(request, response, peer, waits, upgrade))
  }

  function serve(
    request: IncomingMessage,
    response: ServerResponse,
    peer: string,
    waits: boolean,
    upgrade: Upgrade | undefined,
  ): void {
    const started = performance.now()
    const requestId = nextId()
    const method = request.method ?? ''
    const { path, search } = splitTarget(request)
    const match = find(method, path)
    const unclear = ambiguity(request)
    // Behind an upgrade that is ignored, Node drops what has come of the next request.
    const last = upgrade !== undefined || unclear !== undefined || 'upgrade' in request.headers
    if (last) answers.last(request.socket)
    const context: Context = {
      method,
      path,
      route: match.kind === 'route' ? match.route.path : '(none)',
      params: match.kind === 'route' ? match.params : {},
      search,
      headers: request.headers,
      httpVersion: request.httpVersion,
      rawHeaders: request.rawHeaders,
      requestId,
      peer,
      client: clientAddress(peer, headerOf(request, 'x-forwarded-for'), trustedProxies),
      receivedAt: clock.now(),
      body: (limit, eachPart) =>
        readBody(request, limit, bodyBudget, {
          proceed: () => {
            if (waits) response.writeContinue()
          },
          eachPart,
        }),
      gone: () => endOf(response),
    }
    // What is open may be loaded by pages of others: short links as images, probes.
    const isGuarded = match.kind === 'route' && match.route.access !== 'open'
    const exchange: Exchange = { request, response, upgrade, context, last, started }

    function refuse(fault: FaultValue): void {
      departures.leaveNow(exchange, faultReply(fault, context))
    }
    function send(reply: Reply | ChannelReply): void {
      departures.leave(exchange, isGuarded && !('open' in reply) ? sameOriginOnly(reply) : reply)
    }
    function fail(error: unknown): void {
      send(failure(error, context))
    }
    function run(): void {
      try {
        if (unclear !== undefined) return refuse(unclear)
        if (match.kind === 'none') return refuse(noRoute)
        if (match.kind === 'wrong-method') return refuse(wrongMethod(match.allow))
        const { access, speaksWebSocket, handle } = match.route
        const refusal =
          access === 'open'
            ? undefined
            : guard(context, asksForWebSocket(request) ? 'strict' : access)
        if (refusal !== undefined) return refuse(refusal)
        const unfit = speaksWebSocket && handshakeFault(request, upgrade !== undefined)
        if (unfit) return refuse(unfit)
        const reply = handle(context)
        if (reply instanceof Promise) reply.then(send, fail)
        else send(reply)
      } catch (error) {
        fail(error)
      }
    }

    // Of these the next bytes on the connection are a part, or no request.
    if (unclear !== undefined || bringsBody(request)) run()
    else turn.handle(run)
  }

  return {
    server,
    async listen(where) {
      server.listen(where, where.backlog)
      await once(server, 'listening')
    },
    close(graceMs) {
      stopping = true
      return closeServer({ server, leaving: answers.leaving, upgraded }, graceMs)
    },
  }
}
