import type { Database } from '../../../../db/client.ts'
import {
  destinationQueries as q,
  type ClaimedEvent,
  type DeliveryResult,
  type DestinationTarget,
} from '../../../../db/hooks/send/destinations.ts'
import { messageOf, type Log } from '../../../../kernel/log.ts'
import type { Counter, Histogram } from '../../../../kernel/metrics.ts'
import { keepConnections, type Connections } from '../../../../kernel/net/outbound.ts'
import { repeat, reportsTo, type Repeat } from '../../../../kernel/repeat.ts'
import { pause } from '../../../../kernel/time.ts'
import { redactUrlTokens } from '../../redact.ts'
import { attempt, brokenAttempt, type DestinationParts } from './attempt.ts'

/** What all delivery workers need. */
export interface WorkerParts extends DestinationParts {
  db: Database
  log: Log
  /** Attempts by outcome, deliveries that died, and the time to an answer. */
  attempts: Counter
  dead: Counter
  seconds: Histogram
  /** What each destination may have under way at present. */
  share: () => Share
}

/** The part of one destination of what all have. */
export interface Share {
  /** Requests at a time. */
  requests: number
  /** With this many bytes of payloads under way nothing more is claimed. */
  bytes: number
}

/** What one destination may have under way, however few there are. */
const MAX_SHARE: Share = { requests: 64, bytes: 4 * 1024 * 1024 }
/** What all may have: a hundred receivers that hang must not take the memory of the process. */
const ALL: Share = { requests: 2_048, bytes: 64 * 1024 * 1024 }

/** An equal share of each, so that a receiver that hangs takes nothing from the others. */
export function shareOf(destinations: number): Share {
  return {
    requests: Math.min(MAX_SHARE.requests, Math.floor(ALL.requests / destinations)),
    bytes: Math.min(MAX_SHARE.bytes, Math.floor(ALL.bytes / destinations)),
  }
}

/** Sends the events that one destination waits for, as do the workers of other instances. */
export type Worker = ReturnType<typeof startWorker>

/** A worker and its state. */
interface WorkerState extends WorkerParts {
  target: DestinationTarget
  connections: Connections
  /** It claims nothing more. */
  stopping: AbortController
  /** Ends the requests that take too long at the stop. */
  cut: AbortController
  /** Something may be due. */
  due: boolean
  /** What is being sent, and the bytes of its payloads. */
  sending: Set<Promise<void>>
  bytes: number
  /** What is to be recorded. */
  results: DeliveryResult[]
  /** Records and claims, every second and when it is woken. */
  steps: Repeat
}

/** This many dead deliveries in a row disable a destination; a replay goes on to its end. */
const MAX_DEAD = { standing: 20, replay: Number.MAX_SAFE_INTEGER }
/** A claim outlasts the attempt by so much: meanwhile nobody else sends the event. */
const CLAIM_REST_S = 5
/** How soon what the database refused to record is recorded. */
const STEP_MS = 1_000
/** Shortest pause between two claims of a destination with a rate. */
const PACE_MS = 50
/** How long requests may go on at the stop. */
const GRACE_MS = 3_000

/** Starts a worker; it claims nothing before it is woken. */
export function startWorker(parts: WorkerParts, target: DestinationTarget) {
  const { clock, log } = parts
  const reports = reportsTo(log, 'deliveries not recorded', 'deliveries are recorded again', {
    destination: target.name,
  })
  const worker: WorkerState = {
    ...parts,
    target,
    connections: keepConnections(target.ordered ? 1 : MAX_SHARE.requests),
    stopping: new AbortController(),
    cut: new AbortController(),
    due: false,
    sending: new Set(),
    bytes: 0,
    results: [],
    steps: repeat(clock, STEP_MS, 'a destination', () => recordAndClaim(worker), reports),
  }
  return {
    target,
    /** Something may be due. */
    wake: () => wake(worker),
    /** Claims nothing more; resolves when what is being sent is answered, and recorded. */
    end: () => end(worker),
    /** The program stops: what is not answered soon is left to others. */
    async stop() {
      const late = setTimeout(() => worker.cut.abort(), GRACE_MS)
      await end(worker)
      clearTimeout(late)
    },
  }
}

function wake(worker: WorkerState) {
  worker.due = true
  void worker.steps.now()
}

async function end({ stopping, sending, steps, connections }: WorkerState) {
  stopping.abort()
  // A claim may be under way.
  await steps.now()
  await Promise.all(sending)
  // Claims end by themselves: what can't be recorded now is sent again.
  await steps.now()
  await steps.stop()
  connections.close()
}

/** One after the other: each statement serves everything that gathered during the previous one. */
async function recordAndClaim(worker: WorkerState): Promise<void> {
  do {
    if (worker.results.length > 0) await settle(worker)
    if (mayClaim(worker)) await claim(worker)
  } while (worker.results.length > 0 || mayClaim(worker))
}

function mayClaim(worker: WorkerState) {
  const { stopping, due } = worker
  const { limit, bytes } = roomOf(worker)
  return !stopping.signal.aborted && due && limit > 0 && bytes > 0
}

/** What may be claimed now; an ordered destination has one request at a time. */
function roomOf({ target, share, sending, bytes }: WorkerState) {
  const { requests, bytes: most } = share()
  return { limit: (target.ordered ? 1 : requests) - sending.size, bytes: most - bytes }
}

async function claim(worker: WorkerState): Promise<void> {
  const { db, target, sending } = worker
  worker.due = false
  const seconds = target.timeout_s + CLAIM_REST_S
  const events = await q.claimDeliveries(db, { name: target.name, seconds, ...roomOf(worker) })
  for (const event of events) {
    const sent = send(worker, event).finally(() => {
      sending.delete(sent)
      void worker.steps.now()
    })
    sending.add(sent)
  }
  if (events.length === 0) return
  if (target.rate === null) worker.due = true
  else void wakeLater(worker, Math.max(PACE_MS, 1_000 / target.rate))
}

async function wakeLater(worker: WorkerState, ms: number): Promise<void> {
  await pause(ms, worker.stopping.signal)
  wake(worker)
}

async function send(worker: WorkerState, event: ClaimedEvent): Promise<void> {
  const { connections, cut, log, target } = worker
  worker.bytes += event.payload_size
  try {
    worker.results.push(await attempt(worker, target, event, { connections, cut: cut.signal }))
  } catch (error) {
    // Not thrown on: one event that breaks its attempt must not stop those behind it.
    worker.results.push(brokenAttempt(worker, event))
    const [destination, id] = [target.name, event.id]
    log.error('delivery broke', { destination, event: id, error: messageOf(error) })
  }
  worker.bytes -= event.payload_size
}

/** Records what has gathered. Until that succeeds the results are kept. */
async function settle(worker: WorkerState): Promise<void> {
  const { db, target, results } = worker
  const batch = [...results]
  await q.settleDeliveries(db, {
    name: target.name,
    kind: target.kind === 'replay' ? 'replay' : 'destination',
    target: redactUrlTokens(target.url),
    results: batch.map((result, n) => ({ ...result, n })),
    most: MAX_DEAD[target.kind],
  })
  results.splice(0, batch.length)
  // A series for each job would be one more in memory for each replay that was ever made.
  const labels = { destination: target.kind === 'replay' ? 'replay:' : target.name }
  const observe = worker.seconds.series(labels)
  for (const { outcome, fate, status, ms } of batch) {
    if (outcome !== null) worker.attempts.add({ ...labels, outcome })
    if (fate === 'dead' || fate === 'gone') worker.dead.add(labels)
    if (status !== null) observe(ms / 1_000)
  }
}
