import { appendFile, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Database } from '../../../../db/client.ts'
import { sessionQueries as q, type StoredLine } from '../../../../db/ops/agent/sessions.ts'
import { messageOf, type Log } from '../../../../kernel/log.ts'
import { repeat, reportsTo, type Retry } from '../../../../kernel/repeat.ts'
import type { Clock } from '../../../../kernel/time.ts'
import type { Redaction } from '../../redact.ts'
import { createOutputLimit } from './output-lines.ts'
import { createLineCleaner, createLineSplitter, type CleanLine } from '../../clean-lines.ts'

/**
 * What the agent says, a tool's call or result, the end of a turn with what it took, or a message
 * of Gatehouse.
 */
export type LineKind = 'text' | 'tool' | 'result' | 'error' | 'turn' | 'system'

/** The output of a session: it goes to the database, to a file and to those who follow it. */
export type Output = ReturnType<typeof openOutput>

export interface OutputOptions {
  db: Database
  clock: Clock
  log: Log
  redact: Redaction
  resultsDir: string
}

const FLUSH_MS = 100
const MAX_BATCH = 200
/** With more lines waiting, a flood is held up. */
const MAX_WAITING = 2_000
/** After so long without output, no secret is expected to continue in the next line. */
const QUIET_MS = 500

/** Opens the output of a session. `stop` ends its runner. */
export function openOutput(options: OutputOptions, session: number, stop: AbortSignal) {
  const { clock, log, redact } = options
  const cleaner = createLineCleaner(redact)
  const store = openLineStore(options, session, stop)
  const limit = createOutputLimit(store.add)
  /** Lines since the last time that clean ones were taken. */
  let added = 0
  let lastWrite = clock.elapsed()

  const splitter = createLineSplitter(redact, (line) => {
    cleaner.add({ ...line, at: clock.now() })
    if (++added < MAX_BATCH) return
    takeCleaned(false)
    if (store.waiting() >= MAX_BATCH) void flushes.now()
  })

  function takeCleaned(all: boolean) {
    added = 0
    for (const line of cleaner.take(all)) limit.add(line)
  }

  function flush() {
    takeCleaned(clock.elapsed() - lastWrite >= QUIET_MS)
    return store.flush()
  }

  // Lines that can't be stored wait for the next flush: a session outlives a short outage of the
  // database.
  const reports = reportsTo(log, 'session output not stored', 'session output is stored again', {
    session,
  })
  const flushes = repeat(clock, FLUSH_MS, 'output of a session', flush, reports)
  return {
    /**
     * Adds text of any number of lines. Text without a line end waits for the rest of its line.
     * `call` numbers the tool call that it is of, from 1 on.
     */
    write(kind: LineKind, text: string, call: number | null = null) {
      lastWrite = clock.elapsed()
      splitter.write(kind, text, call)
    },
    /**
     * Resolves when few lines wait to be stored, or the runner must end. One that floods waits for
     * it.
     */
    drained: store.drained,
    /** Stores the rest, with retries; never rejects. */
    async close(retry: Retry) {
      splitter.endLine()
      takeCleaned(true)
      limit.end()
      await flushes.stop()
      await retry(flush).catch((error: unknown) => {
        const lines = store.waiting()
        log.error('session output lost', { session, lines, error: messageOf(error) })
      })
    },
  }
}

/** Stores lines in the database and in a file, with numbers from 1. */
function openLineStore(options: OutputOptions, session: number, stop: AbortSignal) {
  const { db, log, resultsDir } = options
  const file = join(resultsDir, `session-${session}.ndjson`)
  let seq = 0
  let waiting: StoredLine[] = []
  let drained = Promise.withResolvers<void>()
  drained.resolve()
  stop.addEventListener('abort', () => drained.resolve())

  async function appendToFile(lines: readonly StoredLine[]) {
    // The file has what the stream has.
    const text = lines.map(({ call: _call, ...line }) => `${JSON.stringify(line)}\n`).join('')
    try {
      await mkdir(resultsDir, { recursive: true })
      await appendFile(file, text, { mode: 0o600 })
    } catch (error) {
      log.warn('session file not written', { session, error: messageOf(error) })
    }
  }

  return {
    add({ at, kind, text, call }: CleanLine) {
      waiting.push({ seq: ++seq, at, kind, text, call })
      if (waiting.length === MAX_WAITING && !stop.aborted) drained = Promise.withResolvers<void>()
    },
    waiting: () => waiting.length,
    drained: () => drained.promise,
    async flush() {
      while (waiting.length > 0) {
        const lines = waiting.slice(0, MAX_BATCH)
        await q.saveLines(db, { session, lines })
        waiting = waiting.slice(lines.length)
        if (waiting.length < MAX_WAITING) drained.resolve()
        await appendToFile(lines)
      }
    },
  }
}
