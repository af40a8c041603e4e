import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../../../db/client.ts'
import { providerQueries } from '../../../db/hooks/providers.ts'
import type { Clock } from '../../../kernel/time.ts'
import type { Log } from '../../../kernel/log.ts'
import type { Metrics } from '../../../kernel/metrics.ts'
import type { RandomBytes } from '../../../kernel/tokens.ts'
import type { Ingest } from '../ingest.ts'
import type { Registry } from '../registry.ts'
import type { Rejections } from '../rejections.ts'
import { type OpenSession, startConsumer } from './consumer.ts'
import { queueProvider } from './entries.ts'

/** The pull-based way in (hooks.md section 1, family `queue`). */
export interface Queue {
  /** hooks.md section 2, Health: `disabled` when no broker is configured. */
  readonly broker: 'ok' | 'disabled' | 'error'
  /** Calls back when `broker` may have changed. */
  onChange(callback: () => void): void
  /** Stops reading; resolves when what was read is stored and acknowledged. */
  close(): Promise<void>
}

/** Where to read: the broker's URL, which may hold a password, and the channels. */
export interface QueueSource {
  readonly url: string
  readonly channels: readonly string[]
}

export interface QueueOptions {
  readonly source: QueueSource | undefined
  readonly maxBody: () => number
  readonly db: Database
  readonly registry: Registry
  readonly ingest: Ingest
  readonly rejections: Rejections
  readonly clock: Clock
  readonly random: RandomBytes
  readonly log: Log
  readonly metrics: Metrics
}

/**
 * The brokers by the scheme of their URL: another broker is one more file and one more line. A
 * client costs a tenth of a second and 30 MB of memory, so it is loaded only when configured.
 */
const BROKERS: Readonly<Record<string, () => Promise<OpenSession>>> = {
  'redis:': redis,
  'rediss:': redis,
}

async function redis(): Promise<OpenSession> {
  const { openRedis } = await import('./redis.ts')
  return openRedis
}

/** A start waits this long for the broker, and goes on without it. */
const FIRST_CONNECT_MS = 1_000

/** Adds the configured channels as providers, and starts a consumer for each. */
export async function openQueue(options: QueueOptions): Promise<Queue> {
  const { source, db, registry, clock, random, metrics } = options
  const callbacks: (() => void)[] = []
  const { url = '', channels = [] } = source ?? {}
  const load = BROKERS[/^[a-z]*:/.exec(url)?.[0] ?? '']
  if (load === undefined || channels.length === 0) return NO_QUEUE
  const openSession = await load()
  await providerQueries.addQueueProviders(db, { names: channels.map(queueProvider) })
  await registry.refresh()

  const consumer = `${hostname()}-${random(4).toString('hex')}`
  const consumers = channels.map((channel) =>
    startConsumer({
      ...options,
      channel,
      connect: (signal) => openSession({ url, channel, consumer, clock }, signal),
      enabled: () => registry.provider(queueProvider(channel))?.enabled === true,
      onChange: () => {
        for (const callback of callbacks) callback()
      },
    }),
  )
  registry.onChange(() => {
    for (const each of consumers) each.refresh()
  })
  metrics.gauge('gatehouse_hooks_queue_failing', 'Channels whose broker is out of reach.', () => [
    [{}, consumers.filter(({ failing }) => failing).length],
  ])
  const firstConnect = Promise.all(consumers.map(({ known }) => known))
  await Promise.race([firstConnect, sleep(FIRST_CONNECT_MS, undefined, { ref: false })])

  return {
    get broker() {
      return consumers.some(({ failing }) => failing) ? 'error' : 'ok'
    },
    onChange: (callback) => callbacks.push(callback),
    async close() {
      await Promise.all(consumers.map((each) => each.close()))
    },
  }
}

const NO_QUEUE: Queue = {
  broker: 'disabled',
  onChange: () => undefined,
  close: () => Promise.resolve(),
}
