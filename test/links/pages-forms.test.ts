import { t } from 'tap'
import { openDatabase } from '../../db/open.ts'
import { createLog } from '../../kernel/log.ts'
import { createGenerated, generateSlug } from '../../services/links/links/generate.ts'
import { withoutGroups } from '../../services/links/users/groups.ts'
import { ensureUser } from '../../services/links/users/users.ts'
import { backends } from '../helpers/backends.ts'
import {
  HTMX,
  NAVIGATION,
  makeLink,
  pageUser,
  slugsIn,
  startPages,
  visitorAt,
} from '../helpers/links.ts'
import { leadsTo } from '../helpers/http.ts'
import type { Headers, Link, PageUser } from '../helpers/links.ts'
import { refuses } from '../helpers/refusals.ts'
import { transcript } from '../helpers/secrets.ts'

const [, postgres] = backends
const CROSS_SITE = { 'sec-fetch-site': 'cross-site' }
const NO_LINK = '00000000-0000-4000-8000-000000000000'
/** A made-up name: 28 letters and digits that are not mistaken for each other. */
const MADE_UP = /^[2-9bcdfghjkmnpqrstvwxyz]{7}$/
const FIELDS = { url: 'https://new.test/', title: 'New' }

/** A post of a link's page: its path below the link, and a body that would be taken. */
type Form = { readonly path: string; readonly fields: Headers; readonly reads: boolean }

/** All that the API tells of a link, to see that nothing was changed. */
async function stateOf({ api }: PageUser, id: string): Promise<unknown> {
  const parts = ['', '/owners', '/shares'].map((part) => api('GET', `/links/${id}${part}`))
  return (await Promise.all(parts)).map(({ json }) => json)
}

const links = await startPages(t, postgres)
const ann = await pageUser(links, 'ann')
const bob = await pageUser(links, 'bob')
const { id: taken } = await makeLink(bob, 'taken', { visibility: 'secure' })

await t.test('the form says who sees a private link', async (t) => {
  t.match((await ann.get('/-/new')).text, 'it is listed to owners, recipients and admins')
})

await t.test('what is refused stays in the form, beside why', async (t) => {
  const good = { slug: 'good', url: 'https://good.test/' }
  const tags = Array.from({ length: 21 }, (_, at) => `t${at}`).join(',')
  const cases: readonly (readonly [string, Headers, number])[] = [
    ['slug', { ...good, slug: 'x' }, 400],
    ['slug', { ...good, slug: '<b>' }, 400],
    ['slug', { ...good, slug: 'admin' }, 400],
    ['slug', { ...good, slug: 'taken' }, 409],
    ['slug', { ...good, slug: '' }, 400],
    ['url', { ...good, url: '' }, 400],
    ['url', { ...good, url: 'javascript:alert(1)' }, 400],
    ['url', { ...good, url: 'data:text/html,<script>' }, 400],
    ['url', { ...good, url: 'https://user:pass@good.test/' }, 400],
    ['url', { ...good, url: `${links.base}/good` }, 400],
    ['title', { ...good, title: 'x'.repeat(201) }, 400],
    ['description', { ...good, description: 'x'.repeat(2_001) }, 400],
    ['tags', { ...good, tags: 'ok, ä' }, 400],
    ['tags', { ...good, tags }, 400],
  ]
  for (const [field, fields, status] of cases) {
    const what = `${field} ${fields[field]?.slice(0, 30)}`
    const fragment = await ann.post('/-/new', fields, HTMX)
    t.equal(fragment.status, status, what)
    t.match(fragment.text, /^<form\s+id="link-form"/)
    t.match(fragment.text, `id="link-${field}-refused"`)
    t.equal(fragment.text.match(/aria-invalid/g)?.length, 1, 'at its field alone')
    t.match(fragment.text, `value="${escaped(fields['url'] ?? '')}"`, 'what was typed stays')
    const page = await ann.post('/-/new', fields, NAVIGATION)
    t.equal(page.status, status)
    t.match(page.text, /^<!doctype html>/)
  }
  const both = await ann.post('/-/new', { slug: '-', url: 'nonsense' }, HTMX)
  t.equal(both.text.match(/aria-invalid/g)?.length, 2, 'all that is wrong at once')
  const clash = await ann.post('/-/new', { slug: 'taken', url: 'nonsense', tags: 'ä' }, HTMX)
  t.equal(clash.text.match(/aria-invalid/g)?.length, 3, 'a taken slug among it')
  t.match(clash.text, /Short name already taken\.[^]*<strong>taken-2<\/strong> is free/)
  const bad = await ann.post('/-/new', { ...good, visibility: 'all' }, HTMX)
  t.equal(bad.status, 400)
  t.equal((await ann.post('/-/new', good, CROSS_SITE)).status, 403)
  t.equal((await visitorAt(links.base, '').post('/-/new', good)).status, 403)
  t.equal((await ann.post('/-/new', '{}', { 'content-type': 'application/json' })).status, 415)
  t.equal((await ann.post('/-/new', `slug=${'a'.repeat(70_000)}`)).status, 413)
  t.same(slugsIn((await ann.get('/-/')).text), [], 'nothing was made')
})

await t.test('made: a browser goes to its page, by either way', async (t) => {
  const fields = {
    slug: ' Docs ',
    url: ' https://docs.test/{1} ',
    title: 'Docs',
    description: 'one\r\ntwo',
    tags: 'Wiki, my team,, wiki',
    visibility: 'private',
    append_path: 'true',
  }
  const plain = await ann.post('/-/new', fields, NAVIGATION)
  t.equal(plain.status, 303)
  const id = leadsTo(plain).split('/').at(-1) ?? ''
  const { json } = await ann.api<Link>('GET', `/links/${id}`)
  t.match(json, {
    slug: 'docs',
    url: 'https://docs.test/{1}',
    title: 'Docs',
    description: 'one\ntwo',
    visibility: 'private',
    append_path: true,
    owners: [{ email: ann.email, is_primary: true }],
  })
  t.same(json.tags, ['my-team', 'wiki'])
  const htmx = await ann.post('/-/new', { slug: 'two', url: 'https://two.test/' }, HTMX)
  t.equal(htmx.status, 204)
  t.match(htmx.headers['hx-redirect'], /^\/-\/links\/[0-9a-f-]{36}\?created=true$/)

  const edit = `/-/links/${id}/edit`
  t.match((await ann.get(edit)).text, /value="my-team, wiki"/)
  const bad = await ann.post(edit, { ...fields, url: 'ftp://x/', title: 'Kept' }, HTMX)
  t.equal(bad.status, 400)
  t.match(bad.text, /id="link-url-refused"[^]*value="Kept"/)
  t.same((await ann.api('GET', `/links/${id}`)).json, json, 'nothing was changed')
  const saved = await ann.post(edit, { url: 'https://other.test/', slug: 'ignored' })
  t.equal(saved.status, 303)
  t.match((await ann.api('GET', `/links/${id}`)).json, {
    slug: 'docs',
    url: 'https://other.test/',
    title: '',
    tags: [],
    visibility: 'private',
    append_path: false,
  })
})

await t.test('an address may be typed without https://', async (t) => {
  for (const [typed, url] of [
    ['example.com/x', 'https://example.com/x'],
    [' example.com:8443/x?y#z ', 'https://example.com:8443/x?y#z'],
    ['bücher.example', 'https://bücher.example'],
    ['localhost:8080/x', 'https://localhost:8080/x'],
    ['10.0.0.1/{1}', 'https://10.0.0.1/{1}'],
    ['http://example.com/', 'http://example.com/'],
  ] as const) {
    const made = await ann.post('/-/new', { slug: 'completed', url: typed })
    t.equal(made.status, 303, typed)
    const id = leadsTo(made).split('/').at(-1) ?? ''
    t.equal((await ann.api<Link>('GET', `/links/${id}`)).json.url, url)
    const edited = await ann.post(`/-/links/${id}/edit`, { url: typed })
    t.match([edited.status, (await ann.api<Link>('GET', `/links/${id}`)).json.url], [303, url])
    await ann.api('DELETE', `/links/${id}`)
  }
  for (const url of [
    ...['example', 'mailto:ann@example.com', 'ann@example.com', 'ftp.example.com:x/', '/x.html'],
    ...['example.com /x', 'a..b/', '.com', '//example.com/', 'javascript:alert(1).x', 'tel:12345'],
  ]) {
    t.equal((await ann.post('/-/new', { slug: 'completed', url })).status, 400, url)
  }
  const strict = await ann.api('POST', '/links', { slug: 'completed', url: 'example.com/x' })
  t.equal(strict.status, 400, 'the API completes nothing')
})

await t.test('the form shows the places of an address', async (t) => {
  const shown = async (fields: Headers): Promise<string> => {
    const { text } = await ann.get(`/-/example?${new URLSearchParams(fields).toString()}`, HTMX)
    return text
      .replaceAll(/<(?!input)[^>]*>/g, '')
      .replaceAll(/\s+/g, ' ')
      .trim()
  }
  const url = 'tracker.test/{1}/issues/{2}'
  const sample = await shown({ slug: 'Bugs', url })
  t.match(sample, 'It will lead to https://tracker.test/{1}/issues/{2}')
  t.match(sample, '/bugs/one/two leads to https://tracker.test/one/issues/two')
  t.equal(sample.match(/<input/g)?.length, 2)
  const typed = await shown({ slug: 'bugs', url, 'place-1': 'a b', 'place-2': '"><b>' })
  t.match(typed, '/bugs/a%20b/%22%3E%3Cb%3E leads to https://tracker.test/a%20b/issues/%22%3E%3Cb')
  t.match(typed, 'value="&quot;&gt;&lt;b&gt;"')
  const rest = { slug: 'bugs', url: 'http://x.test/?q={*}', 'place-rest': 'a/b' }
  t.match(await shown(rest), '/bugs/a/b leads to http://x.test/?q=a/b')
  const defaults = { slug: 'bugs', url: 'http://x.test/{1}/{2:main}?of={user}', 'place-1': 'r' }
  t.match(await shown(defaults), '/bugs/r leads to http://x.test/r/main?of=you%40example.com')
  const appended = { slug: 'bugs', url: 'http://x.test/y', append_path: 'true' }
  t.match(await shown(appended), 'Further path')
  t.match(await shown(appended), '/bugs/a/b leads to http://x.test/y/a/b')
  t.match(await shown({ ...appended, 'place-rest': '../x' }), 'leads nowhere')
  for (const fields of [
    {},
    { url: 'http://x.test/' },
    { url: 'javascript:{1}' },
    { url: '{1}' },
  ]) {
    t.equal(await shown(fields), '', JSON.stringify(fields))
  }
  const { status } = await visitorAt(links.base, '').get(`/-/example?url=${url}`)
  t.equal(status, 403)
  const refused = await ann.post('/-/new', { slug: '-', url, 'place-1': 'kept' }, HTMX)
  t.match(refused.text, /name="place-1"[^>]*value="kept"/)
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
  const mine = ['known', `/-/links/${id}`]
  const example = async (fields: Headers, who = ann) =>
    (await who.get(`/-/example?${new URLSearchParams(fields).toString()}`, HTMX)).text
  t.same(noted(await example({ url: 'known.test/page' })), [mine, ['known-too', '/known-too+']])
  t.match(await example({ url }), 'A &lt;page&gt;')
  t.same(noted(await example({ url, slug: 'known' })), [['known-too', '/known-too+']], 'others')
  t.same(noted(await example({ url: 'https://known.test/' })), [])
  t.equal(noted(await example({ url }, bob)).length, 3, 'who may see the private one')
  // What a bookmark opens.
  const opened = await ann.get(`/-/new?${new URLSearchParams({ url, title: 'Page' }).toString()}`)
  t.same(noted(opened.text), [mine, ['known-too', '/known-too+']])
  t.match(opened.text, /name="url"[^>]*value="https:\/\/known.test\/page"/)
  t.match(opened.text, /name="title"[^>]*value="Page"/)
  t.same(noted((await ann.get(`/-/links/${id}/edit`)).text), [['known-too', '/known-too+']])
})

await t.test('a preview shows where a path leads', async (t) => {
  const places = { url: 'https://places.test/{1}?q={*}', visibility: 'private' }
  await makeLink(ann, 'places', places)
  const preview = async (query: string, who: Pick<PageUser, 'get'> = ann) =>
    (await who.get(`/places+${query}`)).text
  t.match(await preview(''), /For example, [^]*\/places\/one\/a\/b[^]*places\.test\/one\?q=a\/b/)
  const filled = await preview('?place-1=x&place-rest=y%2F%3Cb%3E')
  t.match(filled, 'https://places.test/x?q=y/%3Cb%3E')
  t.match(filled, /href="\/places\/x\/y\/%3Cb%3E"/)
  t.equal(
    (await ann.get('/places/x/y/%3Cb%3E')).headers.location,
    'https://places.test/x?q=y/%3Cb%3E',
  )
  t.match(await preview('?place-1=..'), 'leads nowhere')
  t.notMatch(await preview('?place-1=x', visitorAt(links.base, '')), 'places.test')
  await makeLink(ann, 'no-places')
  t.notMatch((await ann.get('/no-places+')).text, /place-|For example/)
})

await t.test('what was typed is kept when the link is gone', async (t) => {
  const { id } = await makeLink(ann, 'gone-soon', { title: 'Old' })
  const edit = `/-/links/${id}/edit`
  t.match((await ann.get(edit)).text, /name="slug"\s+value="gone-soon"/)
  const typed = { slug: 'gone-soon', url: 'gone.test/', title: 'Typed', tags: 'x', version: 'v' }
  await ann.api('DELETE', `/links/${id}`)
  for (const fields of [typed, { ...typed, url: 'nonsense' }]) {
    const { status, text } = await ann.post(edit, fields, HTMX)
    t.equal(status, 404)
    t.match(text, /^<form\s+id="link-form"[^]*action="\/-\/new\?generate=true"/)
    t.match(text, /Somebody has deleted this link since you opened this form/)
    t.match(text, /value="gone-soon"[^]*value="Typed"[^]*value="x"/)
  }
  const page = await ann.post(edit, typed, NAVIGATION)
  t.match(page, { status: 404, text: /^<!doctype html>[^]*<h1>New link<\/h1>/ })
  t.equal((await ann.post('/-/new', typed)).status, 303, 'made again')
  t.match(await ann.post(edit, typed), { status: 404, text: /NOT_FOUND/ }, 'a program')
  await makeLink(bob, 'of-bob')
})

await t.test('the live check tells what it may', async (t) => {
  const said = async (slug: string): Promise<string> =>
    (await ann.get(`/-/slug?slug=${encodeURIComponent(slug)}`, HTMX)).text
  t.match(await said('free-one'), /free-one is free/)
  t.match(await said('FREE'), /free is free/)
  t.match(await said('users'), /reserved/)
  t.match(await said('a'), /2 to 64/)
  t.match(await said('"><script>'), /2 to 64/)
  t.equal(await said(''), '')
  const secret = await said('taken')
  t.match(secret, /taken is taken/)
  t.notMatch(secret, new RegExp(`${taken}|href|secure|bob`))
  t.match(await said('docs'), /docs is taken[^]*href="\/-\/links\//)
  for (const [slug, free] of [
    ['docs', 'docs-2'],
    ['Über uns!', 'uber-uns'],
    ['users', 'users-2'],
    ['-x-', 'x-2'],
    ['a'.repeat(65), 'a'.repeat(64)],
    [`${'a'.repeat(63)}-b`, 'a'.repeat(63)],
  ] as const) {
    t.match(await said(slug), `<strong>${free}</strong> is free`, slug)
  }
  await makeLink(ann, 'docs-2')
  t.match(await said('docs'), '<strong>docs-3</strong> is free')
  t.notMatch(await said('!!'), /is free/)
})

await t.test('forms of a link: who may not, and what is none', async (t) => {
  const carol = await pageUser(links, 'carol')
  await pageUser(links, 'dan')
  const link = await makeLink(ann, 'guide')
  await ann.api('POST', `/links/${link.id}/owners`, { email: bob.email })
  await ann.api('POST', `/links/${link.id}/shares`, { email: carol.email })
  const stranger = await pageUser(links, 'eve')
  const nobody = visitorAt(links.base, '')
  const before = await stateOf(ann, link.id)

  const forms: readonly Form[] = [
    { path: '/edit', fields: FIELDS, reads: true },
    { path: '/owners', fields: { email: 'dan@example.com' }, reads: true },
    { path: '/shares', fields: { email: 'dan@example.com' }, reads: true },
    { path: `/owners/${bob.id}/remove`, fields: {}, reads: false },
    { path: `/shares/${carol.id}/remove`, fields: {}, reads: false },
    { path: '/delete', fields: {}, reads: false },
  ]
  for (const { path, fields, reads } of forms) {
    await t.test(path.replaceAll(/[0-9a-f-]{36}/g, '…'), async (t) => {
      const at = `/-/links/${link.id}${path}`
      const refused = async (
        status: number,
        what: string,
        answer: ReturnType<typeof ann.post>,
      ) => {
        const { status: got, text } = await answer
        t.equal(got, status, what)
        t.match(JSON.parse(text), { error: /\S/, code: /^[A-Z_]+$/ })
      }
      await refused(403, 'from another site', ann.post(at, fields, CROSS_SITE))
      await refused(403, 'nobody', nobody.post(at, fields))
      await refused(403, 'a stranger', stranger.post(at, fields))
      await refused(403, 'a recipient', carol.post(at, fields))
      await refused(404, 'no link', ann.post(at.replace(link.id, NO_LINK), fields))
      await refused(404, 'no id', ann.post(at.replace(link.id, 'guide'), fields))
      if (reads) {
        const json = { 'content-type': 'application/json' }
        await refused(415, 'no form', ann.post(at, JSON.stringify(fields), json))
        await refused(413, 'too large', ann.post(at, `url=${'a'.repeat(70_000)}`))
      }
      const page = await stranger.post(at, fields, NAVIGATION)
      t.equal(page.status, 403)
      t.match(page.text, /^<!doctype html>[^]*<h1>Forbidden<\/h1>/)
      t.same(await stateOf(ann, link.id), before, 'nothing was changed')
    })
  }

  await t.test('pages of a link', async (t) => {
    for (const [path, who, status] of [
      ['', carol, 200],
      ['', stranger, 403],
      ['/edit', carol, 403],
      ['/edit', bob, 200],
      ['/edit', stranger, 403],
      ['/delete', carol, 403],
      ['/delete', bob, 200],
    ] as const) {
      const { status: got, text } = await who.get(`/-/links/${link.id}${path}`)
      t.equal(got, status, `${path} for ${who.email}`)
      if (got === 403) t.notMatch(text, /guide\.test|bob@|"guide"/)
    }
    t.equal((await ann.get(`/-/links/${NO_LINK}`)).status, 404)
    t.equal((await ann.get('/-/links/guide', NAVIGATION)).status, 404)
    t.notMatch((await carol.get(`/-/links/${link.id}`)).text, /<form/)
  })
})

await t.test('owners and shares by their forms', async (t) => {
  const { id } = await makeLink(ann, 'team')
  const at = `/-/links/${id}`
  for (const kind of ['owners', 'shares'] as const) {
    await t.test(kind, async (t) => {
      for (const [email, status] of [
        ['nobody@example.com', 404],
        ['"><b>', 404],
        ['', 404],
      ] as const) {
        const answer = await ann.post(`${at}/${kind}`, { email }, HTMX)
        t.equal(answer.status, status, email)
        t.match(answer.text, /^<div id="members">/)
        t.match(answer.text, `id="${kind}-email-refused"`)
        t.match(answer.text, `value="${escaped(email)}"`)
      }
      const added = await ann.post(`${at}/${kind}`, { email: ' BOB@example.com ' }, HTMX)
      t.equal(added.status, 200)
      t.match(added.text, /role="status"[^]*bob@example\.com/)
      const twice = await ann.post(`${at}/${kind}`, { email: bob.email }, NAVIGATION)
      t.equal(twice.status, 409)
      t.match(twice.text, new RegExp(`^<!doctype html>[^]*id="${kind}-email-refused"`))
      t.equal((await bob.get(at)).status, 200)
      const gone = await ann.post(`${at}/${kind}/${bob.id}/remove`, {}, HTMX)
      t.equal(gone.status, 200)
      t.notMatch(gone.text, new RegExp(`/${bob.id}/remove`))
      t.equal((await bob.get(at)).status, 403)
      t.equal((await ann.post(`${at}/${kind}/${bob.id}/remove`)).status, 404)
      t.equal((await ann.post(`${at}/${kind}/bob/remove`)).status, 404)
    })
  }

  await t.test('the primary owner stays', async (t) => {
    const answer = await ann.post(`${at}/owners/${ann.id}/remove`)
    t.equal(answer.status, 400)
    t.equal(answer.json<{ code: string }>().code, 'PRIMARY_OWNER_PROTECTED')
  })

  await t.test('who gives up a co-ownership is led away from the link', async (t) => {
    await ann.post(`${at}/owners`, { email: bob.email })
    const answer = await bob.post(`${at}/owners/${bob.id}/remove`, {}, HTMX)
    t.equal(answer.headers['hx-redirect'], '/-/?done=saved')
  })

  await t.test('history tells all of it', async (t) => {
    const { text } = await ann.get(at)
    const [, history = ''] = text.split('id="history"')
    const plain = history.replaceAll(/<[^>]*>/g, '').replaceAll(/\s+/g, ' ')
    for (const sentence of [
      'made the link to https://team.test/.',
      'made bob@example.com a co-owner.',
      'ended the co-ownership of bob@example.com.',
      'shared the link with bob@example.com.',
      'ended the share with bob@example.com.',
    ]) {
      t.match(plain, `ann@example.com ${sentence}`)
    }
  })

  await t.test('deleted: its slug leads nowhere and is free', async (t) => {
    const answer = await ann.post(`${at}/delete`, {}, NAVIGATION)
    t.equal(answer.status, 303)
    t.equal(leadsTo(answer), '/-/')
    t.equal((await ann.get(at)).status, 404)
    t.equal((await ann.get('/team')).status, 404)
    t.equal((await ann.post(`${at}/delete`)).status, 404)
    t.match((await ann.get('/-/slug?slug=team')).text, /is free/)
  })
})

await t.test('a link without a name gets one that is made up', async (t) => {
  const url = 'https://docs.test/'
  const made = await ann.api<Link>('POST', '/links?generate=true', { url, title: 'Docs' })
  t.match(made, { status: 201, json: { slug: MADE_UP, url, title: 'Docs' } })
  t.equal(leadsTo(await ann.get(`/${made.json.slug}`)), url)
  const chosen = await ann.api<Link>('POST', '/links?generate=true', { url, slug: 'chosen-name' })
  t.match(chosen, { status: 201, json: { slug: 'chosen-name' } }, 'unless it has one')

  const form = await ann.post('/-/new?generate=true', { slug: ' ', url }, NAVIGATION)
  t.equal(form.status, 303)
  const id = form.headers.location?.split('/').at(-1)
  t.match((await ann.api<Link>('GET', `/links/${id}`)).json, { slug: MADE_UP })
  t.match((await ann.get('/-/new')).text, 'action="/-/new?generate=true"')

  const missing = [400, 'BAD_REQUEST', /^slug is required and must be a string$/] as const
  refuses(t, await ann.api('POST', '/links', { url }), missing, 'not asked for')
  refuses(t, await ann.api('POST', '/links?generate=false', { url }), missing)
  refuses(t, await ann.api('POST', '/links?generate=maybe', { url }), [400, 'BAD_REQUEST'])
  const twice = await ann.api('POST', '/links?generate=true&generate=true', { url })
  refuses(t, twice, [400, 'BAD_REQUEST'])
  const reader = links.api(await links.token(ann.email, { scope: 'read' }))
  refuses(t, await reader('POST', '/links?generate=true', { url }), [403, 'FORBIDDEN'])
  const clash = { url, aliases: ['taken'] }
  refuses(t, await ann.api('POST', '/links?generate=true', clash), [409, 'SLUG_CONFLICT'])
  const refused = await ann.post('/-/new?generate=true', { slug: '', url: 'x y' }, HTMX)
  t.match(refused, { status: 400, text: 'id="link-url-refused"' })
})

await t.test('a name that is taken is made up again, five times at most', async (t) => {
  const env = await postgres.env(t)
  const log = createLog(
    (text) => transcript('log', text, 'generated'),
    () => new Date(),
  )
  const opened = await openDatabase({ url: env['DATABASE_URL'], dataDirectory: '' }, log)
  t.teardown(() => opened[Symbol.asyncDispose]())
  const { db } = opened
  const now = new Date()
  const actor = { kind: 'command' } as const
  const creator = withoutGroups(await ensureUser({ db, actor }, 'ann@example.com', 'user', now))
  const parts = { db, log, ownHosts: () => false, forget: () => undefined }
  const input = { url: 'https://docs.test/', title: '', description: '', tags: [] }
  const drawn: number[] = []
  function drawing(...bytes: readonly number[]) {
    drawn.length = 0
    function random(size: number) {
      drawn.push(size)
      return Buffer.alloc(size, bytes[drawn.length - 1] ?? bytes.at(-1))
    }
    return createGenerated({ ...parts, random }, creator, input, now)
  }
  t.equal((await drawing(0)).slug, '2222222')
  t.equal((await drawing(0, 0, 9)).slug, 'cccccccc'.slice(1), 'the third')
  await t.rejects(drawing(0), { code: 'SLUG_CONFLICT', status: 409 })
  t.equal(drawn.length, 5)
})

t.test('names are drawn evenly', async (t) => {
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, at) => at))
  let from = 0
  const counts = new Map<string, number>()
  // 252 of 256 bytes are letters, so 9 rounds of 28 letters are 36 names.
  for (let name = 0; name < 36; name++) {
    const slug = generateSlug((size) => {
      const drawn = bytes.subarray(from, from + 7)
      from += 7
      return Buffer.concat([drawn, Buffer.alloc(size - 7, 255)])
    })
    for (const letter of slug) counts.set(letter, (counts.get(letter) ?? 0) + 1)
  }
  t.same([...new Set(counts.values())], [9])
  t.equal(counts.size, 28)
})

/** Text as it stands in an attribute. */
function escaped(text: string): string {
  return text.replaceAll('"', '&quot;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
