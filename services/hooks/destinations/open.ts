import { destinationQueries as q, type Destination } from '../../../db/hooks/destinations.ts'
import type { Metrics } from '../../../kernel/metrics.ts'
import { repeat, reportsTo, type Repeat } from '../../../kernel/repeat.ts'
import type { Registry } from '../registry.ts'
import type { EventStream } from '../stream.ts'
import { COUNT_UP_TO } from './destinations.ts'
import { planStep } from './plan.ts'
import { startSender, type Sender, type SenderParts } from './sender.ts'

/** The destinations of this process at work. */
export type Destinations = ReturnType<typeof openDestinations>

interface DestinationsOptions extends Omit<SenderParts, 'attempts' | 'dead' | 'seconds'> {
  registry: Pick<Registry, 'provider' | 'destinations' | 'onChange'>
  stream: Pick<EventStream, 'watch'>
  metrics: Metrics
}

/**
 * Finds retries that are due, claims of dead processes, and events whose notification was lost.
 */
const POLL_MS = 1_000
const MEASURE_MS = 10_000

/** What a process does for its destinations. */
interface DestinationsState extends DestinationsOptions {
  parts: SenderParts
  senders: Map<string, Sender>
  /** Senders that end, because their destination has changed. */
  ending: Set<Promise<void>>
  watching?: ReturnType<EventStream['watch']> | undefined
  /** Plans and wakes, each second and when it is asked to. */
  looks: Repeat
}

/** Plans and sends what the enabled destinations are owed; any number of instances may do so. */
export function openDestinations(options: DestinationsOptions) {
  const { clock, log, registry } = options
  const reports = reportsTo(log, 'destinations not served', 'destinations are served again')
  const state: DestinationsState = {
    ...options,
    parts: { ...options, ...countersOf(options.metrics) },
    senders: new Map(),
    ending: new Set(),
    looks: repeat(clock, POLL_MS, 'destinations', (isStopped) => look(state, isStopped), reports),
  }
  const measures = startMeasures(options)
  registry.onChange(() => void state.looks.now())
  return {
    /** Claims nothing more; resolves when what was sent is recorded or left to others. */
    async close(): Promise<void> {
      const { senders, ending, looks } = state
      await Promise.all([looks.stop(), measures.stop()])
      state.watching?.stop()
      await Promise.all([...[...senders.values()].map((sender) => sender.stop()), ...ending])
    },
  }
}

async function look(state: DestinationsState, isStopped: () => boolean): Promise<void> {
  const { db, senders } = state
  followRegistry(state)
  watchStream(state)
  let behind = senders.size > 0
  while (behind && !isStopped()) {
    behind = false
    for (const work of await q.findWork(db, {})) {
      const step = work.behind ? await planStep(db, work) : { looked_at: 0, planned: 0 }
      if (work.due || step.planned > 0) senders.get(work.name)?.wake()
      behind ||= step.looked_at > 0
    }
  }
}

/** One sender for each enabled destination, of its present target. */
function followRegistry({ registry, parts, senders, ending }: DestinationsState): void {
  const enabled = registry.destinations.filter((target) => target.enabled)
  for (const [name, sender] of senders) {
    const target = enabled.find((one) => one.name === name)
    if (JSON.stringify(target) === JSON.stringify(sender.target)) continue
    senders.delete(name)
    const end = sender.stop()
    ending.add(end)
    void end.then(() => ending.delete(end))
  }
  for (const target of enabled) {
    if (!senders.has(target.name)) senders.set(target.name, startSender(parts, target))
  }
}

/** Follows the events while there is a destination that gets them. */
function watchStream(state: DestinationsState): void {
  if (state.senders.size === 0) {
    state.watching?.stop()
    state.watching = undefined
  } else if (state.watching === undefined) {
    const items = () => void state.looks.now()
    state.watching = state.stream.watch({ items, over: () => undefined })
    // Without the database the next look finds the events.
    state.watching.ready.catch(() => undefined)
  }
}

function countersOf(metrics: Metrics): Pick<SenderParts, 'attempts' | 'dead' | 'seconds'> {
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

/** Counts now and then what the destinations are owed, for the gauges. */
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
