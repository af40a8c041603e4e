import type { Readable } from 'node:stream'
import { escapeControls } from '../kernel/text.ts'
import type { Log } from '../kernel/log.ts'

/**
 * Where a command prints: results to `out`, messages to `err`. Both escape control characters, because
 * the text may come from a file, the database or the network.
 */
export interface Output {
  out(line: string): void
  err(line: string): void
  /** A line of a file on stdout, unchanged; escaped only if stdout is a terminal. */
  data(line: string): void
  /** Resolves when the printed lines are sent: for commands that print more than fits into memory. */
  drained?(): Promise<void>
}

/** What a command runs in: a process, or a test. */
export interface Surroundings {
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly input: Readable
  readonly output: Output
  readonly log: Log
  /** Resolves with the name of the first signal that asks the command to stop. */
  readonly stopSignal: () => Promise<string>
  /** Stands before the line that says why a command failed: the journal's level, or nothing. */
  readonly errorPrefix: string
}

/** Prints to the two streams of a process; `terminal` says whether stdout is one. */
export function createOutput(streams: {
  readonly stdout: (text: string) => unknown
  readonly stderr: (text: string) => unknown
  readonly terminal: boolean
}): Output {
  return {
    out: (line) => void streams.stdout(`${printable(line)}\n`),
    err: (line) => void streams.stderr(`${printable(line)}\n`),
    data: (line) => void streams.stdout(`${streams.terminal ? printable(line) : line}\n`),
  }
}

/** Text of one or several lines. */
function printable(text: string): string {
  return text.split('\n').map(escapeControls).join('\n')
}

/** Exit codes of every command. */
export const DONE = 0
export const FAILED = 1
export const WRONG_USAGE = 2

/** Prints why a command has failed and what may help; gives the exit code. */
export function fail(output: Output, problem: string, hint?: string): number {
  output.err(`gatehouse: ${problem}`)
  if (hint !== undefined) output.err(hint)
  return FAILED
}

/** Thrown for wrong arguments: the message and the usage line go to stderr, the exit code is 2. */
export class UsageError extends Error {
  override name = 'UsageError'
}

/** Rows as aligned columns, without colours, for people and `awk`. */
export function table(
  head: readonly string[],
  rows: readonly (readonly string[])[],
): readonly string[] {
  // A newline in a cell would fake a row.
  const cells = rows.map((row) => row.map(escapeControls))
  const widths = head.map((name, i) =>
    Math.max(name.length, ...cells.map((row) => (row[i] ?? '').length)),
  )
  return [head, ...cells].map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}

/** Prints rows as JSON or as a table, whose columns are given with what stands in them. */
export function printRows<T>(
  output: Output,
  json: boolean,
  rows: readonly T[],
  columns: Readonly<Record<string, (row: T) => string>>,
): void {
  if (json) {
    output.out(JSON.stringify(rows))
    return
  }
  const cells = rows.map((row) => Object.values(columns).map((cell) => cell(row)))
  for (const line of table(Object.keys(columns), cells)) output.out(line)
}
