import { t } from 'tap'
import type { Test } from 'tap'
import { backends, onPostgres } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import {
  HTMX,
  leadsTo,
  listedAll,
  makeLink,
  NAVIGATION,
  pageUser,
  startLinks,
  startPages,
  suggested,
  visit,
  type Caller,
  type Link,
} from '../helpers/links.ts'
import { run } from '../helpers/postgres.ts'
import { refuseAll, refuses } from '../helpers/refusals.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends

/** The actions of a link's history, newest first. */
async function actionsOf({ api }: Caller, id: string): Promise<readonly string[]> {
  const { json } = await api<{ changes: { action: string }[] }>('GET', `/links/${id}/history`)
  return json.changes.map(({ action }) => action)
}

await onPostgres(t, 'aliases lead where the link does', async (t: Test, backend) => {
  const links = await startLinks(t, backend)
  const { base } = links
  const ann = await links.user('ann')
  const url = 'https://docs.test/'
  const fields = { url, aliases: ['wiki', 'docs-too', 'wiki', 'docs'], append_path: true }
  const link = await makeLink(ann, 'docs', fields)
  t.same(link.aliases, ['docs-too', 'wiki'], 'each once, sorted, and not the slug again')
  const path = `/links/${link.id}`
  for (const name of ['docs', 'wiki', 'docs-too', 'docstoo', 'WIKI.', 'w-iki']) {
    t.equal(await leadsTo(base, `/${name}/a`), `${url}a`, name)
  }
  t.match((await visit(base, '/wiki+')).text, url, 'a preview')

  const kept = await ann.api<Link>('PUT', path, { url: 'https://new.test/' })
  t.same(kept.json.aliases, link.aliases, 'omitted, they stay')
  t.equal(await leadsTo(base, '/wiki'), 'https://new.test/', 'an edit counts for all names')
  const changed = await ann.api<Link>('PUT', path, { url, aliases: ['handbook'] })
  t.match(changed, { status: 200, json: { aliases: ['handbook'] } })
  t.not(changed.headers.etag, kept.headers.etag)
  t.equal(await leadsTo(base, '/handbook'), url)
  t.equal(await leadsTo(base, '/wiki'), 404, 'taken away')
  t.equal((await makeLink(ann, 'wiki')).slug, 'wiki', 'and free again')
  t.equal(await leadsTo(base, '/wiki'), 'https://wiki.test/')

  const renamed = await ann.api<Link>('PUT', `${path}/slug`, { slug: 'guide' })
  t.match(renamed, { status: 200, json: { slug: 'guide', aliases: ['docs', 'handbook'] } })
  t.not(renamed.headers.etag, changed.headers.etag)
  for (const name of ['docs', 'handbook', 'guide']) t.equal(await leadsTo(base, `/${name}`), url)
  const promoted = await ann.api<Link>('PUT', `${path}/slug`, { slug: 'handbook' })
  t.same(promoted.json.aliases, ['docs', 'guide'])
  t.same((await ann.api<Link>('GET', path)).json, promoted.json)
  const same = await ann.api('PUT', `${path}/slug`, { slug: 'handbook' })
  t.equal(same.headers.etag, promoted.headers.etag, 'the name that it has: nothing changes')
  t.same(await actionsOf(ann, link.id), ['renamed', 'renamed', 'edited', 'edited', 'created'])

  t.equal((await ann.api('DELETE', path)).status, 204)
  for (const name of ['docs', 'handbook', 'guide']) t.equal(await leadsTo(base, `/${name}`), 404)
  const other = await makeLink(ann, 'guide')
  refuses(t, await ann.api('POST', `${path}/restore`), [409, 'SLUG_CONFLICT'], 'an alias is taken')
  t.equal(await leadsTo(base, '/docs'), 404, 'none of its names is back')
  await ann.api('DELETE', `/links/${other.id}`)
  const restored = await ann.api<Link>('POST', `${path}/restore`)
  t.same(restored.json, promoted.json)
  for (const name of ['docs', 'handbook', 'guide']) t.equal(await leadsTo(base, `/${name}`), url)
})

await t.test('what is refused', async (t) => {
  const links = await startLinks(t, postgres)
  const { base, env } = links
  const [ann, bob] = [await links.user('ann'), await links.user('bob')]
  const link = await makeLink(ann, 'docs', { aliases: ['wiki'] })
  await makeLink(bob, 'taken', { aliases: ['taken-too'] })
  const crowd = Array.from({ length: 21 }, (_, at) => `alias-${at}`)
  const full = await makeLink(ann, 'full', { aliases: crowd.slice(1) })
  const path = `/api/v1/links/${link.id}`
  const url = 'https://x.test/'
  const put = (aliases: unknown) => ({ call: `PUT ${path}`, body: { url, aliases } })
  const post = (body: object) => ({ call: 'POST /api/v1/links', body: { url, ...body } })
  const rename = (slug: unknown) => ({ call: `PUT ${path}/slug`, body: { slug } })
  const conflict = [409, 'SLUG_CONFLICT', 'slug already taken'] as const
  const urlOf = env['DATABASE_URL'] ?? ''
  const state = async () => [
    await run(urlOf, 'select name, link_id from links.names order by name'),
    await run(urlOf, 'select id, slug, url from links.links order by id'),
    await run(urlOf, 'select id from links.changes order by id'),
  ]
  const headers = { authorization: `Bearer ${ann.token}` }
  await refuseAll(t, { service: 'links', base, headers, state }, [
    [put(['taken']), ...conflict],
    [put(['free', 'taken-too']), ...conflict],
    [post({ slug: 'wiki' }), ...conflict],
    [post({ slug: 'free', aliases: ['free-too', 'taken-too'] }), ...conflict],
    [post({ slug: 'free', aliases: ['docs'] }), ...conflict],
    [rename('taken'), ...conflict],
    [rename('taken-too'), ...conflict],
    [put('wiki'), 400, 'BAD_REQUEST', /^aliases must be/],
    [put([1]), 400, 'BAD_REQUEST', /^aliases must be an array of strings$/],
    [put(['api']), 400, 'RESERVED_SLUG', 'the alias api is reserved; choose another one'],
    [put(['A']), 400, 'INVALID_SLUG', /^each of aliases must have 2 to 64 of a-z, 0-9 and -/],
    [put(crowd), 400, 'BAD_REQUEST', 'aliases: 20 at most'],
    [rename('api'), 400, 'RESERVED_SLUG'],
    [rename('-'), 400, 'INVALID_SLUG'],
    [rename(undefined), 400, 'BAD_REQUEST', /^slug is required/],
    [
      { call: `PUT /api/v1/links/${full.id}/slug`, body: { slug: 'one-more' } },
      400,
      'BAD_REQUEST',
      'aliases: 20 at most',
    ],
    [
      { ...rename('free'), headers: { 'if-match': '"other"' } },
      412,
      'PRECONDITION_FAILED',
      /changed/,
    ],
    [{ ...rename('free'), headers: { authorization: `Bearer ${bob.token}` } }, 403, 'FORBIDDEN'],
  ])
  const moved = await ann.api<Link>('PUT', `/links/${full.id}/slug`, { slug: 'alias-1' })
  t.match(moved, { status: 200, json: { slug: 'alias-1' } }, 'one of its own goes at the bound')

  await t.test('names that would make a loop', async (t) => {
    const looped = await makeLink(ann, 'start', { url: `${base}/next` })
    const to = (aliases: readonly string[]) => ({ url: `${base}/next`, aliases })
    const loop = [400, 'INVALID_URL', /leads back to this link/] as const
    refuses(t, await ann.api('PUT', `/links/${looped.id}`, to(['next'])), loop)
    refuses(t, await ann.api('PUT', `/links/${looped.id}`, to(['n-ext'])), loop)
    refuses(t, await ann.api('PUT', `/links/${looped.id}/slug`, { slug: 'next' }), loop)
    const body = { slug: 'far', url: `${base}/f.ar` }
    refuses(t, await ann.api('POST', '/links', body), loop, 'by another spelling')
    await makeLink(ann, 'way', { url: `${base}/end`, aliases: ['way-too'] })
    const end = { slug: 'end', url: `${base}/way-too` }
    refuses(t, await ann.api('POST', '/links', end), loop, 'by an alias')
    refuses(t, await ann.api('POST', '/links', { ...end, url: `${base}/waytoo` }), loop)
  })
})

await t.test('pages: form, names, search, history', async (t) => {
  const links = await startPages(t, postgres)
  const [ann, bob] = [await pageUser(links, 'ann'), await pageUser(links, 'bob')]
  const form = { slug: 'docs', url: 'https://docs.test/', aliases: ' Wiki, handbook ' }
  t.equal((await ann.post('/-/new', form, NAVIGATION)).status, 303)
  const { json } = await ann.api<{ links: Link[] }>('GET', '/links')
  const [link] = json.links
  t.match(link, { slug: 'docs', aliases: ['handbook', 'wiki'] })
  const page = `/-/links/${link?.id}`
  t.match((await ann.get(page)).text, /Also known as[^]*handbook[^]*Make it the name/)
  t.match((await ann.get(`${page}/edit`)).text, /name="aliases"[^>]*value="handbook, wiki"/)
  t.same(await listedAll(ann, '/-/?q=handbook'), ['docs'], 'found by an alias')
  t.same(suggested(await bob.get('/handbok')), ['docs'], 'suggested for one that is mistyped')
  t.match((await ann.get('/-/slug?slug=wiki', HTMX)).text, /\/wiki is taken\./)
  await makeLink(bob, 'taken')
  const clash = { ...form, aliases: 'taken' }
  const refused = await ann.post(`${page}/edit`, clash, HTMX)
  t.match(refused, { status: 409, text: /id="link-aliases-refused"/ })
  const without = { url: form.url, title: 'Docs' }
  t.match(await ann.post(`${page}/edit`, without), { status: 303 })
  t.same((await ann.api<Link>('GET', `/links/${link?.id}`)).json.aliases, link?.aliases)

  const taken = await ann.post(`${page}/slug`, { slug: 'taken' }, HTMX)
  t.match(taken, { status: 409, text: /already taken/ })
  t.equal((await bob.post(`${page}/slug`, { slug: 'stolen' })).status, 403)
  t.match(await ann.post(`${page}/slug`, { slug: ' Guide ' }), { status: 303 })
  const after = (await ann.get(page)).text
  t.match(after, /renamed the link from <q><bdi>docs<\/bdi><\/q> to <q><bdi>guide</)
  t.same(await listedAll(ann, '/-/?q=guide'), ['guide'])
  t.same(await listedAll(ann, '/-/?q=docs'), ['guide'], 'the former name, too')

  // Names are no part of a version.
  const { changes } = (
    await ann.api<{ changes: { id: number }[] }>('GET', `/links/${link?.id}/history`)
  ).json
  const first = changes.at(-1)?.id
  const restored = await ann.api<Link>('POST', `/links/${link?.id}/history/${first}/restore`)
  t.match(restored.json, { slug: 'guide', title: '', aliases: ['docs', 'handbook', 'wiki'] })
})

await t.test('a rename keeps all that a link has', async (t) => {
  const links = await startLinks(t, postgres)
  const [ann, bob] = [await links.user('ann'), await links.user('bob')]
  const root = await links.user('root', { admin: true })
  const link = await makeLink(ann, 'docs', { visibility: 'secure', tags: ['red'] })
  const path = `/links/${link.id}`
  await ann.api('POST', `${path}/shares`, { email: bob.email })
  t.equal(await leadsTo(links.base, '/docs'), link.url, 'the operator')
  await ann.api('PUT', `${path}/slug`, { slug: 'guide' })
  t.match((await bob.api('GET', path)).json, { slug: 'guide', owners: link.owners })
  const tagged = await bob.api<{ links: Link[] }>('GET', '/tags/red/links')
  t.match(tagged.json.links, [{ slug: 'guide' }])
  t.equal(await leadsTo(links.base, '/docs'), link.url)
  t.equal(await leadsTo(links.base, '/guide'), link.url)
  const total = async () => (await ann.api<{ total: number }>('GET', `${path}/stats`)).json.total
  await until(async () => (await total()) === 3, 'visits by both names, before and after')
  t.equal((await root.api('DELETE', path)).status, 204)
})

await t.test('names on two servers', async (t) => {
  const one = await startLinks(t, postgres)
  const two = await startLinks(t, postgres, one.env)
  const ann = await one.user('ann')
  const whenLeads = (path: string, to: string | number) =>
    until(async () => (await leadsTo(two.base, path)) === to, `${path} to lead to ${to}`)
  const { id } = await makeLink(ann, 'docs', { url: 'https://v0.test/', aliases: ['wiki'] })
  await whenLeads('/wiki', 'https://v0.test/')
  await ann.api('PUT', `/links/${id}`, { url: 'https://v1.test/' })
  await whenLeads('/wiki', 'https://v1.test/')
  await ann.api('PUT', `/links/${id}/slug`, { slug: 'guide' })
  for (const path of ['/docs', '/wiki', '/guide']) await whenLeads(path, 'https://v1.test/')
  await ann.api('PUT', `/links/${id}`, { url: 'https://v2.test/', aliases: ['docs'] })
  await whenLeads('/wiki', 404)
  for (const path of ['/docs', '/guide']) await whenLeads(path, 'https://v2.test/')
  await ann.api('DELETE', `/links/${id}`)
  for (const path of ['/docs', '/guide']) await whenLeads(path, 404)
})

await t.test('of all who want a name at once, one gets it', async (t) => {
  const one = await startLinks(t, postgres)
  const two = await startLinks(t, postgres, one.env)
  const ann = await one.user('ann')
  const apis = [ann.api, two.api(ann.token)]
  const holders = await Promise.all(
    Array.from({ length: 6 }, (_, at) => makeLink(ann, `holder-${at}`)),
  )
  for (let round = 0; round < 6; round++) {
    const name = `wanted-${round}`
    const answers = await Promise.all(
      holders.map(({ id }, at) => {
        const api = apis[at % 2] ?? ann.api
        if (at < 2) return api('POST', '/links', { slug: name, url: 'https://x.test/' })
        if (at < 4) return api('PUT', `/links/${id}/slug`, { slug: name })
        return api('PUT', `/links/${id}`, { url: 'https://x.test/', aliases: [name] })
      }),
    )
    const statuses = answers.map(({ status }) => status)
    t.equal(statuses.filter((status) => status < 300).length, 1, statuses.join(' '))
    t.equal(statuses.filter((status) => status === 409).length, 5, statuses.join(' '))
  }
})

await t.test('imports and exports', async (t) => {
  const [first, second] = [await postgres.env(t), await postgres.env(t)]
  const file = [
    'slug,url,owner,aliases',
    'docs,https://docs.test/,ann@example.com,wiki;docs-too',
    'next,https://next.test/,ann@example.com,wiki;next-too',
    'wiki,https://wiki.test/,ann@example.com,',
    'bad,https://bad.test/,ann@example.com,-',
  ]
  const input = `${file.join('\n')}\n`
  const made = await runCli(['import', '-', '--create-users', '--json'], { env: first, input })
  t.equal(made.code, 1)
  const lines = made.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  t.match(lines, [
    { slug: 'docs', outcome: 'created', message: 'without wiki, which other links have' },
    { slug: 'next', outcome: 'created', message: 'without wiki, which other links have' },
    { slug: 'wiki', outcome: 'created', message: '' },
    { slug: 'bad', outcome: 'refused', message: /^each of aliases must have/ },
  ])
  const again = await runCli(['import', '-', '--json'], {
    env: first,
    input:
      'slug,url,owner,aliases\ndocs,https://docs.test/,ann@example.com,docs-too\n' +
      'docs-too,https://x.test/,ann@example.com,\nnext,https://next.test/,ann@example.com,fresh\n',
  })
  t.match(again.stdout, /"docs","outcome":"unchanged"/)
  t.match(again.stdout, /"docs-too","outcome":"conflict"/, 'an alias has the name')
  t.match(
    again.stdout,
    /"next","outcome":"conflict","message":"the link is there, and its aliases/,
  )

  const csv = await runCli(['export'], { env: first })
  const copied = await runCli(['import', '-', '--create-users'], {
    env: second,
    input: csv.stdout,
  })
  t.equal(copied.code, 0)
  t.equal((await runCli(['export'], { env: second })).stdout, csv.stdout, 'byte by byte')
  const golink = await runCli(['export', '--format', 'jsonl'], { env: first })
  const shorts = golink.stdout
    .trim()
    .split('\n')
    .map((line): string => JSON.parse(line).Short)
  t.same(shorts, ['docs', 'docs-too', 'next', 'next-too', 'wiki'], 'a line for each name')
})
