import { createLog } from '../kernel/log.ts'
import { migrate } from '../db/migrate.ts'
import { openDatabase } from '../db/open.ts'

// `deploy/template.ts DIRECTORY` makes a data directory with a migrated database, for the
// executable. The upkeep never comes: it would write at another moment each time.
const NEVER_MS = 2 ** 31 - 1
const [, , dataDirectory = ''] = process.argv
const log = createLog(
  (text) => process.stderr.write(text),
  () => new Date(),
)
const options = { url: undefined, dataDirectory, upkeepMs: NEVER_MS }
await using database = await openDatabase(options, log)
await migrate(database.db)
