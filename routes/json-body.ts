import type { Context } from '../kernel/http/context.ts'
import { unavailable, type FaultValue } from '../kernel/fault.ts'
import { mediaType } from '../kernel/http/headers.ts'

/** A JSON object as it came. */
export type JsonObject = Readonly<Record<string, unknown>>

/** The JSON object of a request's body, or why it can't be read: 415, 413, 400 or 503. */
export async function readJsonObject(
  context: Context,
  limit: number,
): Promise<{ readonly value: JsonObject } | FaultValue> {
  if (mediaType(context.headers['content-type']) !== 'application/json') {
    const detail = 'the body must be JSON: send Content-Type: application/json'
    return { status: 415, code: 'UNSUPPORTED_MEDIA_TYPE', detail }
  }
  const body = await context.body(limit)
  if (!body.ok) {
    if (body.reason === 'overloaded') return unavailable('too many bodies at once; try again')
    if (body.reason === 'aborted') return badRequest('the body did not arrive whole')
    const detail = `the body exceeds ${limit} bytes`
    return { status: 413, code: 'BODY_TOO_LARGE', detail }
  }
  try {
    // A byte that is no UTF-8 must not become another text.
    const text = new TextDecoder('utf-8', { fatal: true }).decode(body.bytes)
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return { value: value as JsonObject }
    }
  } catch {
    // TypeError or SyntaxError: no UTF-8, or no JSON.
  }
  return badRequest('the body must be a JSON object')
}

function badRequest(detail: string): FaultValue {
  return { status: 400, code: 'BAD_REQUEST', detail }
}
