import fc from 'fast-check'
import { t } from 'tap'
import * as Type from '../../kernel/schema.ts'
import type { Route } from '../../kernel/http/router.ts'
import type { LinksRoutes } from '../../routes/links/kit.ts'
import { linksRoutes } from '../../routes/links/routes.ts'
import { eachBackend } from '../helpers/backends.ts'
import { META } from '../helpers/mcp.ts'
import { identity, linksServer, makeLink, visitorAt, type Link } from '../helpers/links.ts'
import { secret } from '../helpers/secrets.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { fuzz, INERT, RPC_FAULT, toolCalls, toolHeaders, UNWATCHED } from './fuzz.ts'
import { MARKER, oddCursor } from './fuzz-values.ts'

type Ids<Name extends string> = Record<Name, { id: number | string }[]>

const declared = linksRoutes(INERT as LinksRoutes, async () => true)
const resolver = { method: 'GET', path: '/:slug', access: 'open' } as Route
const ROUTES = [...declared, resolver]

/** links.md section 7. */
const FAULT = Type.Object(
  { error: Type.String({ minLength: 1 }), code: Type.String({ pattern: '^[A-Z]+(_[A-Z]+)*$' }) },
  { additionalProperties: false },
)

await eachBackend(t, 'links: answers keep what the declarations promise', async (t, backend) => {
  // On the embedded engine no proxy names the visitor, who is the operator.
  const isProxied = backend.name === 'postgres'
  const proxies = isProxied && { GATEHOUSE_TRUSTED_PROXIES: '127.0.0.0/8' }
  const env = { ...(await backend.env(t)), ...proxies, ...UNWATCHED }
  const server = await startServerProcess(t, { services: ['links'], env })
  const links = linksServer(server, env)
  const [root, ann, bob] = [
    await links.user('root', { admin: true }),
    await links.user('ann'),
    await links.user('bob'),
  ]
  const reader = await links.token(root.email, { scope: 'read' })
  const wrong = secret('no-token')
  const endpoint = { url: `${links.base}/mcp/links`, token: root.token }
  const visitor = visitorAt(links.base, isProxied ? root.email : '')
  let [kept, slugs, tokens]: [string[], string[], string[]] = [[], [], []]
  let [changes, deleted]: [string[], string[]] = [[], []]

  /** The tokens that a caller has by the API and at the pages. */
  async function listTokens() {
    const { json } = await root.api<{ tokens: readonly { id: string }[] }>('GET', '/tokens')
    const page = await visitor.get('/-/tokens')
    const shown = page.text.matchAll(/\/-\/tokens\/([\w-]+)\/revoke/g)
    return [...json.tokens.map(({ id }) => id), ...[...shown].map(([, id = '']) => id)]
  }
  const own = await listTokens()
  let gone = 0

  async function refresh() {
    for (const visibility of ['public', 'private', 'secure']) {
      const fields = { url: `https://keep.test/{1}`, tags: ['kept'], visibility }
      await root.api('POST', '/links', { slug: `keep-${visibility}`, ...fields })
    }
    const { json } = await root.api<{ links: readonly Link[] }>('GET', '/admin/links?limit=200')
    const found = json.links.filter(({ slug }) => slug.startsWith('keep-'))
    for (const { id, url, visibility } of found) {
      await root.api('PUT', `/links/${id}`, { url, tags: ['kept'], visibility })
      await root.api('POST', `/links/${id}/owners`, { email: ann.email })
      await root.api('POST', `/links/${id}/shares`, { email: bob.email })
      await root.api('DELETE', `/links/${id}/shares/${ann.id}`)
    }
    for (const { id } of found.slice(0, 1)) {
      const history = await root.api<Ids<'changes'>>('GET', `/links/${id}/history`)
      changes = history.json.changes.map((change) => String(change.id))
    }
    const { id } = await makeLink(root, `gone-${gone++}`)
    await root.api('DELETE', `/links/${id}`)
    const lost = await root.api<Ids<'deleted_links'>>('GET', '/deleted-links?limit=10')
    deleted = lost.json.deleted_links.map((link) => String(link.id))
    kept = found.map(({ id }) => id)
    slugs = found.map(({ slug }) => slug)
    await root.api('POST', '/tokens', { name: 'made' })
    await visitor.post('/-/tokens', { name: 'made' })
    tokens = (await listTokens()).filter((id) => !own.includes(id))
  }

  /** One of a list as it is when the request is made. */
  const oneOf = (list: () => readonly string[]) =>
    fc.nat(50).map((at) => list()[at % list().length] ?? 'none')
  const slug = fc.oneof(
    oneOf(() => slugs),
    fc.constantFrom('docs', 'a-1', 'A_1', 'x'.repeat(64)),
    fc.nat(9_999).map((at) => `new-${at}`),
  )
  const email = fc.oneof(
    fc.constantFrom(ann.email, bob.email, bob.email.toUpperCase()),
    fc.nat(9_999).map((at) => `new-${at}@example.com`),
  )
  const as = (token: string, user: string) => () => ({
    ...(token !== '' && { authorization: `Bearer ${token}` }),
    ...(isProxied && identity(user)),
  })
  await fuzz(t, backend.name, {
    server,
    base: links.base,
    routes: ROUTES,
    bodies: { 'POST /mcp/links': await toolCalls(endpoint) },
    refresh,
    known: {
      slug,
      email,
      token: oneOf(() => tokens),
      tag: fc.constantFrom('kept', 'A b'),
      // A deleted one can be restored.
      'links/:id': oneOf(() => [...kept, ...deleted.slice(0, 1)]),
      'deleted/:id': oneOf(() => deleted),
      'history/:change': oneOf(() => changes),
      'tags/:slug': fc.constant('kept'),
      links: fc.array(
        oneOf(() => kept),
        { minLength: 1, maxLength: 3 },
      ),
      'tokens/:id': oneOf(() => tokens),
      'users/:id': fc.constantFrom(ann.id, bob.id),
      'owners/:uid': fc.constant(ann.id),
      'owners/:user': fc.constant(ann.id),
      'shares/:uid': fc.constant(bob.id),
      'shares/:user': fc.constant(bob.id),
      url: fc.oneof(
        fc.constantFrom(
          'https://one.test/',
          'http://two/{1}/{*}?x=1#z',
          `https://a.test/${MARKER}`,
        ),
        slug.map((one) => `${links.base}/${one}`),
      ),
      // With the newest token that a page showed, each one made since is a conflict.
      newest: fc.constant(undefined),
      version: fc.constantFrom('', undefined),
      expires_at: fc.constantFrom(undefined, '2099-01-31T12:00'),
      aliases: fc.constant(undefined),
      from: fc.constantFrom(ann.email, bob.email),
      owner: fc.constantFrom('', ann.email),
      file: fc.constant(undefined),
      text: fc.nat(9_999).map((at) => `slug,url\nadded-${at},https://added.test/\n`),
      _meta: fc.constant(META),
      cursor: oddCursor,
      visibility: fc.constantFrom('public', 'private', 'secure'),
    },
    callers: {
      root: as(root.token, root.email),
      ann: as(ann.token, ann.email),
      bob: as(bob.token, bob.email),
      reader: as(reader, root.email),
      tool: (sent) => toolHeaders(endpoint, sent),
      nobody: as('', ''),
      stranger: as(wrong, 'new@x.test'),
      foreign: () => ({ ...as(root.token, root.email)(), origin: 'http://evil.example' }),
    },
    best: ({ path }) => (path === '/mcp/links' ? 'tool' : 'root'),
    faults: (path) => ({
      'application/json': path.startsWith('/mcp/') ? Type.Union([RPC_FAULT, FAULT]) : FAULT,
    }),
    secrets: [root.token, ann.token, bob.token, reader, wrong],
  })
})
