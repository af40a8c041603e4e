import { createHash } from 'node:crypto'
import Type from 'typebox'
import { assetNames, assetText } from '../kernel/assets.ts'
import type { Database, Executor } from './client.ts'
import type { Query } from './queries.ts'

/** A migration file of this program. */
interface Migration {
  readonly number: number
  readonly name: string
  readonly text: string
  readonly sha256: string
}

/** How a database stands against this program's migrations. */
export interface MigrationState {
  readonly applied: readonly string[]
  readonly pending: readonly string[]
  /** One line for each reason why this program must not use the database. */
  readonly faults: readonly string[]
}

const Applied = Type.Object({ number: Type.Integer(), name: Type.String(), sha256: Type.String() })
type Applied = Type.Static<typeof Applied>

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
  return compare(await readApplied(db), loadMigrations())
}

/**
 * Applies what is missing, in order, one transaction each, and returns the names applied. Throws an
 * Error with one line when a file that was applied has changed or the database is newer than this program.
 */
export async function migrate(db: Database): Promise<readonly string[]> {
  const migrations = loadMigrations()
  const before = compare(await readApplied(db), migrations)
  if (before.faults.length > 0) throw new Error(before.faults.join('; '))
  if (before.pending.length === 0) return []

  await db.transaction((tx) => tx.script(PREPARE))
  const done: string[] = []
  for (const migration of migrations) {
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
    await tx.script(migration.text)
    await tx.run(RECORD, [migration.number, migration.name, migration.sha256])
    return true
  })
}

async function readApplied(db: Executor): Promise<readonly Applied[]> {
  const [row] = (await db.run(TABLE_EXISTS, [])) as readonly { present: boolean }[]
  return row?.present === true ? ((await db.run(LIST, [])) as readonly Applied[]) : []
}

function compare(applied: readonly Applied[], migrations: readonly Migration[]): MigrationState {
  const faults: string[] = []
  for (const row of applied) {
    const ours = migrations.find((migration) => migration.number === row.number)
    if (ours === undefined) {
      faults.push(
        `The database has migration ${row.name}, which this program does not know: it is newer; start the newer program`,
      )
    } else if (ours.sha256 !== row.sha256) {
      faults.push(
        `Migration ${row.name} was applied with another text: restore the file of the release that applied it`,
      )
    }
  }
  const names = new Set(applied.map((row) => row.number))
  return {
    applied: applied.map((row) => row.name),
    pending: migrations.filter((migration) => !names.has(migration.number)).map(({ name }) => name),
    faults,
  }
}

/** The files in order; numbers have no gap, so that a lost file is noticed. */
function loadMigrations(): readonly Migration[] {
  return assetNames('sql/migrations').map((file, i) => {
    const name = file.replace(/\.sql$/, '')
    const number = Number(name.slice(0, 4))
    if (number !== i + 1)
      throw new Error(`Migration ${name} is out of order: expected number ${i + 1}`)
    const text = assetText(`sql/migrations/${file}`)
    return { number, name, text, sha256: createHash('sha256').update(text).digest('hex') }
  })
}
