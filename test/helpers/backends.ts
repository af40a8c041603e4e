import { existsSync } from 'node:fs'
import { cp, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import driver from 'postgres'
import type { Test } from 'tap'
import { migrate } from './cli.ts'
import { temporaryFolder, type Owner } from './owner.ts'
import { MIGRATED, run, sharedPostgres } from './postgres.ts'
import { ENGINE_FLAGS, type Env } from './program.ts'

/** A stored row. */
export type Row = Readonly<Record<string, unknown>>

/** A value of a query's parameter. */
export type Param = string | number | boolean | null | Date | Uint8Array

/** One of the two databases that the product runs on. */
export type Backend = {
  name: 'embedded' | 'postgres'
  /**
   * Variables of a fresh database that goes away with the test, as the first start leaves it. The same ones
   * again reopen its data; on postgres, two servers may use them at once.
   */
  env(t: Owner): Promise<Env>
  /** The same of a database that nobody has started on: what fills it must make everything. */
  emptyEnv(t: Owner): Promise<Env>
  /** Looks into the database; embedded: only while no server runs on it. */
  query(env: Env, text: string, params?: readonly Param[]): Promise<readonly Row[]>
}

/** The embedded database. */
export const embedded: Backend = {
  name: 'embedded',
  env: (t) => embeddedEnv(t, 'migrated'),
  emptyEnv: (t) => embeddedEnv(t, 'empty'),
  async query(env, text, params = []) {
    for (const flag of ENGINE_FLAGS) setFlagsFromString(flag)
    // Loaded here only: most files never look into an embedded database.
    const { openEmbedded } = await import('../../db/embedded/open.ts')
    const engine = await openEmbedded(required(env, 'GATEHOUSE_DATA_DIR'))
    const options = { socket: engine.socket, user: 'postgres', database: 'postgres', max: 1 }
    const sql = driver({ ...options, onnotice: () => undefined })
    try {
      return await sql.unsafe(text, [...params])
    } finally {
      await sql.end({ timeout: 5 })
      await engine.close()
    }
  },
}

/** A PostgreSQL server. */
export const postgres: Backend = {
  name: 'postgres',
  env: (t) => serverEnv(t, MIGRATED),
  emptyEnv: (t) => serverEnv(t),
  query: (env, text, params = []) => run(required(env, 'DATABASE_URL'), text, params),
}

async function embeddedEnv(t: Owner, state: EmbeddedState) {
  // Also for a test that opens the engine itself.
  for (const flag of ENGINE_FLAGS) setFlagsFromString(flag)
  const env = { GATEHOUSE_DATA_DIR: await temporaryFolder(t) }
  await seedEmbedded(env, state)
  // A file that runs alone has no template.
  if (state === 'migrated' && !existsSync(join(env.GATEHOUSE_DATA_DIR, 'pg'))) await migrate(env)
  return env
}

async function serverEnv(t: Owner, template?: string) {
  const databases = await sharedPostgres()
  // Never dropped: that waits for a checkpoint of the whole cluster, which ends with the run anyway.
  const url = await databases.createDatabase(template)
  return { DATABASE_URL: url, GATEHOUSE_DATA_DIR: await temporaryFolder(t) }
}

/** Both databases: whatever a user sees must be the same on each. */
export const backends: readonly [Backend, Backend] = [embedded, postgres]

/** Runs a sub-test on PostgreSQL, for what does not depend on the engine. */
export async function onPostgres(
  t: Test,
  name: string,
  body: (t: Test, backend: Backend) => Promise<unknown>,
) {
  await t.test(name, (inner) => body(inner, postgres))
}

/**
 * Runs a sub-test on each database, named `NAME (embedded)` and `NAME (postgres)`. Only for what may depend on
 * the engine: the database layer, transfer, faults, ingest, streams and some whole stories.
 */
export async function eachBackend(
  t: Test,
  name: string,
  body: (t: Test, backend: Backend) => Promise<unknown>,
) {
  for (const backend of backends) {
    await t.test(`${name} (${backend.name})`, (inner) => body(inner, backend))
  }
}

/** One connection to the database that `postgres.env` gave; it is closed with the test. */
export function connectionTo(t: Owner, env: Env) {
  const sql = driver(required(env, 'DATABASE_URL'), { max: 1, onnotice: () => undefined })
  t.teardown(() => sql.end())
  return sql
}

function required(env: Env, name: string) {
  const value = env[name]
  if (value === undefined) throw new Error(`${name} is missing: hand over what backend.env gave`)
  return value
}

/** Environment variable by which test/run.ts hands its templates to every test file. */
export const EMBEDDED_TEMPLATES = 'GATEHOUSE_TEST_EMBEDDED_TEMPLATES'

/** An embedded database without any table, or as the first start leaves it. */
type EmbeddedState = 'empty' | 'migrated'

/** Makes embedded databases once for a whole run: each creation costs seconds of processor time. */
export async function makeEmbeddedTemplates(folder: string): Promise<string> {
  const templates = join(folder, 'embedded-templates')
  const { openEmbedded } = await import('../../db/embedded/open.ts')
  const engine = await openEmbedded(join(templates, 'empty'))
  await engine.close()
  const env = { GATEHOUSE_DATA_DIR: join(templates, 'migrated') }
  await copyDatabase(join(templates, 'empty'), env.GATEHOUSE_DATA_DIR)
  await migrate(env)
  return templates
}

/**
 * Puts a copy of the run's template where a server will look for its embedded database, unless there
 * is one. A file that runs alone has no template: there the server creates its own, like a user's.
 */
export async function seedEmbedded(env: Env, state: EmbeddedState = 'migrated') {
  const templates = process.env[EMBEDDED_TEMPLATES]
  const directory = env['GATEHOUSE_DATA_DIR']
  if (templates === undefined || templates === '' || directory === undefined) return
  if (env['DATABASE_URL'] !== undefined || existsSync(join(directory, 'pg'))) return
  await copyDatabase(join(templates, state), directory)
}

async function copyDatabase(from: string, to: string) {
  await mkdir(to, { recursive: true, mode: 0o700 })
  await cp(join(from, 'pg'), join(to, 'pg'), { recursive: true })
}
