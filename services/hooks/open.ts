import type { Database } from '../../db/client.ts'
import type { Clock } from '../../kernel/time.ts'
import type { Log } from '../../kernel/log.ts'
import type { Metrics } from '../../kernel/metrics.ts'
import type { Pruning } from '../../kernel/repeat.ts'
import type { RandomBytes } from '../../kernel/tokens.ts'
import { openAlarms } from './alarms.ts'
import { createIngest, type Ingest } from './ingest.ts'
import { openQueue, type Queue, type QueueSource } from './queue/open.ts'
import { openRegistry, type Registry } from './registry.ts'
import { openForwarders, type Forwarders } from './forward/forwarders.ts'
import type { ReplayParts } from './replays.ts'
import { openRejections, type Rejections } from './rejections.ts'
import { createSecretUses, type SecretUses } from './providers.ts'
import { startRetention } from './settings.ts'
import type { SigningSecrets } from './secrets.ts'
import { createStatusReader, type StatusMessage } from './status.ts'
import { openStream, type EventStream } from './stream.ts'

/** What the hooks service is made from. */
export interface HooksOptions extends Pick<ReplayParts, 'post' | 'replayTargets'> {
  readonly db: Database
  readonly secrets: SigningSecrets
  readonly clock: Clock
  readonly random: RandomBytes
  readonly log: Log
  readonly metrics: Metrics
  /**
   * The largest payload of a queue entry, in bytes with the headers that its other fields become.
   */
  readonly maxBody: () => number
  /** The broker to read from; undefined when none is configured. */
  readonly queueSource: QueueSource | undefined
}

/** The running hooks service: everything that its routes call. */
export interface Hooks extends HooksOptions {
  readonly registry: Registry
  readonly ingest: Ingest
  readonly queue: Queue
  readonly stream: EventStream
  readonly forwarders: Forwarders
  readonly rejections: Rejections
  readonly secretUses: SecretUses
  readonly retention: Pruning
  readonly readStatus: (fresh?: boolean) => Promise<StatusMessage>
  /** The listeners are up: upkeep may begin, which nobody has to wait for. */
  begin(): void
  /**
   * Ends the streams and reads no more of the queue; the rest goes on until `close`, so that
   * running requests can finish.
   */
  endStreams(): void
  /** Stores what is waiting and stops following the database. */
  close(): Promise<void>
}

/** Starts the service on a migrated database. */
export async function openHooks(options: HooksOptions): Promise<Hooks> {
  const { db, secrets, clock, log, metrics } = options
  const registry = await openRegistry(db, secrets, clock, log)
  const ingest = createIngest(db.at('deliveries'))
  const rejections = await openRejections(options)
  const secretUses = createSecretUses(db, clock, log)
  const queue = await openQueue({
    ...options,
    source: options.queueSource,
    registry,
    ingest,
    rejections,
  })
  const alarms = openAlarms(
    clock,
    log,
    metrics,
    () => registry.hasAlarms,
    () => void readStatus(),
  )
  const readStatus = createStatusReader(db, secrets, clock, log, () => queue.broker, alarms.update)
  const stream = await openStream({ db, clock, log, metrics, registry, readStatus })
  const forwarders = await openForwarders({ db, stream, registry, secrets, clock, log, metrics })
  const retention = startRetention(db, registry, forwarders, clock, log)
  registry.onChange(() => stream.statusChanged())
  queue.onChange(() => stream.statusChanged())
  alarms.onChange(() => stream.statusChanged())
  metrics.gauge(
    'gatehouse_hooks_ingest_waiting',
    'Deliveries waiting for the next statement.',
    () => [[{}, ingest.waiting]],
  )

  return {
    ...options,
    registry,
    ingest,
    queue,
    stream,
    forwarders,
    rejections,
    secretUses,
    retention,
    readStatus,
    begin: () => retention.prune(),
    endStreams() {
      stream.close()
      void forwarders.close()
      void queue.close()
    },
    async close() {
      alarms.close()
      await forwarders.close()
      await queue.close()
      await ingest.drained()
      await Promise.all([registry, rejections, secretUses, retention].map((part) => part.close()))
    },
  }
}
