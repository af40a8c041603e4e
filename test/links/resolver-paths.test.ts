import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { makeLink, startLinks } from '../helpers/links-setup.ts'
import { leadsTo, visit } from '../helpers/visits.ts'

const [, postgres] = backends

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
      '/more/': 'https://x.test/a/more/?b=1#c',
      '/m/n/?q=1': 'https://x.test/a/m/n/?b=1&q=1#c',
      '/m/n': 'https://x.test/a/m/n?b=1#c',
    },
  ],
  'append to a host': [
    'https://x.test',
    true,
    {
      '': 'https://x.test',
      '/more': 'https://x.test/more',
      '//evil.test': 'https://x.test//evil.test',
    },
  ],
  'append keeps the segments apart': [
    'https://x.test/a',
    true,
    {
      '/m%2Fn': 'https://x.test/a/m%2Fn',
      '/..%2f..%2Fsecret': 'https://x.test/a/..%2F..%2Fsecret',
      '/%252e%252e/x': 'https://x.test/a/%252e%252e/x',
      '/m%5Cn': 'https://x.test/a/m%5Cn',
      '/m%3Fn%23o': 'https://x.test/a/m%3Fn%23o',
      '/...': 'https://x.test/a/...',
      '/@me/a:b,c;v=1/$x+y/': 'https://x.test/a/@me/a:b,c;v=1/$x+y/',
      '/%40me/a%2Bb%3d/c&d': 'https://x.test/a/%40me/a%2Bb%3D/c%26d',
      '/..;/x': 404,
      '/%2e;x=1/x': 404,
      '/..a;x/.a;/x': 'https://x.test/a/..a;x/.a;/x',
      '/%C3%BC/%F0%9F%98%80': 'https://x.test/a/%C3%BC/%F0%9F%98%80',
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
      '/%7B1%7D': 'https://x.test/issues/%7B1%7D',
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
      '/a/b/c': 404,
    },
  ],
  'a place, and append': [
    'https://x.test/{1}/wiki',
    true,
    {
      '/p': 'https://x.test/p/wiki',
      '/p/': 'https://x.test/p/wiki',
      '/p/q/r': 'https://x.test/p/wiki/q/r',
      '/p/q:r/': 'https://x.test/p/wiki/q:r/',
    },
  ],
  'a later place alone': [
    'https://x.test/{2}',
    true,
    { '/a/b': 'https://x.test/b/a', '/a': 'https://x.test/a' },
  ],
  'the rest': [
    'https://x.test/tree/{*}',
    false,
    {
      '': 'https://x.test/tree/',
      '/a': 'https://x.test/tree/a',
      '/': 'https://x.test/tree/',
      '/a/b/': 'https://x.test/tree/a/b/',
      '/a/b%2Fc/d': 'https://x.test/tree/a/b%2Fc/d',
    },
  ],
  'a place and the rest': [
    'https://x.test/{1}/blob/{*}?full={*}',
    true,
    {
      '/r/a/b': 'https://x.test/r/blob/a/b?full=a/b',
      '/r': 'https://x.test/r/blob/?full=',
      '/r/': 'https://x.test/r/blob/?full=',
    },
  ],
  'a search': [
    'https://x.test/find?q={*}&hl=en',
    false,
    {
      '/a%20b/c': 'https://x.test/find?q=a%20b/c&hl=en',
      '/a+b': 'https://x.test/find?q=a%2Bb&hl=en',
      '/x?hl=de': 'https://x.test/find?q=x&hl=de',
      '/x&hl=de': 'https://x.test/find?q=x%26hl%3Dde&hl=en',
    },
  ],
  'braces that are no place': [
    'https://x.test/{0}/{10}/{x}/{}',
    false,
    { '': 'https://x.test/{0}/{10}/{x}/{}', '/a': 404 },
  ],
  'queries are merged': [
    'https://x.test/a?keep=1&both=old&both=older&flag&sp=a%20b#f',
    false,
    {
      '?': 'https://x.test/a?keep=1&both=old&both=older&flag&sp=a%20b#f',
      '?new=2': 'https://x.test/a?keep=1&both=old&both=older&flag&sp=a%20b&new=2#f',
      '?both=n1&both=n2': 'https://x.test/a?keep=1&flag&sp=a%20b&both=n1&both=n2#f',
      '?b%6Fth=n': 'https://x.test/a?keep=1&both=old&flag&sp=a%20b&b%6Fth=n#f'.replace(
        '&both=old',
        '',
      ),
      '?FLAG=1': 'https://x.test/a?keep=1&both=old&both=older&flag&sp=a%20b&FLAG=1#f',
      '?flag': 'https://x.test/a?keep=1&both=old&both=older&sp=a%20b&flag#f',
      '?%zz=%': 'https://x.test/a?keep=1&both=old&both=older&flag&sp=a%20b&%zz=%#f',
      '?a=b?c=d': 'https://x.test/a?keep=1&both=old&both=older&flag&sp=a%20b&a=b?c=d#f',
      '/?new=2': 'https://x.test/a?keep=1&both=old&both=older&flag&sp=a%20b&new=2#f',
    },
  ],
  'a query where there was none': [
    'https://x.test/a#/route?inner=1',
    true,
    {
      '?q=a%20b+c': 'https://x.test/a?q=a%20b+c#/route?inner=1',
      '/more?q=1': 'https://x.test/a/more?q=1#/route?inner=1',
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
  'a path with a back-slash and other letters': [
    'https://x.test\\straße',
    false,
    { '': 'https://x.test\\stra%C3%9Fe' },
  ],
}

await t.test('further segments and queries', async (t) => {
  const { base, server, user } = await startLinks(t, postgres)
  const ann = await user('ann')
  let number = 0
  for (const [name, [url, append_path, visits]] of Object.entries(cases)) {
    const { slug } = await makeLink(ann, `case-${++number}`, { url, append_path })
    for (const [path, to] of Object.entries(visits)) {
      t.equal(await leadsTo(base, `/${slug}${path}`), to, `${name}: ${path}`)
      // The first visit reads the link, the second one has it in memory.
      t.equal(await leadsTo(base, `/${slug}${path}`), to, `${name}: ${path}, again`)
    }
  }
  t.notMatch(server.logs().join('\n'), /handler failed|"level":"error"/)
})

await t.test('a long name of nothing but signs is looked through once at most', async (t) => {
  const { base, user } = await startLinks(t, postgres)
  const { slug } = await makeLink(await user('ann'), 'docs')
  t.equal(await leadsTo(base, `/${slug}${'.'.repeat(100)}`), `https://${slug}.test/`)
  t.equal(await leadsTo(base, `/${slug}${'!'.repeat(10_000)}`), 404)
  t.equal(await leadsTo(base, `/${slug}${'!'.repeat(10_000)}a`), 404)
})

await t.test('a Location of over 8,192 bytes is not sent', async (t) => {
  const { base, user } = await startLinks(t, postgres)
  const ann = await user('ann')
  const url = `https://x.test/${'\u{1f680}'.repeat(400)}`
  await makeLink(ann, 'rockets', { url, append_path: true })
  await makeLink(ann, 'places', { url: `https://x.test/${'{1}'.repeat(600)}` })
  const [short, long] = ['a'.repeat(3_000), 'a'.repeat(4_000)]
  const rest = '%F0%9F%9A%80'.repeat(400)
  t.equal(await leadsTo(base, '/rockets'), `https://x.test/${rest}`)
  t.equal(await leadsTo(base, `/rockets/${short}`), `https://x.test/${rest}/${short}`)
  t.equal(await leadsTo(base, '/places/1234567890'), `https://x.test/${'1234567890'.repeat(600)}`)
  for (const path of [`/rockets/${long}`, `/rockets?q=${long}`, `/places/${short}`]) {
    const page = await visit(base, path)
    t.match([page.status, page.headers.location], [414, undefined], path.slice(0, 20))
    t.match(page.text, /too long/)
  }
  const search = `/-/go?q=rockets/${'+'.repeat(4_000)}x`
  t.match(await visit(base, search), { status: 414, text: /too long/ }, 'nor by the search')
  t.match(await visit(base, '/-/go?q=rockets/x'), { status: 302 })
})

await t.test('a link without further path says so, and is not offered to be made', async (t) => {
  const { base, user } = await startLinks(t, postgres)
  await makeLink(await user('ann'), 'docs')
  const page = await visit(base, '/docs/further')
  t.equal(page.status, 404)
  t.match(page.text, 'takes no further path')
  t.notMatch(page.text, 'action="/-/new"')
})
