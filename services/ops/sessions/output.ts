import { appendFile, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Database } from '../../../db/client.ts'
import type { Line } from '../../../db/ops/sessions.ts'
import { saveLines } from '../../../db/ops/sessions.ts'
import type { Clock } from '../../../kernel/time.ts'
import { messageOf, type Log } from '../../../kernel/log.ts'
import { repeat } from '../../../kernel/repeat.ts'
import type { Redaction } from '../redact.ts'
import { createBound } from './bound-lines.ts'
import { createLineCleaner, LINE_BYTES, type CleanLine } from './clean-lines.ts'

/** What kind of thing a line is: what the agent says, a tool's call or result, or a word of ours. */
export type LineKind = 'text' | 'tool' | 'result' | 'error' | 'system'

/** Where a session's output goes: database, file and whoever follows it. */
export interface Output {
  /** Adds text of any number of lines; a piece without a line end waits for the rest of its line. */
  write(kind: LineKind, text: string): void
  /** Ends the line that is not ended yet. */
  endLine(): void
  /** Resolves when little waits to be stored: whoever floods must wait for it. */
  drained(): Promise<void>
  /** Stores what is left, by an attempt that may be made several times; never rejects. */
  close(attempt: (store: () => Promise<void>) => Promise<void>): Promise<void>
}

/** A line that has not ended yet; `cut` when it goes on beyond what is kept. */
interface Open {
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
const BATCH = 200
/** Lines that may wait; over this a flood is held up. */
const WAITING = 2_000
/** Without output for this long, no secret is expected to go on in the next line. */
const QUIET_MS = 500

/** Opens the output of a session. Its lines are numbered from 1. */
export function openOutput(options: OutputOptions, session: number): Output {
  const { db, clock, log, redact, resultsDir } = options
  const file = join(resultsDir, `session-${session}.ndjson`)
  const cleaner = createLineCleaner(redact)
  let seq = 0
  let waiting: Line[] = []
  let open: Open | undefined
  /** The text so far ended with CR, whose LF may come with the next piece. */
  let afterReturn = false
  let lastWrite = clock.elapsed()
  let drained = Promise.withResolvers<void>()
  drained.resolve()
  const bound = createBound(push)

  function addLine(line: Open): void {
    cleaner.add({ ...line, at: clock.now() })
    if (cleaner.added < BATCH) return
    keepCleaned(false)
    if (waiting.length >= BATCH) void flushes.now()
  }

  function keepCleaned(all: boolean): void {
    for (const line of cleaner.take(all)) bound.add(line)
  }

  function push({ at, kind, text }: CleanLine): void {
    waiting.push({ seq: ++seq, at, kind, text })
    if (waiting.length === WAITING) drained = Promise.withResolvers<void>()
  }

  async function store(): Promise<void> {
    keepCleaned(clock.elapsed() - lastWrite >= QUIET_MS)
    while (waiting.length > 0) {
      const batch = waiting.slice(0, BATCH)
      await saveLines(db, session, batch)
      waiting = waiting.slice(batch.length)
      if (waiting.length < WAITING) drained.resolve()
      await keepInFile(batch)
    }
  }

  async function keepInFile(batch: readonly Line[]): Promise<void> {
    const text = batch.map((line) => `${JSON.stringify(line)}\n`).join('')
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

  // What can't be stored stays for the next one: a session goes on without its database for a while.
  const flushes = repeat(clock, FLUSH_MS, store, {
    fails: (error) => log.warn('session output not stored', { session, error: messageOf(error) }),
    works: () => log.info('session output is stored again', { session }),
  })
  return {
    write(kind, text) {
      lastWrite = clock.elapsed()
      if (open !== undefined && open.kind !== kind) endLine()
      const more = afterReturn && text.startsWith('\n') ? text.slice(1) : text
      if (text !== '') afterReturn = text.endsWith('\r')
      // A terminal would write over what stands before a CR: here it is a line, so that nothing hides.
      const [first = '', ...rest] = more.split(/\r\n|\n|\r/)
      if (open !== undefined || first !== '' || rest.length > 0) open = longer(open, kind, first)
      for (const next of rest) {
        endLine()
        open = longer(undefined, kind, next)
      }
      if (open?.text === '' && rest.length > 0) open = undefined
    },
    endLine() {
      afterReturn = false
      endLine()
    },
    drained: () => drained.promise,
    async close(attempt) {
      endLine()
      keepCleaned(true)
      bound.end()
      await flushes.stop()
      try {
        await attempt(store)
      } catch (error) {
        const lines = waiting.length
        log.error('session output lost', { session, lines, error: messageOf(error) })
      }
    },
  }

  /** A line that never ends takes no more memory than is needed to find a secret across its cut. */
  function longer(line: Open | undefined, kind: LineKind, more: string): Open {
    const text = (line?.text ?? '') + more
    const most = LINE_BYTES * 4 + redact.longest()
    const cut = line?.cut === true || text.length > most
    return { kind, text: cut ? text.slice(0, most) : text, cut }
  }
}
