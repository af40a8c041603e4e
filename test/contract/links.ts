import type { Test } from 'tap'
import { INSTANT, type ApiResponse } from '../helpers/api.ts'
import { request } from '../helpers/http.ts'
import { leadsTo, linksServer, makeLink, type Caller, type Link } from '../helpers/links.ts'
import type { Env } from '../helpers/program.ts'
import { refuses } from '../helpers/refusals.ts'
import type { TestServer } from '../helpers/server.ts'
import { hasMembers, unbound, type Check, type Contract } from './frame.ts'

/** Members of answers that docs/contract/links.md does not have. */
export const ADDED = {
  Link: {
    visibility: 'contract/decisions.md',
    append_path: 'decisions/020-links-details.md',
    expires_at: 'decisions/059-link-lifecycle.md',
    max_visits: 'decisions/059-link-lifecycle.md',
    archived: 'decisions/059-link-lifecycle.md',
    aliases: 'decisions/069-names-of-links.md',
  },
  'User of a list': { disabled_at: 'decisions/065-owners.md' },
} as const

/** The links service, and people who call it. */
type LinksFace = {
  base: string
  /** Without a token. */
  nobody: Caller['api']
  ann: Caller
  bob: Caller
  root: Caller
}

/** Makes the people whom the rows of links need. */
export async function openLinks(server: TestServer, env: Env): Promise<LinksFace> {
  const links = linksServer(server, env)
  return {
    base: links.base,
    nobody: links.api(),
    ann: await links.user('ann'),
    bob: await links.user('bob'),
    root: await links.user('root', { admin: true }),
  }
}

type Face = LinksFace
type LinksCheck = Check<LinksFace>
type Page = {
  links: readonly Link[]
  tags: readonly { slug: string; link_count: number }[]
  users: readonly { id: string; email: string }[]
  next_cursor: string | null
}

const FORBIDDEN = [403, 'FORBIDDEN'] as const
const UNAUTHORIZED = [401, 'UNAUTHORIZED', 'unauthorized'] as const
const INTRODUCES = unbound('it says what the document or the service is')
const TAGS_FAIL = 'test/links/names/links.test.ts > tags that can’t be written'

const RIGHTS = 'test/links/names/links.test.ts > who reads, changes and deletes a link'
const ADMINS = 'test/links/api.test.ts > unknown paths, wrong methods, and what is for admins'
const TOKEN =
  'test/links/api.test.ts > 401 UNAUTHORIZED without a valid token, before anything else'
const OWNERS = 'test/links/people/people.test.ts > owners and shares: who adds and removes whom'
const KEYWORD = 'test/links/api.test.ts > addresses and keyword come from the configuration'
const PAGES = 'test/links/names/lists.test.ts > pages of every list'

let made = 0

/** A link of ann's under a new slug. */
function ownLink({ ann }: Face, fields: object = {}) {
  made += 1
  return makeLink(ann, `contract-${made}`, { ...fields })
}

function isLink(t: Test, answer: ApiResponse<unknown>, status = 200) {
  t.equal(answer.status, status)
  hasMembers(t, answer.json, 'links', 'Link', ADDED.Link)
}

/** A link of ann's that bob co-owns, and bob's place in its owners. */
async function coOwned(face: Face) {
  const link = await ownLink(face, { visibility: 'secure' })
  const path = `/links/${link.id}`
  const added = await face.ann.api('POST', `${path}/owners`, { email: face.bob.email })
  return { ...link, path, added, owner: `${path}/owners/${face.bob.id}` }
}

const creates: LinksCheck = async (t, { ann, nobody, base }) => {
  const fields = { slug: 'whole', url: 'https://whole.test/', title: 'T', description: 'D' }
  const answer = await ann.api<Link>('POST', '/links', { ...fields, tags: ['b', 'a'] })
  isLink(t, answer, 201)
  t.match(answer.json, { ...fields, tags: ['a', 'b'] })
  t.match(answer.json.id, /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/)
  t.same(answer.json.owners, [{ id: ann.id, email: ann.email, is_primary: true }])
  t.match(answer.json.created_at, INSTANT)
  for (const missing of ['slug', 'url']) {
    refuses(t, await ann.api('POST', '/links', { ...fields, [missing]: undefined }), [
      400,
      'BAD_REQUEST',
    ])
  }
  refuses(t, await nobody('POST', '/links', fields), UNAUTHORIZED)
  t.equal(await leadsTo(base, '/whole'), 'https://whole.test/')
}

const taken: LinksCheck = async (t, face) => {
  const { slug, ...before } = await ownLink(face)
  const answer = await face.bob.api('POST', '/links', { slug, url: 'https://other.test/' })
  refuses(t, answer, [409, 'SLUG_CONFLICT', 'slug already taken'])
  t.match((await face.ann.api('GET', `/links/${before.id}`)).json, before)
}

const replaces: LinksCheck = async (t, face) => {
  const link = await ownLink(face, { title: 'T', description: 'D', tags: ['a'] })
  const url = 'https://replaced.test/'
  for (const who of [face.ann, face.root]) {
    const answer = await who.api<Link>('PUT', `/links/${link.id}`, { url, slug: 'ignored' })
    isLink(t, answer)
    t.match(answer.json, { url, slug: link.slug, title: '', description: '', tags: [] })
  }
}

const removes: LinksCheck = async (t, face) => {
  for (const who of [face.ann, face.root]) {
    const { id, slug } = await ownLink(face)
    t.match(await who.api('DELETE', `/links/${id}`), { status: 204, text: '' })
    refuses(t, await face.ann.api('GET', `/links/${id}`), [404, 'NOT_FOUND'])
    t.equal(await leadsTo(face.base, `/${slug}`), 404)
  }
}

const reads: LinksCheck = async (t, face) => {
  const { path } = await coOwned(face)
  const call = () => face.bob.api('GET', path)
  isLink(t, await call())
  await face.ann.api('DELETE', `${path}/owners/${face.bob.id}`)
  refuses(t, await call(), FORBIDDEN)
  await face.ann.api('POST', `${path}/shares`, { email: face.bob.email })
  isLink(t, await call())
  isLink(t, await face.root.api('GET', path))
}

const keepsPrimary: LinksCheck = async (t, face) => {
  const { path } = await coOwned(face)
  const protects = [400, 'PRIMARY_OWNER_PROTECTED', 'cannot remove primary owner'] as const
  for (const { api } of [face.ann, face.bob, face.root]) {
    refuses(t, await api('DELETE', `${path}/owners/${face.ann.id}`), protects)
  }
}

const profile: LinksCheck = async (t, { ann }) => {
  const { json } = await ann.api('GET', '/users/me')
  hasMembers(t, json, 'links', 'User profile')
  t.match(json, { id: ann.id, email: ann.email, role: 'user' })
}

const role: LinksCheck = async (t, { ann, bob, root }) => {
  for (const role of ['admin', 'user']) {
    const { status, json } = await root.api('PUT', `/admin/users/${bob.id}/role`, { role })
    t.match([status, json], [200, { id: bob.id, role }])
    hasMembers(t, json, 'links', 'User profile', ADDED['User of a list'])
    t.equal((await bob.api('GET', '/admin/links')).status, role === 'admin' ? 200 : 403)
  }
  const path = `/admin/users/${ann.id}/role`
  refuses(t, await root.api('PUT', path, { role: 'boss' }), [400, 'INVALID_ROLE'])
}

const tags: LinksCheck = async (t, face) => {
  await ownLink(face, { tags: ['seen'] })
  const { id } = await ownLink(face, { tags: ['seen', 'unseen'], visibility: 'private' })
  const counted = async ({ api }: Caller) => {
    const { json } = await api<Page>('GET', '/tags')
    for (const tag of json.tags) hasMembers(t, tag, 'links', 'Tag')
    return Object.fromEntries(json.tags.map(({ slug, link_count }) => [slug, link_count]))
  }
  t.match(await counted(face.ann), { seen: 2, unseen: 1 })
  t.match(await counted(face.bob), { seen: 1, unseen: undefined })
  t.match(await counted(face.root), { seen: 2, unseen: 1 })
  await face.ann.api('DELETE', `/links/${id}`)
  t.match(await counted(face.root), { seen: 1, unseen: undefined }, 'without a link it is gone')
}

const tagLinks: LinksCheck = async (t, face) => {
  const open = await ownLink(face, { tags: ['listed'] })
  const hidden = await ownLink(face, { tags: ['listed', 'secret'], visibility: 'private' })
  const slugs = async ({ api }: Caller) => {
    const { json } = await api<Page>('GET', '/tags/listed/links')
    return json.links.map(({ slug }) => slug)
  }
  t.same(await slugs(face.bob), [open.slug])
  for (const who of [face.ann, face.root]) t.same(await slugs(who), [open.slug, hidden.slug])
  const invisible = await face.bob.api('GET', '/tags/secret/links')
  const nonexistent = await face.bob.api('GET', '/tags/nowhere/links')
  refuses(t, invisible, [404, 'NOT_FOUND'])
  t.same(invisible.text, nonexistent.text)
}

const lists: LinksCheck = async (t, face) => {
  const link = await coOwned(face)
  const listed = async ({ api }: Caller, path = '/links?limit=200') => {
    const { json } = await api<Page>('GET', path)
    t.same(Object.keys(json), ['links', 'next_cursor'])
    hasMembers(t, json.links[0], 'links', 'Link', ADDED.Link)
    return json.links.some(({ id }) => id === link.id)
  }
  t.same(
    [
      await listed(face.ann),
      await listed(face.bob),
      await listed(face.root),
      await listed(face.root, '/admin/links?limit=200'),
    ],
    [true, true, true, true],
  )
  const foreign = await ownLink(face)
  const { text } = await face.bob.api('GET', '/links?limit=200')
  t.notOk(text.includes(foreign.id))
}

const version: LinksCheck = async (t, { base }) => {
  const answer = await request(`${base}/api/v2/links`)
  refuses(t, answer, [404, 'NOT_FOUND'])
}

/** The sentences of docs/contract/links.md. */
export const LINKS: Contract<LinksFace> = {
  'Link-Shortening Service': {
    'This document covers': INTRODUCES,
    'It is additive': INTRODUCES,
    'Other documents cover': INTRODUCES,
  },
  '1. What the service does': {
    'Lets programmatic clients': INTRODUCES,
    'Every link has a unique slug': taken,
    'The API shares authorization': 'test/links/access.test.ts > who is redirected',
    'Link visibility follows': tagLinks,
    'A public endpoint': KEYWORD,
  },
  Link: { 'Field |': creates },
  Tag: { '`slug` (string)': tags },
  'User profile': { '`id`, `email`': profile },
  'Owner row': {
    'Relates a user to a link': async (t, face) => {
      const { path, added } = await coOwned(face)
      t.same(added.json, { id: face.bob.id, email: face.bob.email, is_primary: false })
      t.same((await face.ann.api<Link>('GET', path)).json.owners[1], added.json)
    },
    'The primary owner cannot': keepsPrimary,
  },
  Config: {
    '`short_keyword` (string)': KEYWORD,
    'It defaults to the first': KEYWORD,
  },
  'Error body': { '`error` (string': TOKEN },
  'List envelope': { 'The links list is': lists },
  '3. States': {
    'Named states:': INTRODUCES,
    'role user or admin |': role,
    'link absent |': creates,
    'link exists | POST': taken,
    'link exists | DELETE': removes,
    'link exists | PUT': replaces,
    'co-owner absent |': OWNERS,
    'co-owner present |': OWNERS,
    'primary owner |': keepsPrimary,
    'Tag-write failure': TAGS_FAIL,
  },
  '4. Endpoints': {
    'All paths are under': version,
    'All responses are':
      'test/links/api.test.ts > the document describes everything once, with the codes of each status',
    'Every endpoint needs': TOKEN,
    'GET | `/links` |': lists,
    'POST | `/links` |': creates,
    'GET | `/links/{id}` |': reads,
    'PUT | `/links/{id}` |': replaces,
    'DELETE | `/links/{id}` |': removes,
    'GET | `/links/{id}/owners`': OWNERS,
    'POST | `/links/{id}/owners`': OWNERS,
    'DELETE | `/links/{id}/owners/{uid}`': OWNERS,
    'GET | `/tags` |': tags,
    'GET | `/tags/{slug}/links`': tagLinks,
    'GET | `/config`': KEYWORD,
    'GET | `/users/me`': profile,
    'GET | `/admin/users`': async (t, { root, ann }) => {
      const { json } = await root.api<Page>('GET', '/admin/users?limit=200')
      t.ok(json.users.some(({ email }) => email === ann.email))
      for (const user of json.users) {
        hasMembers(t, user, 'links', 'User profile', ADDED['User of a list'])
      }
    },
    'PUT | `/admin/users/{id}/role`': role,
    'GET | `/admin/links`': lists,
    'GET `/tags` omits tags': tags,
    'GET `/tags/{slug}/links` returns 404': tagLinks,
    'A non-admin cannot tell': tagLinks,
    'All `/admin/*` routes': ADMINS,
    'The sub-router is matched': async (t, { base }) =>
      t.equal(await leadsTo(base, '/api/v1/links'), 401),
  },
  '5. Authentication': {
    'Every `/api/v1/*` request': TOKEN,
    'Without a valid token:': TOKEN,
    'Tokens carry the role': role,
    'Roles: `user`': role,
    'read a link |': reads,
    'update, delete, add': RIGHTS,
    '`/admin/*` |': ADMINS,
  },
  '7. Errors': {
    'Every 4xx and 5xx body': TOKEN,
    'The separate tool-protocol': unbound('it is about another surface'),
    '401 |': TOKEN,
    '400 | (descriptive error)': 'test/links/names/input.test.ts > slug',
    '409 |': taken,
    '400 | `PRIMARY_OWNER_PROTECTED`': keepsPrimary,
    '403 |': RIGHTS,
    '404 |': tagLinks,
    ' | `TAG_WRITE_FAILED`': TAGS_FAIL,
  },
  '8. Limits': {
    '`limit` default |': PAGES,
    '`limit` maximum |': PAGES,
    '`next_cursor` |': PAGES,
    'Pagination is cursor-based': PAGES,
  },
  '9. Versioning': { 'All endpoints are under': version },
}
