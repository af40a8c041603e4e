import { t } from 'tap'
import { postgres } from '../../helpers/backends.ts'
import { runOk, runCli } from '../../helpers/cli.ts'
import {
  HTMX,
  NAVIGATION,
  identity,
  leadsTo,
  listedAll,
  makeLink,
  openLinks,
  openPages,
  slugsOf,
  suggested,
  visit,
  type Caller,
  type Link,
} from '../../helpers/links.ts'
import { expectStatus, refuses } from '../../helpers/refusals.ts'
import { allIn } from '../../helpers/http.ts'

const links = await openPages(t)
const { base, env, query } = links
const ann = await links.user('ann')
const bob = await links.user('bob')
const cyd = await links.user('cyd')
const root = await links.user('root', { admin: true })

await t.test('aliases lead where the link does', async (t) => {
  const url = 'https://docs.test/'
  const tags = ['red']
  const fields = { url, aliases: ['wiki', 'docs-too', 'wiki', 'docs'], append_path: true, tags }
  const link = await makeLink(ann, 'docs', fields)
  t.same(link.aliases, ['docs-too', 'wiki'], 'each once, sorted, and not the slug again')
  const path = `/links/${link.id}`
  const lead = async (...names: readonly string[]) => {
    for (const name of names) t.equal(await leadsTo(base, `/${name}/a`), `${url}a`, name)
  }
  await lead('docs', 'wiki', 'docs-too', 'docstoo', 'WIKI.', 'w-iki')
  t.match((await visit(base, '/wiki+')).text, url, 'a preview')

  const kept = await ann.api<Link>('PUT', path, { url: 'https://new.test/', tags })
  t.same(kept.json.aliases, link.aliases, 'omitted, they stay')
  t.equal(await leadsTo(base, '/wiki'), 'https://new.test/', 'an edit counts for all names')
  const changed = await ann.api<Link>('PUT', path, { url, aliases: ['handbook'], tags })
  t.match(changed, { status: 200, json: { aliases: ['handbook'] } })
  t.not(changed.headers.etag, kept.headers.etag)
  t.equal(await leadsTo(base, '/wiki'), 404, 'taken away')
  const { id } = await makeLink(ann, 'wiki')
  t.equal(await leadsTo(base, '/wiki'), 'https://wiki.test/', 'and free again')
  await ann.api('DELETE', `/links/${id}`)

  const rename = (slug: string) => ann.api<Link>('PUT', `${path}/slug`, { slug })
  const renamed = await rename('guide')
  t.match(renamed, { status: 200, json: { slug: 'guide', aliases: ['docs', 'handbook'] } })
  t.not(renamed.headers.etag, changed.headers.etag)
  await lead('docs', 'handbook', 'guide')
  t.same(await slugsOf(bob, '/tags/red/links'), ['guide'])
  const promoted = await rename('handbook')
  t.same(promoted.json.aliases, ['docs', 'guide'])
  const same = await rename('handbook')
  t.equal(same.headers.etag, promoted.headers.etag, 'the name that it has: nothing changes')

  await expectStatus(204, ann.api('DELETE', path))
  const other = await makeLink(ann, 'guide')
  const named = /^another link has the name guide;/
  refuses(t, await ann.api('POST', `${path}/restore`), [409, 'SLUG_CONFLICT', named])
  t.equal(await leadsTo(base, '/docs'), 404, 'none of its names is back')
  await ann.api('DELETE', `/links/${other.id}`)
  t.same((await ann.api<Link>('POST', `${path}/restore`)).json, promoted.json)
  await lead('docs', 'handbook', 'guide')
})

await t.test('a link is restored without names that are taken, or under another', async (t) => {
  const fields = { aliases: ['lost-b', 'lost-c'], title: 'Lost', shares: [bob.email] }
  const { id } = await makeLink(ann, 'lost', fields)
  const path = `/links/${id}`
  const own = await ann.api('POST', `${path}/shares`, { email: ann.email })
  refuses(t, own, [409, 'DUPLICATE_SHARE', 'this user owns the link, and may read it already'])
  await ann.api('DELETE', path)
  for (const slug of ['lost-b', 'lost']) await makeLink(bob, slug)
  const restore = (query = '') => ann.api<Link>('POST', `${path}/restore${query}`)
  const taken = /^another link has the names lost, lost-b; restore/
  refuses(t, await restore(), [409, 'SLUG_CONFLICT', taken])
  const without = await restore('?without_taken=true')
  t.match(without, { status: 200, json: { slug: 'lost-c', aliases: [], title: 'Lost' } })
  t.equal(await leadsTo(base, '/lost-c'), 'https://lost.test/')
  await expectStatus(200, bob.api('GET', path), 'shares stay')
  await ann.api('DELETE', path)
  t.match(await restore('?slug=found'), { status: 200, json: { slug: 'found', aliases: [] } })
  const json = await ann.read<{ changes: object[] }>(`${path}/history`)
  t.match(json.changes[0], { action: 'restored', detail: { slug: ['lost-c', 'found'] } })

  await ann.api('DELETE', path)
  const form = (slug: string) => ann.post(`/-/deleted/${id}/restore-as`, { slug })
  await expectStatus(409, form('lost'))
  t.match(await form(' Found-Again '), { status: 303, headers: { location: `/-/links/${id}` } })
  t.equal(await leadsTo(base, '/found-again'), 'https://lost.test/')
})

await t.test('names that are refused', async (t) => {
  const link = await makeLink(ann, 'named', { aliases: ['named-too'] })
  await makeLink(bob, 'taken', { aliases: ['taken-too'] })
  const crowd = Array.from({ length: 21 }, (_, at) => `alias-${at}`)
  const full = await makeLink(ann, 'full', { aliases: crowd.slice(1) })
  const path = `/links/${link.id}`
  const url = 'https://x.test/'
  const put = (aliases: unknown) => ({ call: `PUT ${path}`, body: { url, aliases } })
  const post = (body: object) => ({ call: 'POST /links', body: { url, ...body } })
  const rename = (slug: unknown) => ({ call: `PUT ${path}/slug`, body: { slug } })
  const conflict = [409, 'SLUG_CONFLICT', 'slug already taken'] as const
  const state = async () => [
    await query('select name, link_id from links.names order by name'),
    await query('select id from links.changes order by id'),
  ]
  const more = { call: `PUT /links/${full.id}/slug`, body: { slug: 'one-more' } }
  await ann.refused(t, state, [
    [put(['free', 'taken-too']), ...conflict],
    [post({ slug: 'named-too' }), ...conflict],
    [rename('taken-too'), ...conflict],
    [
      put('wiki'),
      400,
      'BAD_REQUEST',
      'aliases must be a JSON array; it must be an array of strings',
    ],
    [put([1]), 400, 'BAD_REQUEST', 'aliases must be an array of strings'],
    [put(['api']), 400, 'RESERVED_SLUG', 'the alias api is reserved; choose another one'],
    [
      put(['A']),
      400,
      'INVALID_SLUG',
      'each of aliases must have 2 to 64 of a-z, 0-9 and -, with a letter or digit at both ends',
    ],
    [put(crowd), 400, 'BAD_REQUEST', 'aliases: 20 at most'],
    [more, 400, 'BAD_REQUEST', 'aliases: 20 at most'],
    [rename('api'), 400, 'RESERVED_SLUG'],
    [rename(undefined), 400, 'BAD_REQUEST', 'slug is required and must be a string'],
    [{ ...rename('free'), headers: { 'if-match': '"other"' } }, 412, 'PRECONDITION_FAILED'],
    [{ ...rename('free'), headers: { authorization: `Bearer ${bob.token}` } }, 403, 'FORBIDDEN'],
  ])
  const moved = await ann.api<Link>('PUT', `/links/${full.id}/slug`, { slug: 'alias-1' })
  t.match(moved, { status: 200, json: { slug: 'alias-1' } }, 'one of its own goes at the bound')
})

await t.test('pages of names: form, search, suggestions, history', async (t) => {
  const form = { slug: 'shelf', url: 'https://shelf.test/', aliases: ' Rack, cupboard ' }
  await expectStatus(303, ann.post('/-/new', form, NAVIGATION))
  const json = await ann.read<{ links: Link[] }>('/links?q=shelf')
  const [link] = json.links
  t.match(link, { slug: 'shelf', aliases: ['cupboard', 'rack'] })
  const page = `/-/links/${link?.id}`
  t.match(await ann.text(page), /Also known as[^]*cupboard[^]*Make it the name/)
  t.match(await ann.text(`${page}/edit`), 'value="cupboard, rack"')
  t.same(await listedAll(ann, '/-/?q=cupboard'), ['shelf'], 'found by an alias')
  t.same(suggested(await bob.get('/cupbord')), ['shelf'], 'suggested for one that is mistyped')
  const refused = await ann.post(`${page}/edit`, { ...form, aliases: 'taken' }, HTMX)
  t.match(refused, { status: 409, text: 'id="link-aliases-refused"' })
  await expectStatus(303, ann.post(`${page}/edit`, { url: form.url, title: 'Oak' }))
  t.same((await ann.read(`/links/${link?.id}`)).aliases, link?.aliases)

  const taken = await ann.post(`${page}/slug`, { slug: 'taken' }, HTMX)
  t.match(taken, { status: 409, text: 'already taken' })
  await expectStatus(303, ann.post(`${page}/slug`, { slug: ' Board ' }))
  const after = await ann.text(page)
  t.match(after, 'renamed the link from <q><bdi>shelf</bdi></q> to <q><bdi>board<')
  for (const name of ['board', 'shelf']) {
    t.same(await listedAll(ann, `/-/?q=${name}`), ['board'], 'by the former name, too')
  }

  // Names are no part of a version.
  const history = `/links/${link?.id}/history`
  const { changes } = await ann.read<{ changes: { id: number }[] }>(history)
  const restored = await ann.api<Link>('POST', `${history}/${changes.at(-1)?.id}/restore`)
  t.match(restored.json, { slug: 'board', title: '', aliases: ['cupboard', 'rack', 'shelf'] })
})

await t.test('imports and exports of aliases', async (t) => {
  const first = await postgres.env(t)
  const head = 'slug,url,owner,aliases\n'
  const input =
    `${head}docs,https://docs.test/,ann@example.com,wiki;docs-too\n` +
    'wiki,https://wiki.test/,ann@example.com,\nbad,https://bad.test/,ann@example.com,-\n'
  const made = await runCli('import - --create-users --json', { env: first, input })
  t.equal(made.code, 1)
  for (const line of [
    '"docs","outcome":"created","message":"without wiki, which other links have',
    '"wiki","outcome":"created","message":""',
    '"bad","outcome":"refused","message":"each of aliases must have',
  ]) {
    t.match(made.stdout, line)
  }
  const more =
    `${head}docs,https://docs.test/,ann@example.com,docs-too\n` +
    'docs-too,https://x.test/,ann@example.com,\nwiki,https://wiki.test/,ann@example.com,fresh\n'
  const again = await runCli('import - --json', { env: first, input: more })
  for (const line of [
    '"docs","outcome":"unchanged"',
    // An alias has the name.
    '"docs-too","outcome":"conflict"',
    '"wiki","outcome":"conflict","message":"the link is there, and its aliases',
  ]) {
    t.match(again.stdout, line)
  }
  const { stdout } = await runOk('export --format jsonl', { env: first })
  const shorts = allIn(stdout, /"Short":"([^"]*)"/g)
  t.same(shorts, ['docs', 'docs-too', 'wiki'], 'a line for each name')
})

await t.test('dashes and dots do not matter where no link has the name', async (t) => {
  const url = 'https://one.test/a'
  const link = await makeLink(ann, 'foo-bar', { url, append_path: true })
  const spellings = ['foobar', 'foo.bar', 'f-oobar', 'FOO..BAR', 'foo-b.ar.', 'foo.bar/']
  for (const spelling of spellings) t.equal(await leadsTo(base, `/${spelling}`), url, spelling)
  t.equal(await leadsTo(base, '/foo.bar/b?c=1'), 'https://one.test/a/b?c=1', 'with a path')
  const search = await visit(base, '/-/go?q=foo.bar/b')
  t.match(search, { status: 302, headers: { location: '/foo.bar/b' } })

  const exact = await makeLink(ann, 'foobar', { url: 'https://two.test/' })
  t.equal(await leadsTo(base, '/foobar'), 'https://two.test/', 'an exact name wins')
  t.equal(await leadsTo(base, '/foo.bar'), url, 'a dot is a dash first')
  for (const spelling of ['f-oobar', 'foo--bar']) {
    const several = await expectStatus(404, visit(base, `/${spelling}`), spelling)
    t.same(suggested(several).slice(0, 2), ['foobar', 'foo-bar'], 'either may be meant')
  }
  await ann.api('DELETE', `/links/${exact.id}`)
  t.equal(await leadsTo(base, '/foobar'), url)
  await ann.api('DELETE', `/links/${link.id}`)
  for (const spelling of spellings) t.equal(await leadsTo(base, `/${spelling}`), 404, spelling)
})

await t.test('a link that a visitor may not find is not found by another spelling', async (t) => {
  const as = (who: { email: string }) => ({ headers: identity(who.email) })
  const nobody = { email: '' }
  const [members, others] = [
    [ann, bob, root],
    [nobody, cyd],
  ]
  for (const [slug, visibility, finds, not] of [
    ['pub-lic', 'public', others, []],
    ['pri-vate', 'private', members, others],
    ['se-cure', 'secure', members, others],
  ] as const) {
    const { url } = await makeLink(ann, slug, { visibility, shares: [bob.email] })
    const path = `/${slug.replace('-', '')}`
    for (const who of finds) t.equal(await leadsTo(base, path, as(who)), url, slug)
    for (const who of not) {
      const unknown = await expectStatus(404, visit(base, path, as(who)), `${who.email} ${slug}`)
      const other = await visit(base, '/nothing', as(who))
      const plain = (text: string) => text.replaceAll(path.slice(1), 'nothing')
      t.equal(plain(unknown.text), other.text, 'the same page as for any other name')
    }
  }

  // A hidden link beside a public one changes nothing for those who may not find it.
  const open = await makeLink(bob, 'team-docs', { url: 'https://open.test/' })
  await makeLink(ann, 'te-amdocs', { url: 'https://hidden.test/', visibility: 'private' })
  for (const who of [nobody, bob]) t.equal(await leadsTo(base, '/teamdocs', as(who)), open.url)
  const several = await expectStatus(404, visit(base, '/teamdocs', as(ann)))
  t.same(suggested(several), ['te-amdocs', 'team-docs'], 'the owner may mean both')
  t.equal(await leadsTo(base, '/te-amdocs'), 'https://hidden.test/', 'who knows it may follow')

  const note = (who: typeof ann, slug: string) => who.text(`/-/slug?slug=${slug}`, HTMX)
  t.match(await note(cyd, 'teamdocs'), /teamdocs is free\. \S+\/team-docs exists, too\./)
  t.match(await note(ann, 'private'), '/pri-vate exists, too.')
  t.notMatch(await note(cyd, 'private'), 'exists')
})

const LOOP = [400, 'INVALID_URL'] as const
/** Whether a new link is made or refused for its loop. */
async function made({ api }: Pick<Caller, 'api'>, slug: string, url: string, append_path = false) {
  const fields = { slug, url, append_path }
  const { status, json } = await api<{ code?: string }>('POST', '/links', fields)
  return `${status} ${json.code ?? ''}`.trim()
}

await t.test('a url that leads back to its own link is refused', async (t) => {
  const named = { ...env, LINKS_BASE_URL: 'https://go.example.com' }
  const { base, api } = await openLinks(t, named)
  const writer = { api: api(ann.token) }
  const first = await makeLink(writer, 'first', { url: `${base}/second`, aliases: ['first-too'] })
  // The first one is empty: the address of this place alone.
  const paths = `
    second second/x FIRST. %66irst first-too firsttoo s.econd x/../{1} {1} {*}
    -/go?q=second -/go?q=/First%20/x -/go?q=go/first -/go?q=docs/{1} -/go -/{1} -
    first?of={user:nobody} docs/{user:../second} {1:docs} docs/{1:../second}
    docs?q={*:https://example.com/} docs/{*}/../..`
  const port = new URL(base).port
  const hosts = ['localhost', 'localhost.', 'any.localhost.', '127.0.0.2', '[::1]', '0.0.0.0']
  const places = [
    ...[...hosts, '[::ffff:127.0.0.1]'].map((host) => `http://${host}:${port}`),
    'https://go.example.com',
    'https://go.example.com.',
    'http://go',
    'http://go.:80',
  ]
  for (const url of [
    ...paths.split(/\s+/).map((path) => `${base}/${path}`),
    ...places.map((place) => `${place}/first`),
    `https://example.com/{*:${base}/second}`,
    'https://example.com/{user:http://go/first}',
  ]) {
    const fields = { slug: 'second', url, append_path: true }
    refuses(t, await writer.api('POST', '/links', fields), LOOP, url)
  }
  for (const [at, url] of [
    `${base}/-/all?q={1}`,
    `${base}/docs/{1:a/b}?q={2:c}&of={user}`,
    'https://example.com/{*:https://example.org/second}',
    `${base}/-/tags/{1}`,
    'http://go.example.org/first',
    'http://localhost.example:80/first',
  ].entries()) {
    t.equal(await made(writer, `no-loop-${at}`, url), '201', `${url} is no loop`)
  }
  const back = [...LOOP, 'url leads back to this link; give where it should end'] as const
  const path = `/links/${first.id}`
  const change = { url: `${base}/second`, aliases: ['s-econd'] }
  refuses(t, await writer.api('PUT', path, change), back, 'by an alias')
  refuses(t, await writer.api('PUT', `${path}/slug`, { slug: 'second' }), back, 'by its name')
})

await t.test('what a visit adds decides of no link where it ends', async (t) => {
  for (const [slug, url, append] of [
    ['root', `${base}/`, true],
    ['pages', `${base}/-/`, true],
    ['search', `${base}/-/go?q=other`, false],
  ] as const) {
    t.equal(await made(ann, slug, url, append), LOOP.join(' '), `${slug} ${url}`)
  }
  // Without further path it ends on the page.
  const { id } = await makeLink(ann, 'root', { url: `${base}/` })
  const append = { url: `${base}/`, append_path: true }
  refuses(t, await ann.api('PUT', `/links/${id}`, append), LOOP, 'nor may it begin to')

  // As they are after the service was given another address.
  await query("update links.links set append_path = true where slug = 'root'")
  t.equal(await made(ann, 'aa', `${base}/root/root/aa`), LOOP.join(' '))
  t.equal(await made(ann, 'aa', `${base}/root/docs`), '201', 'this ends')
  t.equal(await leadsTo(base, '/root/docs'), `${base}/docs`)
})

await t.test('a loop does not tell where a secure link leads', async (t) => {
  const eve = await links.user('eve')
  const fields = { url: `${base}/guess`, visibility: 'secure', shares: [bob.email] }
  const vault = await makeLink(ann, 'vault', fields)
  await makeLink(eve, 'through', { url: `${base}/vault` })
  for (const [at, way] of ['VAULT.', 'through'].entries()) {
    const url = `${base}/${way}`
    for (const who of [ann, bob, root]) t.equal(await made(who, 'guess', url), LOOP.join(' '), way)
    t.equal(await made(eve, `other-${at}`, url), '201', 'where it does not lead')
    const { id } = await makeLink(eve, 'guess')
    await expectStatus(200, eve.api('PUT', `/links/${id}`, { url }), 'so where it leads')
    await eve.api('DELETE', `/links/${id}`)
  }
  await ann.api('PUT', `/links/${vault.id}`, { url: `${base}/guess`, visibility: 'private' })
  const what = 'everybody may follow a private link, and sees where it leads'
  t.equal(await made(eve, 'guess', `${base}/vault`), LOOP.join(' '), what)
})

await t.test('a url may lead through ten links, and through no more', async (t) => {
  for (let at = 11; at > 0; at--) {
    const url = at === 11 ? 'https://example.com/' : `${base}/step-${at + 1}`
    t.equal(await made(ann, `step-${at}`, url), '201')
  }
  t.equal(await made(ann, 'through-10', `${base}/step-2`), '201')
  const eleven = { slug: 'through-11', url: `${base}/step-1` }
  const error = 'url leads through more than 10 links; give where it should end'
  refuses(t, await ann.api('POST', '/links', eleven), [...LOOP, error])
})
