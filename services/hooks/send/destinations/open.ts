import type { Database } from '../../../../db/client.ts'
import {
  destinationQueries as q,
  type Destination,
  type Work,
} from '../../../../db/hooks/send/destinations.ts'
import { eventQueries } from '../../../../db/hooks/log/events.ts'
import type { Metrics } from '../../../../kernel/metrics.ts'
import { repeat, reportsTo, type Repeat } from '../../../../kernel/repeat.ts'
import { PAYLOAD_STEP } from '../../log/events/events.ts'
import type { Registry } from '../../registry.ts'
import type { EventStream } from '../../log/stream.ts'
import { COUNT_UP_TO } from './destinations.ts'
import { startRemovals } from './removals.ts'
import type { DestinationParts } from './attempt.ts'
import { shareOf, startWorker, type Worker, type WorkerParts } from './worker.ts'

/** The destinations of this process at work. */
export type Destinations = ReturnType<typeof openDestinations>

interface DestinationsOptions extends Omit<
  WorkerParts,
  'attempts' | 'dead' | 'seconds' | 'share'
> {
  registry: DestinationParts['registry'] & Pick<Registry, 'destinations' | 'targets' | 'onChange'>
  stream: Pick<EventStream, 'watch'>
  metrics: Metrics
}

/**
 * Finds retries that are due, claims of dead processes, and events whose notification was lost.
 */
const POLL_MS = 1_000
const MEASURE_MS = 10_000
/** Events that one step examines, of all its destinations together. */
const STEP_EVENTS = 1_000

/** What a process does for its destinations. */
interface DestinationsState extends DestinationsOptions {
  parts: WorkerParts
  workers: Map<string, Worker>
  /** Workers that end, because their destination has changed. */
  ending: Set<Worker>
  watching?: ReturnType<EventStream['watch']> | undefined
  /** Plans and wakes, every second and when it is asked to. */
  rounds: Repeat
}

/** Plans and sends deliveries to the enabled destinations, on any number of instances. */
export function openDestinations(options: DestinationsOptions) {
  const { clock, log, registry } = options
  const reports = reportsTo(log, 'destinations not served', 'destinations are served again')
  const workers: DestinationsState['workers'] = new Map()
  const share = () => shareOf(workers.size)
  const state: DestinationsState = {
    ...options,
    parts: { ...options, ...countersOf(options.metrics), share },
    workers,
    ending: new Set(),
    rounds: repeat(clock, POLL_MS, 'destinations', (isStopped) => plan(state, isStopped), reports),
  }
  const measures = startMeasures(options)
  const removals = startRemovals(options)
  registry.onChange(() => {
    void state.rounds.now()
    void removals.now()
  })
  return {
    /** Claims nothing more; resolves when what was sent is recorded or left to others. */
    async close(): Promise<void> {
      const { workers, ending, rounds } = state
      await Promise.all([rounds.stop(), measures.stop(), removals.stop()])
      state.watching?.stop()
      await Promise.all([...workers.values(), ...ending].map((worker) => worker.stop()))
    },
  }
}

async function plan(state: DestinationsState, isStopped: () => boolean): Promise<void> {
  const { db, workers } = state
  followRegistry(state)
  watchStream(state)
  let goesOn = workers.size > 0
  while (goesOn && !isStopped()) {
    const work = await q.findWork(db, {})
    for (const { name, due } of work) if (due) workers.get(name)?.wake()
    goesOn = false
    for (const group of groupsOf(work)) {
      for (const { name, planned } of await planStep(db, group)) {
        if (planned > 0) workers.get(name)?.wake()
        goesOn = true
      }
    }
  }
}

/** The destinations to plan, in groups: each one whose filters read payloads is alone. */
function groupsOf(work: readonly Work[]): readonly (readonly Work[])[] {
  const behind = work.filter((one) => one.behind)
  const alone = behind.filter((one) => one.reads_payloads).map((one) => [one])
  const others = behind.filter((one) => !one.reads_payloads)
  return others.length === 0 ? alone : [others, ...alone]
}

/**
 * Plans one step of some destinations from their positions towards the newest event: inserts their
 * deliveries and moves the positions, in one transaction. An event is visible once all before it
 * are (decision 001), so none is skipped, on any number of instances. Gives the destinations that
 * had events to look at.
 */
export async function planStep(db: Database, group: readonly Work[]) {
  return db.transaction(async (tx) => {
    const owners = await q.lockToPlan(tx, { names: group.map(({ name }) => name) })
    const [first] = owners
    if (first === undefined) return []
    let last = Number.MAX_SAFE_INTEGER
    // It is alone in its group.
    if (group.some((one) => one.reads_payloads)) {
      const step = { after: first.position, ...PAYLOAD_STEP }
      last = (await eventQueries.searchWindowThrough(tx, step))?.id ?? last
    }
    const names = owners.map(({ name }) => name)
    return q.planDeliveries(tx, { names, last, rows: Math.ceil(STEP_EVENTS / names.length) })
  })
}

/** One worker for each enabled destination, and for each replay job that sends. */
function followRegistry({ registry, parts, workers, ending }: DestinationsState): void {
  const enabled = registry.targets.filter((target) => target.enabled)
  for (const [name, worker] of workers) {
    const target = enabled.find((one) => one.name === name)
    if (JSON.stringify(target) === JSON.stringify(worker.target)) continue
    workers.delete(name)
    ending.add(worker)
    void worker.end().then(() => ending.delete(worker))
  }
  for (const target of enabled) {
    if (!workers.has(target.name)) workers.set(target.name, startWorker(parts, target))
  }
}

/** Follows the events while there is a destination that gets them. */
function watchStream(state: DestinationsState): void {
  if (state.workers.size === 0) {
    state.watching?.stop()
    state.watching = undefined
  } else if (state.watching === undefined) {
    const items = () => void state.rounds.now()
    state.watching = state.stream.watch({ items, over: () => undefined })
    // Without the database the next round finds the events.
    state.watching.ready.catch(() => undefined)
  }
}

function countersOf(metrics: Metrics): Pick<WorkerParts, 'attempts' | 'dead' | 'seconds'> {
  return {
    attempts: metrics.counter(
      'gatehouse_hooks_destination_attempts',
      'Attempts to deliver an event to a destination.',
    ),
    dead: metrics.counter(
      'gatehouse_hooks_destination_died',
      'Deliveries to a destination that were given up.',
    ),
    seconds: metrics.histogram(
      'gatehouse_hooks_destination_seconds',
      'Time to the answer of a destination.',
    ),
  }
}

/** Counts the waiting and dead deliveries from time to time, for the gauges. */
function startMeasures({ db, clock, metrics, registry }: DestinationsOptions) {
  let measured: readonly Destination[] = []
  function gauge(name: string, help: string, read: (one: Destination) => number): void {
    metrics.gauge(name, help, () => measured.map((one) => [{ destination: one.name }, read(one)]))
  }
  gauge(
    'gatehouse_hooks_destination_waiting',
    'Events that wait to be delivered to a destination.',
    ({ waiting }) => waiting,
  )
  gauge(
    'gatehouse_hooks_destination_dead',
    'Deliveries that were given up and can be retried.',
    ({ dead }) => dead,
  )
  gauge(
    'gatehouse_hooks_destination_gap',
    'Events that retention removed before a destination got them.',
    ({ gap }) => gap,
  )
  gauge(
    'gatehouse_hooks_destination_oldest_seconds',
    'Age of the oldest event that waits to be delivered to a destination.',
    ({ oldest_at: at }) => (at === null ? 0 : (clock.now().getTime() - at.getTime()) / 1_000),
  )
  metrics.gauge(
    'gatehouse_hooks_destination_failed',
    'Destinations: 1 for one that failures have disabled.',
    () => registry.destinations.map(({ name, failed }) => [{ destination: name }, failed ? 1 : 0]),
  )
  // Without the database the former counts stay.
  return repeat(clock, MEASURE_MS, 'measures of destinations', async () => {
    const none = registry.destinations.length === 0
    measured = none ? [] : await q.listDestinations(db, { name: null, count_up_to: COUNT_UP_TO })
  })
}
