import type { ConfigSource } from '../../kernel/config.ts'
import { messageOf } from '../../kernel/log.ts'
import { doubt, fine, type Finding } from './finding.ts'

const ANSWER_MS = 2_000

/** Whether the broker of the queue answers; hooks starts without it and tries again by itself. */
export async function queueFindings({ current }: ConfigSource): Promise<readonly Finding[]> {
  const { HOOKS_QUEUE_URL: url } = current
  if (url === undefined) return []
  const { protocol, host } = new URL(url)
  const place = `${protocol}//${host}`
  try {
    // Loaded when configured, like the consumer: its client costs time and memory.
    const { pingRedis } = await import('../../services/hooks/queue/redis.ts')
    await pingRedis(url, ANSWER_MS)
    return [fine('queue', `${place} answers`)]
  } catch (error) {
    return [
      doubt(
        'queue',
        `${place} does not answer (${messageOf(error)}): start it, or correct HOOKS_QUEUE_URL`,
      ),
    ]
  }
}
