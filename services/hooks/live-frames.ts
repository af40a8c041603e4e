import type { EventSummary } from '../../db/hooks/rows.ts'
import { encodeFrame } from '../../kernel/http/sse.ts'

/** The stream's message about one event (hooks.md section 6). */
export function eventFrame(event: EventSummary): Buffer {
  return encodeFrame({ event: 'event-received', id: event.id, data: JSON.stringify(event) })
}

/** Any other message: without an id, so that the client keeps its position. */
export function messageFrame(event: string, value: unknown): Buffer {
  return encodeFrame({ event, data: JSON.stringify(value) })
}

/** Moves a client's position and shows it nothing: an event without data is not dispatched. */
export function positionFrame(id: number): Buffer {
  return Buffer.from(`: keep-alive\nid: ${id}\n\n`)
}
