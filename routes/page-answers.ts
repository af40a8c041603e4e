import { wantsFragment, type Context } from '../kernel/http/context.ts'
import type { Html } from '../kernel/html.ts'
import type { FaultRequest } from '../kernel/http/listener.ts'
import { htmlReply, type Reply } from '../kernel/http/reply.ts'

/** True for a browser that would show the answer as a page of its own. */
export function navigates({ headers }: FaultRequest): boolean {
  return (headers.accept ?? '').includes('text/html') && headers['hx-request'] === undefined
}

/** A refusal's line as a sentence for people. */
export function sentence(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`
}

/** Answers a GET: the page, or its fragment to htmx. */
export async function pageOrFragment(
  context: Context,
  page: () => Html | Promise<Html>,
  fragment: () => Html | Promise<Html>,
): Promise<Reply> {
  // Page and fragment share a URL; a cache must not take one for the other.
  const shown = wantsFragment(context) ? await fragment() : await page()
  return htmlReply(shown, 200, { vary: 'HX-Request' })
}
