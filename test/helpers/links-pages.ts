import type { Backend } from './backends.ts'
import { request } from './http.ts'
import type { Response } from './http.ts'
import { startLinks } from './links-setup.ts'
import type { Caller, LinksServer } from './links-setup.ts'
import type { Owner } from './owner.ts'

/** Headers of a request. */
export type Headers = Readonly<Record<string, string>>

/** Somebody at a browser, as the trusted proxy names them; an empty address is anonymous. */
export type Visitor = {
  get(path: string, headers?: Headers): Promise<Response>
  /** Posts a form; text is sent as it is. */
  post(path: string, fields?: Headers | string, headers?: Headers): Promise<Response>
}

/** A user who calls the API and visits the pages. */
export type PageUser = Caller & Visitor

/** What a browser without script sends when it goes to a page or posts a form. */
export const NAVIGATION: Headers = { 'sec-fetch-mode': 'navigate', accept: 'text/html' }
/** What htmx sends. */
export const HTMX: Headers = { 'hx-request': 'true' }

/** A links service behind a proxy on this machine that says who visits. */
export async function startPages(t: Owner, backend: Backend): Promise<LinksServer> {
  const own = await backend.env(t)
  return startLinks(t, backend, { ...own, GATEHOUSE_TRUSTED_PROXIES: '127.0.0.0/8' })
}

/** Makes a user who also visits the pages. */
export async function pageUser(
  links: LinksServer,
  name: string,
  options: { admin?: boolean } = {},
): Promise<PageUser> {
  const caller = await links.user(name, options)
  return { ...caller, ...visitorAt(links.base, caller.email) }
}

/** Who visits with this e-mail address. */
export function visitorAt(base: string, email: string): Visitor {
  const who = identity(email)
  return {
    get: (path, headers = {}) => request(base + path, { headers: { ...who, ...headers } }),
    post(path, fields = {}, headers = {}) {
      const body = typeof fields === 'string' ? fields : new URLSearchParams(fields).toString()
      const type = { 'content-type': 'application/x-www-form-urlencoded' }
      return request(base + path, {
        method: 'POST',
        body,
        headers: { ...who, ...type, ...headers },
      })
    },
  }
}

/** The header in which the proxy names somebody. */
export function identity(email: string): Headers {
  return email === '' ? {} : { 'remote-email': email }
}

/** The slugs of the rows in a list, from top to bottom. */
export function slugsIn(text: string): readonly string[] {
  return [...text.matchAll(/<tr [^>]*data-slug="([^"]*)"/g)].map(([, slug = '']) => slug)
}

/** The address of the next page of the list whose table's body has this id; undefined on the last one. */
export function nextOf(text: string, rows: string): string | undefined {
  const [, href] = new RegExp(`<a\\s+id="${rows}-more-link"\\s+href="([^"]*)"`).exec(text) ?? []
  return href?.replaceAll('&amp;', '&')
}

/** The slugs of all pages of a list, as its links lead through them. */
export async function listedAll(
  who: Visitor,
  path: string,
  rows: string,
): Promise<readonly string[]> {
  const slugs: string[] = []
  for (let next: string | undefined = path; next !== undefined;) {
    const page = await who.get(next)
    if (page.status !== 200) throw new Error(`${next} answered ${page.status}`)
    slugs.push(...slugsIn(page.text))
    next = nextOf(page.text, rows)
  }
  return slugs
}
