import type { Progress } from '../db/transfer/load.ts'
import type { TableContents } from '../db/transfer/source.ts'
import { table, type Output } from './command.ts'

const EVERY_MS = 200

/** One line on a terminal that says how far it is; nothing where stderr is none. */
export interface Meter {
  readonly progress: Progress
  /** Takes the line away. */
  end(): void
}

/** Opens the line. */
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

/** Prints what each table holds, or all of it as one object of JSON. */
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
