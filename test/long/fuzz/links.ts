import fc from 'fast-check'
import { openLinksService } from '../../../commands/services/links.ts'
import type { Backend } from '../../helpers/backends.ts'
import type { Caller, FuzzProfile } from './profile.ts'
import { typeOf } from './promises.ts'
import { routesOf } from './routes.ts'
import { MARKER, oddCursor } from './values.ts'
import type { WireAnswer, WireRequest } from './wire.ts'
import { linksServer, visitorAt } from '../../helpers/links.ts'
import type { Link, LinksServer } from '../../helpers/links.ts'
import type { Owner } from '../../helpers/owner.ts'
import { secret } from '../../helpers/secrets.ts'
import { startServerProcess } from '../../helpers/server-process.ts'
import type { ServerProcess } from '../../helpers/server-process.ts'

const NO_ID = '00000000-0000-4000-8000-000000000000'

/**
 * Starts the links service, and gives what a fuzz has to know of it. On a server it stands behind a proxy
 * that names the visitors; on the embedded engine whoever is on this machine is its operator.
 */
export async function linksToFuzz(
  t: Owner,
  backend: Backend,
): Promise<{ server: ServerProcess; profile: FuzzProfile }> {
  const isProxied = backend.name === 'postgres'
  const proxies = isProxied && { GATEHOUSE_TRUSTED_PROXIES: '127.0.0.0/8' }
  const env = { ...(await backend.env(t)), ...proxies }
  const server = await startServerProcess(t, { services: ['links'], env })
  const links = linksServer(server, env)
  const { base } = links
  const keep = await openKeep(links, isProxied)
  const profile: FuzzProfile = {
    ...{ base, pools: keep.pools, refresh: keep.refresh, refusalFault },
    table: await routesOf(t, openLinksService),
    known: knownAt(base),
    forms: FORMS,
    needs: {},
    query: ['limit', 'cursor', 'q', 'tag', 'visibility', 'role', 'url', 'title', 'slug'],
    bodies: {},
    callers: keep.callers,
    best: () => undefined,
    mayFail: [],
    mayWarn: {},
    secrets: keep.secrets,
  }
  return { server, profile }
}

/** The people, and links that requests may be about, made anew when a request has removed them. */
async function openKeep(links: LinksServer, isProxied: boolean) {
  const root = await links.user('root', { admin: true })
  const ann = await links.user('ann')
  const bob = await links.user('bob')
  const read = await links.token(root.email, { scope: 'read' })
  const create = await links.token(ann.email, { scope: 'create' })
  const wrong = secret('no-token')
  // Without a trusted proxy, a request that names a user is refused.
  const named = (email: string): string => (isProxied ? email : '')
  const visitor = visitorAt(links.base, named(root.email))
  /** Root's by the API, and those of who sits at the page: on the embedded engine the operator. */
  const tokens = async (): Promise<readonly string[]> => {
    const { json } = await root.api<{ tokens: readonly { id: string }[] }>('GET', '/tokens')
    const page = await visitor.get('/-/tokens')
    const shown = page.text.matchAll(/\/-\/tokens\/([\w-]+)\/revoke/g)
    return [...json.tokens.map(({ id }) => id), ...[...shown].map(([, id = '']) => id)]
  }
  const ours = await tokens()
  let pools: Readonly<Record<string, readonly string[]>> = {}

  async function refresh(): Promise<void> {
    for (const [at, visibility] of ['public', 'private', 'secure'].entries()) {
      const fields = { url: `https://keep.test/${at}/{1}`, tags: ['kept'], visibility }
      await root.api('POST', '/links', { slug: `keep-${at}`, ...fields })
    }
    const { json } = await root.api<{ links: readonly Link[] }>('GET', '/admin/links?limit=200')
    const kept = json.links.filter(({ slug }) => slug.startsWith('keep-'))
    for (const { id, owners, url, tags, visibility } of kept) {
      const whole = { url, tags: ['kept'], visibility }
      if (!tags.includes('kept')) await root.api('PUT', `/links/${id}`, whole)
      const owned = owners.some(({ email }) => email === ann.email)
      if (!owned) await root.api('POST', `/links/${id}/owners`, { email: ann.email })
      await root.api('POST', `/links/${id}/shares`, { email: bob.email })
    }
    if ((await tokens()).every((id) => ours.includes(id))) {
      await root.api('POST', '/tokens', { name: 'made' })
      await visitor.post('/-/tokens', { name: 'made' })
    }
    const others = json.links.filter((link) => !kept.includes(link)).slice(0, 6)
    pools = {
      link: [...kept, ...others].map(({ id }) => id),
      slug: [...kept, ...others].map(({ slug }) => slug),
      user: [ann.id, bob.id],
      email: [ann.email, bob.email, root.email],
      token: [...(await tokens()).filter((id) => !ours.includes(id)), NO_ID],
    }
  }

  const as =
    (token: string | undefined, email: string): Caller =>
    () => [
      ...(token === undefined ? [] : [['authorization', `Bearer ${token}`] as const]),
      ...(email === '' ? [] : [['remote-email', email] as const]),
    ]
  const callers: FuzzProfile['callers'] = {
    root: as(root.token, named(root.email)),
    ann: as(ann.token, named(ann.email)),
    bob: as(bob.token, named(bob.email)),
    reader: as(read, named(root.email)),
    creator: as(create, named(ann.email)),
    nobody: as(undefined, ''),
    stranger: as(wrong, 'new@example.com'),
    foreign: () => [
      ...as(root.token, named(root.email))({ ...NOTHING }),
      ['origin', 'http://evil.example'],
      ['sec-fetch-site', 'cross-site'],
    ],
    forwarded: () => [
      ['x-forwarded-for', '203.0.113.7'],
      ['forwarded', 'for=203.0.113.7'],
    ],
  }
  const secrets = [root.token, ann.token, bob.token, read, create, wrong]
  return { refresh, callers, secrets, pools: () => pools }
}

const NOTHING: WireRequest = {
  ...{ method: 'GET', target: '/', headers: [], body: undefined, framing: 'length' },
}

const slug = fc.oneof(
  fc.nat(9).map((at) => `~slug.${at}~`),
  fc.constantFrom('docs', 'wiki', 'a1', 'x-1', 'Docs', 'a_1', 'docs.', 'x'.repeat(64)),
)
const email = fc.oneof(
  { weight: 2, arbitrary: fc.nat(2).map((at) => `~email.${at}~`) },
  fc.nat(9_999).map((at) => `new-${at}@example.com`),
  fc.constantFrom('ANN@EXAMPLE.COM', `${'x'.repeat(240)}@example.com`),
)
const user = fc.nat(1).map((at) => `~user.${at}~`)
const token = fc.nat(9).map((at) => `~token.${at}~`)

function knownAt(base: string): FuzzProfile['known'] {
  const [texts, tag] = [
    ['', 'Text', MARKER, 'x'.repeat(200)],
    fc.constantFrom('kept', 'new', 'A b'),
  ]
  return {
    ...{ slug, email, user, token, uid: user, tag, 'users.id': user, 'tokens.id': token },
    ...{ 'owners.uid': fc.constant('~user.0~'), 'owners.user': fc.constant('~user.0~') },
    ...{ 'shares.uid': fc.constant('~user.1~'), 'shares.user': fc.constant('~user.1~') },
    'tags.slug': tag,
    '.slug': fc.tuple(slug, fc.constantFrom('', '', '+', '.', ')')).map((parts) => parts.join('')),
    id: fc.nat(8).map((at) => `~link.${at}~`),
    url: fc.oneof(
      fc.constantFrom(
        'https://one.test/',
        'http://two/{1}/{*}?x=1#z',
        `https://one.test/${MARKER}`,
      ),
      slug.map((one) => `${base}/${one}`),
    ),
    title: fc.constantFrom(...texts),
    description: fc.constantFrom(...texts, 'x'.repeat(2_000)),
    tags: fc.array(tag, { maxLength: 3 }),
    visibility: fc.constantFrom('public', 'private', 'secure'),
    append_path: fc.boolean(),
    name: fc.constantFrom('laptop', MARKER, 'x'.repeat(100)),
    scope: fc.constantFrom('full', 'read', 'create'),
    expires: fc.constantFrom('', '30d', '2099-01-31T12:00:00Z'),
    expires_at: fc.constantFrom(null, '2099-01-31T12:00:00.000Z'),
    role: fc.constantFrom('user', 'user', 'admin', 'admin', 'owner'),
    acknowledge_own: fc.constantFrom('', 'true'),
    limit: fc.constantFrom('1', '2', '200', '1000'),
    cursor: oddCursor,
    q: fc.oneof(slug, fc.constantFrom('kept', 'keep-0 more', 'go/docs', MARKER)),
  }
}

const LINK = ['url', 'title?', 'description?', 'tags?', 'visibility?', 'append_path?']
const FORMS: FuzzProfile['forms'] = {
  'POST /-/new': ['slug', ...LINK],
  'POST /-/links/:id/edit': LINK,
  'POST /-/links/:id/owners': ['email'],
  'POST /-/links/:id/shares': ['email'],
  'POST /-/tokens': ['name', 'scope?', 'expires?'],
  'POST /-/admin/users': ['email', 'name?', 'role?'],
  'POST /-/admin/users/:id/role': ['role', 'acknowledge_own?'],
}

/** links.md section 7: `{error, code}`, or a page where the API is not. */
function refusalFault(answer: WireAnswer, { target }: WireRequest): string | undefined {
  const type = typeOf(answer)
  if (type === 'text/html') return target.startsWith('/api/') ? 'a page of the API' : undefined
  if (type !== 'application/json') return `its type is ${type}`
  const body: unknown = JSON.parse(answer.body.toString('utf8'))
  if (typeof body !== 'object' || body === null) return 'no object'
  const { error, code }: { error?: unknown; code?: unknown } = body
  if (Object.keys(body).length !== 2) return 'other members than error and code'
  if (typeof error !== 'string' || error === '') return 'no text for people'
  return typeof code === 'string' && /^[A-Z]+(?:_[A-Z]+)*$/.test(code) ? undefined : 'no code'
}
