import { t } from 'tap'
import type { Test } from 'tap'
import { onPostgres } from '../helpers/backends.ts'
import { makeLink, refuses, startLinks } from '../helpers/links-setup.ts'
import type { Caller, Link } from '../helpers/links-setup.ts'

const RESERVED =
  'api healthz metrics robots favicon admin auth login logout links tags users settings static mcp u'

const ROCKET = '\u{1f680}'
const HALF = '\ud83d'

await onPostgres(t, 'fields of a link', async (t: Test, backend) => {
  const links = await startLinks(t, backend)
  const ann = await links.user('ann')
  const kept = await makeLink(ann, 'kept', { title: 'As it was', tags: ['one'] })

  await t.test('slug', async (t) => {
    const long = 'a'.repeat(64)
    for (const slug of ['ab', 'a1', '00', 'a-b', 'a--b', '1-2-3', long, 'apis', 'link', 'uu']) {
      t.equal((await create(ann, { slug })).json.slug, slug, slug)
    }
    for (const slug of [
      '',
      'a',
      `${long}a`,
      '-a',
      'a-',
      '--',
      'A',
      'Ab',
      'a_b',
      'a b',
      ' ab',
      'ab ',
    ]) {
      refuses(t, await create(ann, { slug }), 400, 'INVALID_SLUG', { what: `"${slug}"` })
    }
    for (const slug of [
      'a.b',
      'a/b',
      'ab\n',
      'ä-ö',
      'a\0b',
      `a${HALF}b`,
      'API',
      '-',
      '../x',
      'ａｂ',
    ]) {
      refuses(t, await create(ann, { slug }), 400, 'INVALID_SLUG', { what: JSON.stringify(slug) })
    }
    for (const slug of RESERVED.split(' ')) {
      refuses(t, await create(ann, { slug }), 400, 'RESERVED_SLUG', { what: slug })
    }
    for (const slug of [undefined, null, 5, true, ['ab'], { slug: 'ab' }]) {
      refuses(t, await create(ann, { slug }), 400, 'BAD_REQUEST', { what: JSON.stringify(slug) })
    }
  })

  await t.test('url', async (t) => {
    const longest = `https://example.com/${'a'.repeat(2_048 - 20)}`
    for (const url of [
      ...['http://wiki', 'https://wiki/', 'http://go:8080/x', 'HTTPS://EXAMPLE.COM/', longest],
      ...[
        'http://10.0.0.1/',
        'http://[::1]:8/x',
        'http://localhost/',
        'http://printer.local/a?b#c',
      ],
      ...['https://example.com/{1}/{*}', 'https://example.com/?q={*}', 'https://example.com/#{1}'],
      ...['https://example.com/a@b', 'https://example.com/?mail=a@b.c', 'https://bücher.example/ä'],
      ...['https://example.com/?next=http://x@y/', `https://example.com/${ROCKET}`],
    ]) {
      const { status, json } = await change(ann, kept.id, { url })
      t.same([status, json.url], [200, url], `${url.slice(0, 60)} is kept as it was sent`)
    }
    for (const url of [
      ...['', 'example.com', '/path', '//example.com/', 'http:', 'http://', 'https:///x', 'http:x'],
      ...['ftp://example.com/', 'javascript:alert(1)', 'data:text/html,x', 'file:///etc/passwd'],
      ...[
        'mailto:a@b.c',
        'https:/example.com/',
        'https:\\\\example.com\\',
        'https://exa mple.com/',
      ],
      ...[
        'https://example.com:99999/',
        'https://[::1/',
        'https://?x',
        'https://#x',
        'https://:80/',
      ],
      ...['https://user@example.com/', 'https://user:pw@example.com/', 'https://:pw@example.com/'],
      ...['https://@example.com/', 'https://:@example.com/', 'https://a%40b@example.com/'],
      ...['https://example.com/a b', '\thttps://example.com/', ' https://example.com/\r\n'],
      ...['http://-/', 'http://./', 'http://_:8080/', 'https://--.-/x1', 'http://-.~/'],
      ...['https://example.com/\n', 'https://exam\tple.com/', 'https://example.com/\u007f'],
      ...['https://example.com/\0', 'https://example.com/\u0085', 'https://example.com/a\r\nb: c'],
      ...['https://a.example/\u202Emoc.elpmaxe', 'https://a.example/\u200E', 'https://x/\u2066'],
      ...['https://{1}.example.com/', 'https://{*}/', 'https://example.com:{1}/', 'https://{x}/'],
      ...['https://%7B1%7D.example.com/', '{1}', `https://example.com/${HALF}`],
    ]) {
      refuses(t, await change(ann, kept.id, { url }), 400, 'INVALID_URL', {
        what: JSON.stringify(url),
      })
    }
    for (const around of [' ', '   ', '\u00a0', '\u3000']) {
      const url = `${around}https://example.com/pasted${around}`
      const { status, json } = await change(ann, kept.id, { url })
      t.same(
        [status, json.url],
        [200, 'https://example.com/pasted'],
        'spaces around it are dropped',
      )
    }
    refuses(t, await change(ann, kept.id, { url: `${longest}a` }), 400, 'INVALID_FIELD_LENGTH')
    const encoded = (most: number) => `https://example.com/${'\u{3042}'.repeat(most)}`
    const most = Math.floor((8_192 - 20) / 9)
    t.equal((await change(ann, kept.id, { url: encoded(most) })).status, 200)
    const what = 'it is its length as a header that counts'
    const over = await change(ann, kept.id, { url: encoded(most + 1) })
    refuses(t, over, 400, 'INVALID_FIELD_LENGTH', { what })
    for (const url of ['http://1/', 'http://-a/', 'http://日本/', 'http://[::1]/']) {
      t.equal((await change(ann, kept.id, { url })).status, 200, url)
    }
    for (const url of [undefined, null, 5, false, ['https://example.com/'], {}]) {
      refuses(t, await change(ann, kept.id, { url }), 400, 'BAD_REQUEST')
      refuses(t, await create(ann, { url }), 400, 'BAD_REQUEST')
    }
  })

  await t.test('title and description', async (t) => {
    for (const [field, most] of [
      ['title', 200],
      ['description', 2_000],
    ] as const) {
      for (const text of ['', ' ', 'a'.repeat(most), 'ä'.repeat(most), ROCKET.repeat(most)]) {
        const { status, json } = await change(ann, kept.id, { [field]: text })
        t.same([status, json[field]], [200, text], `${field}: ${text.slice(0, 5)}…`)
      }
      const lively = '<b>&amp;</b> "\'\n\t\u200f\u0007 {1} ${x} $1 \\'
      t.equal((await change(ann, kept.id, { [field]: lively })).json[field], lively)
      for (const text of ['a'.repeat(most + 1), ROCKET.repeat(most + 1)]) {
        refuses(t, await change(ann, kept.id, { [field]: text }), 400, 'INVALID_FIELD_LENGTH')
        refuses(t, await create(ann, { [field]: text }), 400, 'INVALID_FIELD_LENGTH')
      }
      for (const turned of ['\u202a', '\u202b', '\u202d', 'moc\u202e', '\u2066', '\u2069.']) {
        const what = `${field} ${JSON.stringify(turned)}`
        refuses(t, await change(ann, kept.id, { [field]: turned }), 400, 'BAD_REQUEST', { what })
        refuses(t, await create(ann, { [field]: turned }), 400, 'BAD_REQUEST', { what })
      }
      for (const text of ['a\0b', '\0', HALF, `a${HALF}b`, '\udc00', null, 5, true, ['a'], {}]) {
        const what = `${field} ${JSON.stringify(text)}`
        refuses(t, await change(ann, kept.id, { [field]: text }), 400, 'BAD_REQUEST', { what })
        refuses(t, await create(ann, { [field]: text }), 400, 'BAD_REQUEST', { what })
      }
    }
  })

  await t.test('tags', async (t) => {
    const fifty = 'a'.repeat(50)
    const twenty = Array.from({ length: 20 }, (_, n) => `t${String(n).padStart(2, '0')}`)
    for (const [sent, kept_] of [
      [[], []],
      [
        ['b', 'a'],
        ['a', 'b'],
      ],
      [['A', 'a', 'a'], ['a']],
      [['To Do', 'to_do', 'TO-DO'], ['to-do']],
      [
        ['a b_c', 'x-'],
        ['a-b-c', 'x-'],
      ],
      [
        ['a--b', '9', fifty],
        ['9', 'a--b', fifty],
      ],
      [twenty, twenty],
      [[...twenty, 'T00', 't 0'], undefined],
      [[...twenty, 'T00', 't19'], twenty],
    ] as const) {
      const answer = await change(ann, kept.id, { tags: sent })
      if (kept_ === undefined) refuses(t, answer, 400, 'TOO_MANY_TAGS')
      else
        t.same([answer.status, answer.json.tags], [200, kept_], JSON.stringify(sent).slice(0, 50))
    }
    const many = [...twenty, 'one-more']
    refuses(t, await change(ann, kept.id, { tags: many }), 400, 'TOO_MANY_TAGS')
    refuses(t, await create(ann, { tags: many }), 400, 'TOO_MANY_TAGS')
    for (const tag of [
      '',
      ' ',
      '-a',
      '_a',
      ' a',
      `${fifty}a`,
      'a.b',
      'a/b',
      'ä',
      'a\0',
      'a\n',
      HALF,
      '#a',
    ]) {
      const what = JSON.stringify(tag)
      refuses(t, await change(ann, kept.id, { tags: ['ok', tag] }), 400, 'INVALID_TAG', { what })
      refuses(t, await create(ann, { tags: [tag] }), 400, 'INVALID_TAG', { what })
    }
    for (const tags of [
      null,
      'a',
      5,
      {},
      { 0: 'a', length: 1 },
      [5],
      [null],
      [['a']],
      ['a', true],
    ]) {
      const what = JSON.stringify(tags)
      refuses(t, await change(ann, kept.id, { tags }), 400, 'BAD_REQUEST', { what })
    }
    t.same(
      (await ann.api<Link>('GET', `/links/${kept.id}`)).json.tags,
      twenty,
      'the last good ones',
    )
  })

  await t.test('visibility and append_path', async (t) => {
    for (const visibility of ['private', 'secure', 'public']) {
      t.equal((await change(ann, kept.id, { visibility })).json.visibility, visibility)
      t.equal((await change(ann, kept.id, {})).json.visibility, visibility, 'omitted: unchanged')
      const made = await create(ann, { slug: `made-${visibility}`, visibility })
      t.equal(made.json.visibility, visibility)
    }
    for (const visibility of [
      '',
      'Public',
      'hidden',
      'public ',
      null,
      5,
      ['public'],
      {},
      'a\0',
      HALF,
    ]) {
      const what = JSON.stringify(visibility)
      refuses(t, await change(ann, kept.id, { visibility }), 400, 'INVALID_VISIBILITY', { what })
      refuses(t, await create(ann, { visibility }), 400, 'INVALID_VISIBILITY', { what })
    }
    for (const append_path of [true, false]) {
      t.equal((await change(ann, kept.id, { append_path })).json.append_path, append_path)
      t.equal((await change(ann, kept.id, {})).json.append_path, append_path, 'omitted: unchanged')
    }
    for (const append_path of ['true', 1, null]) {
      refuses(t, await change(ann, kept.id, { append_path }), 400, 'BAD_REQUEST')
    }
  })

  const free = await create(ann, {})
  t.equal(free.status, 201, 'what was refused made nothing: its slug is free')
})

function change({ api }: Caller, id: string, fields: Readonly<Record<string, unknown>>) {
  return api<Link>('PUT', `/links/${id}`, { url: 'https://example.com/', ...fields })
}

function create({ api }: Caller, fields: Readonly<Record<string, unknown>>) {
  const whole = { slug: 'refused', url: 'https://example.com/', ...fields }
  return api<Link>('POST', '/links', whole)
}
