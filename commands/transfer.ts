import { EmbeddedLockedError } from '../db/embedded/lock.ts'
import { openDatabase, type OpenedDatabase } from '../db/open.ts'
import type { Progress } from '../db/transfer/load.ts'
import type { TableContents } from '../db/transfer/source.ts'
import type { Log } from '../kernel/log.ts'
import type { ConfigSource } from './configuration.ts'
import { table, type Output } from './output.ts'

const EVERY_MS = 200

/** Shows the progress in one line of the terminal, if stderr is one. */
export interface Meter {
  readonly progress: Progress
  /** Removes the line. */
  end(): void
}

export function openMeter(): Meter {
  const { stderr } = process
  if (!stderr.isTTY) return { progress: () => undefined, end: () => undefined }
  let [current, rows, shownAt] = ['', 0, 0]
  return {
    progress(doing, name, count) {
      const what = `${doing} ${name}`
      rows = what === current ? rows + count : count
      current = what
      if (performance.now() - shownAt < EVERY_MS) return
      shownAt = performance.now()
      stderr.write(`\r\u001B[K${what}: ${rows} rows`)
    },
    end: () => void stderr.write('\r\u001B[K'),
  }
}

/** Prints the rows of each table, or everything as one object of JSON. */
export function reportTables(
  tables: readonly TableContents[],
  more: Readonly<Record<string, unknown>>,
  json: boolean,
  output: Output,
): void {
  if (json) {
    output.out(JSON.stringify({ ...more, tables }))
    return
  }
  const rows = tables
    .toSorted((one, other) => (one.name < other.name ? -1 : 1))
    .map(({ name, rows: count, sha256 }) => [name, String(count), sha256.slice(0, 16)])
  for (const line of table(['TABLE', 'ROWS', 'SHA-256'], rows)) output.out(line)
}

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
