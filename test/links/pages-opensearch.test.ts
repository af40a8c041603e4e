import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import {
  HTMX,
  NAVIGATION,
  insertLinks,
  makeLink,
  pageUser,
  startLinks,
  startPages,
  visitorAt,
} from '../helpers/links.ts'
import type { Visitor } from '../helpers/links.ts'

const [, postgres] = backends
const DESCRIPTION = '/-/opensearch.xml'

function go(who: Visitor, q: string): ReturnType<Visitor['get']> {
  return who.get(`/-/go?${new URLSearchParams({ q }).toString()}`, NAVIGATION)
}

/** The names that are suggested for a text, with what else the answer says. */
async function suggested(who: Visitor, q: string) {
  const answer = await who.get(`/-/suggest?${new URLSearchParams({ q }).toString()}`)
  const [text, names, titles, urls] = answer.json<[string, string[], string[], string[]]>()
  return { answer, text, names, titles, urls }
}

/** What a browser sends for a page of another site that loads one of ours unseen. */
const FOREIGN = { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'image' }

/** What a field offers, unescaped as far as these tests need it. */
async function offered(who: Visitor, path: string): Promise<readonly string[]> {
  const { text } = await who.get(path, HTMX)
  return [...text.matchAll(/<option value="([^"]*)"/g)].map(([, value = '']) => value)
}

const links = await startPages(t, postgres)
const ann = await pageUser(links, 'ann')
const bob = await pageUser(links, 'bob')
const eve = await pageUser(links, 'eve', { admin: true })
const nobody = visitorAt(links.base, '')
await makeLink(ann, 'docs', { title: 'The "docs" <b>', append_path: true, tags: ['handbook'] })
await makeLink(ann, 'docs-hidden', { visibility: 'private' })
const shared = await makeLink(ann, 'docs-secure', { visibility: 'secure' })
await ann.api('POST', `/links/${shared.id}/shares`, { email: bob.email })

await t.test('leads to the link, with its path', async (t) => {
  for (const [q, location] of [
    ['docs', '/docs'],
    [' docs ', '/docs'],
    ['/docs', '/docs'],
    ['DOCS', '/DOCS'],
    ['docs/a b', '/docs/a%20b'],
    ['docs/a/b', '/docs/a/b'],
    ['docs/ä?x=1#y', '/docs/%C3%A4%3Fx%3D1%23y'],
    ['docs+', '/docs%2B'],
    ['docs-hidden', '/docs-hidden'],
  ] as const) {
    for (const who of [ann, nobody]) {
      const answer = await go(who, q)
      t.match(answer, { status: 302, headers: { location, 'cache-control': 'no-store' } }, q)
    }
  }
  const target = await nobody.get((await go(nobody, 'docs/a b')).headers.location ?? '')
  t.equal(target.headers.location, 'https://docs.test/a%20b', 'to where the link leads')
  const preview = await nobody.get((await go(nobody, 'docs+')).headers.location ?? '')
  t.match(preview, { status: 200, text: /https:\/\/docs\.test\// })
  t.match(await go(ann, ''), { status: 302, headers: { location: '/-/' } })
  t.match(await ann.get('/-/go'), { status: 302, headers: { location: '/-/' } })
})

await t.test('the keyword in front is left out', async (t) => {
  const keyword = '127.0.0.1'
  t.match(await go(ann, `${keyword}/docs/x`), { headers: { location: '/docs/x' } })
  t.match(await go(ann, `${keyword}/none`), { status: 200 })
  t.match(await go(ann, 'other/docs'), { status: 200 })
})

await t.test('never away from here', async (t) => {
  for (const q of [
    '//evil.test',
    'https://evil.test/',
    '\\\\evil.test',
    'docs/../..//evil.test',
  ]) {
    const { status, headers } = await go(ann, q)
    if (status !== 302) t.equal(status, 200, q)
    else t.equal(new URL(headers.location ?? '', links.base).origin, links.base, q)
  }
})

await t.test('else to what may have been meant', async (t) => {
  const page = await go(ann, 'dosc/a b')
  t.match(page, { status: 200, text: /<!doctype html>[\s\S]*No link is named “dosc”/ })
  t.match(page.text, 'href="/docs/a%20b"', 'with the path')
  t.match(page.text, /name="slug" value="dosc"/, 'or to a new one')
  t.match((await go(ann, 'handbook')).text, /Links with “handbook”[\s\S]*href="\/docs"/)
  t.match((await go(ann, 'nothing-like-it')).text, 'No similar links')
  const hostile = await go(ann, '"><img src=x onerror=alert(1)>/<i>')
  t.equal(hostile.status, 200)
  t.notMatch(hostile.text, /<img src=x|<i>/)
  t.notMatch(hostile.text, 'value="&quot;', 'no link can have this name')
  for (const q of ['\0', ' \0/']) {
    t.match(await go(ann, q), { status: 302, headers: { location: '/-/' } }, JSON.stringify(q))
  }
  const cut = await go(ann, 'no\0ne')
  t.match(cut, { status: 200, text: 'No link is named “none”' })
  t.notMatch(cut.text, '\0')
  for (const q of ['a\0b', 'x'.repeat(5_000), '%', '\u{1f600}']) {
    t.equal((await go(ann, q)).status, 200, JSON.stringify(q.slice(0, 9)))
  }
})

await t.test('only what the visitor may see is suggested', async (t) => {
  for (const [who, names] of [
    [ann, ['docs', 'docs-hidden', 'docs-secure']],
    [bob, ['docs', 'docs-secure']],
    [eve, ['docs', 'docs-hidden', 'docs-secure']],
    [nobody, ['docs']],
  ] as const) {
    const found = await suggested(who, 'doc')
    t.same([found.text, found.names], ['doc', names])
    t.match(found.answer, {
      status: 200,
      headers: { 'content-type': 'application/x-suggestions+json', 'cache-control': 'no-store' },
    })
    const page = await go(who, 'doc')
    const named = [...page.text.matchAll(/href="\/(docs[a-z-]*)"/g)].map(([, slug]) => slug)
    t.same(named, names, 'nor shown on the page')
    const unseen = { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'iframe' }
    const loaded = await who.get('/-/go?q=doc', unseen)
    t.notMatch(loaded.text, /docs-(hidden|secure)/, 'and by a page of another site for nobody')
    const path = '/-/suggest?q=doc'
    t.same((await who.get(path, unseen)).json<[string, string[]]>()[1], ['docs'])
    const asked = { 'sec-fetch-site': 'none', 'sec-fetch-dest': 'empty' }
    t.same((await who.get(path, asked)).json<[string, string[]]>()[1], names, 'as browsers ask')
    const words = await go(who, 'secure docs')
    t.equal(words.text.includes('docs-secure'), names.length > 1, 'nor found by its words')
  }
})

await t.test('what others keep to themselves takes no place among suggestions', async (t) => {
  const plans = Array.from({ length: 60 }, (_, at) => `plan-${at + 10}`)
  const fields = { owners: [ann.email], visibility: 'private' }
  await insertLinks(
    links,
    postgres,
    plans.map((slug) => ({ slug, ...fields })),
  )
  await makeLink(ann, 'plan-open')
  await makeLink(bob, 'plan-own', { visibility: 'private' })
  for (const [who, names] of [
    [bob, ['plan-own', 'plan-open']],
    [nobody, ['plan-open']],
  ] as const) {
    t.same((await suggested(who, 'plan')).names, names)
  }
  t.equal((await suggested(ann, 'plan')).names.length, 5)
  t.equal((await suggested(eve, 'plan')).names.length, 5)
})

await t.test('a suggestion has its title, its address and the path that was typed', async (t) => {
  const { text, names, titles, urls } = await suggested(ann, 'docs/a b')
  t.equal(text, 'docs/a b')
  t.equal(names[0], 'docs/a b')
  t.equal(titles[0], 'The "docs" <b>')
  t.equal(urls[0], `${links.base}/docs/a%20b`)
  t.same([names.length, titles.length], [urls.length, urls.length])
  for (const q of ['', 'd', '\0', '</script>', '"']) {
    const { text: echoed, names: none } = await suggested(ann, q)
    t.same([echoed, none], [q, []], JSON.stringify(q))
  }
})

await t.test('the description names addresses of this place', async (t) => {
  for (const who of [ann, nobody]) {
    const { status, headers, text } = await who.get(DESCRIPTION)
    t.equal(status, 200)
    t.equal(headers['content-type'], 'application/opensearchdescription+xml')
    t.match(text, `template="${links.base}/-/go?q={searchTerms}"`)
    t.match(text, `template="${links.base}/-/suggest?q={searchTerms}"`)
  }
  for (const [who, path] of [
    [ann, '/-/'],
    [ann, '/-/tags'],
    [ann, '/-/help'],
    [nobody, '/-/'],
    [nobody, '/no-such-link'],
    [nobody, '/docs+'],
  ] as const) {
    const { text } = await who.get(path, NAVIGATION)
    t.match(text, /<link\s+rel="search"\s[^>]*href="\/-\/opensearch\.xml"/, path)
  }
})

await t.test('reading only, and only under names of this place', async (t) => {
  for (const path of [DESCRIPTION, '/-/go?q=docs', '/-/suggest?q=docs']) {
    t.match(await ann.post(path), { status: 405, headers: { allow: 'GET, HEAD' } }, path)
    t.match(await ann.get(path, { host: 'evil.test' }), { status: 403 }, path)
    if (path === DESCRIPTION) continue
    const twice = await ann.get(`${path}&q=other`)
    t.match(twice.json(), { error: 'q may be given once.', code: 'BAD_REQUEST' }, path)
  }
})

await t.test('addresses come from the configuration', async (t) => {
  const env = { LINKS_BASE_URL: 'https://go.example.com', LINKS_SHORT_KEYWORD: 'to' }
  const { base } = await startLinks(t, postgres, { ...(await postgres.env(t)), ...env })
  const { text } = await request(base + DESCRIPTION)
  t.match(text, 'template="https://go.example.com/-/go?q={searchTerms}"')
  t.match(text, 'Short links of to:')
  t.notMatch(text, '127.0.0.1')
  const help = await request(`${base}/-/help`)
  t.match(help.text, 'https://go.example.com/-/go?q=%s')
  t.match(help.text, '<code>to docs</code>')
  t.notMatch(help.text, '127.0.0.1')
})

await t.test('help is for who is signed in', async (t) => {
  const page = await visitorAt(links.base, '').get('/-/help', NAVIGATION)
  t.match(page, { status: 403, text: /You are not signed in/ })
  t.match(await visitorAt(links.base, 'ann@example.com').get('/-/help'), { status: 200 })
})

await t.test('fields complete what is typed', async (t: Test) => {
  const links = await startPages(t, postgres)
  const ann = await pageUser(links, 'ann')
  const bob = await pageUser(links, 'bob')
  const cleo = await pageUser(links, 'cleo')
  const eve = await pageUser(links, 'eve', { admin: true })
  await pageUser(links, 'ed')

  const { id: own } = await makeLink(ann, 'own', { tags: ['wiki', 'work'] })
  await makeLink(bob, 'open', { tags: ['well-known'] })
  const { id: hidden } = await makeLink(bob, 'hidden', {
    visibility: 'secure',
    tags: ['w-secret'],
  })

  await t.test('tags that the visitor may see, after those that were typed', async (t) => {
    const tags = (who: Visitor, typed: string) =>
      offered(who, `/-/complete/tags?${new URLSearchParams({ tags: typed }).toString()}`)
    t.same(await tags(ann, 'w'), ['well-known', 'wiki', 'work'])
    t.same(await tags(ann, ''), ['well-known', 'wiki', 'work'])
    t.same(await tags(ann, 'a b, WI'), ['a b, wiki'])
    t.same(await tags(ann, 'wiki, w'), ['wiki, well-known', 'wiki, work'], 'each once')
    t.same(await tags(ann, 'well_k'), ['well-known'])
    t.same(await tags(bob, 'w-'), ['w-secret'], 'of a link of one’s own')
    t.same(await tags(eve, 'w-'), ['w-secret'])
    for (const none of ['ä', '%', '"><b>', '\0', 'x'.repeat(3_000)]) {
      t.same(await tags(ann, none), [], none.slice(0, 10))
    }
    t.match((await ann.get('/-/new')).text, /list="link-tags-list"[^]*<option value="wiki"/)
    t.match((await ann.get(`/-/links/${own}/edit`)).text, '<option value="wiki, work"')
  })

  await t.test('people: all for admins, else those of the links that one may read', async (t) => {
    const people = (who: Visitor, typed: string) =>
      offered(who, `/-/complete/people?${new URLSearchParams({ email: typed }).toString()}`)
    t.same(await people(eve, 'E'), ['ed@example.com', 'eve@example.com'])
    t.same(await people(eve, 'b'), ['bob@example.com'])
    t.same(await people(ann, ''), [], 'nobody is known yet')
    t.same(await people(bob, 'ann'), [], 'a public link of somebody tells nothing of them')
    await bob.api('POST', `/links/${hidden}/shares`, { email: ann.email })
    await bob.api('POST', `/links/${hidden}/owners`, { email: cleo.email })
    t.same(await people(ann, ''), ['bob@example.com', 'cleo@example.com'])
    t.same(await people(ann, ' C'), ['cleo@example.com'])
    t.same(await people(bob, ''), ['ann@example.com', 'cleo@example.com'])
    for (const none of ['%', '_nn', '\0', 'x'.repeat(3_000)]) t.same(await people(bob, none), [])
    const page = (await bob.get(`/-/links/${hidden}`)).text
    t.match(page, /list="owners-email-list"[^]*<option value="ann@example\.com"/)
    t.match(page, 'id="shares-email-list"')
    t.notMatch(
      (await ann.get(`/-/links/${hidden}`)).text,
      /datalist/,
      'where nothing may be added',
    )
  })

  await t.test('for those who are signed in', async (t) => {
    const nobody = visitorAt(links.base, '')
    for (const path of ['/-/complete/tags?tags=w', '/-/complete/people?email=a']) {
      t.equal((await nobody.get(path)).status, 403, path)
      t.equal((await ann.get(path, FOREIGN)).status, 403, path)
    }
  })
})
