import { Readable } from 'node:stream'
import type { Database } from '../../db/client.ts'
import { hasCluster } from '../../db/embedded/cluster.ts'
import { listSenders } from '../../db/hooks/providers.ts'
import { migrationState } from '../../db/migrate.ts'
import { openDatabase } from '../../db/open.ts'
import {
  compareClocks,
  faultsOfTables,
  serverQueries,
  tooOld,
  wronglyEncoded,
  type ServerFacts,
} from '../../db/server.ts'
import type { ConfigSource } from '../../kernel/config.ts'
import { messageOf, type Log } from '../../kernel/log.ts'
import type { SigningSecrets } from '../../services/hooks/signing-secrets.ts'
import { controlPath, runRemotely } from '../control.ts'
import { fine, wrong, type Finding } from './finding.ts'
import { signingSecretFindings } from './signing-secrets.ts'

const WHAT = 'database'
/** Tokens, leases, alarms and retired secrets end by the time of the one or the other. */
const MOST_SKEW_MS = 5_000

/** What the database is looked at with. */
export interface DatabaseLook {
  readonly config: ConfigSource
  readonly secrets: SigningSecrets
  readonly log: Log
}

/**
 * Looks at the configured database without changing it: through the server that has the embedded one
 * when one runs, else by opening it. One that is not there yet is not made.
 */
export async function databaseFindings(look: DatabaseLook): Promise<readonly Finding[]> {
  const { DATABASE_URL: url, GATEHOUSE_DATA_DIR: dataDirectory } = look.config.current
  const place = placeOf(look.config)
  try {
    if (url === undefined) {
      const found = await askServer(controlPath(dataDirectory))
      if (found !== undefined) return found
      // Opening the embedded engine would create the directory.
      if (!hasCluster(dataDirectory))
        return [fine(WHAT, `embedded, not created yet in ${dataDirectory}`)]
    }
    const { db, close } = await openDatabase({ url, dataDirectory }, look.log)
    try {
      return await lookAtDatabase(db, look)
    } finally {
      await close()
    }
  } catch (error) {
    return [wrong(WHAT, `${place}: ${messageOf(error)}`)]
  }
}

/**
 * Looks at an open database: does it answer, do its migrations fit this program, does its clock go like
 * this host's, and can the secrets in it be read with the present key?
 */
export async function lookAtDatabase(
  db: Database,
  { config, secrets }: Pick<DatabaseLook, 'config' | 'secrets'>,
): Promise<readonly Finding[]> {
  try {
    const facts = await serverQueries.readServerFacts(db, {})
    const server = serverFinding(facts, config)
    if (server.level === 'fail') return [server]
    const clock = await clockFinding(db)
    const { applied, pending, faults } = await migrationState(db)
    const fits = pending.length === 0 && faults.length === 0
    const knowsKey = !config.problems.some(({ variables }) =>
      variables.includes('GATEHOUSE_SECRET_KEY'),
    )
    return [
      server,
      clock,
      ...migrationFindings(
        applied.length,
        pending.length,
        fits ? await faultsOfTables(db) : faults,
      ),
      // The queries are those of this program's schema: on another one they would only fail.
      ...(fits && knowsKey
        ? signingSecretFindings(await listSenders(db), secrets, new Date())
        : []),
    ]
  } catch (error) {
    return [wrong(WHAT, `${placeOf(config)}: ${messageOf(error)}`)]
  }
}

/** What the running server finds; undefined when none runs. */
async function askServer(path: string): Promise<readonly Finding[] | undefined> {
  const lines: string[] = []
  const add = (line: string): unknown => lines.push(line)
  const output = { out: add, err: add, data: add }
  const code = await runRemotely(path, ['check', '--json'], output, Readable.from([]))
  if (code === undefined) return undefined
  const text = lines.join(' ')
  // Whatever else it prints is what kept it from looking.
  if (!text.startsWith('[')) throw new Error(`the running server says: ${text}`)
  return JSON.parse(text) as readonly Finding[]
}

function placeOf({ current }: ConfigSource): string {
  return current.DATABASE_URL === undefined
    ? `embedded in ${current.GATEHOUSE_DATA_DIR}`
    : 'PostgreSQL server'
}

function serverFinding(facts: ServerFacts, config: ConfigSource): Finding {
  const { version, read_only, encrypted } = facts
  const place = placeOf(config)
  if (tooOld(facts) !== undefined)
    return wrong(WHAT, `${place} ${version}: PostgreSQL 15 or newer is needed; upgrade it`)
  const encoding = wronglyEncoded(facts)
  if (encoding !== undefined) return wrong(WHAT, `${place} ${version}: ${encoding}`)
  if (read_only)
    return wrong(WHAT, `${place} ${version} takes no writes: give the primary in DATABASE_URL`)
  if (config.current.DATABASE_URL === undefined) return fine(WHAT, place)
  return fine(WHAT, `${place} ${version}, ${encrypted ? 'with' : 'without'} TLS`)
}

async function clockFinding(db: Database): Promise<Finding> {
  const what = 'clock'
  const { aheadMs, doubtMs } = await compareClocks(db, () => new Date())
  const apart = Math.abs(aheadMs)
  const text =
    `${secondsOf(apart)} s ${aheadMs < 0 ? 'behind' : 'ahead of'} the database's` +
    ` (give or take ${secondsOf(doubtMs)} s)`
  if (apart - doubtMs <= MOST_SKEW_MS) return fine(what, text)
  return wrong(what, `${text}, 5 s at most: synchronize both hosts (timedatectl timesync-status)`)
}

function secondsOf(ms: number): string {
  return (ms / 1000).toFixed(3)
}

function migrationFindings(
  applied: number,
  pending: number,
  faults: readonly string[],
): readonly Finding[] {
  const what = 'migrations'
  const waiting = pending === 0 ? '' : `, ${pending} to be applied by serve or migrate`
  if (faults.length === 0) return [fine(what, `${applied} applied${waiting}`)]
  return faults.map((detail) => wrong(what, detail))
}
