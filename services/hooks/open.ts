import { startAlarmNotices } from './notices.ts'
import { openDestinations } from './send/destinations/open.ts'
import { createCallLimit } from './agents/endpoints/call-limit.ts'
import { openEndpoints } from './agents/endpoints/endpoints.ts'
import { createBodyReader } from './receive/deliveries/body.ts'
import { openSubscriptions } from './receive/deliveries/subscriptions.ts'
import { createIngest } from './receive/deliveries/ingest.ts'
import { openQueue, type QueueSource } from './agents/queues/open.ts'
import { openRegistry, type HooksParts } from './registry.ts'
import { openForwarders } from './send/forwarders/forwarders.ts'
import { startRecoveries, type RecoveryOptions } from './receive/recoveries/schedule.ts'
import { startReplayPlanning } from './send/replays/planning.ts'
import type { ReplayParts } from './send/replays/replays.ts'
import { openRejections } from './receive/rejections.ts'
import { createSecretUses } from './receive/providers/secret-uses.ts'
import { startRetention } from './settings.ts'
import { keepFetchedKeys } from './receive/schemes/key-cache.ts'
import type { SigningSecrets } from './receive/schemes/signing-secrets.ts'
import { openStatus } from './log/status.ts'
import { openStream, type EventStream } from './log/stream.ts'

/** What the hooks service is made from. */
interface HooksOptions extends HooksParts, RecoveryOptions, Pick<ReplayParts, 'replayTargets'> {
  secrets: SigningSecrets
  /**
   * The largest payload of a queue entry, in bytes with the headers that its other fields become.
   */
  maxBody: () => number
  /** The broker to read from; undefined when none is configured. */
  queueSource: QueueSource | undefined
}

/** The running hooks service: everything that its routes call. */
export type Hooks = Awaited<ReturnType<typeof openHooks>>

/** Starts the service on a migrated database. */
export async function openHooks(options: HooksOptions) {
  const { db, secrets, clock, log, metrics } = options
  const registry = await openRegistry(options, secrets)
  const endpoints = openEndpoints(options, registry, createCallLimit())
  const ingest = createIngest(db.at('deliveries'), log)
  const readBody = createBodyReader()
  const rejections = await openRejections(options)
  const secretUses = createSecretUses(options)
  const fetchedKeys = keepFetchedKeys(options)
  const subscriptions = openSubscriptions(options)
  let stream: EventStream | undefined
  const onChange = (): void => stream?.statusChanged()
  const parts = { registry, ingest, readBody, rejections, onChange }
  const queue = await openQueue({ ...options, ...parts, source: options.queueSource })
  const status = openStatus(options, registry, secrets, () => queue.broker, onChange)
  const { readStatus } = status
  stream = await openStream({ db, clock, log, metrics, registry, readStatus })
  const forwarders = await openForwarders({ db, stream, registry, secrets, clock, log, metrics })
  const destinations = openDestinations({ ...options, registry, stream })
  const replayPlanning = startReplayPlanning(options)
  const recoveries = startRecoveries(options)
  const retention = startRetention(options, registry, forwarders)
  const alarmNotices = startAlarmNotices(options)
  registry.onChange(onChange)
  metrics.gauge(
    'gatehouse_hooks_ingest_waiting',
    'Deliveries waiting for the next statement.',
    () => [[{}, ingest.waiting]],
  )

  return {
    ...options,
    registry,
    endpoints,
    ingest,
    readBody,
    queue,
    stream,
    forwarders,
    rejections,
    replayPlanning,
    secretUses,
    fetchedKeys,
    subscriptions,
    retention,
    readStatus,
    /** Called once the listeners are up: starts upkeep, which no request waits for. */
    begin() {
      retention.prune()
      recoveries.begin()
      void alarmNotices.now()
    },
    /**
     * Ends the streams and reads no more of the queue; the rest goes on until `close`, so that
     * running requests can finish.
     */
    endStreams() {
      stream.close()
      void replayPlanning.close()
      void recoveries.close()
      void forwarders.close()
      void destinations.close()
      void queue.close()
    },
    /** Stores what is waiting and stops following the database. */
    async close() {
      status.close()
      await alarmNotices.stop()
      await replayPlanning.close()
      await recoveries.close()
      await forwarders.close()
      await destinations.close()
      await queue.close()
      await ingest.drained()
      await subscriptions.close()
      await Promise.all([registry, rejections, secretUses, retention].map((part) => part.close()))
    },
  }
}
