import { Readable } from 'node:stream'
import type { Database } from '../../db/client.ts'
import { hasCluster } from '../../db/embedded/cluster.ts'
import { providerQueries, type Provider } from '../../db/hooks/providers.ts'
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
import { messageOf } from '../../kernel/log.ts'
import { acceptsPrevious, type SigningSecrets } from '../../services/hooks/secrets.ts'
import type { DatabaseTools } from '../command.ts'
import { controlPath, runRemotely } from '../control.ts'
import { fail, ok, type Finding } from '../output.ts'
import type { ConfigSource } from '../configuration.ts'

const WHAT = 'database'
/** Tokens, leases and alarms end by the clock of this host or of the database. */
const MAX_SKEW_MS = 5_000

/**
 * Checks the configured database without changing it: through the server that has the embedded one
 * if one runs, else by opening it. A database that does not exist is not created.
 */
export async function databaseFindings(
  parts: Pick<DatabaseTools, 'config' | 'secrets' | 'log'>,
): Promise<readonly Finding[]> {
  const { DATABASE_URL: url, GATEHOUSE_DATA_DIR: dataDirectory } = parts.config.current
  const place = placeOf(parts.config)
  try {
    if (url === undefined) {
      const found = await askServer(controlPath(dataDirectory))
      if (found !== undefined) return found
      // Opening the embedded engine would create the directory.
      if (!hasCluster(dataDirectory))
        return [ok(WHAT, `embedded, not created yet in ${dataDirectory}`)]
    }
    const { db, close } = await openDatabase({ url, dataDirectory }, parts.log)
    try {
      return await inspectDatabase(db, parts)
    } finally {
      await close()
    }
  } catch (error) {
    return [fail(WHAT, `${place}: ${messageOf(error)}`)]
  }
}

/**
 * Checks an open database: whether it replies, its migrations fit this program, its clock agrees
 * with this host's, and the configured key opens its secrets.
 */
export async function inspectDatabase(
  db: Database,
  { config, secrets }: Pick<DatabaseTools, 'config' | 'secrets'>,
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
        ? signingSecretFindings(await providerQueries.listProviders(db, {}), secrets, new Date())
        : []),
    ]
  } catch (error) {
    return [fail(WHAT, `${placeOf(config)}: ${messageOf(error)}`)]
  }
}

/** The findings of the running server; undefined when none runs. */
async function askServer(path: string): Promise<readonly Finding[] | undefined> {
  const lines: string[] = []
  const add = (line: string): unknown => lines.push(line)
  const output = { out: add, err: add, data: add }
  const code = await runRemotely(path, ['check', '--json'], output, Readable.from([]))
  if (code === undefined) return undefined
  const text = lines.join(' ')
  // Any other output says why the check failed.
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
  if (tooOld(facts))
    return fail(WHAT, `${place} ${version}: PostgreSQL 15 or newer is needed; upgrade it`)
  const encoding = wronglyEncoded(facts)
  if (encoding !== undefined) return fail(WHAT, `${place} ${version}: ${encoding}`)
  if (read_only)
    return fail(WHAT, `${place} ${version} takes no writes: give the primary in DATABASE_URL`)
  if (config.current.DATABASE_URL === undefined) return ok(WHAT, place)
  return ok(WHAT, `${place} ${version}, ${encrypted ? 'with' : 'without'} TLS`)
}

async function clockFinding(db: Database): Promise<Finding> {
  const what = 'clock'
  const { aheadMs, doubtMs } = await compareClocks(db, () => new Date())
  const apart = Math.abs(aheadMs)
  const text =
    `${secondsOf(apart)} s ${aheadMs < 0 ? 'behind' : 'ahead of'} the database's` +
    ` (give or take ${secondsOf(doubtMs)} s)`
  if (apart - doubtMs <= MAX_SKEW_MS) return ok(what, text)
  return fail(what, `${text}, 5 s at most: synchronize both hosts (timedatectl timesync-status)`)
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
  if (faults.length === 0) return [ok(what, `${applied} applied${waiting}`)]
  return faults.map((detail) => fail(what, detail))
}

/** Each secret that can't be read, with what to do; one line if all can. */
function signingSecretFindings(
  providers: readonly Provider[],
  secrets: SigningSecrets,
  at: Date,
): readonly Finding[] {
  const signing = providers.filter(({ signing_secret }) => signing_secret !== null)
  const bad = signing.flatMap((provider) => {
    const problem = problemOf(provider, secrets, at)
    return problem === undefined ? [] : [fail(provider.name, problem)]
  })
  if (signing.length === 0 || bad.length > 0) return bad
  return [ok('signing secrets', `${signing.length} can be read`)]
}

function problemOf(provider: Provider, secrets: SigningSecrets, at: Date): string | undefined {
  const { name, signing_secret, previous_signing_secret } = provider
  const key = 'set GATEHOUSE_SECRET_KEY to the key that it was stored with'
  const present = secrets.keyIn(signing_secret, name)
  if ('problem' in present) {
    const rotate = `gatehouse provider rotate ${name}`
    return `its signing secret can't be read (${present.problem}); ${key}, or make a new one: ${rotate}`
  }
  if (previous_signing_secret === null || !acceptsPrevious(provider, at)) return undefined
  const previous = secrets.keyIn(previous_signing_secret, name, 'previous')
  if (!('problem' in previous)) return undefined
  return `its previous signing secret can't be read (${previous.problem}); ${key}, or have the sender use the new one`
}
