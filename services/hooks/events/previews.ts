import type { Database } from '../../../db/client.ts'
import {
  eventQueries as q,
  type EventBeginning,
  type EventSummary,
} from '../../../db/hooks/events.ts'

/** An event as a row of a list on a page. */
export interface EventRow extends EventSummary {
  /**
   * The beginning of the payload on one line: empty without a payload, null when it is not text. A
   * method other than POST and its query come first.
   */
  preview: string | null
}

/** Bytes that are read for a preview: a line of JSON may begin with white space. */
const PREVIEW_BYTES = 300
const PREVIEW_CHARACTERS = 120

/** Adds to each event its preview. */
export async function withPreviews(
  db: Database,
  events: readonly EventSummary[],
): Promise<readonly EventRow[]> {
  if (events.length === 0) return []
  const ids = events.map(({ id }) => id)
  const beginnings = await q.listBeginnings(db, { ids, bytes: PREVIEW_BYTES })
  const byId = new Map(beginnings.map((beginning) => [beginning.id, beginning]))
  return events.map((event) => {
    // Retention may just have removed the event.
    const beginning = byId.get(event.id)
    return { ...event, preview: beginning === undefined ? '' : previewOf(beginning) }
  })
}

/** The preview of an event whose payload is here, or its beginning. */
export function previewOf({
  method,
  query,
  payload,
  payload_size,
}: Omit<EventBeginning, 'id'>): string | null {
  const isCut = payload.length < payload_size
  const text = readText(payload, isCut)
  if (text === null) return null
  const line = withoutBraces(text.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim(), isCut)
  const isPost = method === null || method === 'POST'
  const request = isPost ? '' : `${method} ${query === null ? '' : `?${query}`}`
  return shortened(`${request} ${line}`.trim(), isCut)
}

/** By characters, so that no character is cut in two. */
function shortened(line: string, isCut: boolean): string {
  const shown = SHOWN.exec(line)?.[0] ?? ''
  return isCut || shown.length < line.length ? `${shown.trimEnd()}…` : shown
}

const SHOWN = new RegExp(`^.{0,${PREVIEW_CHARACTERS}}`, 'u')

/** The bytes as text without a character that is cut at their end; null when they are not text. */
function readText(start: Buffer, isCut: boolean): string | null {
  if (start.includes(0)) return null
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(start, { stream: isCut })
  } catch {
    // TypeError: not UTF-8.
    return null
  }
}

/** A JSON object's members without the braces around them, which tell nothing. */
function withoutBraces(line: string, isCut: boolean): string {
  if (!/^\{ ?"/.test(line)) return line
  const members = line.slice(1)
  return (isCut ? members : members.replace(/\}$/, '')).trim()
}
