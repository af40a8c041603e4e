import { t } from 'tap'
import { RESERVED_SLUGS } from '../../../services/links/names/links/slug.ts'
import { rawExchange, request } from '../../helpers/http.ts'
import { expectStatus, refuses } from '../../helpers/refusals.ts'
import { leadsTo, makeLink, openLinks, suggested, visit } from '../../helpers/links.ts'

/** A link's url, whether it takes what no place takes, and where visits lead: after the slug → to. */
type Case = readonly [
  url: string,
  append: boolean,
  visits: Readonly<Record<string, string | number>>,
]

const cases: Readonly<Record<string, Case>> = {
  'nothing further': [
    'https://x.test/a?b=1#c',
    false,
    { '': 'https://x.test/a?b=1#c', '/': 'https://x.test/a?b=1#c', '/more': 404, '//': 404 },
  ],
  append: [
    'https://x.test/a/?b=1#c',
    true,
    {
      '/more': 'https://x.test/a/more?b=1#c',
      '/': 'https://x.test/a/?b=1#c',
    },
  ],
  'append keeps the segments apart': [
    'https://x.test/a',
    true,
    {
      '/m%2Fn': 'https://x.test/a/m%2Fn',
      '/..%2f..%2Fsecret': 'https://x.test/a/..%2F..%2Fsecret',
      '/%252e%252e/x': 'https://x.test/a/%252e%252e/x',
      '/m%3Fn%23o': 'https://x.test/a/m%3Fn%23o',
      '/...': 'https://x.test/a/...',
      '/@me/a:b,c;v=1/$x+y/': 'https://x.test/a/@me/a:b,c;v=1/$x+y/',
      '/..;/x': 404,
      '/%2e;x=1/x': 404,
      '/..a;x/.a;/x': 'https://x.test/a/..a;x/.a;/x',
      '/a%20b%0D%0ASet-Cookie:%20x': 'https://x.test/a/a%20b%0D%0ASet-Cookie:%20x',
      '/..': 404,
      '/a/%2e%2E/b': 404,
    },
  ],
  'a place': [
    'https://x.test/issues/{1}',
    false,
    {
      '': 'https://x.test/issues/',
      '/42': 'https://x.test/issues/42',
      '/42/': 'https://x.test/issues/42',
      '/42/43': 404,
      '/a%2Fb': 'https://x.test/issues/a%2Fb',
      '/$&': 'https://x.test/issues/%24%26',
    },
  ],
  'places in any order, one twice': [
    'https://x.test/{2}/{1}?again={2}#{1}',
    false,
    {
      '/a/b': 'https://x.test/b/a?again=b#a',
      '/a': 'https://x.test//a?again=#a',
      '/a&b/c=d': 'https://x.test/c%3Dd/a%26b?again=c%3Dd#a%26b',
    },
  ],
  'a place, and append': [
    'https://x.test/{1}/wiki',
    true,
    {
      '/p': 'https://x.test/p/wiki',
      '/p/q/r': 'https://x.test/p/wiki/q/r',
    },
  ],
  'the rest': [
    'https://x.test/tree/{*}',
    false,
    {
      '/a/b/': 'https://x.test/tree/a/b/',
      '/a/b%2Fc/d': 'https://x.test/tree/a/b%2Fc/d',
    },
  ],
  'a place and the rest': [
    'https://x.test/{1}/blob/{*}?full={*}',
    true,
    {
      '/r/a/b': 'https://x.test/r/blob/a/b?full=a/b',
    },
  ],
  'defaults of segments that are missing': [
    'https://x.test/{1}/tree/{2:main}/{*:a/b?c=1}',
    false,
    {
      '/r': 'https://x.test/r/tree/main/a/b?c=1',
      '/r/dev': 'https://x.test/r/tree/dev/a/b?c=1',
      '/r//x': 'https://x.test/r/tree/main/x',
      '/r/dev/%7B1%7D/y': 'https://x.test/r/tree/dev/%7B1%7D/y',
      '/r?c=2': 'https://x.test/r/tree/main/a/b?c=2',
    },
  ],
  'a default that is a whole address': [
    'https://x.test/search?q={*:https://y.test/home?a=1#top}&hl=en',
    false,
    {
      '': 'https://y.test/home?a=1#top',
      '/': 'https://y.test/home?a=1#top',
      '?b=2': 'https://y.test/home?a=1&b=2#top',
      '/https:%2F%2Fz.test': 'https://x.test/search?q=https%3A%2F%2Fz.test&hl=en',
    },
  ],
  'a search': [
    'https://x.test/find?q={*}&hl=en',
    false,
    {
      '/a%20b/c': 'https://x.test/find?q=a%20b/c&hl=en',
      '/a+b': 'https://x.test/find?q=a%2Bb&hl=en',
      '/x?hl=de': 'https://x.test/find?q=x&hl=de',
    },
  ],
  'queries are merged': [
    'https://x.test/a?keep=1&both=old&both=older&flag&sp=a%20b#f',
    false,
    {
      '?new=2': 'https://x.test/a?keep=1&both=old&both=older&flag&sp=a%20b&new=2#f',
      '?both=n1&both=n2': 'https://x.test/a?keep=1&flag&sp=a%20b&both=n1&both=n2#f',
      '?flag': 'https://x.test/a?keep=1&both=old&both=older&sp=a%20b&flag#f',
      '?%zz=%': 'https://x.test/a?keep=1&both=old&both=older&flag&sp=a%20b&%zz=%#f',
    },
  ],
  'other letters': [
    'https://bücher.test:8443/straße/日本?ä=ö#ü',
    true,
    {
      '': 'https://xn--bcher-kva.test:8443/stra%C3%9Fe/%E6%97%A5%E6%9C%AC?%C3%A4=%C3%B6#%C3%BC',
      '/%C3%A9?x=1':
        'https://xn--bcher-kva.test:8443/stra%C3%9Fe/%E6%97%A5%E6%9C%AC/%C3%A9?%C3%A4=%C3%B6&x=1#%C3%BC',
    },
  ],
}

const NOWHERE = {
  status: 404,
  headers: { 'cache-control': 'no-store', 'x-robots-tag': 'noindex' },
}

const links = await openLinks(t)
const { base, user } = links
const ann = await user('ann')
await makeLink(ann, 'docs', { url: 'https://docs.test/a' })

await t.test('a slug in every spelling leads to its link', async (t) => {
  await makeLink(ann, 'team-docs', { url: 'https://docs.test/team?x=1#top' })
  await makeLink(ann, 'team', { url: 'https://team.test/' })
  await makeLink(ann, 'a1', { url: 'http://intranet' })
  const spellings =
    'team-docs Team_Docs TEAM-DOCS team-docs/ team-docs. team-docs!? team-docs) team-docs- team%2Ddocs %54eam-docs'
  for (const spelling of [
    ...spellings.split(' '),
    'team-docs%E2%80%A6',
    // Signs that nobody sees or means: a soft hyphen, a space without width, another dash, a second slash.
    'te%C2%ADam-d%E2%80%8Bocs',
    'team%E2%80%93docs',
    '/team-docs',
  ]) {
    t.equal(await leadsTo(base, `/${spelling}`), 'https://docs.test/team?x=1#top', spelling)
  }
  t.equal(await leadsTo(base, '/team'), 'https://team.test/')
  t.equal(await leadsTo(base, '/A1'), 'http://intranet', 'as its owner wrote it')
  for (const other of ['-team-docs', '.team-docs', 'team-doc', 'team%20docs']) {
    t.equal(await leadsTo(base, `/${other}`), 404, `"${other}" is another slug`)
  }
})

await t.test('a redirect says what it must and nothing more', async (t) => {
  for (const method of ['GET', 'HEAD']) {
    const { headers } = await expectStatus(302, request(`${base}/docs`, { method }))
    t.match(headers, {
      location: 'https://docs.test/a',
      'cache-control': 'no-store',
      'x-robots-tag': 'noindex',
      'x-content-type-options': 'nosniff',
      'content-length': '0',
    })
    t.notOk(headers['set-cookie'] ?? headers['content-type'])
  }
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
    const { status, headers } = await request(`${base}/docs`, { method })
    t.same({ status, allow: headers.allow }, { status: 405, allow: 'GET, HEAD' }, method)
    t.notOk(headers.location)
  }
  const port = Number(new URL(base).port)
  for (const [head, location] of [
    // An absolute address, and a request without a Host.
    ['GET http://go/docs?q=1 HTTP/1.1\r\nHost: go\r\nConnection: close\r\n\r\n', '/a?q=1'],
    ['GET /docs HTTP/1.0\r\n\r\n', '/a'],
  ] as const) {
    const { text } = await rawExchange(port, head)
    t.match(text, 'HTTP/1.1 302 ')
    t.match(text, `\r\nlocation: https://docs.test${location}\r\n`)
  }
})

await t.test('robots are told to stay away', async (t) => {
  const robots = await request(`${base}/robots.txt`, { headers: { host: 'go.example' } })
  t.match(robots, { status: 200, headers: { 'content-type': 'text/plain; charset=utf-8' } })
  t.equal(robots.text, 'User-agent: *\nDisallow: /\n')
})

await t.test('an unknown slug: what was meant, and a way to make it', async (t) => {
  for (const slug of ['standup', 'standup-notes', 'payroll', 'zz-unlike']) {
    await makeLink(ann, slug, { title: slug === 'standup' ? 'Daily <b>standup</b>' : '' })
  }
  for (const mistake of ['standp', 'stanndup', 'stnadup', 'STAMDUP']) {
    const page = await visit(base, `/${mistake}`)
    t.match(page, NOWHERE, mistake)
    t.equal(suggested(page)[0], 'standup', mistake)
    t.notOk(suggested(page).includes('zz-unlike'))
  }
  const page = await visit(base, '/standu')
  t.same(suggested(page), ['standup', 'standup-notes'], 'one letter less, then what begins so')
  t.match(page.text, 'Daily &lt;b&gt;standup&lt;/b&gt;')
  t.match(page.text, 'name="slug" value="standu"')
  t.match((await visit(base, '/New_Thing.')).text, 'name="slug" value="new-thing"', 'in good form')
  const hostile = await visit(base, '/%3Cscript%3Ealert(1)%3C%2Fscript%3E%22%27')
  t.match(hostile, NOWHERE)
  t.match(hostile.text, '&lt;script&gt;alert(1)&lt;/script&gt;')
  t.notMatch(hostile.text, '<script>alert')
  t.match(await visit(base, `/${'long-'.repeat(800)}x`), NOWHERE, 'a long one')
})

await t.test('a link without further path says so; a program gets JSON', async (t) => {
  t.notMatch((await visit(base, '/docs/further')).text, 'action="/-/new"')
  for (const [path, error] of [
    ['/dosc', 'link not found'],
    ['/docs/further', 'the link “docs” takes no further path'],
  ] as const) {
    const answer = await visit(base, path, { headers: { accept: 'application/json' } })
    t.match(answer, NOWHERE)
    refuses(t, answer, [404, 'NOT_FOUND', error])
  }
})

await t.test('paths that are none', async (t) => {
  await makeLink(ann, 'deep', { url: 'https://deep.test/x', append_path: true })
  for (const segment of ['%zz', '%e9', '%C0%AF', '%00', 'do%00cs', '%ED%A0%80', '%2', '..', '.']) {
    t.match(await visit(base, `/${segment}`), NOWHERE, segment)
    t.match(await visit(base, `/deep/${segment}`), NOWHERE, `deep/${segment}`)
  }
  for (const path of ['/deep/a/../b', '/deep/%2e%2e/b', '/deep/.%2E', '/../deep', '/%2e/deep']) {
    t.match(await visit(base, path), NOWHERE, path)
  }
  await expectStatus(302, visit(base, '//deep'), 'a doubled slash is one')
  t.match(await visit(base, '/+'), NOWHERE)
  t.match(await visit(base, '/%2B'), NOWHERE)
})

await t.test('further segments and queries', async (t) => {
  let number = 0
  for (const [name, [url, append_path, visits]] of Object.entries(cases)) {
    const { slug } = await makeLink(ann, `case-${++number}`, { url, append_path })
    for (const [path, to] of Object.entries(visits)) {
      // The first visit reads the link, the others have it in memory.
      t.equal(await leadsTo(base, `/${slug}${path}`), to, `${name}: ${path}`)
    }
  }
})

await t.test('a long name of nothing but signs is looked through once at most', async (t) => {
  t.equal(await leadsTo(base, `/docs${'.'.repeat(100)}`), 'https://docs.test/a')
  for (const end of ['', 'a']) {
    t.equal(await leadsTo(base, `/docs${'!'.repeat(10_000)}${end}`), 404)
  }
})

await t.test('a Location of over 8,192 bytes is not sent', async (t) => {
  const url = `https://x.test/${'\u{1f680}'.repeat(400)}`
  await makeLink(ann, 'rockets', { url, append_path: true })
  await makeLink(ann, 'places', { url: `https://x.test/${'{1}'.repeat(600)}` })
  const longest = `https://x.test/${'a'.repeat(8_192 - 15)}`
  await makeLink(ann, 'longest', { url: longest })
  t.equal(await leadsTo(base, '/longest'), longest)
  const [short, long] = ['a'.repeat(3_000), 'a'.repeat(4_000)]
  const rest = '%F0%9F%9A%80'.repeat(400)
  t.equal(await leadsTo(base, '/rockets'), `https://x.test/${rest}`)
  t.equal(await leadsTo(base, `/rockets/${short}`), `https://x.test/${rest}/${short}`)
  t.equal(await leadsTo(base, '/places/1234567890'), `https://x.test/${'1234567890'.repeat(600)}`)
  for (const path of [`/rockets/${long}`, `/rockets?q=${long}`, `/places/${short}`]) {
    const headers = { location: undefined }
    const refused = { status: 414, headers, text: 'too long' }
    t.match(await visit(base, path), refused, path.slice(0, 20))
  }
  const search = `/-/go?q=rockets/${'+'.repeat(4_000)}x`
  t.match(await visit(base, search), { status: 414, text: 'too long' }, 'nor by the search')
  await expectStatus(302, visit(base, '/-/go?q=rockets/x'))
})

await t.test('no visit reaches what is reserved', async (t) => {
  // As if an older version had let somebody take it: the list counts in the resolver, too.
  const taken = [...RESERVED_SLUGS].filter((slug) => slug.length > 1)
  const url = 'https://taken.test/'
  await links.store(taken.map((slug) => ({ slug, url })))
  for (const slug of RESERVED_SLUGS) {
    if (slug === 'healthz' || slug === 'metrics') continue
    t.equal(await leadsTo(base, `/${slug}`), 404, slug)
    t.equal(await leadsTo(base, `/${slug}/more`), 404, `${slug}/more`)
    await expectStatus(404, request(`${base}/${slug}`, { method: 'POST' }), `POST ${slug}`)
  }
  for (const path of ['/healthz', '/metrics']) await expectStatus(200, visit(base, path))
  t.equal(await leadsTo(base, '/-/nothing'), 404)
})
