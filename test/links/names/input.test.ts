import { t } from 'tap'
import { runCli } from '../../helpers/cli.ts'
import {
  leadsTo,
  makeLink,
  openLinks,
  openPages,
  slugsOf,
  type Link,
} from '../../helpers/links.ts'
import { expectStatus, refuseAll, refuses, type Refusal } from '../../helpers/refusals.ts'

const LIMIT = 64 * 1024
const RESERVED =
  'api healthz metrics robots favicon admin auth login logout links tags users settings static mcp u'
const ROCKET = '\u{1f680}'
const HALF = '\ud83d'
const TURNED = ['\u202a', '\u202b', '\u202d', 'moc\u202e', '\u2066', '\u2069.']

const links = await openLinks(t)
const ann = await links.user('ann')
const bob = await links.user('bob')
const root = await links.user('root', { admin: true })
const kept = await makeLink(ann, 'kept', { title: 'As it was', tags: ['one'] })
const path = `/links/${kept.id}`
const good = { url: 'https://example.com/' }
const refuser = {
  service: 'links',
  base: `${links.base}/api/v1`,
  headers: { authorization: `Bearer ${ann.token}` },
  state: async () => [
    await ann.read('/links?limit=200'),
    await ann.read(`${path}/shares`),
    await bob.read('/users/me'),
  ],
} as const

/** A change of the link with these fields over good ones. */
function put(fields: object) {
  return { call: `PUT ${path}`, body: { ...good, ...fields } }
}

/** A new link with these fields over good ones. */
function post(fields: object) {
  return { call: 'POST /links', body: { slug: 'refused', ...good, ...fields } }
}

/** Each value of a field refused with a code by a change, and the first one for a new link: their schemas share it. */
function both(field: string, values: readonly unknown[], code: string): readonly Refusal[] {
  return [
    ...values.map((value): Refusal => [put({ [field]: value }), 400, code]),
    [post({ [field]: values[0] }), 400, code],
  ]
}

const change = (fields: object) => ann.api<Link>('PUT', path, { ...good, ...fields })

await t.test(
  'members that the API does not know are named, if a header can have them',
  async (t) => {
    for (const [fields, named] of [
      [{ expiresAt: '2099-01-31T12:00:00Z', tag: 'docs' }, 'expiresAt, tag'],
      [{ 'a\nb': 1, é: 2 }, undefined],
    ] as const) {
      const { headers } = await ann.api('PUT', path, { ...good, ...fields })
      t.equal(headers['ignored-members'], named)
    }
  },
)

await t.test('a version that the client has is 304', async (t) => {
  const { headers } = await ann.api('GET', path)
  const etag = headers.etag ?? ''
  const asked = (tag: string) => ann.api('GET', path, undefined, { 'if-none-match': tag })
  for (const tag of [etag, `"x", W/${etag}`, '*']) {
    t.match(await asked(tag), { status: 304, headers: { etag } }, tag)
  }
  await expectStatus(200, asked('"x"'))
})

await t.test('slug', async (t) => {
  const long = 'a'.repeat(64)
  for (const slug of ['ab', '00', 'a--b', long, 'apis']) {
    t.equal((await makeLink(ann, slug)).slug, slug, slug)
  }
  const wrong = 'a -a a- -- Ab a_b a.b a/b ä-ö API ａｂ'.split(' ')
  wrong.push('', `${long}a`, ' ab', 'ab\n', 'a\0b', `a${HALF}b`)
  await refuseAll(t, refuser, [
    ...wrong.map((slug): Refusal => [post({ slug }), 400, 'INVALID_SLUG']),
    ...RESERVED.split(' ').map((slug): Refusal => [post({ slug }), 400, 'RESERVED_SLUG']),
    ...[undefined, null, 5, true, ['ab'], { slug: 'ab' }].map((slug): Refusal => [
      post({ slug }),
      400,
      'BAD_REQUEST',
    ]),
  ])
})

/** Each is refused, and so is the empty one at the beginning. */
const WRONG_URLS = `
  example.com /path //example.com/ http:// https:///x http:x
  javascript:alert(1) data:text/html,x mailto:a@b.c
  https://example.com:99999/ https://[::1/ https://?x https://#x https://:80/
  https://user:pw@example.com/ https://@example.com/ https://a%40b@example.com/
  http://-/ http://_:8080/ https://--.-/x1
  https://{1}.example.com/ https://{*}/ https://example.com:{1}/ https://{x}/
  https://%7B1%7D.example.com/ https://{user:x}/ https://{1:example.com}/ {1}
  https://example.com/{1: https://example.com/{user:{1}} https://a.b{1:/}
  https://example.com/{1:https://a@b.c/} https://example.com/{*:HTTP://:8/}`

const FOREIGN: readonly (readonly [url: string, refusal: string])[] = [
  ['https://x.test/{{.Path}}', '{{.Path}}', 'https://x.test/{*}', '%7B%7B.Path%7D%7D'],
  [
    'https://x.test/{{with .Path}}search?q={{.}}{{end}}',
    '{{with .Path}}',
    'https://x.test/search?q={*:https://x.test/}',
    '%7B%7Bwith .Path%7D%7D',
  ],
  [
    'https://x.test{{if .Path}}/{{.Path}}{{end}}',
    '{{if .Path}}',
    'https://x.test with append_path',
    '%7B%7Bif .Path%7D%7D',
  ],
  ['https://x.test/{path}?q={Path}', '{path}', 'https://x.test/{*}?q={*}', '%7Bpath%7D'],
  [
    'https://x.test/?q={searchTerms}',
    '{searchTerms}',
    'https://x.test/?q={*}',
    '%7BsearchTerms%7D',
  ],
  ['https://x.test/?q=%s', '%s', 'https://x.test/?q={*}', '%25s'],
  ['https://x.test/%s?to=%s', '%s', 'https://x.test/{1}?to={2}', '%25s'],
].map(([url = '', found, meant, literal]) => {
  const offered = `here it is ${meant}. As plain text it is ${literal}`
  return [url, `url has ${found}, a place of another program; ${offered}`]
})

await t.test('url', async (t) => {
  const longest = `https://example.com/${'a'.repeat(8_192 - 20)}`
  const encoded = (most: number) => `https://example.com/${'\u{3042}'.repeat(most)}`
  const most = Math.floor((8_192 - 20) / 9)
  for (const url of [
    'http://wiki',
    'http://go:8080/x',
    'HTTPS://EXAMPLE.COM/',
    longest,
    'http://[::1]:8/x',
    'http://10.0.0.1/',
    'http://printer.local/a?b#c',
    'http://日本/',
    encoded(most),
    'https://example.com/{1:main}/{*:}',
    'https://example.com/{user}?{user:a@b.c}#{1}',
    'https://example.com/{*:http://example.org/?a=b}',
    'https://example.com/{id:x}{1',
    'https://example.com/{paths}/50%sale/%7Bpath%7D?q=%25s&r=%S',
    'https://example.com/{2}/{*}',
    'https://example.com/?next=http://x@y/',
    `https://bücher.example/${ROCKET}`,
  ]) {
    t.equal((await change({ url })).json.url, url, `${url.slice(0, 60)} is kept as it was sent`)
  }
  for (const around of [' ', '\u3000']) {
    const { json } = await change({ url: `${around}https://example.com/pasted${around}` })
    t.equal(json.url, 'https://example.com/pasted', 'spaces around are dropped')
  }
  const wrong = [
    ...WRONG_URLS.split(/\s+/),
    'https:\\\\example.com\\',
    'https://example.com/a b',
    '\thttps://example.com/',
    'https://example.com/a\r\nb: c',
    'https://example.com/\u007f',
    'https://example.com/\0',
    'https://example.com/\u0085',
    `https://example.com/${HALF}`,
    'https://a.example/\u202Emoc.elpmaxe',
    'https://a.example/\u200E',
    'https://x/\u2066',
  ]
  const none = [undefined, null, 5, ['https://example.com/']]
  await refuseAll(t, refuser, [
    ...wrong.map((url): Refusal => [put({ url }), 400, 'INVALID_URL']),
    ...both('url', ['ftp://example.com/', ''], 'INVALID_URL'),
    [
      put({ url: 'https://example.com/{2:a{b}' }),
      400,
      'INVALID_URL',
      'url must close the default after {2: with a }; in a default, { is %7B and } is %7D',
    ],
    ...FOREIGN.map(([url, text]): Refusal => [put({ url }), 400, 'INVALID_URL', text]),
    ...both('url', ['https://x.test/{2}', 'https://x.test/{1}/{3:a}?{user}'], 'INVALID_URL'),
    [
      put({ url: 'https://x.test/{3}/{1}' }),
      400,
      'INVALID_URL',
      'url has {3} without {2}, so no visit can fill it; count from {1}',
    ],
    // The length as a header counts.
    ...both('url', [`${longest}a`, encoded(most + 1)], 'INVALID_FIELD_LENGTH'),
    ...both('url', none, 'BAD_REQUEST'),
  ])
})

await t.test('urls of the schemes that LINKS_SCHEMES names', async (t) => {
  const env = { LINKS_SCHEMES: 'mailto, TEL,slack', LINKS_BASE_URL: 'https://go.example.com' }
  const wide = await openPages(t, env)
  const cy = await wide.user('cy')
  for (const [visit, url, to = url] of [
    ['/mail', 'MAILTO:a@b.c'],
    ['/subject', 'mailto:ä@b.c?subject={1:hi}&x=1', 'mailto:%C3%A4@b.c?subject=hi&x=1'],
    ['/filled/%26cc=d', 'mailto:a@b.c?subject={1}', 'mailto:a@b.c?subject=%26cc%3Dd'],
    ['/merged?subject=y', 'mailto:a@b.c?x=1', 'mailto:a@b.c?x=1&subject=y'],
    ['/phone', 'tel:+49-30-1'],
    // It is no address of this resolver, whatever its host is.
    ['/host', 'slack://go.example.com/host'],
  ] as const) {
    const [slug = ''] = visit.slice(1).split(/[/?]/)
    t.equal((await makeLink(cy, slug, { url })).url, url)
    t.equal(await leadsTo(wide.base, visit), to, slug)
  }
  t.same(await slugsOf(cy, '/links?url=mailto:a@b.c'), ['mail'])
  await cy.post('/-/new', { slug: 'typed', url: ' tel:112 ' })
  t.equal(await leadsTo(wide.base, '/typed'), 'tel:112', 'typed in the form')

  const { id } = await makeLink(cy, 'edited')
  const call = `PUT /links/${id}`
  const refused = `javascript:alert(1) JavaScript:alert(1) data:text/html,x file:///etc/passwd
    blob:https://x.test/1 vbscript:x about:blank ftp://x.test/ localhost:80 tel: x{1}:y
    slack://{1}/x slack://u:p@x.test/ http:mailto:x`.split(/\s+/)
  await cy.refused(t, () => cy.read('/links'), [
    ...[...refused, 'mailto :a@b.c'].map((url) => [post({ url }), 400, 'INVALID_URL'] as const),
    [
      { call, body: { url: 'zoommtg:x' } },
      400,
      'INVALID_URL',
      'url must be an http:// or https:// URL with a host, or begin with mailto:, tel:, slack:',
    ],
    [
      { call, body: { url: 'tel:1', append_path: true } },
      400,
      'INVALID_URL',
      'append_path needs an http:// or https:// url; tel: has no path',
    ],
  ])

  const input = 'slug,url\nfax,tel:2\nshare,zoommtg:x\n'
  const taken = await runCli(['import', '-', '--owner', cy.email], { env: wide.env, input })
  t.match(taken, { code: 1, stdout: /refused +share[^]*or begin with mailto:[^]*created 1/ })
  const narrow = { ...wide.env, LINKS_SCHEMES: '' }
  const title = await runCli('link edit phone --title Call', { env: narrow })
  t.match(title, { code: 0 }, 'a link that is there may be edited')
})

for (const [field, most] of [
  ['title', 200],
  ['description', 2_000],
] as const) {
  await t.test(field, async (t) => {
    const lively = '<b>&amp;</b> "\'\n\t\u200f\u0007 {1} ${x} $1 \\'
    const fits = ['a', 'ä', ROCKET].map((character) => character.repeat(most))
    for (const text of ['', ...fits, lively]) {
      t.equal((await change({ [field]: text })).json[field], text, `${text.slice(0, 5)}…`)
    }
    const over = ['a'.repeat(most + 1), ROCKET.repeat(most + 1)]
    const wrong = ['a\0b', `a${HALF}b`, '\udc00', null, 5, ['a']]
    await refuseAll(t, refuser, [
      ...both(field, over, 'INVALID_FIELD_LENGTH'),
      ...both(field, [...TURNED, ...wrong], 'BAD_REQUEST'),
    ])
  })
}

await t.test('tags', async (t) => {
  const fifty = 'a'.repeat(50)
  const twenty = Array.from({ length: 20 }, (_, n) => `t${String(n).padStart(2, '0')}`)
  for (const [tags, expected] of [
    [['To Do', 'to_do', 'TO-DO'], ['to-do']],
    [
      ['a b_c', 'x-'],
      ['a-b-c', 'x-'],
    ],
    [[...twenty, 'T00', 't19'], twenty],
  ] as const) {
    t.same((await change({ tags })).json.tags, expected, JSON.stringify(tags).slice(0, 50))
  }
  const tags = ['', ' ', '-a', `${fifty}a`, 'a.b', 'a/b', 'ä', 'a\0', HALF, '#a']
  const none = [null, 'a', { 0: 'a', length: 1 }, [5], [['a']]]
  await refuseAll(t, refuser, [
    ...both(
      'tags',
      [
        [...twenty, 'T00', 't 0'],
        [...twenty, 'one-more'],
      ],
      'TOO_MANY_TAGS',
    ),
    ...tags.map((tag): Refusal => [put({ tags: ['ok', tag] }), 400, 'INVALID_TAG']),
    ...none.map((wrong): Refusal => [put({ tags: wrong }), 400, 'BAD_REQUEST']),
  ])
})

await t.test('visibility and append_path', async (t) => {
  for (const visibility of ['private', 'secure', 'public']) {
    t.equal((await change({ visibility })).json.visibility, visibility)
    t.equal((await change({})).json.visibility, visibility, 'omitted: unchanged')
    const made = await makeLink(ann, `made-${visibility}`, { visibility })
    t.equal(made.visibility, visibility)
  }
  for (const append_path of [true, false]) {
    t.equal((await change({ append_path })).json.append_path, append_path)
    t.equal((await change({})).json.append_path, append_path, 'omitted: unchanged')
  }
  const wrong = ['', 'Public', 'public ', null, ['public'], 'a\0', HALF]
  await refuseAll(t, refuser, [
    ...both('visibility', wrong, 'INVALID_VISIBILITY'),
    ...['true', 1, null].map((append_path): Refusal => [put({ append_path }), 400, 'BAD_REQUEST']),
  ])
  await expectStatus(201, ann.api('POST', '/links', { slug: 'refused', ...good }), 'is free')
})

/** Every operation that takes a body, with a good one, by somebody who may. */
const takers = [
  [ann, 'POST', '/links', { slug: 'made', ...good }],
  [ann, 'PUT', path, good],
  [ann, 'POST', `${path}/owners`, { email: bob.email }],
  [ann, 'POST', `${path}/shares`, { email: bob.email }],
  [root, 'PUT', `/admin/users/${bob.id}/role`, { role: 'user' }],
  [ann, 'POST', '/tokens', { name: 'made' }],
] as const

for (const [at, [{ api, token }, method, of, body]] of takers.entries()) {
  const call = `${method} ${of}`
  await t.test(`bodies of ${call.replaceAll(/[\w-]{36}/g, '{id}')}`, async (t) => {
    const text = JSON.stringify(body)
    const long = `"${'a'.repeat(LIMIT - 1)}"`
    const types = ['text/plain', '']
    const bad: (string | Uint8Array)[] = ['nothing', '[]', '{}']
    if (at === 0) {
      // All operations read bodies by the same code: the others have a part of the cases.
      types.push('application/x-www-form-urlencoded', 'application/json5', '*/*', 'text/json')
      bad.push('', 'null', '"text"', `${text}x`, text.slice(0, -1), `${text}${text}`, "{'a': 1}")
      bad.push('\ufeff{}', '{"a":"\t"}', '['.repeat(60_000), '{"a":'.repeat(10_000), '{"a":01}')
      bad.push(`{"__proto__":${text},"constructor":${text}}`, Buffer.from(text, 'utf16le'))
      for (const invalid of ['\xff', '\xc3\x28', '\xed\xa0\x80', '\xc0\xaf']) {
        bad.push(Buffer.from(`${text.slice(0, -1)},"x":"${invalid}"}`, 'latin1'))
      }
    }
    const headers = { authorization: `Bearer ${token}` }
    await refuseAll(t, { ...refuser, headers }, [
      ...types.map((type): Refusal => [
        { call, body: text, headers: { 'content-type': type } },
        415,
        'UNSUPPORTED_MEDIA_TYPE',
      ]),
      [{ call, body: long }, 413, 'BODY_TOO_LARGE'],
      ...bad.map((wrong): Refusal => [{ call, body: wrong }, 400, 'BAD_REQUEST']),
    ])
    refuses(t, await api(method, of, [long, long]), [413, 'BODY_TOO_LARGE'], 'chunked')
    const type = { 'content-type': 'Application/JSON ; charset=utf-8' }
    const { status } = await api(method, of, [...text], type)
    t.ok(status === 200 || status === 201, `a good one, a character a chunk: ${status}`)
  })
}

await t.test('a body of exactly the limit is read', async (t) => {
  const text = JSON.stringify({ ...good, slug: 'padded' })
  const full = text.padEnd(LIMIT)
  await expectStatus(201, ann.api('POST', '/links', full))
  refuses(t, await ann.api('POST', '/links', `${full} `), [413, 'BODY_TOO_LARGE'])
  refuses(t, await ann.api('POST', '/links', [full, ' ']), [413, 'BODY_TOO_LARGE'])
})

await t.test(
  'of a name that stands twice the last counts; escapes mean what they are',
  async (t) => {
    const twice = '{"slug":"api","\\u0073lug":"\\u0065sc","url":"https:\\/\\/example.com\\/"}'
    const { status, json } = await ann.api<Link>('POST', '/links', twice)
    t.match([status, json], [201, { slug: 'esc', url: 'https://example.com/' }])
    const bad = '{"slug":"fine","url":"https://example.com/","slug":"api"}'
    refuses(t, await ann.api('POST', '/links', bad), [400, 'RESERVED_SLUG'])
  },
)
