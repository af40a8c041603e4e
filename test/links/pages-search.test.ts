import { join } from 'node:path'
import { t } from 'tap'
import type { Test } from 'tap'
import { onPostgres } from '../helpers/backends.ts'
import {
  BROWSER,
  HTMX,
  insertLinks,
  listedAll,
  makeLink,
  nextOf,
  pageUser,
  slugsIn,
  startLinks,
  startPages,
  suggested,
  visitorAt,
} from '../helpers/links.ts'
import type { Link, PageUser, Visitor } from '../helpers/links.ts'
import { request } from '../helpers/http.ts'
import { startServer } from '../helpers/server.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { until } from '../helpers/until.ts'

function searched(who: PageUser, q: string, path = '/-/all'): Promise<readonly string[]> {
  return listedAll(who, `${path}?${new URLSearchParams({ q }).toString()}`)
}

/** The count above a list; undefined when there is none. */
function countIn(text: string): string | undefined {
  return /<p class="muted count">([^<]*)<\/p>/.exec(text)?.[1]
}

await onPostgres(t, 'what a search understands', async (t: Test, backend) => {
  const links = await startPages(t, backend)
  const ann = await pageUser(links, 'ann')
  const ada = await pageUser(links, 'ada')
  // Nothing changes a name later.
  await backend.query(
    links.env,
    `update links.users set display_name = 'Countess of Lovelace' where email = $1`,
    [ada.email],
  )
  const docs = { title: 'Handbook', tags: ['eng', 'wiki'], description: 'How we review\ncode' }
  await makeLink(ann, 'docs', docs)
  await makeLink(ann, 'docs-old', { tags: ['wiki'] })
  await makeLink(ada, 'wiki-home', { title: 'Start', tags: ['eng'] })
  await makeLink(ada, 'hidden', { visibility: 'private', tags: ['eng'], description: 'review' })
  const co = await makeLink(ann, 'team')
  await ann.api('POST', `/links/${co.id}/owners`, { email: ada.email })

  const host = new URL(links.base).host
  const cases: readonly (readonly [string, readonly string[]])[] = [
    // As people write a short link; the keyword is that of the base URL.
    ['127.0.0.1/docs', ['docs', 'docs-old']],
    ['127.0.0.1/docs/further/path', ['docs', 'docs-old']],
    [`${links.base}/docs-old`, ['docs-old']],
    [`${host.toUpperCase()}/docs-old?x=1`, ['docs-old']],
    ['127.0.0.1/', ['docs', 'docs-old', 'team', 'wiki-home']],
    ['#eng', ['docs', 'wiki-home']],
    ['#ENG #wiki', ['docs']],
    ['#en', []],
    ['#', []],
    ['#eng start', ['wiki-home']],
    // Owners: by address, by name, and in plain text.
    ['owner:ada', ['team', 'wiki-home']],
    ['owner:ada@example.com', ['team', 'wiki-home']],
    ['Owner:LOVELACE', ['team', 'wiki-home']],
    ['owner:example.com', ['docs', 'docs-old', 'team', 'wiki-home']],
    ['owner:ada #eng', ['wiki-home']],
    ['owner:nobody', []],
    ['lovelace', ['team', 'wiki-home']],
    ['ada@example.com', ['team', 'wiki-home']],
    // The company's domain is no name of an owner.
    ['example.com', []],
    ['owner:', []],
    ['review', ['docs']],
    ['review handbook', ['docs']],
    ['owner:%', []],
    // Under three characters: slugs that begin so. Beside a longer text, a short one may be anywhere.
    ['do', ['docs', 'docs-old']],
    ['T', ['team']],
    ['ki', []],
    ['%', []],
    ['é', []],
    ['ki docs', ['docs', 'docs-old']],
    // Nothing that the index knows.
    ['://', ['docs', 'docs-old', 'team', 'wiki-home']],
    ['s-o', ['docs-old']],
    ['DOCS-o', ['docs-old']],
    ['docs_old', []],
    ['@example.com', ['docs', 'docs-old', 'team', 'wiki-home']],
    ['ada@ #eng', ['wiki-home']],
  ]
  for (const [q, slugs] of cases) t.same(await searched(ann, q), slugs, q)
  t.same(await searched(ann, 'owner:ada', '/-/'), ['team'])
  t.same(await searched(ann, 'review', '/-/tags/eng'), ['docs'])
  t.same(await searched(ann, '#wiki', '/-/tags/eng'), ['docs'])
  t.same(await searched(ada, 'review'), ['docs', 'hidden'])
  const sorted = (q: string) => listedAll(ann, `/-/all?sort=created&q=${q}`)
  t.same(await sorted('do'), ['docs-old', 'docs'])
  t.same(await sorted('do&visibility=private'), [])

  await t.test('what a change makes of it', async (t) => {
    const found = async (q: string) => [await searched(ann, q), await searched(ada, q)]
    const link = await makeLink(ann, 'plan', { title: 'Roadmap', visibility: 'secure' })
    t.same(await found('roadmap'), [['plan'], []])
    await ann.api('POST', `/links/${link.id}/shares`, { email: ada.email })
    t.same(await found('roadmap'), [['plan'], ['plan']])
    await ann.api('DELETE', `/links/${link.id}/shares/${ada.id}`)
    t.same(await found('roadmap'), [['plan'], []])
    await ann.api('POST', `/links/${link.id}/owners`, { email: ada.email })
    t.same(await found('lovelace road'), [['plan'], ['plan']])
    await ann.api('DELETE', `/links/${link.id}/owners/${ada.id}`)
    t.same(await found('lovelace road'), [[], []])
    const changed = { url: 'https://elsewhere.test/', title: 'Goals Ölstand', tags: ['q3-goals'] }
    await ann.api('PUT', `/links/${link.id}`, { ...changed, visibility: 'public' })
    t.same(await found('roadmap'), [[], []])
    for (const q of ['goals', 'elsewhere', '#q3-goals', '3-go', 'ölstand', 'ÖLST']) {
      t.same(await found(q), [['plan'], ['plan']], q)
    }
    await ann.api('DELETE', `/links/${link.id}`)
    t.same(await found('goals'), [[], []])
  })

  await t.test('the search of browsers understands it too', async (t) => {
    const found = async (q: string) =>
      (await ann.get(`/-/go?${new URLSearchParams({ q }).toString()}`)).text
    t.match(await found('#eng'), /Links with “#eng”[^]*href="\/docs"[^]*href="\/wiki-home"/)
    t.match(await found('owner:ada'), /href="\/wiki-home"/)
    t.match(await found('127.0.0.1/dosc'), /No link is named “dosc”[^]*href="\/docs"/)
    const whole = await ann.get(`/-/go?${new URLSearchParams({ q: `${links.base}/docs/a` })}`)
    t.match(whole, { status: 302, headers: { location: '/docs/a' } })
    const short = await ann.get('/-/suggest?q=127.0.0.1/doc')
    t.same(short.json<[string, string[]]>()[1], ['docs', 'docs-old'])
  })

  await t.test(
    'a page of another site may not measure a search on the page of a tag',
    async (t) => {
      const from = { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'image' }
      t.equal((await ann.get('/-/tags/eng?q=review', from)).status, 403)
      t.equal((await ann.get('/-/tags/eng?q=review')).status, 200)
      t.equal((await ann.get('/-/tags/eng?q=%00')).status, 400)
      t.equal((await ann.get('/-/tags/none?q=review')).status, 404)
    },
  )
})

await onPostgres(t, 'orders and counts of lists', async (t: Test, backend) => {
  const links = await startPages(t, backend)
  const ann = await pageUser(links, 'ann')
  const bob = await pageUser(links, 'bob')
  const eve = await pageUser(links, 'eve', { admin: true })
  t.equal(countIn((await bob.get('/-/all')).text), undefined, 'no list, no count')
  const made: Record<string, Link> = {}
  for (const slug of ['aa', 'bb', 'cc', 'dd']) made[slug] = await makeLink(ann, slug)
  made['ee'] = await makeLink(ann, 'ee', { visibility: 'private', title: 'Plan' })
  await ann.api('PUT', `/links/${made['bb']?.id}`, { url: 'https://changed.test/' })

  const human = { 'user-agent': BROWSER }
  const clicks: Record<string, number> = { cc: 3, aa: 1, ee: 2 }
  for (const [slug, times] of Object.entries(clicks)) {
    for (let at = 0; at < times; at++) await bob.get(`/${slug}`, human)
  }
  // Looking where a link leads is no click.
  for (let at = 0; at < 4; at++) await bob.get('/dd+', human)
  const sum = async () => {
    const [row] = await backend.query(links.env, 'select sum(clicks)::int as n from links.links')
    const [days] = await backend.query(links.env, 'select sum(clicks)::int as n from links.clicks')
    return Number(row?.['n']) === 6 && Number(days?.['n']) === 10
  }
  await until(sum, 'clicks in the database')

  const all = ['aa', 'bb', 'cc', 'dd', 'ee']
  t.same(await listedAll(ann, '/-/?sort=clicks'), ['cc', 'ee', 'aa', 'bb', 'dd'])
  t.same(await listedAll(ann, '/-/?sort=created'), all.toReversed())
  t.same(await listedAll(ann, '/-/?sort=changed'), ['bb', 'ee', 'dd', 'cc', 'aa'])
  t.same(await listedAll(ann, '/-/?sort=clicks&visibility=public'), ['cc', 'aa', 'bb', 'dd'])
  t.same(await listedAll(ann, '/-/?sort=clicks&role=co-owner'), [])
  for (const [who, slugs] of [
    [ann, ['cc', 'ee', 'aa', 'bb', 'dd']],
    [eve, ['cc', 'ee', 'aa', 'bb', 'dd']],
    [bob, ['cc', 'aa', 'bb', 'dd']],
  ] as const) {
    t.same(await listedAll(who, '/-/all?sort=clicks'), slugs, who.email)
  }
  t.same(await listedAll(eve, '/-/all?sort=created&q=plan'), ['ee'])
  t.same(await listedAll(bob, '/-/all?sort=created&q=plan'), [])
  t.match((await ann.get('/-/?sort=created')).text, /<time datetime=/)
  t.match((await ann.get('/-/')).text, /data-slug="cc"[^]*?class="number">3</)
  t.same(await listedAll(ann, '/-/'), ['cc', 'ee', 'aa', 'bb', 'dd'], 'by use, unless asked')
  const trend = /data-slug="cc"[^]*?aria-label="3 visits in 30 days"/
  t.match((await ann.get('/-/')).text, trend)
  t.match((await eve.get('/-/all')).text, trend, 'an admin')
  t.notMatch((await bob.get('/-/all')).text, 'in 30 days', 'statistics are for owners')
  t.match((await ann.get('/-/')).text, 'href="/-/usage#unused-title">Unused for 90 days<')
  t.match((await eve.get('/-/all')).text, 'href="/-/admin/usage#unused-title"')
  t.notMatch((await bob.get('/-/all')).text, 'Unused for')

  await t.test('counts', async (t) => {
    const count = async (who: Visitor, path: string) => countIn((await who.get(path, HTMX)).text)
    t.equal(await count(ann, '/-/'), '5 links')
    t.equal(await count(ann, '/-/?sort=clicks'), '5 links')
    t.equal(await count(bob, '/-/all'), '4 links', 'only what the visitor may see')
    t.equal(await count(eve, '/-/all'), '5 links')
    t.equal(await count(ann, '/-/?visibility=private'), '1 link')
    t.equal(await count(ann, '/-/all?q=changed.test'), '1 link')
    t.equal(await count(ann, '/-/?q=none'), undefined)
  })

  await t.test('pages, and more links than are counted', async (t) => {
    const owners = [ann.email]
    const many = Array.from({ length: 1_100 }, (_, at) => `n-${String(at).padStart(4, '0')}`)
    await insertLinks(
      links,
      backend,
      many.map((slug) => ({ slug, owners })),
    )
    const page = await ann.get('/-/all')
    t.equal(countIn(page.text), 'More than 1,000 links')
    t.equal(countIn((await ann.get(nextOf(page.text, 'links') ?? '')).text), undefined)
    t.equal(countIn((await ann.get('/-/all?q=n-')).text), undefined, 'a search is not counted')
    // Equal numbers of clicks stand in the order of slugs, also over pages.
    const sorted = ['cc', 'ee', 'aa', 'bb', 'dd', ...many]
    t.same(await listedAll(ann, '/-/all?sort=clicks'), sorted)
    t.same(await listedAll(eve, '/-/all?sort=clicks'), sorted)
    const found = await listedAll(ann, '/-/all?sort=clicks&q=n-00')
    t.same(found, many.slice(0, 100))
    t.same(await listedAll(ann, '/-/?sort=clicks'), sorted, 'all own links are sorted')
    t.same((await listedAll(ann, '/-/?sort=created')).slice(-5), all.toReversed())
    const wrong = (nextOf((await ann.get('/-/?sort=clicks')).text, 'links') ?? '').replace(
      'sort=clicks',
      'sort=created',
    )
    t.equal((await ann.get(wrong)).status, 400, 'a cursor of another order')
  })
})

await onPostgres(t, 'an unknown name: titles and parts of slugs', async (t: Test, backend) => {
  const links = await startPages(t, backend)
  const ann = await pageUser(links, 'ann')
  const bob = await pageUser(links, 'bob')
  const eve = await pageUser(links, 'eve', { admin: true })
  const nobody = visitorAt(links.base, '')
  const go = await makeLink(ann, 'eng-handbook', { title: 'Onboarding Größe & more' })
  await makeLink(ann, 'payroll', { title: 'Money onboarding', visibility: 'private' })
  const meant = async (who: Visitor, name: string) =>
    suggested(await who.get(`/${encodeURIComponent(name)}`, { accept: 'text/html' }))
  for (const [name, own, others] of [
    ['handbook', ['eng-handbook'], ['eng-handbook']],
    ['Handb', ['eng-handbook'], ['eng-handbook']],
    ['handbook-eng', ['eng-handbook'], ['eng-handbook']],
    ['größe', ['eng-handbook'], ['eng-handbook']],
    ['onboarding', ['payroll', 'eng-handbook'], ['eng-handbook']],
    ['money', ['payroll'], []],
    ['money-handbook', [], []],
    ['book', [], []],
    ['nothing', [], []],
    ['&', [], []],
  ] as const) {
    for (const who of [ann, eve]) t.same(await meant(who, name), own, `${name} by its owner`)
    for (const who of [bob, nobody]) t.same(await meant(who, name), others, `${name} by others`)
  }
  await ann.api('PUT', `/links/${go.id}`, { url: 'https://x.test/', title: 'Other' })
  t.same(await meant(bob, 'onboarding'), [], 'a title that is gone')
  t.same(await meant(bob, 'other'), ['eng-handbook'])
  await ann.api('PUT', `/links/${go.id}`, {
    url: 'https://x.test/',
    title: 'Other',
    visibility: 'private',
  })
  t.same(await meant(bob, 'other'), [], 'a link that is no longer public')
  t.same(await meant(ann, 'other'), ['eng-handbook'])
  await ann.api('DELETE', `/links/${go.id}`)
  t.same(await meant(ann, 'other'), [])
})

await onPostgres(t, 'before there is a first link', async (t: Test, backend) => {
  const links = await startPages(t, backend)
  const ann = await pageUser(links, 'ann')
  const bob = await pageUser(links, 'bob')
  const empty = await ann.get('/-/')
  t.match(empty.text, /Create your first link[^]*<form[^>]*action="\/-\/new"/)
  t.match(empty.text, /curl -H [^]*\/api\/v1\/links/)
  t.match(empty.text, /id="start-here"[^>]*hx-get="\/-\/"[^>]*hx-target="#links-results"/)
  for (const path of ['/-/?q=none', '/-/?tag=none', '/-/?role=owner', '/-/all']) {
    t.notMatch((await ann.get(path)).text, /start-here|first-link/, path)
  }
  await makeLink(bob, 'docs', { title: 'Handbook', description: `${'long '.repeat(60)}end` })
  t.match((await ann.get('/-/')).text, 'start-here', 'a link of somebody else is not the first')
  const bad = await ann.post('/-/new', { slug: 'docs', url: 'https://x.test/' }, HTMX)
  t.equal(bad.status, 409)
  const made = await ann.post('/-/new', { slug: 'first', url: 'https://x.test/' })
  t.equal(made.status, 303)
  const fragment = await ann.get('/-/', HTMX)
  t.same(slugsIn(fragment.text), ['first'], 'what the page asks for meanwhile')
  t.notMatch(fragment.text, 'start-here')
  t.notMatch((await ann.get('/-/')).text, 'first-link')

  await t.test('a row says what a link is, and has its own ways to it', async (t) => {
    const { text } = await ann.get('/-/all?q=docs')
    t.match(text, /class="row-link" href="\/docs\+"/, 'the row leads to the preview')
    t.match(text, 'href="/docs" rel="noreferrer"', 'its address follows the link')
    t.match(text, /Handbook[^]*>docs\.test<[^]*<td role="cell" class="owner"><bdi>bob</)
    t.notMatch(text, 'long end', 'a description is on the page of its link')
    t.match(text, 'data-copy="short-docs"')
    t.match((await ann.get('/-/')).text, /class="muted">you</)
  })
})

await onPostgres(
  t,
  'the operator, without links, finds those of others',
  async (t: Test, backend) => {
    const links = await startLinks(t, backend)
    const operator = visitorAt(links.base, '')
    t.notMatch((await operator.get('/-/')).text, 'See the links of')
    const ann = await links.user('ann')
    await links.user('bob')
    await makeLink(ann, 'docs')
    const { text } = await operator.get('/-/')
    t.match(text, /operator@localhost, who has no link/)
    t.match(text, 'href="/-/all?q=owner%3Aann%40example.com"')
    t.notMatch(text, 'links of <bdi>bob@', 'who has no link either')
    t.same(await listedAll(operator, '/-/all?q=owner%3Aann%40example.com'), ['docs'])
  },
)

await onPostgres(t, 'short links are shown as they work', async (t: Test, backend) => {
  const direct = await startLinks(t, backend)
  const operator = visitorAt(direct.base, '')
  const { host } = new URL(direct.base)
  t.match((await operator.get('/-/new')).text, `${host}/</span>`, 'with the port')
  t.match((await operator.get('/-/slug?slug=docs')).text, `${host}/docs is free.`)
  const shown = async (env: Readonly<Record<string, string>>) => {
    const links = await startLinks(t, backend, { ...direct.env, ...env })
    return (await visitorAt(links.base, '').get('/-/slug?slug=docs')).text
  }
  t.match(await shown({ LINKS_SHORT_KEYWORD: 'go' }), '>go/docs is free.')
  t.match(await shown({ LINKS_BASE_URL: 'https://go.example.com' }), '>go/docs is free.')
  const port = await shown({ LINKS_BASE_URL: 'https://go.example.com:8443' })
  t.match(port, '>go.example.com:8443/docs is free.')

  await t.test('behind a unix socket nothing is offered that does not work', async (t) => {
    const socket = join(await temporaryFolder(t), 'links.sock')
    const env = { ...direct.env, LINKS_ADDR: `unix:${socket}` }
    await startServer(t, { services: ['links'], env })
    const made = await request('http://localhost', {
      ...{ socketPath: socket, path: '/-/new', method: 'POST' },
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: 'slug=docs&url=docs.test',
    })
    t.equal(made.status, 303)
    for (const path of [String(made.headers['location']), '/-/']) {
      const { status, text } = await request('http://localhost', { socketPath: socket, path })
      t.equal(status, 200)
      t.notMatch(text, /unix:|data-copy|qr\.svg/, path)
      t.match(text, path === '/-/' ? 'data-slug="docs"' : /Set <code>LINKS_BASE_URL</)
    }
  })
})
