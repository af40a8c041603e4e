import { EmbeddedLockedError } from '../db/embedded/lock.ts'
import { openDatabase, type OpenedDatabase } from '../db/open.ts'
import type { ConfigSource } from '../kernel/config.ts'
import type { Log } from '../kernel/log.ts'

/** One statement may carry a payload of 100 MiB over a slow line. */
export const TRANSFER_DEADLINE_MS = 120_000

/** Opens the configured database for a command that no server may run beside. */
export async function openStopped(
  { current }: ConfigSource,
  log: Log,
  command: string,
): Promise<OpenedDatabase> {
  const { DATABASE_URL: url, GATEHOUSE_DATA_DIR: dataDirectory } = current
  try {
    return await openDatabase({ url, dataDirectory, deadlineMs: TRANSFER_DEADLINE_MS }, log)
  } catch (error) {
    if (!(error instanceof EmbeddedLockedError)) throw error
    throw new Error(
      `"${command}" has the database to itself: stop the server, or whatever else uses ${dataDirectory}, and try again`,
      { cause: error },
    )
  }
}
