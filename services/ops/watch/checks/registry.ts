import type { Database } from '../../../../db/client.ts'
import { checkQueries as q, type StoredDefinition } from '../../../../db/ops/watch/checks.ts'
import { objectOf } from '../../../../kernel/json.ts'
import type { Log } from '../../../../kernel/log.ts'
import { repeat, reportsTo } from '../../../../kernel/repeat.ts'
import type { SecretBox } from '../../../../kernel/secret-box.ts'
import type { Clock } from '../../../../kernel/time.ts'
import type { Service } from '../inventory/inventory.ts'
import { MAX_BY_HAND } from './definitions.ts'
import { openHeaders } from './headers.ts'
import { mistakeByHand } from './rules.ts'
import { BY_HAND, type Check } from './run.ts'

interface RegistryOptions {
  db: Database
  clock: Clock
  log: Log
  /** Encrypts headers; undefined without a key. */
  box: () => SecretBox | undefined
}

/** The checks that were made by hand, in memory. */
export type CheckRegistry = Awaited<ReturnType<typeof openCheckRegistry>>

const POLL_MS = 5_000

/** Follows the checks that were made by hand, also by other instances. */
export async function openCheckRegistry({ db, clock, log, box }: RegistryOptions) {
  let seen = ''
  let seenBox: SecretBox | undefined
  let services: readonly Service[] = []
  let secrets: readonly string[] = []

  async function refresh(): Promise<void> {
    const rows = await q.listDefinitions(db, { limit: MAX_BY_HAND })
    const text = JSON.stringify(rows)
    if (text === seen && box() === seenBox) return
    services = servicesOf(rows, box, log)
    secrets = services.flatMap(({ checks }) => checks.flatMap(headerValues))
    seen = text
    seenBox = box()
  }

  await refresh()
  const reports = reportsTo(log, 'checks made by hand not read', 'checks made by hand are read')
  const polls = repeat(clock, POLL_MS, 'checks made by hand', refresh, reports)
  await db.listen('ops_checks', () => void polls.now())
  return {
    /** Their services, with these checks alone. */
    services: () => services,
    /** The values of their headers, the same array until they change. */
    secrets: () => secrets,
    /** Reads all again; awaited after a change of our own, so that the next request sees it. */
    refresh: polls.now,
    close: polls.stop,
  }
}

function servicesOf(
  rows: readonly StoredDefinition[],
  box: RegistryOptions['box'],
  log: Log,
): readonly Service[] {
  const valid = rows.filter(({ service, name, definition }) => {
    const mistake = mistakeByHand(definition)
    if (mistake === undefined) return true
    const problem = mistake.join(' ').trim()
    log.warn('check made by hand is not run: its definition is wrong', {
      check: `${service}/${name}`,
      problem,
    })
    return false
  })
  const byService = Map.groupBy(valid, ({ service }) => service)
  return [...byService].map(([name, checks]) => {
    return { name, checks: checks.map((row) => checkOf(row, box)) }
  })
}

function checkOf(row: StoredDefinition, box: RegistryOptions['box']): Check {
  const { definition, headers: sealed } = row
  const opened = openHeaders(box, row, sealed)
  const obstacle = 'obstacle' in opened ? opened.obstacle : undefined
  const headers = 'headers' in opened && Object.keys(sealed).length > 0 ? opened : {}
  return { ...(definition as Check), ...headers, [BY_HAND]: { obstacle } }
}

function headerValues(check: Check): readonly string[] {
  return 'headers' in check ? Object.values(objectOf(check.headers)).map(String) : []
}
