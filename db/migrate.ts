import { createHash } from 'node:crypto'
import Type from 'typebox'
import { assetNames, assetText } from '../kernel/assets.ts'
import { messageOf } from '../kernel/log.ts'
import type { Database, Executor, Transaction } from './client.ts'
import { QueryError } from './errors.ts'
import { objectsOf, presentObjects } from './migration-objects.ts'
import type { Query } from './queries.ts'

/** A migration file of this program. */
interface Migration {
  readonly number: number
  readonly name: string
  readonly text: string
  readonly sha256: string
  /** What the database has of it once it is applied, as `KIND NAME`. */
  readonly objects: readonly string[]
}

/** How a database stands against this program's migrations. */
export interface MigrationState {
  readonly applied: readonly string[]
  readonly pending: readonly string[]
  /** One line for each reason why this program must not use the database. */
  readonly faults: readonly string[]
}

/** A migration as a database records it. */
export const Applied = Type.Object({
  number: Type.Integer(),
  name: Type.String(),
  sha256: Type.String(),
})
export type Applied = Type.Static<typeof Applied>

const TABLE_EXISTS: Query = {
  name: 'migrationTable',
  text: `select to_regclass('gatehouse.migrations') is not null as present`,
  result: 'one',
  args: [],
  row: Type.Object({ present: Type.Boolean() }),
}
const LIST: Query = {
  name: 'listMigrations',
  text: 'select number, name, sha256 from gatehouse.migrations order by number',
  result: 'many',
  args: [],
  row: Applied,
}
const RECORD: Query = {
  name: 'recordMigration',
  text: 'insert into gatehouse.migrations (number, name, sha256) values ($1, $2, $3)',
  result: 'exec',
  args: ['int4', 'text', 'text'],
  row: undefined,
}

/** The queries of this file, for the test that compares every declaration with a server's. */
export const migrationQueries: readonly Query[] = [TABLE_EXISTS, LIST, RECORD]

/** Sets the table up; two processes may try at once, hence the lock, which ends with the transaction. */
const PREPARE = `
select pg_advisory_xact_lock(7203000);
create schema if not exists gatehouse;
create table if not exists gatehouse.migrations (
  number     integer     primary key,
  name       text        not null,
  sha256     text        not null,
  applied_at timestamptz not null default now()
);`

/** Compares the database with this program without changing anything. */
export async function migrationState(db: Executor): Promise<MigrationState> {
  return readState(db, loadMigrations())
}

async function readState(db: Executor, migrations: readonly Migration[]): Promise<MigrationState> {
  const objects = migrations.flatMap((migration) => migration.objects)
  const applied = await readApplied(db)
  const present = await presentObjects(db, objects)
  const state = compare(applied, migrations, present, present)
  if (state.faults.length === 0) return state
  // Another instance may have migrated in between: what was there before must be recorded by now, and
  // what is recorded now must be there afterwards.
  const now = await readApplied(db)
  return compare(now, migrations, present, await presentObjects(db, objects))
}

/**
 * Applies what is missing, in order and up to a number, one transaction each, and returns the names
 * applied. Throws an Error with one line when this program must not use the database, or a migration
 * fails.
 */
export async function migrate(
  db: Database,
  through = Number.POSITIVE_INFINITY,
): Promise<readonly string[]> {
  const migrations = loadMigrations()
  const before = await readState(db, migrations)
  const [fault, ...more] = before.faults
  if (fault !== undefined)
    throw new Error(
      more.length === 0 ? fault : `${fault} (and ${more.length} more: gatehouse check)`,
    )
  if (before.pending.length === 0) return []

  await db.transaction((tx) => tx.script(PREPARE))
  const done: string[] = []
  for (const migration of migrations) {
    if (migration.number > through) break
    if (await applyOnce(db, migration)) done.push(migration.name)
  }
  return done
}

/** Another instance may have applied it meanwhile: under the lock, the table decides. */
async function applyOnce(db: Database, migration: Migration): Promise<boolean> {
  return db.transaction(async (tx) => {
    await tx.script('select pg_advisory_xact_lock(7203000)')
    const applied = (await tx.run(LIST, [])) as readonly Applied[]
    if (applied.some((row) => row.number === migration.number)) return false
    await apply(tx, migration)
    await tx.run(RECORD, [migration.number, migration.name, migration.sha256])
    return true
  })
}

async function apply(tx: Transaction, { name, text }: Migration): Promise<void> {
  try {
    await tx.script(text)
  } catch (error) {
    if (!(error instanceof QueryError)) throw error
    throw new Error(
      `Migration ${name} failed and changed nothing (${messageOf(error)}): correct that and try again`,
      { cause: error },
    )
  }
}

/** What a database records as applied, in order; nothing of an empty one. */
export async function readApplied(db: Executor): Promise<readonly Applied[]> {
  const [row] = (await db.run(TABLE_EXISTS, [])) as readonly { present: boolean }[]
  return row?.present === true ? ((await db.run(LIST, [])) as readonly Applied[]) : []
}

/** The first of some applied migrations that this program does not have, or has with another text. */
export function firstUnknown(applied: readonly Applied[]): Applied | undefined {
  const migrations = loadMigrations()
  return applied.find((row, at) => {
    const ours = migrations[at]
    return ours?.number !== row.number || ours.sha256 !== row.sha256
  })
}

const RESTORE = 'restore the whole backup'

function compare(
  applied: readonly Applied[],
  migrations: readonly Migration[],
  before: ReadonlySet<string>,
  after: ReadonlySet<string>,
): MigrationState {
  const numbers = new Set(applied.map((row) => row.number))
  const pending = migrations.filter((migration) => !numbers.has(migration.number))
  const last = Math.max(0, ...numbers)
  const ours = (row: Applied): Migration | undefined => migrations[row.number - 1]
  const unknown = applied.filter((row) => ours(row) === undefined)
  const faults = [
    ...applied.flatMap((row) => faultOfApplied(row, ours(row), after) ?? []),
    ...pending.flatMap((migration) => faultOfPending(migration, last, before) ?? []),
  ]
  return {
    applied: applied.map((row) => row.name),
    pending: pending.map(({ name }) => name),
    // A newer program may have changed what we know: nothing can be said of that.
    faults: unknown.length > 0 ? unknown.map(newer) : faults,
  }
}

function newer({ name }: Applied): string {
  return `The database has migration ${name}, which this program does not know: it is newer; start the newer program, or restore the backup from before the upgrade`
}

function faultOfApplied(
  row: Applied,
  ours: Migration | undefined,
  present: ReadonlySet<string>,
): string | undefined {
  if (ours === undefined) return undefined
  if (ours.sha256 !== row.sha256) {
    return `Migration ${row.name} was applied with another text: start the release that applied it, or restore its file`
  }
  // An operator may drop an index; everything else is needed.
  const lost = ours.objects.find((object) => !object.startsWith('index ') && !present.has(object))
  if (lost === undefined) return undefined
  return `Migration ${row.name} is recorded, but ${lost} is not there: the database was restored in part; ${RESTORE}`
}

function faultOfPending(
  { name, number, objects }: Migration,
  last: number,
  present: ReadonlySet<string>,
): string | undefined {
  if (number < last) {
    return `Migration ${name} is not recorded, but a later one is: the records are not whole; ${RESTORE}`
  }
  const there = objects.find((object) => present.has(object))
  if (there === undefined) return undefined
  return `Migration ${name} is not recorded, but ${there} is there: it was applied by hand or restored in part; ${RESTORE}, or use an empty database`
}

/** The files in order; numbers have no gap, so that a lost file is noticed. */
function loadMigrations(): readonly Migration[] {
  const files = assetNames('sql/migrations')
  const texts = files.map((file) => assetText(`sql/migrations/${file}`))
  const objects = objectsOf(texts)
  return texts.map((text, i) => {
    const name = (files[i] ?? '').replace(/\.sql$/, '')
    const number = Number(name.slice(0, 4))
    if (number !== i + 1)
      throw new Error(`Migration ${name} is out of order: expected number ${i + 1}`)
    const sha256 = createHash('sha256').update(text).digest('hex')
    return { number, name, text, sha256, objects: objects[i] ?? [] }
  })
}
