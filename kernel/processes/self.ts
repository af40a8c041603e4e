import { fstatSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { isatty } from 'node:tty'
import { jsonLine, journalLine, terminalLine, type LogFields, type LogForm } from '../log.ts'

/**
 * Whether systemd's journal reads what is written to a file descriptor: `JOURNAL_STREAM` names the
 * device and the inode that it was given, and a child may have been given another one
 * (systemd.exec(5)).
 */
export function isJournal(descriptor: number): boolean {
  const stream = process.env['JOURNAL_STREAM']
  if (stream === undefined) return false
  try {
    const { dev, ino } = fstatSync(descriptor, { bigint: true })
    return stream === `${dev}:${ino}`
  } catch {
    return false
  }
}

/**
 * The form of log lines for who reads a file descriptor: the journal, a person or a program. If
 * there are `common` fields, each line has them.
 */
export function logFormOf(descriptor: number, common?: LogFields): LogForm {
  const form = formOf(descriptor)
  if (common === undefined) return form
  return (line) => form({ ...line, fields: { ...common, ...line.fields } })
}

function formOf(descriptor: number): LogForm {
  if (isJournal(descriptor)) return journalLine
  return isatty(descriptor) ? terminalLine : jsonLine
}

/** The limit of open files where the system does not name it. */
const USUAL_OPEN_FILES = 1_024

/** How many files and connections this process may have open. */
export function openFilesLimit(): number {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8')
    return Number(/^Max open files +(\d+) /m.exec(limits)?.[1] ?? USUAL_OPEN_FILES)
  } catch {
    return USUAL_OPEN_FILES
  }
}

/** How many files and connections this process has open; undefined where nothing tells. */
export function openFiles(): number | undefined {
  const folder = '/proc/self/fd'
  try {
    // Since Linux 6.2 the size is their number. To list ten thousand would hold everybody up.
    return statSync(folder).size || readdirSync(folder).length
  } catch {
    return undefined
  }
}
