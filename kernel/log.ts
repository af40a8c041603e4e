import { escapeControls } from './text.ts'

type LogLevel = 'info' | 'warn' | 'error'
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>

/** Writes one line a call (docs/logs.md). Never given a secret. */
export interface Log {
  info(msg: string, fields?: LogFields): void
  warn(msg: string, fields?: LogFields): void
  error(msg: string, fields?: LogFields): void
  /** Writes what is waiting at once; called before the process ends. */
  flush(): void
}

const GATHER_MS = 5

/**
 * What a line begins with for systemd's journal, which takes it off and keeps it as the priority.
 */
export const JOURNAL_PREFIX: Readonly<Record<LogLevel, string>> = {
  info: '<6>',
  warn: '<4>',
  error: '<3>',
}

/** What a line of the log says. */
interface LogLine {
  time: string
  level: LogLevel
  msg: string
  fields: LogFields | undefined
}

/** Makes the text of a line, with its end; undefined for a line that is left out. */
export type LogForm = (line: LogLine) => string | undefined

/** A JSON object: `time`, `level`, `msg`, then the fields. */
export function jsonLine({ time, level, msg, fields }: LogLine): string {
  // JSON leaves some of the characters that a terminal obeys as they are.
  return `${escapeControls(JSON.stringify({ time, level, msg, ...fields }))}\n`
}

export function journalLine(line: LogLine): string {
  return JOURNAL_PREFIX[line.level] + jsonLine(line)
}

/** Words for people, who need warnings and errors alone. */
export function terminalLine({ time, level, msg, fields = {} }: LogLine): string | undefined {
  if (level === 'info') return undefined
  const shown = Object.entries(fields).filter(([, value]) => value !== undefined && value !== '')
  const values = shown.map(([name, value]) => ` ${name}=${JSON.stringify(value)}`)
  return `${time} ${level}: ${escapeControls(msg + values.join(''))}\n`
}

/**
 * Makes a log over a writer of text. Lines of a few milliseconds are written together: writes to a
 * pipe block, and one a request would cost more than the request.
 */
export function createLog(
  write: (text: string) => void,
  now: () => Date,
  form: LogForm = jsonLine,
): Log {
  let waiting: string[] = []
  let scheduled = false
  let lastAt = Number.NaN
  let lastTime = ''

  /** Lines come many a millisecond: its text is made once. */
  function timeText() {
    const at = now()
    if (at.getTime() !== lastAt) {
      lastAt = at.getTime()
      lastTime = at.toISOString()
    }
    return lastTime
  }

  function flush() {
    scheduled = false
    if (waiting.length > 0) write(waiting.join(''))
    waiting = []
  }

  function line(level: LogLevel, msg: string, fields: LogFields | undefined) {
    const text = form({ time: timeText(), level, msg, fields })
    if (text === undefined) return
    waiting.push(text)
    if (scheduled) return
    scheduled = true
    setTimeout(flush, GATHER_MS)
  }

  return {
    info: (msg, fields) => line('info', msg, fields),
    warn: (msg, fields) => line('warn', msg, fields),
    error: (msg, fields) => line('error', msg, fields),
    flush,
  }
}

/**
 * The one-line message of anything thrown; `AggregateError` (refused connections) has none of its
 * own.
 */
export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') {
    return error.errors.map(messageOf).join('; ')
  }
  // The first error is the cause; the others came while resources were closed.
  if (error instanceof SuppressedError) return messageOf(error.suppressed)
  return oneLine(error instanceof Error ? error.message : String(error))
}

/** A text of several lines in one; the spaces around their ends, and empty lines, go. */
export function oneLine(text: string): string {
  // Line by line: one expression for the white space around would read each space repeatedly.
  const lines = text.split('\n').map((line) => line.trim())
  return lines.filter((line) => line !== '').join(' ')
}

/** Why `fetch` has failed: its own error says nothing of that, and has it as its cause. */
export function causeOf(error: unknown): unknown {
  return error instanceof Error && error.cause !== undefined ? error.cause : error
}

/**
 * The same in a word or two, without any part of the URL, which may have a key. Only fetch's own
 * refusals are plain errors without a code: their texts are fixed, such as `bad port`.
 */
export function fetchProblem(error: unknown): string {
  const cause = causeOf(error)
  if (!(cause instanceof Error)) return 'no connection'
  return codeOf(cause) ?? (cause.name === 'Error' ? cause.message : cause.name)
}

/** The code of an error of the system or the network, such as `ECONNREFUSED`. */
export function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : undefined
}
