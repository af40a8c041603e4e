import { join } from 'node:path'
import { t } from 'tap'
import { request } from '../helpers/http.ts'
import {
  BROWSER,
  HTMX,
  NAVIGATION,
  listedAll,
  makeLink,
  nextOf,
  slugsIn,
  openLinks,
  openPages,
  visitorAt,
  type PageUser,
  type Visitor,
} from '../helpers/links.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { startServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'
import { expectStatus } from '../helpers/refusals.ts'

const UNSEEN = { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'image' }

/** The count above a list; undefined when there is none. */
function countIn(text: string) {
  return /<p class="muted count">([^<]*)<\/p>/.exec(text)?.[1]
}

const links = await openPages(t)
const nobody = visitorAt(links.base, '')
const ann = await links.user('ann')
const bob = await links.user('bob')
const eve = await links.user('eve', { admin: true })
const { query } = links

await t.test('before there is a first link', async (t) => {
  const empty = await ann.text('/-/')
  t.match(empty, /Create your first link[^]*<form[^>]*action="\/-\/new"/)
  t.match(empty, /curl -H [^]*\/api\/v1\/links/)
  t.match(empty, /id="start-here"[^>]*hx-get="\/-\/"[^>]*hx-target="#links-results"/)
  t.match(await ann.text('/-/tags'), 'No link that you may see has a tag')
  for (const path of ['/-/?q=none', '/-/?role=owner', '/-/all']) {
    const text = await ann.text(path)
    t.notMatch(text, /start-here|first-link/, path)
    t.equal(countIn(text), undefined, 'no list, no count')
  }
  const { id } = await makeLink(bob, 'early')
  t.match(await ann.text('/-/'), 'start-here', 'a link of somebody else is not the first')
  await bob.api('DELETE', `/links/${id}`)
})

await t.test('lists hold what the visitor may find, and searches understand', async (t) => {
  await query(`update links.users set display_name = 'Bo of Lovelace' where email like 'bob@%'`)
  await makeLink(ann, 'ann-private', { visibility: 'private', tags: ['wiki'] })
  await makeLink(ann, 'ann-public', { title: 'The Größe of it', tags: ['wiki', 'ops'] })
  const secret = { visibility: 'secure', url: 'https://intern.test/100%_a\\b' }
  await makeLink(ann, 'ann-secure', { ...secret, description: 'How we review\ncode' })
  const anns = [ann.email]
  const co = await makeLink(bob, 'bob-co', { visibility: 'private', owners: anns })
  const secure = { visibility: 'secure', tags: ['wiki'], shares: anns }
  await makeLink(bob, 'bob-shared', secure)
  await makeLink(bob, 'bob-hidden', { visibility: 'private', tags: ['hers'] })
  const long = { title: 'leads to <b>ann-public</b>', description: `${'long '.repeat(60)}end` }
  await makeLink(bob, 'zz-bob-public', { ...long, tags: ['open'] })

  const own = ['ann-private', 'ann-public', 'ann-secure']
  const bobs = ['bob-co', 'bob-shared', 'zz-bob-public']
  const host = new URL(links.base).host.toUpperCase()
  for (const [path, slugs] of [
    ['/-/', [...own, 'bob-co', 'bob-shared']],
    ['/-/?role=owner', own],
    ['/-/?role=co-owner', ['bob-co']],
    ['/-/?visibility=private&role=owner', ['ann-private']],
    ['/-/?tag=Wiki&visibility=public', ['ann-public']],
    ['/-/tags/wiki?q=%23ops', ['ann-public']],
    ['/-/all?sort=created&q=bo', ['bob-shared', 'bob-co']],
  ] as const) {
    t.same(await listedAll(ann, path), slugs, path)
  }
  const searched = (who: PageUser, q: string) =>
    listedAll(who, `/-/all?${new URLSearchParams({ q }).toString()}`)
  for (const [q, slugs] of [
    ['', [...own, ...bobs]],
    // By slug, title, address, description and tag, whatever the case; what begins so comes first.
    ['ANN-PUB', ['ann-public', 'zz-bob-public']],
    ['review', ['ann-secure']],
    ['größe ops', ['ann-public']],
    ['#WIKI #ops', ['ann-public']],
    ['#wik', []],
    // Signs of patterns are characters like others.
    ['%_a\\b', ['ann-secure']],
    ['a_n', []],
    // As people write a short link.
    ['127.0.0.1/ann-sec/further', ['ann-secure']],
    [`${host}/bob-co?x=1`, ['bob-co']],
    [`${links.base}/`, [...own, ...bobs]],
    // Owners by address, by name and in plain text; the company's domain is no name of an owner.
    ['owner:bob@example.com #wiki', ['bob-shared']],
    ['owner:nobody', []],
    ['lovelace', bobs],
    ['bob@example.com', bobs],
    ['example.com', []],
    // Under three characters: slugs that begin so. Beside a longer text, a short one may be anywhere.
    ['zz', ['zz-bob-public']],
    ['co', []],
    ['co bob', ['bob-co']],
    // Nothing that the index knows.
    ['b-s', ['bob-shared']],
  ] as const) {
    t.same(await searched(ann, q), slugs, q)
  }
  for (const q of [
    'go/bob-co',
    'http://GO/bob-co#part',
    'https://localhost/bob-co/further',
    `${links.base}//bob-co?x=1`,
    `${host}/bob-co+`,
    'bob-co/',
    '/bob-co',
  ]) {
    t.same(await searched(ann, q), ['bob-co'], q)
    const palette = await ann.text(`/-/palette?${new URLSearchParams({ q }).toString()}`, HTMX)
    t.match(palette, `href="/-/links/${co.id}"`, q)
  }
  t.same(await searched(eve, 'bob-'), ['bob-co', 'bob-hidden', 'bob-shared', 'zz-bob-public'])
  t.same(await listedAll(eve, '/-/'), [])
  t.notMatch(await ann.text('/-/all'), 'bob-hidden')

  const text = await ann.text('/-/all?q=zz-bob')
  for (const part of [
    // One that may not be read leads to its preview, its address follows the link.
    'class="row-link" href="/zz-bob-public+"',
    'href="/zz-bob-public" rel="noreferrer"',
    'leads to &lt;b&gt;ann-public&lt;/b&gt;',
    '>zz-bob-public.test<',
    'class="owner"><bdi>Bo of Lovelace<',
    'data-copy="short-zz-bob-public"',
  ]) {
    t.match(text, part)
  }
  t.notMatch(text, 'long end', 'a description is on the page of its link')
  t.match(await ann.text('/-/all?q=bob-co'), `href="/-/links/${co.id}"`)

  const fragment = await ann.get('/-/', HTMX)
  t.match(fragment, { text: /^<div id="links-results"/, headers: { vary: 'HX-Request' } })
  t.same(slugsIn(fragment.text), slugsIn(await ann.text('/-/')))

  for (const path of ['', 'all', 'new', 'tags', 'slug?slug=ann-public', 'help']) {
    const answer = await nobody.get(`/-/${path}`, { accept: 'text/html' })
    t.match(answer, { status: 403, text: 'You are not signed in' }, path)
    t.notMatch(answer.text, /ann-|bob-|is taken|example\.com|href="\/-\/tags/)
  }
})

await t.test('what is no filter is refused; no other site measures a search', async (t) => {
  for (const path of ['/-/', '/-/all', '/-/tags/wiki']) {
    const own = path.includes('tags') ? ['limit=0'] : ['sort=name', 'visibility=all']
    for (const asked of [...own, 'cursor=x', 'q=%00']) {
      const answer = await expectStatus(400, ann.get(`${path}?${asked}`), `${path}?${asked}`)
      t.match(answer.json(), { error: String, code: /^(BAD_REQUEST|INVALID_VISIBILITY)$/ })
    }
    for (const dest of ['image', 'iframe', 'script', 'empty']) {
      const unseen = { ...UNSEEN, 'sec-fetch-dest': dest }
      await expectStatus(403, ann.get(`${path}?q=ann`, unseen), `${path} ${dest}`)
    }
    const followed = { ...UNSEEN, 'sec-fetch-dest': 'document' }
    await expectStatus(200, ann.get(`${path}?q=ann`, followed), 'a link that is followed')
  }
  await expectStatus(400, ann.get('/-/?role=admin'))
  await expectStatus(403, ann.get('/-/?tag=ann', UNSEEN))
})

await t.test('tags of what one may see', async (t) => {
  const counts = async (who: PageUser) => {
    const text = await who.text('/-/tags')
    const rows = [...text.matchAll(/data-slug="([^"]*)".*?class="number">\s*(\d+)/gs)]
    return rows.map(([, slug, count]) => `${slug} ${count}`).join(' ')
  }
  t.equal(await counts(ann), 'open 1 ops 1 wiki 3')
  t.equal(await counts(bob), 'hers 1 open 1 ops 1 wiki 2')
  t.equal(await counts(eve), 'hers 1 open 1 ops 1 wiki 3', 'an admin sees all')
  t.same(await listedAll(ann, '/-/tags?limit=2', 'tags'), ['open', 'ops', 'wiki'])
  t.same(await listedAll(ann, '/-/tags/wiki?limit=1'), ['ann-private', 'ann-public', 'bob-shared'])

  const asked = ['/-/tags/none', '/-/tags/%3Cscript%3Ealert(1)', '/-/tags/HERS', '/-/tags/hers']
  for (const headers of [NAVIGATION, HTMX, {}]) {
    const answers = await Promise.all(asked.map((path) => ann.get(path, headers)))
    const common = { 'x-request-id': '', date: '' }
    const said = answers.map((one) => [one.status, one.text, { ...one.headers, ...common }])
    t.match(said[0], [404, /tag not found/i])
    for (const one of said) t.same(one, said[0], 'the same for one of others as for none')
  }
  await expectStatus(405, ann.post('/-/tags'))
  await expectStatus(404, ann.get('/-/tags/a%00b'))
})

await t.test('orders and counts of lists', async (t) => {
  const cat = await links.user('cat')
  await makeLink(cat, 'aa')
  const { id } = await makeLink(cat, 'bb')
  for (const slug of ['cc', 'dd']) await makeLink(cat, slug)
  await makeLink(cat, 'ee', { visibility: 'private' })
  await cat.api('PUT', `/links/${id}`, { url: 'https://changed.test/' })
  const human = { 'user-agent': BROWSER }
  for (const slug of ['cc', 'cc', 'cc', 'aa', 'ee', 'ee']) await bob.get(`/${slug}`, human)
  // Looking where a link leads is no click.
  for (let at = 0; at < 4; at++) await bob.get('/dd+', human)
  const sums = `select (select sum(clicks) from links.links) || ' ' || (select sum(clicks) from links.clicks)`
  await until(async () => (await links.value(sums)) === '6 10', 'clicks in the database')

  const byUse = ['cc', 'ee', 'aa', 'bb', 'dd']
  t.same(await listedAll(cat, '/-/'), byUse, 'by use, unless asked')
  t.same(await listedAll(cat, '/-/?sort=changed'), ['bb', 'ee', 'dd', 'cc', 'aa'])
  const others = await listedAll(bob, '/-/all?sort=clicks')
  t.same(others.slice(0, 2), ['cc', 'aa'], 'only what the visitor may see')
  t.match(await cat.text('/-/?sort=created'), '<time datetime=')
  const own = await cat.text('/-/')
  t.match(own, /data-slug="cc"[^]*?class="number">3</)
  t.match(own, 'class="muted">you<')
  t.match(own, 'href="/-/usage#unused-title">Unused for 90 days<')
  const every = await eve.text('/-/all')
  t.match(every, 'href="/-/admin/usage#unused-title"')
  for (const text of [own, every]) {
    t.match(text, /data-slug="cc"[^]*?aria-label="3 visits in 30 days"/)
  }
  const foreign = await bob.text('/-/all')
  t.notMatch(foreign, /in 30 days|Unused for/, 'statistics are for owners and admins')

  const owners = [cat.email]
  const many = Array.from({ length: 1_100 }, (_, at) => `n-${String(at).padStart(4, '0')}`)
  const count = async (who: Visitor, path: string) => countIn(await who.text(path, HTMX))
  for (const [who, path, counted] of [
    [cat, '/-/', '5 links'],
    [cat, '/-/?visibility=private', '1 link'],
    [cat, '/-/all?q=changed.test', '1 link'],
    [eve, '/-/all', '12 links'],
    // Only what the visitor may see.
    [cat, '/-/all', '7 links'],
  ] as const) {
    t.equal(await count(who, path), counted, path)
  }
  await links.store(many.map((slug) => ({ slug, owners })))
  const text = await cat.text('/-/')
  t.equal(countIn(text), 'More than 1,000 links')
  const next = nextOf(text, 'links') ?? ''
  t.equal(countIn(await cat.text(next)), undefined)
  t.equal(await count(cat, '/-/all?q=n-'), undefined, 'a search is not counted')
  // Equal numbers of clicks stand in the order of slugs, also over pages.
  t.same(await listedAll(cat, '/-/all?sort=clicks&q=n-00'), many.slice(0, 100))
  const [, cursor] = next.split('cursor=')
  await expectStatus(400, cat.get(`/-/?sort=created&cursor=${cursor}`), 'of another order')
})

await t.test(
  'the operator finds links of others; short links are shown as they work',
  async (t) => {
    const direct = await openLinks(t)
    const operator = visitorAt(direct.base, '')
    t.notMatch(await operator.text('/-/'), 'See the links of')
    await direct.user('cyd')
    await makeLink(await direct.user('dan'), 'dans')
    const text = await operator.text('/-/')
    t.match(text, 'operator@localhost, who has no link')
    t.match(text, 'href="/-/all?q=owner%3Adan%40example.com"')
    t.notMatch(text, 'links of <bdi>cyd@', 'who has no link either')

    const { host } = new URL(direct.base)
    t.match(await operator.text('/-/new'), `${host}/</span>`, 'with the port')
    t.match(await operator.text('/-/slug?slug=docs'), `${host}/docs is free.`)
    for (const [LINKS_BASE_URL, shown] of [
      ['https://go.example.com', '>go/docs is free.'],
      ['https://go.example.com:8443', '>go.example.com:8443/docs is free.'],
    ] as const) {
      const named = await openLinks(t, { ...direct.env, LINKS_BASE_URL })
      t.match(await visitorAt(named.base, '').text('/-/slug?slug=docs'), shown)
    }

    // Behind a unix socket nothing is offered that does not work.
    const socketPath = join(await temporaryFolder(t), 'links.sock')
    const env = { ...direct.env, LINKS_ADDR: `unix:${socketPath}` }
    await startServer(t, { services: ['links'], env })
    const { id } = await makeLink(await direct.user('eva'), 'docs')
    for (const [path, part] of [
      [`/-/links/${id}`, 'Set <code>LINKS_BASE_URL<'],
      ['/-/all', 'data-slug="docs"'],
    ] as const) {
      const page = await request('http://localhost', { socketPath, path })
      t.match(page, { status: 200, text: part })
      t.notMatch(page.text, /unix:|data-copy|qr\.svg/, path)
    }
  },
)
