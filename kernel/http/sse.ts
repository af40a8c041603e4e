import type { ReplyHeaders } from './reply.ts'

/** Fields of one server-sent event; without `id` a client keeps its position. */
export interface Frame {
  event?: string
  id?: number
  data: string
}

/** Head of every event stream: no cache and no proxy may hold frames back. */
export const STREAM_HEADERS: ReplyHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
}

/** A comment: keeps the connection alive and is not seen by the client's code. */
export const KEEP_ALIVE = Buffer.from(': keep-alive\n\n')

/** Bytes of one event; data is split at LF, CR and CRLF, which all end a field. */
export function encodeFrame(frame: Frame): Buffer {
  let text = ''
  if (frame.id !== undefined) text += `id: ${frame.id}\n`
  if (frame.event !== undefined) text += `event: ${frame.event}\n`
  for (const line of frame.data.split(/\r\n|\r|\n/)) text += `data: ${line}\n`
  return Buffer.from(text + '\n')
}

/** Bytes that set the client's reconnection delay in milliseconds. */
export function encodeRetry(milliseconds: number): Buffer {
  return Buffer.from(`retry: ${milliseconds}\n\n`)
}

/** A comment that also moves a client's position: an event without data is not dispatched. */
export function encodePosition(id: number): Buffer {
  return Buffer.from(`: keep-alive\nid: ${id}\n\n`)
}
