import { Readable } from 'node:stream'
import type { Database } from '../../../db/client.ts'
import { hasCluster } from '../../../db/embedded/cluster.ts'
import { eventQueries } from '../../../db/hooks/log/events.ts'
import { providerQueries, type Provider } from '../../../db/hooks/receive/providers.ts'
import { migrationState } from '../../../db/migrate.ts'
import { openDatabase } from '../../../db/open.ts'
import {
  compareClocks,
  faultsOfTables,
  poolerFault,
  readFacts,
  unfitness,
  type ServerFacts,
} from '../../../db/server.ts'
import { Unavailable } from '../../../kernel/fault.ts'
import { messageOf } from '../../../kernel/log.ts'
import type { SigningSecrets } from '../../../services/hooks/receive/schemes/signing-secrets.ts'
import { acceptsPrevious } from '../../../services/hooks/receive/schemes/secrets.ts'
import {
  describeUnreadable,
  keyDifference,
  SAME_KEY,
  WAYS_BACK,
} from '../../../services/secret-key.ts'
import { placeOfKey } from '../secret-key.ts'
import {
  readSnapshot,
  type SnapshotPlace,
} from '../../../services/links/visits/visits/snapshot.ts'
import type { DatabaseTools } from '../../frame/command.ts'
import { controlPath } from '../../frame/control.ts'
import { runRemotely } from '../../frame/control-client.ts'
import { fail, ok, warn, type Findings } from '../../frame/output.ts'
import {
  areKnown,
  instancesProblem,
  snapshotPlace,
  type ConfigSource,
  type ServiceName,
} from '../../frame/configuration.ts'

const WHAT = 'database'
/** Tokens, leases and alarms end by the clock of this host or of the database. */
const MAX_SKEW_MS = 5_000

/**
 * Checks the configured database without changing it: through the server that has the embedded one
 * if one runs, else by opening it. A database that does not exist is not created.
 */
export async function databaseFindings(
  parts: Pick<DatabaseTools, 'config' | 'secrets' | 'log'>,
  services: readonly ServiceName[],
): Promise<Findings> {
  const { config, log } = parts
  const { DATABASE_URL: url, GATEHOUSE_DATA_DIR: dataDirectory } = config.current
  const problem = instancesProblem(config)
  if (problem !== undefined) return [fail(WHAT, problem)]
  try {
    if (url === undefined) {
      const found = await askServer(controlPath(dataDirectory))
      if (found !== undefined) return found
      // Opening the embedded engine would create the directory.
      if (!hasCluster(dataDirectory))
        return [ok(WHAT, `embedded, not created yet in ${dataDirectory}`)]
    }
    await using database = await openDatabase({ url, dataDirectory }, log)
    const alone = services.includes('links') ? snapshotPlace(config) : undefined
    return await inspectDatabase(database.db, parts, alone)
  } catch (error) {
    return [fail(WHAT, `${placeOf(config)}: ${messageOf(error)}`)]
  }
}

/**
 * Checks an open database: whether it replies, its migrations fit this program, its clock agrees
 * with this host's, and the configured key opens its secrets.
 */
export async function inspectDatabase(
  db: Database,
  { config, secrets }: Pick<DatabaseTools, 'config' | 'secrets'>,
  snapshot?: SnapshotPlace,
) {
  try {
    const facts = await readFacts(db)
    const server = serverFinding(facts, config)
    if (server.level === 'fail') return [server]
    const pooler = config.current.DATABASE_URL && (await poolerFault(db))
    if (pooler) return [fail(WHAT, pooler)]
    const clock = await clockFinding(db)
    const state = await migrationState(db)
    const fits = state.pending.length === 0 && state.faults.length === 0
    // The queries are those of this program's schema: on another one they would only fail.
    const broken = fits ? await faultsOfTables(db) : []
    const findings = [server, clock, ...migrationFindings(state, broken)]
    if (fits && broken.length === 0) findings.push(...(await futureFindings(db)))
    if (fits && areKnown(config, ['GATEHOUSE_SECRET_KEY'])) {
      const providers = await providerQueries.listProviders(db, {})
      findings.push(...signingSecretFindings(providers, secrets, new Date()))
      findings.push(...(await keyFindings(db, config, secrets)))
    }
    return findings
  } catch (error) {
    const problem = `${placeOf(config)}: ${messageOf(error)}`
    const served = error instanceof Unavailable && (await snapshotText(snapshot))
    return [
      served ? warn(WHAT, `${problem}; until it is in reach, ${served}`) : fail(WHAT, problem),
    ]
  }
}

/** What `serve` does without the database; undefined without a snapshot that it would use. */
async function snapshotText(snapshot: SnapshotPlace | undefined) {
  const found = snapshot && (await readSnapshot(snapshot, new Date()).catch(() => undefined))
  if (found === undefined) return undefined
  const { links, written } = found
  return `serve gives ${links.length} links of ${written.toISOString()}, and the other services wait`
}

/** The findings of the running server; undefined when none runs. */
async function askServer(path: string) {
  const lines: string[] = []
  const add = (line: string) => lines.push(line)
  const output = { out: add, err: add, data: add }
  const code = await runRemotely(path, ['check', '--json'], output, Readable.from([]))
  if (code === undefined) return undefined
  const text = lines.join(' ')
  // Any other output says why the check failed.
  if (!text.startsWith('[')) throw new Error(`the running server says: ${text}`)
  return JSON.parse(text) as Findings
}

function placeOf({ current }: ConfigSource) {
  return current.DATABASE_URL === undefined
    ? `embedded in ${current.GATEHOUSE_DATA_DIR}`
    : 'PostgreSQL server'
}

function serverFinding(facts: ServerFacts, config: ConfigSource) {
  const { version, read_only, encrypted } = facts
  const place = placeOf(config)
  const server = `${place} ${version}`
  const reason = unfitness(facts)
  if (reason !== undefined) return fail(WHAT, `${server}: ${reason}`)
  if (read_only) return fail(WHAT, `${server} takes no writes: give the primary in DATABASE_URL`)
  if (config.current.DATABASE_URL === undefined) return ok(WHAT, place)
  return ok(WHAT, `${server}, ${encrypted ? 'with' : 'without'} TLS`)
}

async function clockFinding(db: Database) {
  const what = 'clock'
  const { aheadMs, doubtMs } = await compareClocks(db, () => new Date())
  const apart = Math.abs(aheadMs)
  const text =
    `${secondsOf(apart)} s ${aheadMs < 0 ? 'behind' : 'ahead of'} the database's` +
    ` (give or take ${secondsOf(doubtMs)} s)`
  if (apart - doubtMs <= MAX_SKEW_MS) return ok(what, text)
  const remedy = 'synchronize both hosts (timedatectl timesync-status)'
  return warn(what, `${text}, 5 s at most: ${remedy}`)
}

/** An event that came while the database's clock was ahead. */
async function futureFindings(db: Database): Promise<Findings> {
  const event = await eventQueries.newestInFuture(db, {})
  if (event === undefined) return []
  const text =
    `event ${event.id} has a time to come, ${event.received_at.toISOString()}: the database's clock was ahead; ` +
    'new events have the time of the clock as it is, and lists keep the order of the ids'
  return [warn('clock', text)]
}

function secondsOf(ms: number) {
  return (ms / 1000).toFixed(3)
}

function migrationFindings(
  { applied, pending, faults }: Awaited<ReturnType<typeof migrationState>>,
  broken: readonly string[],
) {
  const what = 'migrations'
  const waiting =
    pending.length === 0 ? '' : `, ${pending.length} to be applied by serve or migrate`
  if (faults.length > 0) return faults.map((detail) => fail(what, detail))
  if (broken.length > 0) return broken.map((detail) => warn(what, detail))
  return [ok(what, `${applied.length} applied${waiting}`)]
}

/** Where the key of secrets is, whether other instances have it, and what it can't read. */
async function keyFindings(
  db: Database,
  config: ConfigSource,
  secrets: SigningSecrets,
): Promise<Findings> {
  const what = 'secret key'
  const box = secrets.box()
  const difference = await keyDifference(db, box)
  const unreadable = await describeUnreadable(db, box)
  const findings = [
    ...(difference === undefined ? [] : [warn(what, `${difference}: ${SAME_KEY}`)]),
    ...(unreadable === ''
      ? []
      : [warn(what, `it can't read secrets of ${unreadable}: ${WAYS_BACK}`)]),
  ]
  const place = placeOfKey(config)
  return findings.length > 0 || place === undefined ? findings : [ok(what, place)]
}

/** Each secret that can't be read, with what to do; one line if all can. */
function signingSecretFindings(
  providers: readonly Provider[],
  secrets: SigningSecrets,
  at: Date,
): Findings {
  const signing = providers.filter(({ signing_secret }) => signing_secret !== null)
  const bad = signing.flatMap((provider) => problemOf(provider, secrets, at) ?? [])
  if (signing.length === 0 || bad.length > 0) return bad
  return [ok('signing secrets', `${signing.length} can be read`)]
}

function problemOf(provider: Provider, secrets: SigningSecrets, at: Date) {
  const { name, previous_signing_secret: previous } = provider
  const present = secrets.keyIn(provider)
  if ('problem' in present) {
    const other = `make a new one: gatehouse provider rotate ${name}`
    return unreadable(name, 'signing secret', present.problem, other)
  }
  if (previous === null || !acceptsPrevious(provider, at)) return undefined
  const former = secrets.keyIn(provider, 'previous')
  if (!('problem' in former)) return undefined
  const other = 'have the sender use the new one'
  return unreadable(name, 'previous signing secret', former.problem, other)
}

function unreadable(name: string, what: string, problem: string, other: string) {
  return warn(
    name,
    `its ${what} can't be read (${problem}); ` +
      `set GATEHOUSE_SECRET_KEY to the key that it was stored with, or ${other}`,
  )
}
