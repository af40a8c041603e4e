import { isIP } from 'node:net'
import {
  rejectionQueries as q,
  UNKNOWN_PROVIDER,
  type Rejection,
} from '../../../db/hooks/receive/rejections.ts'
import { reportsTo, startNumberedBatches } from '../../../kernel/repeat.ts'
import type { HooksParts } from '../registry.ts'

/**
 * Keeps rejected deliveries (401, 403, 413), and those to paths that lead to no provider (404):
 * counts all, lists the newest, never keeps a payload.
 */
export interface Rejections {
  record(rejection: Rejected): void
  flush(): Promise<void>
  close(): Promise<void>
}

interface Rejected {
  provider: string
  status: 401 | 403 | 404 | 413
  client: string
  reason: string
  at: Date
  /** Its signature or token was wrong: the alarm "burst" counts these. */
  wrongSecret?: boolean
}

/**
 * Rows kept from one flush to the next, and rows that the table keeps: a flood of rejections costs
 * one small statement a second. Anybody may send to unknown paths, so those have bounds of their
 * own, and evict nothing else.
 */
const MAX_ROWS_PER_FLUSH = 200
const MAX_REJECTIONS = 10_000
const MAX_UNKNOWN_PER_FLUSH = 20
const MAX_UNKNOWN = 1_000

const MINUTE_MS = 60_000
const DAY_MS = 86_400_000

type Row = Omit<Rejection, 'id'>

/** What gathers between two flushes. */
interface Gathered {
  /** The newest. */
  rows: Row[]
  /** The newest to unknown paths. */
  unknown: Row[]
  /** All of them, by provider, status and minute; `wrong` had a wrong signature or token. */
  sums: Map<string, Sum>
}

interface Sum extends Pick<Rejection, 'provider' | 'status'> {
  minute: Date
  total: number
  wrong: number
  last_at: Date
}

export async function openRejections(parts: HooksParts): Promise<Rejections> {
  const { db, clock, random, log, metrics } = parts
  await q.forgetRejectionWriters(db, { before: new Date(clock.now().getTime() - DAY_MS) })
  const counter = metrics.counter(
    'gatehouse_hooks_rejections',
    'Deliveries refused, by provider and status.',
  )
  let gathered = nothingGathered()

  const batches = startNumberedBatches<Gathered>({
    name: 'rejections',
    clock,
    random,
    take() {
      if (gathered.sums.size === 0) return []
      const taken = gathered
      gathered = nothingGathered()
      return [taken]
    },
    save: ({ rows, unknown, sums }, number) =>
      q.saveRejections(db, {
        ...number,
        rows: [...rows, ...unknown].toSorted((a, b) => a.at.getTime() - b.at.getTime()),
        sums: [...sums.values()],
        now: clock.now(),
        keep: MAX_REJECTIONS - rows.length,
        unknown: UNKNOWN_PROVIDER,
        keep_unknown: MAX_UNKNOWN - unknown.length,
      }),
    reports: reportsTo(log, 'rejections not saved', 'rejections are saved again'),
  })

  return {
    record(rejection) {
      const { provider, status, client, reason, at } = rejection
      counter.add({ provider, status: String(status) })
      count(gathered, rejection)
      const isUnknown = provider === UNKNOWN_PROVIDER
      const rows = isUnknown ? gathered.unknown : gathered.rows
      rows.push({ at, provider, status, source: redactAddress(client), reason })
      if (rows.length > (isUnknown ? MAX_UNKNOWN_PER_FLUSH : MAX_ROWS_PER_FLUSH)) rows.shift()
    },
    flush: batches.flush,
    close: batches.close,
  }
}

function nothingGathered(): Gathered {
  return { rows: [], unknown: [], sums: new Map() }
}

function count({ sums }: Gathered, { provider, status, at, wrongSecret }: Rejected): void {
  const minute = new Date(Math.floor(at.getTime() / MINUTE_MS) * MINUTE_MS)
  const key = `${provider} ${status} ${minute.getTime()}`
  const sum = sums.get(key) ?? { provider, status, minute, total: 0, wrong: 0, last_at: at }
  sum.total++
  if (wrongSecret === true) sum.wrong++
  if (sum.last_at < at) sum.last_at = at
  sums.set(key, sum)
}

/** `203.0.113.7` → `203.0.113.0/24`, IPv6 → its /48: enough to recognise a sender's network. */
export function redactAddress(address: string): string {
  if (isIP(address) === 4) return address.replace(/\.\d+$/, '.0/24')
  if (isIP(address) !== 6) return 'unknown'
  const [head = ''] = address.split('::')
  const groups = head
    .split(':')
    .slice(0, 3)
    .filter((group) => group !== '')
  return `${groups.join(':')}::/48`
}
