import type { Database, Executor } from '../../../../db/client.ts'
import { healthQueries as q, type CheckedLink } from '../../../../db/links/visits/health.ts'
import type { Log } from '../../../../kernel/log.ts'
import { repeat, reportsTo, type Repeat } from '../../../../kernel/repeat.ts'
import type { Clock } from '../../../../kernel/time.ts'
import { reconcileNotices, type Firing } from '../../../notices/notices.ts'

const ROUND_MS = 5_000
const PREFIX = 'links broken '
/** A wiki that moves breaks thousands of links at once: the report has the others. */
const MAX_NOTICES = 100
/** Owners that a notice names. */
const MAX_OWNERS = 5

/** Tells people once that a link is broken and whose it is, and once that it is no longer. */
export function startHealthNotices(options: { db: Database; clock: Clock; log: Log }): Repeat {
  const { db, clock, log } = options
  const round = () => {
    const group = { service: 'links', site: 'links', prefix: PREFIX, now: clock.now() } as const
    return reconcileNotices(db, group, readFiring)
  }
  const reports = reportsTo(
    log,
    'notices of links not looked up',
    'notices of links are looked up again',
  )
  return repeat(clock, ROUND_MS, 'notices of links', round, reports)
}

async function readFiring(db: Executor): Promise<readonly Firing[]> {
  const asked = { state: 'broken', users: null, after: '', limit: MAX_NOTICES + 1 }
  const broken = await q.listChecked(db, asked)
  const told = broken.slice(0, MAX_NOTICES).map(firingOf)
  return broken.length > MAX_NOTICES ? [...told, MORE] : told
}

const MORE: Firing = {
  key: `${PREFIX}more`,
  level: 'warning',
  message: `More than ${MAX_NOTICES} links are broken: the report has them all`,
  path: '/-/health',
}

/** Who gets a notice may not be a reader of the link: it never says where a link leads. */
function firingOf({ id, slug, visibility, owners, problem }: CheckedLink): Firing {
  // Everybody who knows the name of a private link may follow it.
  const name = visibility === 'public' ? `The link ${slug}` : `A ${visibility} link`
  const others = owners.length - MAX_OWNERS
  const named = owners.slice(0, MAX_OWNERS).join(', ')
  const whose = others > 0 ? `${named} and ${others} more` : named
  const message = `${name} of ${whose} is broken: ${problem ?? ''}`
  return { key: `${PREFIX}${id}`, level: 'warning', message, path: `/-/links/${id}` }
}
