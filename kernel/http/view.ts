import type { TObject } from '../schema.ts'
import type { Fault } from '../fault.ts'
import type { Html } from '../html.ts'
import type { Context } from './context.ts'
import { outcomeHeader, saidOutcome, withOutcome, type Outcome } from './outcome.ts'
import { htmlReply, seeOther, type Reply } from './reply.ts'

/** A page without the frame that all pages of its service share. */
export interface Page {
  title: string
  /** An entry of the navigation, or `none`. */
  section: string
  body: Html
  /** What the form that led here has done, as a sentence. */
  done?: string | undefined
  /** The script of its service, where something on the page is live. */
  script?: string
}

/** Draws what stands around a page: the document, its header and its footer. */
export type Frame = (page: Page) => Html

type Make<T> = () => T | Promise<T>

/** What an address shows: the page, and the part of it that htmx replaces, if it replaces any. */
export interface View {
  page: Make<Page>
  fragment?: Make<Html>
  /**
   * The address that shows the same: after a post a browser without script goes there, so that a
   * reload posts nothing. Absent where the answer shows a secret, which no other page can.
   */
  location?: string
  /** After a post: what was done. */
  done?: Outcome
}

/**
 * The reply to a form that leads to another page. htmx shows the fragment, if there is one;
 * otherwise it goes to the page, too.
 */
export interface Done {
  location: string
  fragment?: Make<Html>
  /** Whether a browser with htmx goes to the page although the reply has the fragment. */
  opens?: true
  /** What was done. */
  done?: Outcome
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

/** A form whose first values are those that the schema gives. */
export function newForm(schema: TObject, typed: Typed = {}): FormState {
  return { schema, typed }
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
export async function pageReply(context: Context, view: View, frame: Frame): Promise<Reply> {
  const done = saidOutcome(new URLSearchParams(context.search))
  const shown = await draw(view, audienceOf(context) === 'htmx', (page) => {
    return frame({ ...page, done })
  })
  // Page and fragment share an address; a cache must not take one for the other.
  return htmlReply(shown, 200, { vary: 'HX-Request' })
}

/** Answers a form that was accepted. */
export async function formReply(
  audience: Audience,
  result: View | Done,
  frame: Frame,
): Promise<Reply> {
  const { done } = result
  if ('page' in result) {
    const { location } = result
    if (audience === 'browser' && location !== undefined) {
      return seeOther(withOutcome(location, done))
    }
    const shown = await draw(result, audience !== 'browser', frame)
    return htmlReply(shown, 200, outcomeHeader(done))
  }
  const location = withOutcome(result.location, done)
  if (audience !== 'htmx') return seeOther(location)
  if (result.fragment !== undefined) {
    const headers = result.opens ? { 'hx-redirect': location } : outcomeHeader(done)
    return htmlReply(await result.fragment(), 200, headers)
  }
  const headers = { 'hx-redirect': location, 'cache-control': 'no-store' }
  return { status: 204, headers, body: null }
}

/** Answers a form that was refused, with the form as it was typed. */
export async function refusedReply(
  audience: Audience,
  view: View,
  { status, headers }: Fault,
  frame: Frame,
): Promise<Reply> {
  return htmlReply(await draw(view, audience !== 'browser', frame), status, headers)
}

/** The fragment where it is wanted and there is one; else the whole page. */
async function draw({ page, fragment }: View, wantsPart: boolean, frame: Frame): Promise<Html> {
  return wantsPart && fragment !== undefined ? fragment() : frame(await page())
}
