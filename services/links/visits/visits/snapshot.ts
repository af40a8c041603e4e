import { createHash, randomUUID } from 'node:crypto'
import { mkdir, open, readdir, rename, rm, stat, type FileHandle } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Database } from '../../../../db/client.ts'
import {
  visitQueries as q,
  type Target,
  type UsedLink,
} from '../../../../db/links/visits/visits.ts'
import { splitDatabaseUrl } from '../../../../kernel/database-url.ts'
import { codeOf, type Log } from '../../../../kernel/log.ts'
import { repeat, reportsTo, type Repeat } from '../../../../kernel/repeat.ts'
import type { Clock } from '../../../../kernel/time.ts'
import { DAY_MS } from './visit-counts.ts'

// The most used links in a file, for a start while the database is out of reach. Lines of JSON: what
// it is, then a link each; the last line is the checksum of those before.

/** Where the snapshot is, and of which database. */
export interface SnapshotPlace {
  path: string
  /** The database's address. The file has a hash of it: the address may have a password. */
  url: string
}

/** What the first line says. */
interface Head {
  format: string
  database: string
  written: string
}

export interface SnapshotOptions {
  db: Database
  clock: Clock
  log: Log
  /** Absent with the embedded database, which is never out of reach alone. */
  snapshot?: SnapshotPlace | undefined
}

const FORMAT = 'gatehouse links 1'
const MAX_LINKS = 10_000
/** How many links are read: some of them are secure or have ended, and are not kept. */
const MAX_LOOKED_AT = 2 * MAX_LINKS
/** With longer addresses, fewer links are kept. Memory for links has the same bound. */
const MAX_BYTES = 32 * 2 ** 20
/** Rows of one statement. */
const PAGE = 500
/** With the time that writing takes, no snapshot of a running server is older than a minute. */
const WRITE_MS = 45_000
/** No write takes as long: an older unfinished file is of a process that has crashed. */
const LEFT_BEHIND_MS = 3_600_000
/** An older snapshot is not used: too many links may have been changed since. */
const MAX_AGE_MS = 7 * DAY_MS

/** Writes a snapshot every 45 s; undefined where none is wanted. */
export function startSnapshots({ db, clock, log, snapshot }: SnapshotOptions): Repeat | undefined {
  if (snapshot === undefined) return undefined
  const reports = reportsTo(
    log,
    'snapshot of links not written',
    'snapshot of links is written again',
  )
  const write = (isStopped: () => boolean) => writeSnapshot(snapshot, clock.now(), db, isStopped)
  return repeat(clock, WRITE_MS, 'snapshot of links', write, reports)
}

/** The most used links that a snapshot keeps, some at a time. */
async function* mostUsed(db: Database) {
  let last = { rank: Number.MIN_SAFE_INTEGER, slug: '' }
  let left = MAX_LINKS
  for (let seen = 0; seen < MAX_LOOKED_AT && left > 0; seen += PAGE) {
    const { rank, slug } = last
    const rows = await q.listMostUsed(db, { rank, slug, limit: PAGE })
    const kept = rows.filter(({ is_kept }) => is_kept).slice(0, left)
    left -= kept.length
    yield kept
    if (rows.length < PAGE) return
    last = rows.at(-1) ?? last
  }
}

/** The file gets its name when all of it is on the disk; not when the program stops before. */
async function writeSnapshot(
  { path, url }: SnapshotPlace,
  now: Date,
  db: Database,
  isStopped: () => boolean,
) {
  // A name of its own: instances of one host write in the same folder.
  const part = `${path}.${randomUUID()}.part`
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await removeLeftBehind(path, now)
  await using unfinished = new AsyncDisposableStack()
  unfinished.defer(() => rm(part, { force: true }))
  await using file = await open(part, 'wx', 0o600)
  const hash = createHash('sha256')
  const head: Head = { format: FORMAT, database: hashOf(url), written: now.toISOString() }
  const first = lineOf(head)
  await append(file, hash, first)
  let bytes = first.length
  for await (const links of mostUsed(db)) {
    if (isStopped()) return
    const text = links.map(toLine).join('')
    bytes += Buffer.byteLength(text)
    if (bytes > MAX_BYTES) break
    await append(file, hash, text)
  }
  await file.writeFile(`${hash.digest('hex')}\n`)
  await file.sync()
  await rename(part, path)
}

/** A crash in the middle of a write leaves its unfinished file. */
async function removeLeftBehind(path: string, now: Date) {
  const names = await readdir(dirname(path))
  for (const name of names) {
    if (!name.startsWith(`${basename(path)}.`) || !name.endsWith('.part')) continue
    const found = join(dirname(path), name)
    // Another instance may have finished it.
    const age = await stat(found).then(
      ({ mtimeMs }) => now.getTime() - mtimeMs,
      () => 0,
    )
    if (age > LEFT_BEHIND_MS) await rm(found, { force: true })
  }
}

async function append(file: FileHandle, hash: ReturnType<typeof createHash>, text: string) {
  hash.update(text)
  await file.writeFile(text)
}

function toLine({ rank: _rank, is_kept: _kept, ...link }: UsedLink) {
  return lineOf(link)
}

function lineOf(value: object) {
  return `${JSON.stringify(value)}\n`
}

/**
 * The links of a snapshot, the most used first, and when it was written. Undefined when there is no
 * file; throws an Error with the reason when it can't be used.
 */
export async function readSnapshot({ path, url }: SnapshotPlace, now: Date) {
  const text = await readBounded(path)
  if (text === undefined) return undefined
  const end = text.lastIndexOf('\n', text.length - 2) + 1
  const body = text.slice(0, end)
  if (createHash('sha256').update(body).digest('hex') !== text.slice(end).trimEnd()) {
    throw new Error('it is damaged')
  }
  const [first = '', ...lines] = body.trimEnd().split('\n')
  const head: Head = JSON.parse(first)
  if (head.format !== FORMAT) throw new Error('another version of Gatehouse wrote it')
  if (head.database !== hashOf(url)) throw new Error('it is of another database')
  const written = new Date(head.written)
  if (Math.abs(now.getTime() - written.getTime()) > MAX_AGE_MS) {
    throw new Error(`it was written at ${head.written}: 7 days are the limit`)
  }
  return { written, links: lines.map(toTarget) }
}

async function readBounded(path: string) {
  try {
    await using file = await open(path)
    const { size } = await file.stat()
    if (size > 2 * MAX_BYTES) throw new Error('it is too large')
    return await file.readFile('utf8')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

function toTarget(line: string): Target {
  const link: Omit<Target, 'max_visits'> = JSON.parse(line)
  return { ...link, max_visits: null }
}

/** Names servers and database. User and password are left out: they may change. */
function hashOf(url: string) {
  const { hosts, path, query } = splitDatabaseUrl(url)
  return createHash('sha256').update(`${hosts}${path}?${query}`).digest('hex')
}
