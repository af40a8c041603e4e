import type { Redaction } from '../../redact.ts'
import { createLineCleaner, createLineSplitter } from '../../clean-lines.ts'
import { textOfFrames, type ContainerApi } from './container-api.ts'

/** Which lines of a log are asked for. */
interface LogRequest {
  /** The newest ones. */
  lines: number
  /** Unix time in seconds. */
  since?: number | undefined
  /** Whether each line begins with its time. */
  timestamps?: boolean
  /** A terminal has one stream, without frames. */
  isTerminal: boolean
  maxBytes: number
}

/** Lines of a log; those after `maxBytes` are missing if it `isCut`. */
interface LogAnswer {
  lines: readonly string[]
  isCut: boolean
}

/**
 * Reads a log. Its lines have no secrets, nothing that controls a terminal, and are not empty.
 * Gives the status if the engine does not have it, as with some drivers of logs. Rejects without
 * an answer.
 */
export async function readContainerLog(
  api: ContainerApi,
  name: string,
  { lines, since, timestamps = false, isTerminal, maxBytes }: LogRequest,
  redact: Redaction,
): Promise<LogAnswer | { status: number }> {
  const query = new URLSearchParams({ stdout: '1', stderr: '1', tail: String(lines) })
  if (since !== undefined) query.set('since', String(since))
  if (timestamps) query.set('timestamps', '1')
  const path = `/containers/${encodeURIComponent(name)}/logs?${query}`
  const { status, body, isCut } = await api.get(path, maxBytes)
  if (status !== 200) return { status }
  const text = isTerminal ? body.toString('utf8') : textOfFrames(body)
  const clean = cleanLines(text, redact)
  // The end of a cut line may be half of a secret.
  return { lines: isCut ? clean.slice(0, -1) : clean, isCut }
}

function cleanLines(text: string, redact: Redaction): readonly string[] {
  const cleaner = createLineCleaner(redact)
  const at = new Date()
  const splitter = createLineSplitter(redact, (line) => cleaner.add({ ...line, at }))
  splitter.write('text', text)
  splitter.endLine()
  return cleaner.take(true).flatMap((line) => line.text.trim() || [])
}
