import { createHash } from 'node:crypto'
import * as Type from '../kernel/schema.ts'
import { assetNames, assetText } from '../kernel/assets.ts'
import { messageOf } from '../kernel/log.ts'
import type { Database, Executor } from './client.ts'
import { QueryError } from './errors.ts'
import { exec, many, one, sqlFile } from './sql-file.ts'

/** A migration file of this program. */
interface Migration {
  number: number
  name: string
  text: string
  sha256: string
  /** The schema that it creates, if any. */
  schema: string | undefined
}

/** A migration as a database records it. */
export const Applied = Type.Object({
  number: Type.Integer(),
  name: Type.String(),
  sha256: Type.String(),
})
export type Applied = Type.Static<typeof Applied>

export const migrationQueries = sqlFile('sql/migrate.sql', {
  hasMigrations: one(Type.Object({ present: Type.Boolean() }), {}),
  listMigrations: many(Applied, {}),
  recordMigration: exec({ number: 'int4', name: 'text', sha256: 'text' }),
  readSchemas: one(Type.Object({ names: Type.Array(Type.String()) }), {}),
})
const { hasMigrations, listMigrations, recordMigration, readSchemas } = migrationQueries

/** The first migration of every database that was made before the first release. */
const PRE_RELEASE = '47c1fe97c888fc43c8e49ad6707392bc20188c300c7fcdf6344e840d6e6e1c44'

/** Two processes may start at once. The lock ends with its transaction. */
const LOCK = 'select pg_advisory_xact_lock(7203000);'
const CREATE_TABLE = `
create schema if not exists gatehouse;
create table if not exists gatehouse.migrations (
  number     integer     primary key,
  name       text        not null,
  sha256     text        not null,
  applied_at timestamptz not null default now()
);`

/** Compares the database with this program without changing anything. */
export async function migrationState(db: Executor, migrations = loadMigrations()) {
  // Another instance may migrate at the same time. A schema that was there before must be
  // recorded, and one that is recorded must be there afterwards.
  const { names: before } = await readSchemas(db, {})
  const applied = await readApplied(db)
  const { names: after } = await readSchemas(db, {})
  const recorded = new Set(applied.map(({ number }) => number))
  const pending = migrations.filter(({ number }) => !recorded.has(number))
  return {
    applied: applied.map(({ name }) => name),
    pending: pending.map(({ name }) => name),
    /** Reasons why this program must not use the database, one line each. */
    faults: faultsOfHistory(applied, migrations) ?? [
      ...applied.flatMap((row) => faultsOfApplied(row, migrations[row.number - 1], after)),
      ...pending.flatMap((migration) => faultsOfPending(migration, recorded, before)),
    ],
  }
}

/**
 * Applies pending migrations up to number `through`, in order, one transaction each. Returns their
 * names. Throws an Error with one line if this program must not use the database or a migration
 * fails.
 */
export async function migrate(
  db: Database,
  through = Number.POSITIVE_INFINITY,
): Promise<readonly string[]> {
  const migrations = loadMigrations()
  const { pending, faults } = await migrationState(db, migrations)
  const [fault, ...more] = faults
  if (fault !== undefined) {
    const others = `(and ${more.length} more: gatehouse check)`
    throw new Error(more.length === 0 ? fault : `${fault} ${others}`)
  }
  if (pending.length === 0) return []

  await db.transaction((tx) => tx.script(LOCK + CREATE_TABLE))
  const done: string[] = []
  for (const migration of migrations) {
    if (migration.number > through) break
    if (await applyOnce(db, migration)) done.push(migration.name)
  }
  return done
}

/** Returns false if another instance has applied it meanwhile. */
async function applyOnce(db: Database, migration: Migration) {
  const { number, name, sha256, text } = migration
  return db.transaction(async (tx) => {
    await tx.script(LOCK)
    const applied = await listMigrations(tx, {})
    if (applied.some((row) => row.number === number)) return false
    try {
      await tx.script(text)
    } catch (error) {
      if (!(error instanceof QueryError)) throw error
      const problem = `Migration ${name} failed and changed nothing (${messageOf(error)})`
      throw new Error(`${problem}: correct that and try again`, { cause: error })
    }
    await recordMigration(tx, { number, name, sha256 })
    return true
  })
}

/** The applied migrations in order; none of an empty database. */
export async function readApplied(db: Executor): Promise<readonly Applied[]> {
  const { present } = await hasMigrations(db, {})
  return present ? listMigrations(db, {}) : []
}

/** The first applied migration that this program does not have, or has with another text. */
export function firstUnknown(applied: readonly Applied[]): Applied | undefined {
  const migrations = loadMigrations()
  return applied.find((row, at) => {
    const ours = migrations[at]
    return ours?.number !== row.number || ours.sha256 !== row.sha256
  })
}

const RESTORE = 'restore the whole backup'

/**
 * Faults of a database of which nothing else can be said: it is older or newer than this program.
 */
function faultsOfHistory(
  applied: readonly Applied[],
  migrations: readonly Migration[],
): readonly string[] | undefined {
  if (applied[0]?.sha256 === PRE_RELEASE) {
    const { name, sha256 = '' } = migrations[0] ?? {}
    return [
      'The database was made before the first release of Gatehouse, ' +
        `whose tables were others: expected ${name} with checksum ${sha256.slice(0, 8)}, ` +
        `got ${PRE_RELEASE.slice(0, 8)}; use an empty database`,
    ]
  }
  const unknown = applied.filter(({ number }) => migrations[number - 1] === undefined)
  if (unknown.length === 0) return undefined
  return unknown.map(
    ({ name }) =>
      `The database has migration ${name}, which this program does not know: ` +
      'it is newer; start the newer program, ' +
      'or restore the backup from before the upgrade',
  )
}

function faultsOfApplied(
  { name, sha256 }: Applied,
  ours: Migration | undefined,
  schemas: readonly string[],
): readonly string[] {
  if (ours?.sha256 !== sha256) {
    return [
      `Migration ${name} was applied with another text: ` +
        'start the release that applied it, or restore its file',
    ]
  }
  if (ours.schema === undefined || schemas.includes(ours.schema)) return []
  return [
    `Migration ${name} is recorded, but schema ${ours.schema} is not there: ` +
      `the database was restored in part; ${RESTORE}`,
  ]
}

function faultsOfPending(
  { name, number, schema }: Migration,
  recorded: ReadonlySet<number>,
  schemas: readonly string[],
): readonly string[] {
  if (number < Math.max(0, ...recorded)) {
    return [
      `Migration ${name} is not recorded, but a later one is: ` +
        `the records are not whole; ${RESTORE}`,
    ]
  }
  if (schema === undefined || !schemas.includes(schema)) return []
  return [
    `Migration ${name} is not recorded, but schema ${schema} is there: ` +
      'it was applied by hand or restored in part; ' +
      `${RESTORE}, or use an empty database`,
  ]
}

/** The files in order. Numbers have no gap, so that a lost file is noticed. */
function loadMigrations(): readonly Migration[] {
  return assetNames('sql/migrations').map((file, at) => {
    const text = assetText(`sql/migrations/${file}`)
    const name = file.replace(/\.sql$/, '')
    const number = Number(name.slice(0, 4))
    if (number !== at + 1) {
      throw new Error(`Migration ${name} is out of order: expected number ${at + 1}`)
    }
    const sha256 = createHash('sha256').update(text).digest('hex')
    const [, schema] = /^create schema (\w+);$/m.exec(text) ?? []
    return { number, name, text, sha256, schema }
  })
}
