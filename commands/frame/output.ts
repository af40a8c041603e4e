import { StringDecoder } from 'node:string_decoder'
import { JOURNAL_PREFIX } from '../../kernel/log.ts'
import { isJournal } from '../../kernel/processes/self.ts'
import { escapeControls } from '../../kernel/text.ts'

/** Exit codes of every command. */
export const DONE = 0
export const FAILED = 1
export const WRONG_USAGE = 2

/**
 * Where a command prints: results to `out`, messages to `err`. Both escape control characters,
 * because the text may come from a file, the database or the network.
 */
export interface Output {
  out(line: string): void
  err(line: string): void
  /** A line of a file on stdout, unchanged; escaped only if stdout is a terminal. */
  data(line: string): void
  /**
   * Resolves when the printed lines are sent: for commands that print more than fits into memory.
   */
  drained?(): Promise<void>
}

/** Where a command prints in a process of its own. */
export interface ProcessOutput extends Output {
  /** Bytes on stdout, unchanged; as escaped text if stdout is a terminal. */
  bytes(chunk: Buffer): void
}

/** Prints to the two streams of a process; `terminal` says whether stdout is one. */
export function createOutput(streams: {
  stdout: (text: string | Buffer) => unknown
  stderr: (text: string) => unknown
  terminal: boolean
}): ProcessOutput {
  const { stdout, stderr, terminal } = streams
  const decoder = new StringDecoder()
  return {
    bytes: (chunk) => void stdout(terminal ? printable(decoder.write(chunk)) : chunk),
    out: (line) => void stdout(`${printable(line)}\n`),
    err: (line) => void stderr(`${printable(line)}\n`),
    data: (line) => void stdout(`${terminal ? printable(line) : line}\n`),
  }
}

/** Text of one or several lines. */
function printable(text: string) {
  return text.split('\n').map(escapeControls).join('\n')
}

/** Rows as aligned columns, without colours, for people and `awk`. */
export function table(
  head: readonly string[],
  rows: readonly (readonly string[])[],
): readonly string[] {
  // A newline in a cell would fake a row.
  const lines = [head, ...rows.map((row) => row.map(escapeControls))]
  // Not `Math.max(...lengths)`: a call takes no more than some 100,000 arguments.
  const widths = head.map((_, at) => {
    return lines.reduce((width, line) => Math.max(width, line[at]?.length ?? 0), 0)
  })
  return lines.map((line) => {
    const cells = line.map((cell, at) => cell.padEnd(widths[at] ?? 0))
    return cells.join('  ').trimEnd()
  })
}

/** Facts with their names, a line each. */
export function factLines(facts: Readonly<Record<string, unknown>>): readonly string[] {
  const width = Math.max(...Object.keys(facts).map((name) => name.length))
  return Object.entries(facts).map(([name, fact]) => {
    // A newline in a fact would fake a line.
    return `${name.padEnd(width)}  ${escapeControls(String(fact ?? '')) || '-'}`
  })
}

/** Prints rows as JSON or as a table, whose columns are given with what stands in them. */
export function printRows<T>(
  output: Output,
  json: boolean,
  rows: readonly T[],
  columns: Readonly<Record<string, (row: T) => string>>,
): void {
  const cells = rows.map((row) => Object.values(columns).map((cell) => cell(row)))
  const lines = json ? [JSON.stringify(rows)] : table(Object.keys(columns), cells)
  for (const line of lines) output.out(line)
}

/**
 * The result of one check: the state, or what to do about it. `warn`: Gatehouse works, and the
 * operator should do something. `fail`: it must be corrected.
 */
export interface Finding {
  level: 'ok' | 'warn' | 'fail'
  what: string
  detail: string
}

export type Findings = readonly Finding[]

type FindingOf = (what: string, detail: string) => Finding

export const ok: FindingOf = (what, detail) => ({ level: 'ok', what, detail })
export const warn: FindingOf = (what, detail) => ({ level: 'warn', what, detail })
export const fail: FindingOf = (what, detail) => ({ level: 'fail', what, detail })

/**
 * How a finding is shown. When a unit runs the check as ExecStartPre, failures are errors in the
 * journal.
 */
const SHOWN = {
  ok: { word: 'ok  ', prefix: JOURNAL_PREFIX.info },
  warn: { word: 'warn', prefix: JOURNAL_PREFIX.warn },
  fail: { word: 'FAIL', prefix: JOURNAL_PREFIX.error },
}

/** Prints findings, one line each; the exit code is 1 when one has failed. */
export function reportFindings(findings: Findings, json: boolean, output: Output): number {
  if (json) {
    const rows = findings.map((one) => ({ ok: one.level === 'ok', ...one }))
    output.out(JSON.stringify(rows))
  } else {
    const journal = isJournal(1)
    for (const { level, what, detail } of findings) {
      const { word, prefix } = SHOWN[level]
      output.out(`${journal ? prefix : ''}${word}  ${what}: ${detail}`)
    }
  }
  return findings.some(({ level }) => level === 'fail') ? FAILED : DONE
}
