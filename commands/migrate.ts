import { migrate } from '../db/migrate.ts'
import { openDatabase } from '../db/open.ts'
import type { ConfigSource } from '../kernel/config.ts'
import type { Log } from '../kernel/log.ts'
import { DONE, type Output } from './command.ts'

/** `gatehouse migrate`: brings the database up to this program's schema and says what it did. */
export async function runMigrate(config: ConfigSource, log: Log, output: Output): Promise<number> {
  const { DATABASE_URL: url, GATEHOUSE_DATA_DIR: dataDirectory } = config.current
  const database = await openDatabase({ url, dataDirectory }, log)
  try {
    const applied = await migrate(database.db)
    for (const name of applied) output.out(`applied ${name}`)
    if (applied.length === 0) output.out('nothing to apply')
    return DONE
  } finally {
    await database.close()
  }
}
