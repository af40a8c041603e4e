import { createBearers, type Bearers } from './tokens.ts'
import { openClicks, type Clicks, type ClicksOptions } from './clicks.ts'
import type { LinkParts } from './links.ts'
import { openTargetCache, type TargetCache } from './target-cache.ts'
import { ensureUser, OPERATOR_EMAIL } from './users.ts'
import { pattern } from '../../kernel/readings.ts'
import { address, baseUrl, optional } from '../../kernel/variables.ts'

/** What the links service needs. */
export type LinksOptions = Omit<LinkParts, 'forget'> & ClicksOptions

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

const HOST_NAME = /^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/i

/** The variables of the links service. */
export const linksVariables = {
  LINKS_ADDR: address('127.0.0.1:8081'),
  LINKS_BASE_URL: baseUrl(),
  LINKS_SHORT_KEYWORD: optional({
    form: 'a host name such as go',
    read: (text) => pattern('', HOST_NAME).read(text).toLowerCase(),
  }),
}
