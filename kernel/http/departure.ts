import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Answers } from './in-flight.ts'
import type { ChannelReply } from './channel.ts'
import type { Clock } from '../time.ts'
import type { Context } from './context.ts'
import type { Reply } from './reply.ts'
import type { RequestLog } from './request-log.ts'
import type { Turn } from './turn.ts'
import type { Upgrade } from './upgrade.ts'
import { acceptChannel } from './websocket.ts'
import { writeReply } from './write-reply.ts'

/** A request, and what its answer needs. */
export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly upgrade: Upgrade | undefined
  readonly context: Context
  /** No further request of its connection is heard. */
  readonly last: boolean
  /** When it came, of `performance.now()`. */
  readonly started: number
}

/** How answers leave. */
export interface Departures {
  /** At the end of the turn; a reply that can't be written is replaced by a failure while nothing of it has left. */
  leave(exchange: Exchange, reply: Reply | ChannelReply): void
  /** At once: what comes behind the head may be nothing that could be read. */
  leaveNow(exchange: Exchange, reply: Reply): void
}

export interface DepartureOptions {
  readonly turn: Turn
  readonly answers: Answers
  readonly requestLog: RequestLog
  readonly clock: Clock
  readonly isStopping: () => boolean
  /** What is answered for something that was thrown; throws nothing itself. */
  readonly failure: (error: unknown, context: Context) => Reply
}

/** Hands the answers of a listener to their connections. */
export function createDepartures(options: DepartureOptions): Departures {
  const { turn, answers, requestLog, clock, isStopping, failure } = options

  /** Gives an answer to its connection, and to the caller what is left to do then. */
  function give(exchange: Exchange, reply: Reply | ChannelReply): () => void {
    const { request, response, upgrade, context, last, started } = exchange
    if (response.destroyed) return () => requestLog.answered(context, started, 499, 0)
    let bytes: number | undefined
    if (!('open' in reply)) {
      bytes = writeReply(request, response, reply, context.requestId, isStopping() || last)
      answers.given(response, typeof reply.body === 'function')
    } else if (upgrade !== undefined) {
      response.detachSocket(request.socket)
      acceptChannel(request, upgrade, reply, context.requestId, clock)
    }
    return () => requestLog.answered(context, started, reply.status, bytes)
  }

  /** Answers for what was thrown, or breaks the answer off where it has begun. */
  function giveInstead(exchange: Exchange, error: unknown): () => void {
    const { response, context, started } = exchange
    try {
      const instead = failure(error, context)
      if (!response.headersSent) return give(exchange, instead)
      response.destroy()
      return () => requestLog.answered(context, started, instead.status, undefined)
    } catch (again) {
      // Its client would wait for ever.
      response.destroy()
      throw again
    }
  }

  return {
    leave(exchange, reply) {
      turn.leave(() => {
        try {
          return give(exchange, reply)
        } catch (error) {
          return giveInstead(exchange, error)
        }
      })
    },
    leaveNow(exchange, reply) {
      give(exchange, reply)()
    },
  }
}
