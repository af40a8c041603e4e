import { request } from './http.ts'
import type { RequestOptions, Response } from './http.ts'

/** How a person's browser names itself. */
export const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'

/** A visit by a person: the path as it stands, nothing followed; further headers win. */
export function visit(base: string, path: string, options: RequestOptions = {}): Promise<Response> {
  const headers = { 'user-agent': BROWSER, accept: 'text/html,*/*;q=0.8', ...options.headers }
  return request(base, { ...options, path, headers })
}

/** Where a visit leads, or the status of an answer that leads nowhere. */
export async function leadsTo(
  base: string,
  path: string,
  options: RequestOptions = {},
): Promise<string | number> {
  const { status, headers } = await visit(base, path, options)
  return status === 302 ? (headers.location ?? 'no Location') : status
}

/** The slugs that a page suggests instead of the one that was asked for. */
export function suggested({ text }: Pick<Response, 'text'>): readonly string[] {
  const [list = ''] = /<ul class="suggestions">.*?<\/ul>/s.exec(text) ?? []
  return [...list.matchAll(/href="\/([^"]*)"/g)].map(([, slug = '']) => slug)
}

/** The url of a link whose address has as many bytes as a `Location` may have, and that address. */
export function longestTarget(): { readonly url: string; readonly location: string } {
  const start = 'https://far.test/aaa'
  const times = (8_192 - start.length) / 12
  return {
    url: start + '\u{1f680}'.repeat(times),
    location: start + '%F0%9F%9A%80'.repeat(times),
  }
}
