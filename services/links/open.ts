import { bearerFinder } from './people/tokens/tokens.ts'
import { openClicks, type ClicksOptions } from './visits/visits/clicks.ts'
import { openHealth, type HealthOptions } from './visits/health/open.ts'
import type { LinkParts } from './names/links/links.ts'
import { schemesVariable } from './names/links/schemes.ts'
import { startMissing } from './visits/missing.ts'
import { startRetention } from './retention.ts'
import { readSnapshot, startSnapshots, type SnapshotOptions } from './visits/visits/snapshot.ts'
import { openTargetCache } from './visits/visits/target-cache.ts'
import { ensureUser, OPERATOR_EMAIL } from './people/users/users.ts'
import { messageOf } from '../../kernel/log.ts'
import { HOSTS_FORM, parseHosts } from '../../kernel/net/addresses.ts'
import { address, baseUrl, oneOf, pattern, type Variables } from '../../kernel/variables.ts'

/** What the links service needs. */
interface LinksOptions
  extends Omit<LinkParts, 'forget'>, ClicksOptions, HealthOptions, SnapshotOptions {
  /** Whether the trusted proxy names groups, which links may be given to. */
  takesGroups: () => boolean
}

/** The running links service: everything that its routes call. */
export type Links = Awaited<ReturnType<typeof openLinks>>

/** Starts the service. It works with the database once that has been prepared. */
export async function openLinks(options: LinksOptions) {
  const { db, clock, metrics, log, snapshot } = options
  const clicks = openClicks(options)
  const targets = await openTargetCache(db, metrics, clicks.ownVisits)
  const retention = startRetention(options)
  const missing = startMissing(options)
  const health = openHealth(options)
  const snapshots = startSnapshots(options)
  return {
    ...options,
    targets,
    forget: targets.forget,
    clicks,
    missing,
    findBearer: bearerFinder(db),
    /** Creates the local operator in a migrated database. */
    async prepare() {
      const actor = { kind: 'command' } as const
      await ensureUser({ db, actor }, OPERATOR_EMAIL, 'admin', clock.now())
      await clicks.forgetWriters()
    },
    /** Takes the links of a snapshot, and says when it was written; undefined without one. */
    async restore() {
      if (snapshot === undefined) return undefined
      try {
        const found = await readSnapshot(snapshot, clock.now())
        if (found !== undefined) targets.restore(found.links)
        return found && { links: found.links.length, written: found.written.toISOString() }
      } catch (error) {
        log.warn('snapshot of links not used', { path: snapshot.path, error: messageOf(error) })
        return undefined
      }
    },
    /** Starts upkeep in the background, once the listeners are up. */
    begin() {
      retention.prune()
      void snapshots?.now()
    },
    async close() {
      const parts = [retention, missing, health]
      await Promise.all([snapshots?.stop(), clicks.close(), ...parts.map((part) => part.close())])
    },
  }
}

const HOST_NAME = /^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/i

/** The variables of the links service. */
export const linksVariables = {
  LINKS_ADDR: address('127.0.0.1:8081'),
  LINKS_BASE_URL: baseUrl,
  LINKS_SHORT_KEYWORD: {
    form: 'a host name such as go',
    counts: 'at once',
    read: (text) => pattern('', HOST_NAME).read(text).toLowerCase(),
  },
  LINKS_SCHEMES: schemesVariable,
  LINKS_CHECK: { ...oneOf('daily', 'weekly'), counts: 'from the next start' },
  LINKS_CHECK_HOSTS: { form: HOSTS_FORM, counts: 'at once', read: parseHosts },
  LINKS_STATS: { ...oneOf('full', 'totals'), counts: 'at once', default: 'full' },
} satisfies Variables
