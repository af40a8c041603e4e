import type { Context } from '../kernel/http/context.ts'
import { unavailable, type FaultValue } from '../kernel/fault.ts'
import { firstFields, MOST_FIELDS } from '../kernel/http/read-body.ts'
import { mediaType } from '../kernel/http/headers.ts'

/** Largest form that a page of ours sends, but for those with a long text. */
const FORM_LIMIT = 64 * 1024
/** Of one with a long text: 100,000 characters of any script have up to 900,000 bytes in a form. */
export const LONG_FORM_LIMIT = 1024 * 1024

/** A form post's fields, or why it can't be read: 415, 413, 503 or 400. */
export async function readForm(
  context: Context,
  limit = FORM_LIMIT,
): Promise<URLSearchParams | FaultValue> {
  if (mediaType(context.headers['content-type']) !== 'application/x-www-form-urlencoded') {
    const detail = 'The body must be a form: application/x-www-form-urlencoded.'
    return { status: 415, code: 'UNSUPPORTED_MEDIA_TYPE', detail }
  }
  const body = await context.body(limit)
  if (body.ok) return fieldsOf(body.bytes.toString('utf8'))
  if (body.reason === 'too-large') {
    return { status: 413, code: 'BODY_TOO_LARGE', detail: `The form exceeds ${limit} bytes.` }
  }
  if (body.reason === 'overloaded') return unavailable('Too many bodies at once; try again.')
  return { status: 400, code: 'BAD_REQUEST', detail: 'The form did not arrive whole.' }
}

/** Whether a box was ticked: browsers send `on`, or the value that it has. */
export function isTicked(form: URLSearchParams, name: string): boolean {
  return ['on', 'true', '1'].includes(form.get(name) ?? '')
}

/** A text of several lines: browsers send CR LF for what they count as one character. */
export function linesIn(form: URLSearchParams, name: string): string {
  return (form.get(name) ?? '').replaceAll('\r\n', '\n')
}

function fieldsOf(text: string): URLSearchParams | FaultValue {
  if (firstFields(text) === text) return new URLSearchParams(text)
  const detail = `The form has more than ${MOST_FIELDS} fields.`
  return { status: 413, code: 'BODY_TOO_LARGE', detail }
}

/** As `readForm`, where every field may be absent: a post without a body has no type either. */
export async function readOptionalForm(context: Context): Promise<URLSearchParams | FaultValue> {
  const bare = context.headers['content-type'] === undefined
  return bare ? new URLSearchParams() : readForm(context)
}

/**
 * True when a browser without script posted or followed a link: it gets the full page around the
 * fragment that htmx and programs get.
 */
export function wantsFullPage(context: Context): boolean {
  return (
    context.headers['sec-fetch-mode'] === 'navigate' && context.headers['hx-request'] !== 'true'
  )
}
