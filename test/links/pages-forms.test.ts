import { t } from 'tap'
import { leadsTo, wordsOf } from '../helpers/http.ts'
import {
  HTMX,
  NAVIGATION,
  makeLink,
  slugsIn,
  openPages,
  visitorAt,
  type Headers,
  type Link,
  type Visitor,
} from '../helpers/links.ts'
import { expectStatus, refuses } from '../helpers/refusals.ts'

const CROSS_SITE = { 'sec-fetch-site': 'cross-site' }
const NO_LINK = '00000000-0000-4000-8000-000000000000'
/** A made-up name: 28 letters and digits that are not mistaken for each other. */
const MADE_UP = /^[2-9bcdfghjkmnpqrstvwxyz]{7}$/

const links = await openPages(t)
const nobody = visitorAt(links.base, '')
const ann = await links.user('ann')
const bob = await links.user('bob')
const { id: taken } = await makeLink(bob, 'taken', { visibility: 'secure' })

const example = (fields: Headers, who = ann) =>
  who.text(`/-/example?${new URLSearchParams(fields).toString()}`, HTMX)

await t.test('what is refused stays in the form, beside why', async (t) => {
  t.match(await ann.text('/-/new'), 'it is listed to owners, recipients and admins')
  const good = { slug: 'good', url: 'https://good.test/' }
  for (const [field, value, status] of [
    ['slug', '<b>', 400],
    ['slug', 'taken', 409],
    ['url', 'javascript:alert(1)', 400],
    ['tags', 'ok, ä', 400],
  ] as const) {
    const fragment = await ann.post('/-/new', { ...good, [field]: value }, HTMX)
    t.match(fragment, { status, text: /^<form\s+id="link-form"/ }, `${field} ${value}`)
    t.match(fragment.text, `id="link-${field}-refused"`)
    t.equal(fragment.text.match(/aria-invalid/g)?.length, 1, 'at its field alone')
    t.match(fragment.text, `value="${value.replace('<b>', '&lt;b&gt;')}"`, 'what was typed stays')
  }
  const clash = { slug: 'taken', url: 'nonsense', tags: 'ä' }
  const page = await ann.post('/-/new', clash, NAVIGATION)
  t.match(page, { status: 409, text: /^<!doctype html>/ })
  t.equal(page.text.match(/aria-invalid/g)?.length, 3, 'all that is wrong at once')
  t.match(page.text, /Short name already taken\.[^]*<strong>taken-2<\/strong> is free/)
  await expectStatus(403, ann.post('/-/new', good, CROSS_SITE))
  await expectStatus(403, nobody.post('/-/new', good))
  t.same(slugsIn(await ann.text('/-/')), [], 'nothing was made')
})

await t.test('made and changed: a browser goes to its page, by either way', async (t) => {
  const fields = {
    slug: ' Docs ',
    url: ' https://docs.test/{1} ',
    title: 'Docs',
    append_path: 'true',
    description: 'one\r\ntwo',
    tags: 'Wiki, my team,, wiki',
    visibility: 'private',
  }
  const plain = await expectStatus(303, ann.post('/-/new', fields, NAVIGATION))
  const id = leadsTo(plain).split('/').at(-1) ?? ''
  const made = await ann.read(`/links/${id}`)
  t.match(made, {
    slug: 'docs',
    url: 'https://docs.test/{1}',
    title: 'Docs',
    description: 'one\ntwo',
    visibility: 'private',
    append_path: true,
    tags: ['my-team', 'wiki'],
  })
  const htmx = await ann.post('/-/new', { slug: 'two', url: 'https://two.test/' }, HTMX)
  const location = /^\/-\/links\/[0-9a-f-]{36}\?created=true$/
  t.match(htmx, { status: 204, headers: { 'hx-redirect': location } })

  const edit = `/-/links/${id}/edit`
  const bad = await ann.post(edit, { ...fields, url: 'ftp://x/', title: 'Kept' }, HTMX)
  t.match(bad, { status: 400, text: /id="link-url-refused"[^]*value="Kept"/ })
  t.same(await ann.read(`/links/${id}`), made, 'nothing was changed')
  await expectStatus(303, ann.post(edit, { url: 'https://other.test/', slug: 'ignored' }))
  const cleared = { title: '', tags: [], visibility: 'private', append_path: false }
  t.match(await ann.read(`/links/${id}`), { slug: 'docs', ...cleared })
})

await t.test('an address may be typed without https://', async (t) => {
  const { id } = await makeLink(ann, 'typed')
  for (const url of [
    ' example.com:8443/x?y#z ',
    'bücher.example',
    'localhost:8080/x',
    '10.0.0.1/{1}',
  ]) {
    const made = await ann.post('/-/new', { slug: 'completed', url })
    const path = `/links/${leadsTo(made).split('/').at(-1)}`
    await ann.post(`/-/links/${id}/edit`, { url })
    for (const at of [path, `/links/${id}`]) {
      t.equal((await ann.read(at)).url, `https://${url.trim()}`)
    }
    await ann.api('DELETE', path)
  }
  const none =
    'example ann@example.com ftp.example.com:x/ /x.html a..b/ .com //example.com/ javascript:alert(1).x tel:12345'
  for (const url of [...none.split(' '), 'example.com /x']) {
    await expectStatus(400, ann.post('/-/new', { slug: 'completed', url }), url)
  }
})

await t.test('a name and an address as people paste them', async (t) => {
  for (const slug of ['go/Pasted-It', `${links.base}/pasted-it/`, ' /pasted-it']) {
    const made = await ann.post('/-/new', { slug, url: 'https://x.test/a b?c=d e' })
    const path = `/links/${leadsTo(made).split('/').at(-1)?.split('?')[0]}`
    const json = await ann.read(path)
    t.match(json, { slug: 'pasted-it', url: 'https://x.test/a%20b?c=d%20e' }, slug)
    const note = await ann.text(`/-/slug?slug=${encodeURIComponent(slug)}`)
    t.match(note, '/pasted-it is taken')
    await ann.api('DELETE', path)
  }
})

await t.test('the form and the preview show the places of an address', async (t) => {
  const shown = async (fields: Headers) =>
    (await example(fields))
      .replaceAll(/<(?!input)[^>]*>/g, '')
      .replaceAll(/\s+/g, ' ')
      .trim()
  const url = 'tracker.test/{1}/issues/{2}'
  const sample = await shown({ slug: 'Bugs', url })
  t.match(sample, 'It will lead to https://tracker.test/{1}/issues/{2}')
  t.match(sample, '/bugs/one/two leads to https://tracker.test/one/issues/two')
  t.equal(sample.match(/<input/g)?.length, 2)
  const typed = await shown({ slug: 'bugs', url, 'place-1': 'a b', 'place-2': '"><b>' })
  t.match(typed, '/bugs/a%20b/%22%3E%3Cb%3E leads to https://tracker.test/a%20b/issues/%22%3E%3Cb')
  t.match(typed, 'value="&quot;&gt;&lt;b&gt;"')
  const appended = { slug: 'bugs', url: 'http://x.test/y', append_path: 'true' }
  for (const [fields, said] of [
    [
      { slug: 'bugs', url: 'http://x.test/{1}/{2:main}?of={user}', 'place-1': 'r' },
      '/bugs/r leads to http://x.test/r/main?of=you%40example.com',
    ],
    [appended, /Further path.*\/bugs\/a\/b leads to http:\/\/x\.test\/y\/a\/b/],
    [{ ...appended, 'place-rest': '../x' }, 'leads nowhere'],
    [{ url: 'x.test/{{.Path}}' }, '{{.Path}} is a place of another program. Here it is'],
    [{ url: 'x.test/{{if .Path}}{{.Path}}{{end}}?q' }, 'https://x.test/{*}?q. Use it'],
    [{ url: 'x.test/{{.Now}}' }, 'its template has {{.Now}}, which has no equal here'],
    [{ url: '' }, /^$/],
    [{ url: 'http://x.test/' }, /^$/],
    [{ url: 'javascript:{1}' }, /^$/],
    [{ url: '{1}' }, /^$/],
  ] satisfies readonly (readonly [Headers, string | RegExp])[]) {
    t.match(await shown(fields), said, fields.url)
  }
  const foreign = await example({ url: 'x.test/{{.Path}}' })
  t.match(foreign, /data-fill="link-url"[^>]*value="https:\/\/x\.test\/\{\*\}"/)
  await expectStatus(403, nobody.get(`/-/example?url=${url}`))
  const refused = await ann.post('/-/new', { slug: '-', url, 'place-1': 'kept' }, HTMX)
  t.match(refused.text, /name="place-1"[^>]*value="kept"/)

  await makeLink(ann, 'places', { url: 'https://places.test/{1}?q={*}', visibility: 'private' })
  const preview = (query: string, who: Visitor = ann) => who.text(`/places+${query}`)
  t.match(await preview(''), /For example, [^]*\/places\/one\/a\/b[^]*places\.test\/one\?q=a\/b/)
  const filled = await preview('?place-1=x&place-rest=y%2F%3Cb%3E')
  t.match(filled, 'https://places.test/x?q=y/%3Cb%3E')
  t.match(filled, 'href="/places/x/y/%3Cb%3E"')
  t.match(await preview('?place-1=..'), 'leads nowhere')
  t.notMatch(await preview('?place-1=x', nobody), 'places.test')
  t.notMatch(await ann.text('/two+'), /place-|For example/)
})

await t.test('the form says which links an address has already', async (t) => {
  const url = 'https://known.test/page'
  const { id } = await makeLink(ann, 'known', { url, title: 'A <page>' })
  await makeLink(bob, 'known-too', { url: `${url}#` })
  await makeLink(bob, 'known-hidden', { url, visibility: 'private' })
  /** Short names and where they lead, in the note of a page. */
  const noted = (text: string) => {
    const [note = ''] = /This address has a link already:[^]*?<\/p>/.exec(text) ?? []
    const names = note.matchAll(/<a href="([^"]*)"><span[^>]*>[^<]*<\/span>([^<]*)<\/a>/g)
    return [...names].map(([, href = '', slug = '']) => [slug, href])
  }
  const [mine, other] = [
    ['known', `/-/links/${id}`],
    ['known-too', '/known-too+'],
  ]
  const typed = await example({ url: 'known.test/page' })
  t.same(noted(typed), [mine, other])
  t.match(typed, 'A &lt;page&gt;')
  t.same(noted(await example({ url: 'https://known.test/' })), [])
  t.equal(noted(await example({ url }, bob)).length, 3, 'who may see the private one')
  // What a bookmark opens.
  const opened = await ann.get(`/-/new?${new URLSearchParams({ url, title: 'Page' }).toString()}`)
  t.same(noted(opened.text), [mine, other])
  t.match(opened.text, /name="url"[^>]*value="https:\/\/known.test\/page"/)
  t.match(opened.text, /name="title"[^>]*value="Page"/)
  t.same(noted(await ann.text(`/-/links/${id}/edit`)), [other], 'not itself')
})

await t.test('what was typed is kept when the link is gone', async (t) => {
  const { id } = await makeLink(ann, 'gone-soon', { title: 'Old' })
  const edit = `/-/links/${id}/edit`
  const typed = { slug: 'gone-soon', url: 'gone.test/', title: 'Typed', tags: 'x', version: 'v' }
  await ann.api('DELETE', `/links/${id}`)
  const { status, text } = await ann.post(edit, { ...typed, url: 'nonsense' }, HTMX)
  t.equal(status, 404)
  t.match(text, /^<form\s+id="link-form"[^]*action="\/-\/new\?generate=true"/)
  t.match(text, /Somebody has deleted this link since you opened this form[^]*value="Typed"/)
  const page = await ann.post(edit, typed, NAVIGATION)
  t.match(page, { status: 404, text: /^<!doctype html>[^]*<h1>New link<\/h1>/ })
  await expectStatus(303, ann.post('/-/new', typed), 'made again')
  t.match(await ann.post(edit, typed), { status: 404, text: 'NOT_FOUND' }, 'a program')
})

await t.test('the live check tells what it may', async (t) => {
  const said = async (slug: string) =>
    await ann.text(`/-/slug?slug=${encodeURIComponent(slug)}`, HTMX)
  await makeLink(ann, 'docs-2')
  for (const [slug, part] of [
    ['FREE', 'free is free'],
    ['"><script>', '2 to 64'],
    ['', /^$/],
    ['docs', /docs is taken[^]*href="\/-\/links\/[^]*<strong>docs-3<\/strong> is free/],
    ['Über uns!', '<strong>uber-uns</strong> is free'],
    ['users', /reserved[^]*<strong>users-2<\/strong> is free/],
    [`${'a'.repeat(63)}-b`, `<strong>${'a'.repeat(63)}</strong> is free`],
    ['taken', 'taken is taken'],
  ] as const) {
    t.match(await said(slug), part, slug)
  }
  t.notMatch(await said('taken'), new RegExp(`${taken}|href|secure|bob`))
  t.notMatch(await said('!!'), 'is free')
})

await t.test('forms and pages of a link: who may not, and what is none', async (t) => {
  const carol = await links.user('carol')
  const stranger = await links.user('eve')
  const people = { owners: [bob.email], shares: [carol.email] }
  const { id } = await makeLink(ann, 'guide', people)
  const state = () =>
    Promise.all(['', '/owners', '/shares'].map((part) => ann.read(`/links/${id}${part}`)))
  const before = await state()
  const email = { email: stranger.email }
  for (const [path, fields] of [
    ['/edit', { url: 'https://new.test/' }],
    ['/owners', email],
    ['/shares', email],
    [`/owners/${bob.id}/remove`, {}],
    [`/shares/${carol.id}/remove`, {}],
    ['/delete', {}],
  ] as const) {
    const at = `/-/links/${id}${path}`
    const forbidden = [403, 'FORBIDDEN'] as const
    refuses(t, await ann.post(at, fields, CROSS_SITE), forbidden, path)
    for (const who of [nobody, stranger, carol]) {
      refuses(t, await who.post(at, fields), forbidden, path)
    }
    for (const none of [NO_LINK, 'guide']) {
      refuses(t, await ann.post(at.replace(id, none), fields), [404, 'NOT_FOUND'], path)
    }
    if (Object.keys(fields).length > 0) {
      const json = await ann.post(at, '{}', { 'content-type': 'application/json' })
      refuses(t, json, [415, 'UNSUPPORTED_MEDIA_TYPE'], path)
      const long = await ann.post(at, `url=${'a'.repeat(70_000)}`)
      refuses(t, long, [413, 'BODY_TOO_LARGE'], path)
    }
    const page = await stranger.post(at, fields, NAVIGATION)
    t.match(page, { status: 403, text: /^<!doctype html>[^]*<h1>Forbidden<\/h1>/ })
  }
  t.same(await state(), before, 'nothing was changed')
  for (const [path, who, status] of [
    ['', stranger, 403],
    ['/edit', carol, 403],
    ['/edit', bob, 200],
    ['/delete', carol, 403],
    ['/delete', bob, 200],
  ] as const) {
    const page = await who.get(`/-/links/${id}${path}`)
    t.equal(page.status, status, `${path} for ${who.email}`)
    if (status === 403) t.notMatch(page.text, /guide\.test|bob@|"guide"/)
  }
  await expectStatus(404, ann.get(`/-/links/${NO_LINK}`))
  const read = await expectStatus(200, carol.get(`/-/links/${id}`))
  t.notMatch(read.text, '<form')
})

await t.test('owners and shares by their forms, and the end of a link', async (t) => {
  const at = `/-/links/${(await makeLink(ann, 'team')).id}`
  for (const kind of ['owners', 'shares'] as const) {
    const unknown = await ann.post(`${at}/${kind}`, { email: '"><b>' }, HTMX)
    t.match(unknown, { status: 404, text: /^<div id="members">/ })
    t.match(unknown.text, `id="${kind}-email-refused"`)
    t.match(unknown.text, 'value="&quot;&gt;&lt;b&gt;"')
    const added = await ann.post(`${at}/${kind}`, { email: ' BOB@example.com ' }, HTMX)
    t.match(added, { status: 200, text: /role="status"[^]*bob@example\.com/ })
    await expectStatus(200, ann.post(`${at}/${kind}/${bob.id}/remove`, {}, HTMX))
    await expectStatus(403, bob.get(at))
  }
  await ann.post(`${at}/owners`, { email: bob.email })
  const left = await bob.post(`${at}/owners/${bob.id}/remove`, {}, HTMX)
  t.equal(left.headers['hx-redirect'], '/-/?done=saved', 'who gives it up is led away')

  const plain = wordsOf(await ann.text(at))
  for (const sentence of [
    'made the link to https://team.test/ .',
    'made bob@example.com a co-owner.',
    'ended the co-ownership of bob@example.com .',
    'shared the link with bob@example.com .',
    'ended the share with bob@example.com .',
  ]) {
    t.match(plain, `ann@example.com ${sentence}`)
  }
  const answer = await ann.post(`${at}/delete`, {}, NAVIGATION)
  t.same([answer.status, leadsTo(answer)], [303, '/-/'])
  await expectStatus(404, ann.get(at))
})

await t.test('a link without a name gets one that is made up', async (t) => {
  const url = 'https://docs.test/'
  const make = (query: string, fields: object = {}) =>
    ann.api<Link>('POST', `/links${query}`, { url, ...fields })
  const made = await make('?generate=true')
  t.match(made, { status: 201, json: { slug: MADE_UP } })
  t.equal(leadsTo(await ann.get(`/${made.json.slug}`)), url)
  const chosen = await make('?generate=true', { slug: 'chosen-name' })
  t.match(chosen, { status: 201, json: { slug: 'chosen-name' } }, 'unless it has one')
  const form = await ann.post('/-/new?generate=true', { slug: ' ', url }, NAVIGATION)
  const id = form.headers.location?.split('/').at(-1)
  t.match(await ann.read(`/links/${id}`), { slug: MADE_UP })
  t.match(await ann.text('/-/new'), 'action="/-/new?generate=true"')
  for (const [query, error] of [
    ['', 'slug is required and must be a string'],
    ['?generate=false', 'slug is required and must be a string'],
    ['?generate=maybe', /generate/],
    ['?generate=true&generate=true', /generate/],
  ] as const) {
    refuses(t, await make(query), [400, 'BAD_REQUEST', error], query)
  }
})
