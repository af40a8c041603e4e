import type { Database } from '../../db/client.ts'
import type { Clock } from '../../kernel/time.ts'
import type { Log } from '../../kernel/log.ts'
import type { Metrics } from '../../kernel/metrics.ts'
import type { RandomBytes } from '../../kernel/tokens.ts'
import { createBearers, type Bearers } from './tokens.ts'
import { openClicks, type Clicks } from './clicks.ts'
import type { LinkParts } from './links.ts'
import { openTargetCache, type TargetCache } from './target-cache.ts'
import { ensureUser, OPERATOR_EMAIL } from './users.ts'

/** What the links service needs. */
export interface LinksOptions extends Omit<LinkParts, 'forget'> {
  readonly db: Database
  readonly clock: Clock
  readonly random: RandomBytes
  readonly log: Log
  readonly metrics: Metrics
}

/** The running links service: everything that its routes call. */
export interface Links extends LinksOptions, LinkParts {
  readonly targets: TargetCache
  readonly clicks: Clicks
  readonly bearers: Bearers
  /** Stores the clicks that are counted in memory. */
  close(): Promise<void>
}

/** Starts the service on a migrated database, and creates the local operator. */
export async function openLinks(options: LinksOptions): Promise<Links> {
  const { db, clock, metrics } = options
  await ensureUser(db, OPERATOR_EMAIL, 'admin', clock.now())
  const targets = await openTargetCache(db, metrics)
  const clicks = await openClicks(options)
  return {
    ...{ ...options, targets, forget: targets.forget, clicks },
    bearers: createBearers(db),
    close: () => clicks.close(),
  }
}
