import { appendFile, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Database } from '../../../db/client.ts'
import { sessionQueries as q, type Line } from '../../../db/ops/sessions.ts'
import { messageOf, type Log } from '../../../kernel/log.ts'
import { repeat, type Retry } from '../../../kernel/repeat.ts'
import type { Clock } from '../../../kernel/time.ts'
import type { Redaction } from '../redact.ts'
import { createLineCleaner, createOutputLimit, MAX_LINE_BYTES } from './output-lines.ts'

/** What the agent says, a tool's call or result, or a message of Gatehouse. */
export type LineKind = 'text' | 'tool' | 'result' | 'error' | 'system'

/** The output of a session: it goes to the database, to a file and to those who follow it. */
export interface Output {
  /** Adds text of any number of lines. Text without a line end waits for the rest of its line. */
  write(kind: LineKind, text: string): void
  /** Ends the open line. */
  endLine(): void
  /** Resolves when few lines wait to be stored: a runner that floods must wait for it. */
  drained(): Promise<void>
  /** Stores the rest, with retries; never rejects. */
  close(retry: Retry): Promise<void>
}

/** A line that has not ended; `cut` if it is longer than what is kept. */
interface OpenLine {
  readonly kind: LineKind
  readonly text: string
  readonly cut: boolean
}

export interface OutputOptions {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly redact: Redaction
  readonly resultsDir: string
}

const FLUSH_MS = 100
const MAX_BATCH = 200
/** With more lines waiting, a flood is held up. */
const MAX_WAITING = 2_000
/** After so long without output, no secret is expected to continue in the next line. */
const QUIET_MS = 500

/** Opens the output of a session. Its lines are numbered from 1. */
export function openOutput(options: OutputOptions, session: number): Output {
  const { db, clock, log, redact, resultsDir } = options
  const file = join(resultsDir, `session-${session}.ndjson`)
  const cleaner = createLineCleaner(redact)
  let seq = 0
  let waiting: Line[] = []
  let open: OpenLine | undefined
  /** The text so far ends with CR; its LF may come with the next piece. */
  let endsWithReturn = false
  let lastWrite = clock.elapsed()
  let drained = Promise.withResolvers<void>()
  drained.resolve()
  const limit = createOutputLimit(({ at, kind, text }) => {
    waiting.push({ seq: ++seq, at, kind, text })
    if (waiting.length === MAX_WAITING) drained = Promise.withResolvers<void>()
  })

  function addLine(line: OpenLine): void {
    cleaner.add({ ...line, at: clock.now() })
    if (cleaner.added < MAX_BATCH) return
    takeCleaned(false)
    if (waiting.length >= MAX_BATCH) void flushes.now()
  }

  function takeCleaned(all: boolean): void {
    for (const line of cleaner.take(all)) limit.add(line)
  }

  async function store(): Promise<void> {
    takeCleaned(clock.elapsed() - lastWrite >= QUIET_MS)
    while (waiting.length > 0) {
      const lines = waiting.slice(0, MAX_BATCH)
      await q.saveLines(db, { session, lines })
      waiting = waiting.slice(lines.length)
      if (waiting.length < MAX_WAITING) drained.resolve()
      await appendToFile(lines)
    }
  }

  async function appendToFile(lines: readonly Line[]): Promise<void> {
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
    try {
      await mkdir(resultsDir, { recursive: true })
      await appendFile(file, text, { mode: 0o600 })
    } catch (error) {
      log.warn('session file not written', { session, error: messageOf(error) })
    }
  }

  function endLine(): void {
    if (open !== undefined) addLine(open)
    open = undefined
  }

  /** An endless line takes no more memory than is needed to find a secret across its cut. */
  function extend(line: OpenLine | undefined, kind: LineKind, more: string): OpenLine {
    const text = (line?.text ?? '') + more
    const max = MAX_LINE_BYTES * 4 + redact.longest()
    const cut = line?.cut === true || text.length > max
    return { kind, text: cut ? text.slice(0, max) : text, cut }
  }

  // Lines that can't be stored wait for the next flush: a session outlives a short outage of the
  // database.
  const flushes = repeat(clock, FLUSH_MS, store, {
    fails: (error) => log.warn('session output not stored', { session, error: messageOf(error) }),
    works: () => log.info('session output is stored again', { session }),
  })
  return {
    write(kind, text) {
      lastWrite = clock.elapsed()
      if (open !== undefined && open.kind !== kind) endLine()
      const more = endsWithReturn && text.startsWith('\n') ? text.slice(1) : text
      if (text !== '') endsWithReturn = text.endsWith('\r')
      // A terminal would overwrite the text before a CR. Here it ends a line, so that nothing is
      // hidden.
      const [first = '', ...rest] = more.split(/\r\n|\n|\r/)
      if (open !== undefined || first !== '' || rest.length > 0) open = extend(open, kind, first)
      for (const next of rest) {
        endLine()
        open = extend(undefined, kind, next)
      }
      if (open?.text === '' && rest.length > 0) open = undefined
    },
    endLine() {
      endsWithReturn = false
      endLine()
    },
    drained: () => drained.promise,
    async close(retry) {
      endLine()
      takeCleaned(true)
      limit.end()
      await flushes.stop()
      try {
        await retry(store)
      } catch (error) {
        const lines = waiting.length
        log.error('session output lost', { session, lines, error: messageOf(error) })
      }
    },
  }
}
