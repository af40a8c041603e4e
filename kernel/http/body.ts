import type { IncomingMessage } from 'node:http'

/** A body as received, or why it could not be read. */
export type BodyResult =
  | { ok: true; bytes: Buffer }
  | { ok: false; reason: 'too-large' | 'aborted' | 'overloaded' }

/** Bytes of bodies that are being read at one time, over all connections of the process. */
export interface BodyBudget {
  used: number
  limit: number
  /** After this time a body gives way to others if the budget is used up. */
  patienceMs: number
  /**
   * Bodies that come in several parts, in the order of their first part. A body in one part never
   * joins: a Set keeps removed members until V8's next full collection, because its old tables
   * point to the new ones.
   */
  reading: Set<Reading>
}

interface Reading {
  /** When its first part came, of `performance.now()`. */
  since: number
  size: number
  giveUp: () => void
}

/**
 * A budget of `limit` bytes. Ten seconds after its first part a body may have to give way. Else a
 * client could send most of a few large bodies, wait, and so keep out everybody else.
 */
export function createBodyBudget(limit: number, patienceMs = 10_000): BodyBudget {
  return { used: 0, limit, patienceMs, reading: new Set() }
}

/** Gives up the oldest bodies whose time is over until the others fit. */
function makeRoom(budget: BodyBudget): void {
  const begunBefore = performance.now() - budget.patienceMs
  for (const { since, giveUp } of budget.reading) {
    if (budget.used <= budget.limit || since > begunBefore) return
    giveUp()
  }
}

/** Whether a body follows the head. Without one there is nothing to read, and no event comes. */
export function bringsBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || headers['content-length'] !== undefined
}

/** True where the head says that no byte follows it. */
export function isEmptyBody({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0
}

/**
 * Chunks smaller than a piece of this size share one: as objects of their own they cost 400 bytes
 * each.
 */
const PIECE_BYTES = 16 * 1024

const EMPTY = Buffer.alloc(0)

/** The received bytes of a body. Their size bounds the memory, however small the chunks are. */
function createPieces(): { add(chunk: Buffer): void; whole(size: number): Buffer } {
  const full: Buffer[] = []
  let open = EMPTY
  let used = 0

  function close(): void {
    if (used > 0) full.push(open.subarray(0, used))
    open = EMPTY
    used = 0
  }
  return {
    add(chunk) {
      if (used + chunk.length > open.length) {
        close()
        // The first is kept as it is: nearly every body comes in one.
        if (full.length === 0 || chunk.length >= PIECE_BYTES) return void full.push(chunk)
        open = Buffer.allocUnsafeSlow(PIECE_BYTES)
      }
      used += chunk.copy(open, used)
    },
    whole(size) {
      close()
      const [only] = full
      return full.length === 1 && only !== undefined ? only : Buffer.concat(full, size)
    },
  }
}

/** What is done while a body is read. */
export interface BodySteps {
  /** Sends 100 Continue to a client that waits for it, once the size is known to be acceptable. */
  proceed: () => void
  /** Gets the bytes as they arrive. */
  eachPart?: ((part: Buffer) => void) | undefined
}

/**
 * Reads a whole request body and counts while reading, so that a chunked body is bounded as well.
 * Nothing is truncated: over `limit` the bytes are dropped and the result says so.
 */
export function readBody(
  request: IncomingMessage,
  limit: number,
  budget: BodyBudget,
  { proceed, eachPart }: BodySteps,
): Promise<BodyResult> {
  if (!bringsBody(request)) return Promise.resolve({ ok: true, bytes: EMPTY })
  const announced = Number(request.headers['content-length'] ?? 0)
  if (announced > limit) return Promise.resolve({ ok: false, reason: 'too-large' })
  proceed()
  return new Promise((resolve) => {
    const pieces = createPieces()
    const reading: Reading = {
      since: 0,
      size: 0,
      giveUp: () => settle({ ok: false, reason: 'overloaded' }),
    }

    function settle(result: BodyResult): void {
      budget.reading.delete(reading)
      budget.used -= reading.size
      request.off('data', onData)
      request.off('end', onEnd)
      request.off('close', onClose)
      resolve(result)
    }
    function onData(chunk: Buffer): void {
      const isFirst = reading.size === 0
      if (isFirst) reading.since = performance.now()
      reading.size += chunk.length
      budget.used += chunk.length
      if (reading.size > limit) return settle({ ok: false, reason: 'too-large' })
      makeRoom(budget)
      // It may have given way itself.
      if (!isFirst && !budget.reading.has(reading)) return
      if (budget.used > budget.limit) return reading.giveUp()
      pieces.add(chunk)
      eachPart?.(chunk)
      if (isFirst && reading.size !== announced) budget.reading.add(reading)
    }
    function onEnd(): void {
      settle({ ok: true, bytes: pieces.whole(reading.size) })
    }
    function onClose(): void {
      settle({ ok: false, reason: 'aborted' })
    }

    if (request.destroyed) return onClose()
    request.on('data', onData)
    request.on('end', onEnd)
    request.on('close', onClose)
  })
}
