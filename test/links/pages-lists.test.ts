import { t } from 'tap'
import type { Test } from 'tap'
import { backends, onPostgres } from '../helpers/backends.ts'
import {
  HTMX,
  NAVIGATION,
  insertLinks,
  listedAll,
  makeLink,
  nextOf,
  pageUser,
  slugsIn,
  startPages,
  visitorAt,
} from '../helpers/links.ts'
import type { PageUser } from '../helpers/links.ts'
import { run } from '../helpers/postgres.ts'
import { refuses } from '../helpers/refusals.ts'

/** Tags and the counts beside them, as `/-/tags` has them. */
async function counts(who: PageUser): Promise<Readonly<Record<string, number>>> {
  const { text } = await who.get('/-/tags')
  const rows = [...text.matchAll(/data-slug="([^"]*)".*?class="number">\s*(\d+)/gs)]
  return Object.fromEntries(rows.map(([, slug = '', count]) => [slug, Number(count)]))
}

await onPostgres(t, 'lists hold what the visitor may find', async (t: Test, backend) => {
  const links = await startPages(t, backend)
  const ann = await pageUser(links, 'ann')
  const bob = await pageUser(links, 'bob')
  const eve = await pageUser(links, 'eve', { admin: true })
  await makeLink(ann, 'ann-private', { visibility: 'private', tags: ['wiki'] })
  await makeLink(ann, 'ann-public', { title: 'The Größe of it', tags: ['wiki', 'ops'] })
  await makeLink(ann, 'ann-secure', { visibility: 'secure', url: 'https://intern.test/100%_a\\b' })
  const co = await makeLink(bob, 'bob-co', { visibility: 'private' })
  const shared = await makeLink(bob, 'bob-shared', { visibility: 'secure' })
  await makeLink(bob, 'bob-hidden', { visibility: 'private' })
  await makeLink(bob, 'zz-bob-public', { title: 'leads to ann-public' })
  await bob.api('POST', `/links/${co.id}/owners`, { email: ann.email })
  await bob.api('POST', `/links/${shared.id}/shares`, { email: ann.email })

  const own = ['ann-private', 'ann-public', 'ann-secure']
  const cases: readonly (readonly [string, readonly string[]])[] = [
    ['/-/', [...own, 'bob-co', 'bob-shared']],
    ['/-/?role=owner', own],
    ['/-/?role=co-owner', ['bob-co']],
    ['/-/?role=recipient', ['bob-shared']],
    ['/-/?visibility=secure', ['ann-secure', 'bob-shared']],
    ['/-/?visibility=private&role=owner', ['ann-private']],
    ['/-/?tag=wiki', ['ann-private', 'ann-public']],
    ['/-/?tag=Wiki&visibility=public', ['ann-public']],
    ['/-/?tag=wik', []],
    ['/-/all', [...own, 'bob-co', 'bob-shared', 'zz-bob-public']],
    ['/-/all?tag=ops', ['ann-public']],
    // By slug, title, address and tag, whatever the case; what begins with the text comes first.
    ['/-/all?q=ANN-PUB', ['ann-public', 'zz-bob-public']],
    ['/-/all?q=bob', ['bob-co', 'bob-shared', 'zz-bob-public']],
    ['/-/all?q=wiki', ['ann-private', 'ann-public']],
    ['/-/all?q=intern.test', ['ann-secure']],
    ['/-/all?q=gr%C3%B6%C3%9Fe+ops', ['ann-public']],
    ['/-/all?q=ann+secure', ['ann-secure']],
    // Signs of patterns are characters like others.
    ['/-/all?q=%25_a%5Cb', ['ann-secure']],
    ['/-/all?q=%25_a', ['ann-secure']],
    ['/-/all?q=%25', []],
    ['/-/all?q=a_n', []],
  ]
  for (const [path, slugs] of cases) t.same(await listedAll(ann, path), slugs, path)
  t.same(await listedAll(eve, '/-/all?q=bob-'), [
    'bob-co',
    'bob-hidden',
    'bob-shared',
    'zz-bob-public',
  ])
  t.same(await listedAll(eve, '/-/'), [])
  t.notMatch((await ann.get('/-/all')).text, 'bob-hidden')

  await t.test('a link that the visitor may not read leads to its preview', async (t) => {
    const { text } = await ann.get('/-/all?q=zz-bob')
    t.match(text, 'href="/zz-bob-public+"')
    t.match((await ann.get('/-/all?q=bob-co')).text, `href="/-/links/${co.id}"`)
  })

  await t.test('a page of another site may not measure a search', async (t) => {
    for (const path of ['/-/', '/-/all']) {
      for (const dest of ['image', 'iframe', 'script', 'empty']) {
        const from = { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': dest }
        for (const search of ['q=ann', 'tag=ann'])
          t.equal(
            (await ann.get(`${path}?${search}`, from)).status,
            403,
            `${path} ${dest} ${search}`,
          )
      }
      const followed = { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'document' }
      t.equal((await ann.get(`${path}?q=ann`, followed)).status, 200, 'a link that is followed')
      const own = { 'sec-fetch-site': 'same-origin', 'sec-fetch-dest': 'empty' }
      t.equal((await ann.get(`${path}?q=ann`, own)).status, 200, 'a page of ours')
    }
  })

  await t.test('what is no filter and no cursor is refused', async (t) => {
    for (const query of [
      'sort=name',
      'state=gone',
      'visibility=all',
      'role=admin',
      'cursor=x',
      `q=${'a'.repeat(201)}`,
      'q=%00',
    ]) {
      for (const path of ['/-/', '/-/all']) {
        const answer = await ann.get(`${path}?${query}`)
        t.equal(answer.status, 400, `${path}?${query.slice(0, 20)}`)
        t.match(answer.json(), { error: String, code: /^(BAD_REQUEST|INVALID_VISIBILITY)$/ })
      }
    }
  })

  await t.test('htmx gets the fragment of the same URL', async (t) => {
    const [page, fragment] = [await ann.get('/-/'), await ann.get('/-/', HTMX)]
    t.match(page.text, /^<!doctype html>/)
    t.match(fragment.text, /^<div id="links-results"/)
    t.equal(fragment.headers['vary'], 'HX-Request')
    t.same(slugsIn(fragment.text), slugsIn(page.text))
  })

  await t.test('nobody who is not signed in sees anything', async (t) => {
    const nobody = visitorAt(links.base, '')
    for (const path of [
      '/-/',
      '/-/all',
      '/-/new',
      '/-/slug?slug=ann-public',
      `/-/links/${co.id}`,
    ]) {
      const answer = await nobody.get(path, { accept: 'text/html' })
      t.equal(answer.status, 403, path)
      t.match(answer.text, /You are not signed in/)
      t.notMatch(answer.text, /ann-|bob-|is taken|example\.com/)
    }
  })
})

await onPostgres(t, 'pages of a list', async (t: Test, backend) => {
  const links = await startPages(t, backend)
  const ann = await pageUser(links, 'ann')
  const slugs = Array.from({ length: 120 }, (_, at) => `n-${String(at).padStart(3, '0')}`)
  const owners = [ann.email]
  await insertLinks(
    links,
    backend,
    slugs.map((slug) => ({ slug, owners })),
  )
  const first = await ann.get('/-/')
  t.same(slugsIn(first.text), slugs.slice(0, 50))
  t.same(await listedAll(ann, '/-/'), slugs)
  t.same(await listedAll(ann, '/-/all'), slugs)
  t.same(await listedAll(ann, '/-/?q=n-1'), slugs.slice(100))
  t.same(await listedAll(ann, '/-/?q=test'), slugs)
  // A link that comes or goes between two pages moves no other.
  const gone = await ann.api<{ links: { id: string }[] }>('GET', '/links?limit=1')
  await ann.api('DELETE', `/links/${gone.json.links[0]?.id}`)
  const second = await ann.get(nextOf(first.text, 'links') ?? '')
  t.same(slugsIn(second.text), slugs.slice(50, 100))
})

await t.test(
  'a search in many links, of which most stay hidden or do not match',
  async (t: Test) => {
    const links = await startPages(t, backends[1])
    const ann = await pageUser(links, 'ann')
    const bob = await pageUser(links, 'bob')
    const url = links.env['DATABASE_URL'] ?? ''
    await run(
      url,
      `insert into links.links (slug, url, title, description, visibility, append_path, created_at, updated_at)
     select 'm-' || lpad(i::text, 5, '0'), 'https://many.test/' || i, case when i % 5000 = 1 then 'Rare' else '' end,
            '', case when i % 4000 = 0 then 'public' else 'private' end, false, now(), now()
       from generate_series(1, 15000) i`,
    )
    await run(url, `insert into links.link_owners select $1, slug, true from links.links`, [
      ann.id,
    ])
    await run(
      url,
      `insert into links.link_texts
     select slug, lower(concat_ws(' ', slug, title, url)), '{}',
            case visibility when 'public' then array[$1::uuid, links.everybody()] else array[$1::uuid] end
       from links.links`,
      [ann.id],
    )
    const rare = ['m-00001', 'm-05001', 'm-10001']
    t.same(await listedAll(ann, '/-/?q=rare'), rare)
    t.same(await listedAll(ann, '/-/all?q=many.test+rare'), rare)
    t.same(await listedAll(bob, '/-/all'), ['m-04000', 'm-08000', 'm-12000'])
    t.same(await listedAll(bob, '/-/all?q=rare'), [])
    t.same(slugsIn((await ann.get('/-/?q=m-149')).text), range(14_900, 50))
    t.same((await listedAll(ann, '/-/?role=co-owner')).length, 0)
    t.equal(
      (await listedAll(ann, '/-/?q=m-14')).length,
      1_000,
      'those that begin with it, once each',
    )
  },
)

await onPostgres(t, 'tags of what one may see', async (t: Test, backend) => {
  const links = await startPages(t, backend)
  const ann = await pageUser(links, 'ann')
  const bob = await pageUser(links, 'bob')
  const eve = await pageUser(links, 'eve', { admin: true })
  await makeLink(ann, 'open', { tags: ['both', 'public-tag'], title: '<b>"quoted"</b>' })
  await makeLink(ann, 'ann-own', { visibility: 'private', tags: ['both', 'hers'] })
  const shared = await makeLink(ann, 'given', {
    visibility: 'secure',
    tags: ['both', 'given-tag'],
  })
  await ann.api('POST', `/links/${shared.id}/shares`, { email: bob.email })

  await t.test('counts and lists', async (t) => {
    t.same(await counts(ann), { both: 3, 'given-tag': 1, hers: 1, 'public-tag': 1 })
    t.same(await counts(bob), { both: 2, 'given-tag': 1, 'public-tag': 1 })
    t.same(await counts(eve), await counts(ann), 'an admin sees all')
    t.same(slugsIn((await ann.get('/-/tags/both')).text), ['ann-own', 'given', 'open'])
    t.same(slugsIn((await bob.get('/-/tags/both')).text), ['given', 'open'])
    t.same(slugsIn((await eve.get('/-/tags/hers')).text), ['ann-own'])
  })

  await t.test(
    'where a row leads: to its page who may read it, else to its preview',
    async (t) => {
      const { text } = await bob.get('/-/tags/both')
      t.match(text, `href="/-/links/${shared.id}"`)
      t.match(text, 'href="/open+"')
      for (const [who, path] of [
        [ann, '/-/tags/both'],
        [eve, '/-/tags/public-tag'],
      ] as const) {
        const page = await who.get(path)
        const hrefs = [...page.text.matchAll(/href="(\/-\/links\/[^"]+)"/g)].map(
          ([, href]) => href,
        )
        t.ok(hrefs.length > 0)
        for (const href of hrefs) t.equal((await who.get(href ?? '')).status, 200)
      }
      t.match(text, '&lt;b&gt;&quot;quoted&quot;&lt;/b&gt;', 'a title is text')
      t.notMatch(text, '<b>')
    },
  )

  await t.test('a tag of others is like one that does not exist', async (t) => {
    const hidden = '/-/tags/hers'
    const asked = ['/-/tags/no-such-tag', '/-/tags/%3Cscript%3Ealert(1)', '/-/tags/HERS', hidden]
    for (const headers of [NAVIGATION, HTMX, {}]) {
      const answers = await Promise.all(asked.map((path) => bob.get(path, headers)))
      const expected = answers.at(-1)
      for (const [at, answer] of answers.entries()) {
        t.equal(answer.status, 404, String(asked[at]))
        t.ok(expected !== undefined && answer.body.equals(expected.body), 'the same bytes')
        t.same(
          { ...answer.headers, 'x-request-id': '', date: '' },
          { ...expected?.headers, 'x-request-id': '', date: '' },
        )
        t.notMatch(answer.text, /hers|no-such|alert\(1/i, 'nothing of the request')
      }
    }
    const page = await bob.get(hidden, NAVIGATION)
    t.match(page.text, /<!doctype html>[\s\S]*Tag not found\./)
    t.match((await bob.get(hidden)).json(), { error: 'tag not found', code: 'NOT_FOUND' })
    const further = await bob.get(`${hidden}?cursor=${cursor('a')}`)
    t.equal(further.status, 404, 'on a further page too')
  })

  await t.test('a bad limit and a bad cursor', async (t) => {
    for (const query of [
      'limit=0',
      'limit=x',
      'cursor=%00',
      'cursor=WzFd',
      `cursor=${cursor('\0')}`,
    ]) {
      for (const path of ['/-/tags', '/-/tags/both', '/-/tags/hers']) {
        const answer = await bob.get(`${path}?${query}`)
        refuses(t, answer, [400, 'BAD_REQUEST'], `${path}?${query}`)
      }
    }
    t.match(await bob.get('/-/tags?limit=0', NAVIGATION), { status: 400, text: /<!doctype/ })
    t.equal((await bob.post('/-/tags')).status, 405)
    t.equal((await bob.get('/-/tags/a%00b')).status, 404)
    t.equal((await bob.get('/-/tags/%zz')).status, 404)
  })

  await t.test('who is not signed in sees no tag', async (t) => {
    for (const path of ['/-/tags', '/-/tags/both', '/-/tags/none']) {
      const page = await visitorAt(links.base, '').get(path, NAVIGATION)
      t.equal(page.status, 403, path)
      t.match(page.text, /You are not signed in/)
      t.notMatch(page.text, /both|public-tag|href="\/-\/tags/)
    }
  })
})

await onPostgres(t, 'pages of tags', async (t: Test, backend) => {
  const links = await startPages(t, backend)
  const ann = await pageUser(links, 'ann')
  t.match((await ann.get('/-/tags')).text, /No link that you may see has a tag/)
  const tags = Array.from({ length: 60 }, (_, at) => `t-${String(at).padStart(2, '0')}`)
  for (let at = 0; at < 60; at += 20) {
    await makeLink(ann, `with-${at}`, { tags: ['all', ...tags.slice(at, at + 19)] })
    await makeLink(ann, `more-${at}`, { tags: ['all', tags[at + 19]] })
  }
  const all = ['all', ...tags]
  t.same(await listedAll(ann, '/-/tags', 'tags'), all)
  t.same(await listedAll(ann, '/-/tags?limit=7', 'tags'), all)
  const first = await ann.get('/-/tags?limit=7')
  t.match(nextOf(first.text, 'tags'), /limit=7&cursor=/, 'the next page is as long')
  const fragment = await ann.get('/-/tags?limit=7', HTMX)
  t.notMatch(fragment.text, /<!doctype/)
  t.equal(fragment.headers['vary'], 'HX-Request')
  t.same(slugsIn(fragment.text), slugsIn(first.text))
  const six = ['more-0', 'more-20', 'more-40', 'with-0', 'with-20', 'with-40']
  t.same(await listedAll(ann, '/-/tags/all?limit=4'), six)
  t.same(await listedAll(ann, '/-/tags/all?limit=3'), six)
  t.same(await listedAll(ann, '/-/tags/all?limit=2&q=more'), six.slice(0, 3))
})

function range(from: number, length: number): readonly string[] {
  return Array.from({ length }, (_, at) => `m-${String(from + at).padStart(5, '0')}`)
}

function cursor(after: string): string {
  return Buffer.from(JSON.stringify([after, 'x', 0])).toString('base64url')
}
