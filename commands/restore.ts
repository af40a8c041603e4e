import { firstUnknown, migrate } from '../db/migrate.ts'
import { verifyBackup, type Contents } from '../db/transfer/backup-file.ts'
import { openBackupSource } from '../db/transfer/source.ts'
import { load, NotEmpty, type Loaded, type Progress, inspectTarget } from '../db/transfer/load.ts'
import type { Database } from '../db/client.ts'
import { command, JSON_FLAG, text } from './command.ts'
import { DONE } from './output.ts'
import { openMeter, openStopped, reportTables } from './transfer.ts'

export const commands = [
  command({
    name: 'restore',
    summary: 'put a backup into an empty database',
    args: { file: text('FILE', 'the backup') },
    flags: { json: JSON_FLAG },
    needs: 'configuration',
    // Every byte of the file is verified before anything is changed.
    async run({ args: { file }, flags: { json } }, { config, log, output }) {
      const contents = await verifyBackup(file)
      refuseUnknownMigration(file, contents)
      const { made_at } = contents
      const meter = openMeter()
      const database = await openStopped(config, log, 'restore')
      try {
        const { wasThere, tables } = await restore(database.db, file, contents, meter.progress)
        meter.end()
        const applied = await migrate(database.db)
        reportTables(tables, { made_at, was_there: wasThere, migrated: applied }, json, output)
        for (const name of applied) output.err(`applied ${name}`)
        const done = wasThere ? 'is what the database has already' : 'restored and verified'
        output.err(`${file} of ${made_at} ${done}`)
        return DONE
      } catch (error) {
        if (!(error instanceof NotEmpty)) throw error
        throw new Error(
          `a backup is restored into an empty database, but ${error.message}: set GATEHOUSE_DATA_DIR to a new folder, or move "pg" out of this one; nothing was changed`,
          { cause: error },
        )
      } finally {
        meter.end()
        await database.close()
      }
    },
  }),
]

function refuseUnknownMigration(file: string, { version, migrations }: Contents): void {
  const unknown = firstUnknown(migrations)
  if (unknown === undefined) return
  throw new Error(
    `${file} was made by version ${version} with the migration ${unknown.name}, which this program does not have: restore it with that version or a newer one`,
  )
}

/** Loads the backup at the migrations that it was made at. */
async function restore(
  db: Database,
  file: string,
  contents: Contents,
  progress: Progress,
): Promise<Loaded> {
  const level = contents.migrations.length
  const applied = await inspectTarget(db, level)
  if (applied > level) {
    throw new Error(
      `the database was made by a newer version than the backup (migration ${applied} and ${level}): set GATEHOUSE_DATA_DIR to a new folder; nothing was changed`,
    )
  }
  await migrate(db, level)
  return db.transaction((tx) => load(tx, openBackupSource(file, contents), progress))
}
