import { t } from 'tap'
import {
  HTMX,
  NAVIGATION,
  makeLink,
  openLinks,
  openPages,
  suggested,
  visitorAt,
  type Visitor,
} from '../../helpers/links.ts'
import { expectStatus, refuses } from '../../helpers/refusals.ts'
import { allIn } from '../../helpers/http.ts'

const DESCRIPTION = '/-/opensearch.xml'
const HOME = { status: 302, headers: { location: '/-/' } }

const go = (who: Visitor, q: string) =>
  who.get(`/-/go?${new URLSearchParams({ q }).toString()}`, NAVIGATION)

/** The names that a browser's search offers for a text, with what else the answer says. */
async function offers(who: Visitor, q: string, headers = {}) {
  const answer = await who.get(`/-/suggest?${new URLSearchParams({ q }).toString()}`, headers)
  const [text, names, titles, urls] = answer.json<[string, string[], string[], string[]]>()
  return { answer, text, names, titles, urls }
}

const links = await openPages(t)
const ann = await links.user('ann')
const bob = await links.user('bob')
const eve = await links.user('eve', { admin: true })
const nobody = visitorAt(links.base, '')
await makeLink(ann, 'docs', { title: 'The "docs" <b>', append_path: true, tags: ['handbook'] })
await makeLink(ann, 'docs-hidden', { visibility: 'private' })
await makeLink(ann, 'docs-secure', { visibility: 'secure', shares: [bob.email] })

await t.test(
  'the search of browsers leads to the link, with its path, and never away',
  async (t) => {
    for (const [q, location] of [
      [' docs ', '/docs'],
      ['/DOCS', '/DOCS'],
      ['docs/a b', '/docs/a%20b'],
      ['docs/ä?x=1&y=a b#ü', '/docs/%C3%A4?x=1&y=a%20b#%C3%BC'],
      ['docs?x=1', '/docs?x=1'],
      ['docs#part', '/docs#part'],
      ['docs/100%/%C3%A4/"{', '/docs/100%25/%C3%A4/%22%7B'],
      ['docs+', '/docs%2B'],
      ['docs-hidden', '/docs-hidden'],
      ['docs/', '/docs/'],
      ['go/docs', '/docs'],
      ['http://go/docs/a?b=1', '/docs/a?b=1'],
      ['127.0.0.1/docs/x', '/docs/x'],
      [`${links.base}/docs/a?b=1#c`, '/docs/a?b=1#c'],
      [links.base.replace('127.0.0.1', 'LOCALHOST') + '//docs', '/docs'],
    ] as const) {
      for (const who of [ann, nobody]) {
        const answer = await go(who, q)
        t.match(answer, { status: 302, headers: { location, 'cache-control': 'no-store' } }, q)
      }
    }
    for (const q of ['', '\0', ' \0/', 'http://go', `${links.base}/`, 'go/']) {
      t.match(await go(ann, q), HOME, JSON.stringify(q))
    }
    t.match(await ann.get('/-/go'), HOME)
    const port = Number(new URL(links.base).port) + 1
    for (const q of [`http://127.0.0.1:${port}/docs`, 'https://x.test/docs']) {
      await expectStatus(200, go(ann, q), 'another place')
    }
    const evil = ['//evil.test', 'https://evil.test/', '\\\\evil.test', 'docs/../..//evil.test']
    for (const q of evil) {
      const { status, headers } = await go(ann, q)
      if (status !== 302) t.equal(status, 200, q)
      else t.equal(new URL(headers.location ?? '', links.base).origin, links.base, q)
    }
  },
)

await t.test('else to what may have been meant', async (t) => {
  const page = await go(ann, 'dosc/a b')
  t.match(page, { status: 200, text: /<!doctype html>[\s\S]*No link is named “dosc”/ })
  t.match(page.text, 'href="/docs/a%20b"', 'with the path')
  t.match(page.text, 'name="slug" value="dosc"', 'or to a new one')
  t.match((await go(ann, '#handbook')).text, /Links with “#handbook”[^]*href="\/docs"/)
  t.match((await go(ann, 'nothing-like-it')).text, 'No similar links')
  const hostile = await expectStatus(200, go(ann, '"><img src=x onerror=alert(1)>/<i>'))
  t.notMatch(hostile.text, /<img src=x|<i>|value="&quot;/)
  t.match(await go(ann, 'no\0ne'), { status: 200, text: 'No link is named “none”' })
  for (const q of ['x'.repeat(5_000), '%']) await expectStatus(200, go(ann, q))
})

await t.test('only what the visitor may see is suggested', async (t) => {
  for (const [who, names] of [
    [ann, ['docs', 'docs-hidden', 'docs-secure']],
    [bob, ['docs', 'docs-secure']],
    [eve, ['docs', 'docs-hidden', 'docs-secure']],
    [nobody, ['docs']],
  ] as const) {
    const { answer, text, names: offered } = await offers(who, 'doc')
    t.same([text, offered], ['doc', names])
    const type = 'application/x-suggestions+json'
    const headers = { 'content-type': type, 'cache-control': 'no-store' }
    t.match(answer, { status: 200, headers })
    const page = await go(who, 'doc')
    const named = allIn(page.text, /href="\/(docs[a-z-]*)"/g)
    t.same(named, names, 'nor shown on the page')
    const unseen = { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'iframe' }
    const loaded = await who.get('/-/go?q=doc', unseen)
    t.notMatch(loaded.text, /docs-(hidden|secure)/, 'and by a page of another site for nobody')
    t.same((await offers(who, 'doc', unseen)).names, ['docs'])
    const asked = { 'sec-fetch-site': 'none', 'sec-fetch-dest': 'empty' }
    t.same((await offers(who, 'doc', asked)).names, names, 'as browsers ask')
  }
  const owners = [ann.email]
  const plans = Array.from({ length: 60 }, (_, at) => `plan-${at + 10}`)
  await links.store(plans.map((slug) => ({ slug, owners, visibility: 'private' })))
  await makeLink(ann, 'plan-open')
  t.same((await offers(bob, 'plan')).names, ['plan-open'], 'what is hidden takes no place')
  t.equal((await offers(ann, 'plan')).names.length, 5)
})

await t.test('a suggestion has its title, its address and the path that was typed', async (t) => {
  const { text, names, titles, urls } = await offers(ann, 'docs/a b')
  t.same([text, names[0], titles[0]], ['docs/a b', 'docs/a b', 'The "docs" <b>'])
  t.equal(urls[0], `${links.base}/docs/a%20b`)
  t.same([names.length, titles.length], [urls.length, urls.length])
  for (const q of ['', 'd', '\0', '</script>']) {
    const { text: echoed, names: none } = await offers(ann, q)
    t.same([echoed, none], [q, []], JSON.stringify(q))
  }
})

await t.test('the description names addresses of this place', async (t) => {
  for (const who of [ann, nobody]) {
    const described = await who.get(DESCRIPTION)
    const headers = { 'content-type': 'application/opensearchdescription+xml' }
    t.match(described, { status: 200, headers })
    for (const path of ['/-/go', '/-/suggest']) {
      t.match(described.text, `template="${links.base}${path}?q={searchTerms}"`)
    }
  }
  for (const [who, path] of [
    [ann, '/-/'],
    [ann, '/-/help'],
    [nobody, '/no-such-link'],
    [nobody, '/docs+'],
  ] as const) {
    const text = await who.text(path, NAVIGATION)
    t.match(text, /<link\s+rel="search"\s[^>]*href="\/-\/opensearch\.xml"/, path)
  }
  for (const path of [DESCRIPTION, '/-/go?q=docs', '/-/suggest?q=docs']) {
    t.match(await ann.post(path), { status: 405, headers: { allow: 'GET, HEAD' } }, path)
    await expectStatus(403, ann.get(path, { host: 'evil.test' }), path)
    if (path === DESCRIPTION) continue
    const twice = await ann.get(`${path}&q=other`)
    refuses(t, twice, [400, 'BAD_REQUEST', 'q may be given once.'], path)
  }
  const named = { LINKS_BASE_URL: 'https://go.example.com', LINKS_SHORT_KEYWORD: 'to' }
  const { base } = await openLinks(t, { ...links.env, ...named })
  for (const [path, ...parts] of [
    [DESCRIPTION, 'https://go.example.com/-/go?q={searchTerms}', 'Short links of to:'],
    ['/-/help', 'https://go.example.com/-/go?q=%s', '<code>to docs</code>'],
  ] as const) {
    const text = await visitorAt(base, ann.email).text(path)
    for (const part of parts) t.match(text, part)
    t.notMatch(text, '127.0.0.1')
  }
})

await t.test('an unknown name: titles and parts of slugs', async (t) => {
  const go = await makeLink(ann, 'eng-manual', { title: 'Onboarding Größe & more' })
  await makeLink(ann, 'payroll', { title: 'Money onboarding', visibility: 'private' })
  const meant = async (who: Visitor, name: string) =>
    suggested(await who.get(`/${encodeURIComponent(name)}`, { accept: 'text/html' })).join(' ')
  for (const [name, own, others] of [
    ['Manu', 'eng-manual', 'eng-manual'],
    ['manual-eng', 'eng-manual', 'eng-manual'],
    ['größe', 'eng-manual', 'eng-manual'],
    ['onboarding', 'payroll eng-manual', 'eng-manual'],
    ['money', 'payroll', ''],
    ['money-manual', '', ''],
    ['nual', '', ''],
  ] as const) {
    t.equal(await meant(ann, name), own, `${name} by its owner`)
    for (const who of [bob, nobody]) t.equal(await meant(who, name), others, `${name} by others`)
  }
  const other = { url: 'https://x.test/', title: 'Elsewhere' }
  await ann.api('PUT', `/links/${go.id}`, other)
  t.equal(await meant(bob, 'onboarding'), '', 'a title that is gone')
  t.equal(await meant(bob, 'elsewhere'), 'eng-manual')
  await ann.api('PUT', `/links/${go.id}`, { ...other, visibility: 'private' })
  t.equal(await meant(bob, 'elsewhere'), '', 'a link that is no longer public')
})

await t.test('fields complete what is typed', async (t) => {
  const cid = await links.user('cid')
  const dora = await links.user('dora')
  const fay = await links.user('fay')
  const { id: own } = await makeLink(cid, 'own', { tags: ['wiki', 'work'] })
  await makeLink(dora, 'open', { tags: ['well-known'] })
  const secret = { visibility: 'secure', tags: ['w-secret'] }
  const { id: hidden } = await makeLink(dora, 'kept', secret)
  /** What a field offers for a text, behind one another. */
  const offered = async (who: Visitor, field: string, typed: string) => {
    const query = new URLSearchParams({ tags: typed, email: typed })
    const text = await who.text(`/-/complete/${field}?${query.toString()}`, HTMX)
    const values = allIn(text, /<option value="([^"]*)"/g)
    return values.join(' | ')
  }
  for (const [who, typed, tags] of [
    [cid, 'w', 'well-known | wiki | work'],
    [cid, 'a b, WI', 'a b, wiki'],
    // Each once.
    [cid, 'wiki, w', 'wiki, well-known | wiki, work'],
    [cid, 'well_k', 'well-known'],
    // What one may see.
    [dora, 'w-', 'w-secret'],
    [eve, 'w-', 'w-secret'],
    [cid, 'ä', ''],
    [cid, '%', ''],
    [cid, '\0', ''],
    [cid, 'x'.repeat(3_000), ''],
  ] as const) {
    t.equal(await offered(who, 'tags', typed), tags, typed)
  }
  t.match(await cid.text('/-/new'), /list="link-tags-list"[^]*<option value="wiki"/)
  t.match(await cid.text(`/-/links/${own}/edit`), '<option value="wiki, work"')

  // All people for admins, else those of the links that one may read.
  t.equal(await offered(cid, 'people', ''), '', 'nobody is known yet')
  t.equal(await offered(dora, 'people', 'cid'), '', 'of public links nobody is')
  await dora.api('POST', `/links/${hidden}/shares`, { email: cid.email })
  await dora.api('POST', `/links/${hidden}/owners`, { email: fay.email })
  for (const [who, typed, people] of [
    [eve, 'E', 'eve@example.com'],
    [eve, 'd', 'dora@example.com'],
    [cid, '', 'dora@example.com | fay@example.com'],
    [cid, ' F', 'fay@example.com'],
    [dora, '%', ''],
    [dora, '_id', ''],
    [dora, '\0', ''],
  ] as const) {
    t.equal(await offered(who, 'people', typed), people, typed)
  }
  const page = await dora.text(`/-/links/${hidden}`)
  t.match(page, /list="owners-email-list"[^]*<option value="cid@example\.com"/)
  t.match(page, 'id="shares-email-list"')
  t.notMatch(await cid.text(`/-/links/${hidden}`), 'datalist', 'where nothing may be added')
  const foreign = { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'image' }
  for (const path of ['/-/complete/tags?tags=w', '/-/complete/people?email=a']) {
    await expectStatus(403, nobody.get(path), path)
    await expectStatus(403, cid.get(path, foreign), path)
  }
})
