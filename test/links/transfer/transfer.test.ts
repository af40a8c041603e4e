import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { t } from 'tap'
import { request } from '../../helpers/http.ts'
import {
  identity,
  makeLink,
  NAVIGATION,
  openPages,
  slugsIn,
  slugsOf,
  type Headers,
  type Link,
} from '../../helpers/links.ts'
import { ROOT } from '../../helpers/program.ts'
import { expectStatus, refuseAll, refuses, type Refusal } from '../../helpers/refusals.ts'

// The page that imports a file, and the operation of the API.

const PATH = '/-/admin/import'
const API = '/api/v1/admin/import'

const links = await openPages(t)
const eve = await links.user('eve', { admin: true })
const ann = await links.user('ann')
const yourls = await readFile(join(ROOT, 'test/fixtures/link-exports/yourls.csv'), 'utf8')

/** What the page's form sends; a file has a name. */
async function sendForm(
  fields: Readonly<Record<string, string | Uint8Array<ArrayBuffer>>>,
  { email = eve.email, ...headers }: Headers & { email?: string } = {},
) {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) {
    if (typeof value === 'string') form.set(name, value)
    else form.set(name, new Blob([value]), 'links.csv')
  }
  const sent = new Response(form)
  const type = sent.headers.get('content-type') ?? ''
  return request(links.base + PATH, {
    method: 'POST',
    body: new Uint8Array(await sent.arrayBuffer()),
    headers: { ...NAVIGATION, ...identity(email), 'content-type': type, ...headers },
  })
}

const bytes = (text: string) => new Uint8Array(Buffer.from(text))

/** The hidden fields of a page, as its button sends them again. */
function hiddenIn(text: string) {
  const fields = text.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)
  return Object.fromEntries([...fields].map(([, name = '', value = '']) => [name, value]))
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

async function sendFile(body: string | Uint8Array, query = '', headers = bearer(eve.token)) {
  return request(`${links.base}${API}${query}`, { method: 'POST', body, headers })
}

/** Every link that there is. */
async function state() {
  return (await eve.read<{ links: readonly Link[] }>('/admin/links')).links
}

await t.test('a file is previewed, then imported', async (t) => {
  const before = await state()
  const empty = await eve.get(PATH)
  t.match(empty, { status: 200, text: /<form[^>]*enctype="multipart\/form-data"/ })
  t.match(empty.text, /name="owner"[^>]*value="eve@example\.com"/, 'the caller owns the links')
  t.match(await eve.text('/-/'), `href="${PATH}"`, 'the list leads here')
  t.notMatch(await ann.text('/-/'), `href="${PATH}"`, 'that of admins')

  const file = bytes(`${yourls}gone,https://x.test/<b>,,,,\nx,ftp://x.test/,<i>,,,\n`)
  const seen = await sendForm({ file, text: '', owner: eve.email })
  t.match(seen, { status: 200, text: 'in a file of YOURLS' })
  for (const part of [
    '3 would be created',
    'Import 3 links',
    'Line 5: <code>x</code>: slug must have 2 to 64',
    /ip<\/bdi>.*not taken over.*addresses of people are not kept/s,
    /keyword<\/bdi>.*slug/s,
    'https://x.test/&lt;b&gt;',
  ]) {
    t.match(seen.text, part)
  }
  t.same(await state(), before, 'nothing is written before it is confirmed')

  const hidden = hiddenIn(seen.text)
  t.equal(hidden['file'], Buffer.from(file).toString('base64'), 'the same bytes are sent again')
  const done = await sendForm(hidden)
  t.match(done, { status: 200, text: 'Imported 3 links of 4 from a file of YOURLS' })
  t.same(slugsIn(await eve.text('/-/')).toSorted(), ['gone', 'handbook', 'new-hires'])
  const [link] = await state()
  const history = await eve.read(`/links/${link?.id}/history`)
  t.match(history, { changes: [{ action: 'imported', actor: eve.email }] })

  const again = await sendForm({ file })
  t.match(again.text, /3 there already, the same[^]*There is nothing to import/)
  t.notMatch(again.text, 'name="step"')
})

await t.test('pasted text, updates, and owners who are new', async (t) => {
  const old = await makeLink(eve, 'pasted', { url: 'https://old.test/' })
  const text =
    'slug;url;owner\npasted;https://new.test/;\nothers;https://o.test/;zoe@example.com\n'
  const kept = await sendForm({ text, owner: ann.email })
  t.match(kept.text, '1 in conflict with a link that exists')
  t.match(kept.text, 'its owner zoe@example.com is no user')
  const seen = await sendForm({ text, owner: ann.email, update: 'true', create_users: 'true' })
  t.match(seen.text, /1 would be created.*1 would be updated.*1 user would be added/s)
  await sendForm(hiddenIn(seen.text))
  const updated = await eve.read(`/links/${old.id}`)
  t.match(updated, { url: 'https://new.test/', owners: [{ email: eve.email }] })
  t.match(await eve.text('/-/admin/users'), 'zoe@example.com')
})

await t.test('a page only shows the first lines', async (t) => {
  const rows = Array.from({ length: 150 }, (_, at) => `row-${at},ftp://x.test/\n`)
  const seen = await sendForm({ text: `slug,url\n${rows.join('')}` })
  t.match(seen.text, 'And 50 more lines')
  t.match(seen.text, 'The first 10 links')
  t.equal(seen.text.match(/data-line=/g)?.length, 10)
})

await t.test('what the page refuses, it says beside the form', async (t) => {
  const before = await state()
  for (const [fields, status, text] of [
    [{}, 400, 'or paste its text'],
    [{ text: 'a,b\n1,2\n' }, 400, 'The file has the columns a, b. A link needs slug and url'],
    [{ text: yourls, owner: 'ann' }, 400, 'must be an e-mail address'],
    [{ text: yourls, owner: 'nobody@example.com' }, 400, 'o user has the e-mail address nobody@'],
    [{ file: new Uint8Array(2 ** 20 + 1) }, 413, 'more than 1024 KiB'],
    [{ text: `slug,url\n${'aa,b\n'.repeat(10_001)}` }, 413, 'more than 10,000 links'],
    [{ text: yourls, step: 'other' }, 400, 'Import'],
  ] as const) {
    for (const step of ['preview', 'import']) {
      const answer = await sendForm({ step, ...fields })
      t.match(answer, { status, text }, text)
      t.match(answer.text, '<form', 'with the form')
    }
  }
  const cut = { 'content-type': 'multipart/form-data; boundary=x' }
  const broken = await eve.post(PATH, '--x\r\n', cut)
  t.match(broken, { status: 400, text: 'not valid multipart' })
  const foreign = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }
  for (const [status, answer] of [
    [403, sendForm({ text: yourls }, { email: ann.email })],
    [403, ann.get(PATH)],
    [403, sendForm({ text: yourls, step: 'import' }, foreign)],
    [415, eve.post(PATH, { text: yourls })],
    [413, sendForm({ file: new Uint8Array(2 ** 21) })],
  ] as const) {
    await expectStatus(status, answer)
  }
  t.same(await state(), before)
})

await t.test('names of links in a file, and in a dry run of it', async (t) => {
  const { slug } = await makeLink(eve, 'named', { url: 'https://named.test/' })
  const file = bytes('slug,url,aliases\nnamed,https://named.test/,pasted\n')
  for (const dry of [true, false]) {
    const lines = [{ slug, outcome: 'conflict', message: 'slug already taken' }]
    const report = (await sendFile(file, `?update=true&dry_run=${dry}`)).json()
    t.match(report, { lines }, `dry_run=${dry}`)
  }
  const two = bytes('slug,url,aliases\ntwin-b,https://x.test/,both\ntwin-a,https://x.test/,both\n')
  for (const dry of [true, false]) {
    const lines = [{ message: 'without both, which other links have' }, { message: '' }]
    const report = (await sendFile(two, `?dry_run=${dry}`)).json()
    t.match(report, { lines, totals: { created: 2 } }, `two new links, dry_run=${dry}`)
  }
  const own = bytes('slug,url,aliases\nown,https://x.test/,own\n')
  for (const outcome of ['created', 'unchanged']) {
    const { lines } = (await sendFile(own)).json<{ lines: readonly object[] }>()
    t.same(lines, [{ line: 2, slug: 'own', outcome, message: '' }], 'its own slug is no alias')
  }
})

await t.test('the API imports a file as it is', async (t) => {
  const file = await readFile(join(ROOT, 'test/fixtures/link-exports/bitly.csv'))
  const dry = await sendFile(file, '?dry_run=true')
  const report = {
    source: 'Bitly',
    totals: { created: 2, updated: 0, unchanged: 0, conflict: 0, refused: 0, users: 0 },
    lines: [
      { line: 2, slug: 'spring', outcome: 'created', message: 'was "Spring"' },
      { line: 3, slug: '4xyzabc', outcome: 'created' },
    ],
  }
  t.match(dry.json(), { dry_run: true, ...report })
  const { columns } = dry.json<{ columns: readonly { column: string; becomes: string }[] }>()
  const becomes = columns.map((one) => `${one.column}: ${one.becomes}`).join(', ')
  const first = 'Link: slug, Custom Link: slug, Date created: created_at, Title: title'
  t.equal(becomes, `${first}, Destination URL: url, Engagements: null, Status: archived`)
  t.same(await slugsOf(eve, '/links?q=spring'), [], 'nothing is written')
  t.match((await sendFile(file)).json(), { dry_run: false, ...report })
  const changed = `slug,url\nspring,https://else.test/\n`
  t.match((await sendFile(changed)).json(), { totals: { conflict: 1 } })
  t.match((await sendFile(changed, '?update=true')).json(), { totals: { updated: 1 } })
  const owned =
    'slug,url,owner\nof-ann,https://ann.test/,\nof-yan,https://y.test/,yan@example.com\n'
  const people = `?owner=${ann.email}&create_users=true`
  t.match((await sendFile(owned, people)).json(), { totals: { created: 2, users: 1 } })
  t.same(await slugsOf(ann, '/links?q=of-ann'), ['of-ann'])
})

await t.test('what the API refuses changes nothing', async (t) => {
  const read = await links.token(eve.email, { scope: 'read' })
  const call = `POST ${API}`
  const meant =
    'A link needs slug and url, or the columns of golink, YOURLS, Dub, Bitly, Rebrandly, Trotto, GoLinks, Shlink, kutt'
  /** A file that is no list of links, and why. */
  const bad = (body: string, text: string): Refusal => [{ call, body }, 400, 'BAD_REQUEST', text]
  await refuseAll(t, { service: 'links', base: links.base, headers: bearer(eve.token), state }, [
    bad('', 'The file is empty: it has no header and no links'),
    bad('a,b\n', `The file has the columns a, b. ${meant}`),
    bad('[{"a": 1}]', `The file is JSON, and its links have a. ${meant}`),
    bad('slug,url,"x', 'The first line a quoted field is never closed; nothing after it was read'),
    [`${call}?dry_run=maybe`, 400, 'BAD_REQUEST', 'dry_run must be true or false'],
    [
      { call: `${call}?owner=x`, body: yourls },
      400,
      'BAD_REQUEST',
      'owner must be an e-mail address of 254 characters at most',
    ],
    [{ call, body: Buffer.alloc(2 ** 20 + 1) }, 413, 'BODY_TOO_LARGE'],
    [{ call, body: `slug,url\n${'a,b\n'.repeat(10_001)}` }, 413, 'BODY_TOO_LARGE'],
    [{ call, body: yourls, headers: bearer(ann.token) }, 403, 'FORBIDDEN'],
    [
      { call, body: yourls, headers: bearer(read) },
      403,
      'FORBIDDEN',
      'this token has scope read, which does not reach here',
    ],
  ])
  refuses(t, await request(links.base + API, { method: 'POST', body: yourls }), [
    401,
    'UNAUTHORIZED',
  ])
})
