import type { Database } from '../../../../db/client.ts'
import { operationQueries as q, type ActionSummary } from '../../../../db/ops/agent/operations.ts'
import { formatDuration } from '../../../../kernel/time.ts'
import type { InventorySource } from '../../watch/inventory/inventory.ts'
import { cooldownOf } from './operations.ts'

/** An operation of the inventory, how often it may run, and how often actions of its type did. */
export interface OperationLimit {
  service: string
  name: string
  action_type: string
  /** Whether a person must say yes each time. */
  approval: boolean
  /** How many actions in how long, such as `4h`. */
  most: number
  window: string
  count: number
  last_action: Date | null
  /** When it may run again; null if it may now, or never. */
  freeAt: Date | null
}

/** What `/cooldowns` shows. */
export interface OperationLimits {
  limits: readonly OperationLimit[]
  /** What was done in the last 24 hours by operations that the inventory no longer has. */
  others: readonly ActionSummary[]
}

const DAY_MS = 86_400_000
const MAX_ROWS = 1_000

/** Actions of the last 24 hours by service and type, the latest first (ops.md section 2). */
export function listActions(db: Database, now: Date): Promise<readonly ActionSummary[]> {
  const since = new Date(now.getTime() - DAY_MS)
  return q.listActions(db, { since, limit: MAX_ROWS })
}

/** Reads the limits of the inventory's operations and how far they are used. */
export async function readLimits(
  { db, inventory }: { db: Database; inventory: InventorySource },
  now: Date,
): Promise<OperationLimits> {
  const { services } = await inventory.current()
  const operations = services
    .flatMap(({ name: service, operations = [] }) =>
      operations.map((operation) => ({ service, operation, ...cooldownOf(operation) })),
    )
    .slice(0, MAX_ROWS)
  const limits = operations.map(({ service, operation, count: most, window_s }, position) => {
    const since = new Date(Math.max(0, now.getTime() - window_s * 1_000))
    return { position, service, action_type: operation.action_type, since, most }
  })
  const [uses, done] = await Promise.all([
    q.listUses(db, { limits, until: now, limit: MAX_ROWS }),
    listActions(db, now),
  ])
  return {
    limits: uses.flatMap(({ position, count, last_action, blocks }) => {
      const operation = operations[position]
      if (operation === undefined) return []
      const { service, count: most, window_s } = operation
      const { name, action_type, approval = false } = operation.operation
      const isFree = count < most || most === 0 || blocks === null
      const freeAt = isFree ? null : new Date(blocks.getTime() + window_s * 1_000)
      const window = formatDuration(window_s)
      return { service, name, action_type, approval, most, window, count, last_action, freeAt }
    }),
    others: done.filter(
      (one) => !limits.some((l) => l.service === one.service && l.action_type === one.action_type),
    ),
  }
}
