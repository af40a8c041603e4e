import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { providerQueries } from '../../../../db/hooks/receive/providers.ts'
import type { Registry } from '../../registry.ts'
import { type ConsumerOptions, startConsumer } from './consumer.ts'
import { queueProvider } from './entries.ts'

/** The pull-based way in (hooks.md section 1, family `queue`). */
export interface Queue {
  /** hooks.md section 2, Health: `disabled` when no broker is configured. */
  broker: 'ok' | 'disabled' | 'error'
  /** Stops reading; resolves when what was read is stored and acknowledged. */
  close(): Promise<void>
}

/** Where to read: the broker's URL, which may hold a password, and the channels. */
export interface QueueSource {
  url: string
  channels: readonly string[]
}

interface QueueOptions extends Omit<ConsumerOptions, 'channel' | 'connect' | 'enabled'> {
  source: QueueSource | undefined
  registry: Registry
}

/** A start waits this long for the broker, and goes on without it. */
const FIRST_CONNECT_MS = 1_000

/** Adds the configured channels as providers, and starts a consumer for each. */
export async function openQueue(options: QueueOptions): Promise<Queue> {
  const { source, db, registry, clock, random, metrics } = options
  if (source === undefined) return NO_QUEUE
  const { url, channels } = source
  // A client costs a tenth of a second and 30 MB of memory, so it is loaded only when configured.
  const { openRedis } = await import('./redis.ts')
  await providerQueries.addQueueProviders(db, { names: channels.map(queueProvider) })
  await registry.refresh()

  const consumer = `${hostname()}-${random(4).toString('hex')}`
  const consumers = channels.map((channel) =>
    startConsumer({
      ...options,
      channel,
      connect: (signal) => openRedis({ url, channel, consumer, clock }, signal),
      enabled: () => registry.provider(queueProvider(channel))?.enabled === true,
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
    async close() {
      await Promise.all(consumers.map((each) => each.close()))
    },
  }
}

const NO_QUEUE: Queue = {
  broker: 'disabled',
  close: () => Promise.resolve(),
}
