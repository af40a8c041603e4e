import type { TObject } from 'typebox'
import type { Fault } from '../fault.ts'
import type { Html } from '../html.ts'
import type { Context } from './context.ts'
import { htmlReply, seeOther, type Reply } from './reply.ts'

type Make = () => Html | Promise<Html>

/** What an address shows: the page, and the part of it that htmx replaces, if it replaces any. */
export interface View {
  page: Make
  fragment?: Make
}

/**
 * The end of a form that goes on at another page. htmx shows the fragment where there is one; else
 * it, too, goes to the page.
 */
export interface Done {
  location: string
  fragment?: Make
}

/** The texts of a form as they were typed. */
export type Typed = Readonly<Record<string, string>>

/** A form as it is shown: new, or again with what was typed and why it was refused. */
export interface FormState {
  /** What the endpoint accepts: the fields have their limits and first values from it. */
  schema: TObject
  typed?: Typed
  fault?: Pick<Fault, 'message' | 'fields'> | undefined
}

/**
 * Who reads the reply: htmx, which replaces a part of its page; a browser, which shows a page; a
 * program.
 */
export type Audience = 'htmx' | 'browser' | 'program'

export function audienceOf({ headers }: Pick<Context, 'headers'>): Audience {
  if (headers['hx-request'] === 'true') return 'htmx'
  return (headers.accept ?? '').includes('text/html') ? 'browser' : 'program'
}

/** Answers a GET: the page, and its fragment to htmx. */
export async function pageReply(
  context: Context,
  { page, fragment = page }: View,
): Promise<Reply> {
  const shown = audienceOf(context) === 'htmx' ? await fragment() : await page()
  // Page and fragment share an address; a cache must not take one for the other.
  return htmlReply(shown, 200, { vary: 'HX-Request' })
}

/** Answers a form that was accepted. */
export async function formReply(audience: Audience, result: View | Done): Promise<Reply> {
  if (!('location' in result)) return viewReply(audience, result, 200)
  if (audience !== 'htmx') return seeOther(result.location)
  if (result.fragment !== undefined) return htmlReply(await result.fragment())
  const headers = { 'hx-redirect': result.location, 'cache-control': 'no-store' }
  return { status: 204, headers, body: null }
}

/** Answers a form that was refused, with the form as it was typed. */
export function refusedReply(audience: Audience, view: View, fault: Fault): Promise<Reply> {
  return viewReply(audience, view, fault.status, fault.headers)
}

async function viewReply(
  audience: Audience,
  { page, fragment = page }: View,
  status: number,
  headers = {},
): Promise<Reply> {
  return htmlReply(audience === 'browser' ? await page() : await fragment(), status, headers)
}
