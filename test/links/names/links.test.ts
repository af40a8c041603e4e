import { t } from 'tap'
import type { Api } from '../../helpers/api.ts'
import { wordsOf } from '../../helpers/http.ts'
import {
  HTMX,
  NAVIGATION,
  leadsTo,
  makeLink,
  slugsIn,
  openLinks,
  openPages,
  visit,
  type Headers,
  type Link,
  type PageUser,
} from '../../helpers/links.ts'
import { callTool, errorOf } from '../../helpers/mcp.ts'
import { expectStatus, refuses, type Refusal } from '../../helpers/refusals.ts'
import { until } from '../../helpers/until.ts'
import { walk } from './pagination-walk.ts'

const ID = '00000000-0000-4000-8000-000000000000'
const url = 'https://x.test/'

type Change = { id: number; actor: string; action: string; detail: object }

const links = await openPages(t)
const { base, env, query, value } = links
const ann = await links.user('ann')
const bob = await links.user('bob')
const cyd = await links.user('cyd')
const eve = await links.user('eve')
const root = await links.user('root', { admin: true })

/** A link of ann's with bob as co-owner and cyd as recipient. */
async function shared(slug: string, fields: object = {}) {
  const people = { owners: [bob.email], shares: [cyd.email] }
  const path = `/links/${(await makeLink(ann, slug, { ...fields, ...people })).id}`
  return { ...(await ann.read(path)), path }
}

/** The changes of a link, page by page. */
async function changesOf(path: string, limit = 50): Promise<readonly Change[]> {
  const all: Change[] = []
  for (let cursor = ''; ;) {
    const { changes, next_cursor } = await ann.read<{
      changes: Change[]
      next_cursor: string | null
    }>(`${path}/history?limit=${limit}${cursor}`)
    all.push(...changes)
    if (next_cursor === null) return all
    cursor = `&cursor=${next_cursor}`
  }
}

async function etagOf(path: string): Promise<string> {
  return (await ann.api('GET', path)).headers.etag ?? ''
}

const ifMatch = (etag: string) => ({ 'if-match': etag })

await t.test('who reads, changes and deletes a link', async (t) => {
  const { path, id } = await shared('rights', { visibility: 'secure' })
  const state = () => ann.read(path)
  const headers = { 'content-type': 'text/plain' }
  const sent = (call: string) => ({ call, body: 'no json', headers })
  // The order of refusals: id, existence, right, body.
  await eve.refused(t, state, [
    ...['GET', 'PUT', 'DELETE'].flatMap((method): readonly Refusal[] => [
      [sent(`${method} ${path}`), 403, 'FORBIDDEN'],
      [sent(`${method} /links/${ID}`), 404, 'NOT_FOUND'],
      [sent(`${method} /links/no-id`), 400, 'BAD_REQUEST'],
    ]),
    ...['1', 'rights', `${id}0`, `%7B${id}%7D`].map((wrong): Refusal => [
      `GET /links/${wrong}`,
      400,
      'BAD_REQUEST',
    ]),
  ])
  await ann.refused(t, state, [
    [sent(`PUT ${path}`), 415, 'UNSUPPORTED_MEDIA_TYPE'],
    [{ call: `PUT ${path}`, body: { title: 'kept out' } }, 400, 'BAD_REQUEST'],
    [{ call: `PUT ${path}`, body: { url: '', title: 'kept out' } }, 400, 'INVALID_URL'],
  ])
  t.match(await ann.read(`/links/${id.toUpperCase()}`), { id }, 'an id in capitals is the same id')
  const one = await shared('going', { tags: ['gone'], visibility: 'secure' })
  await expectStatus(204, bob.api('DELETE', one.path), 'a co-owner deletes it')
  refuses(t, await ann.api('GET', `${one.path}/shares`), [404, 'NOT_FOUND'])
  const made = await makeLink(bob, one.slug, { visibility: 'secure' })
  t.same([made.tags, made.owners.length], [[], 1], 'nothing of the old link comes back')
  await expectStatus(403, cyd.api('GET', `/links/${made.id}`))
})

/** The tag `poison` can't be written, `counted-out` not counted. */
const TRIGGERS = `
  create function links.fail() returns trigger language plpgsql
   as $$ begin raise exception 'the disk of tags is full'; end $$;
  create trigger fail before insert or update on links.link_tags
   for each row when (new.tag = 'poison') execute function links.fail();
  create trigger fail before insert or update on links.tags
   for each row when (new.tag = 'counted-out') execute function links.fail()`

await t.test('tags that can’t be written', async (t) => {
  const kept = await makeLink(ann, 'kept', { title: 'As it was', tags: ['fine'] })
  await query(TRIGGERS)
  const state = async () => [
    await root.read('/links?limit=200'),
    await root.read('/tags'),
    await query('select id from links.changes order by id'),
  ]
  const bad = [['poison'], ['fine', 'poison'], ['counted-out']]
  // What failed inside is not told.
  const failed = [
    500,
    'TAG_WRITE_FAILED',
    'the tags could not be written, so nothing was changed; try again',
  ] as const
  await ann.refused(
    t,
    state,
    bad.flatMap((tags) => [
      [{ call: 'POST /links', body: { slug: 'not-made', url, tags } }, ...failed],
      [{ call: `PUT /links/${kept.id}`, body: { url, visibility: 'private', tags } }, ...failed],
    ]),
  )
  const logged = links.server.logs().filter((line) => line.includes('"tags not written"'))
  t.equal(logged.length, 2 * bad.length, 'the log has each one')
  for (const line of logged) t.match(JSON.parse(line), { error: ': the disk of tags is full' })
  const tools = { url: `${base}/mcp/links`, token: ann.token }
  const tool = await callTool(tools, 'create_link', { slug: 'not-made', url, tags: ['poison'] })
  t.match(errorOf(tool), { code: 'internal', message: failed[2] }, 'no fault of the arguments')
  t.equal((await makeLink(ann, 'not-made', { tags: ['fine'] })).slug, 'not-made', 'it is free')
})

await t.test('ETag and If-Match', async (t) => {
  const { id } = await makeLink(ann, 'docs')
  const path = `/links/${id}`
  const etag = await etagOf(path)
  t.match(etag, /^"[!#-~]+"$/)
  t.equal((await root.api('HEAD', path)).headers.etag, etag, 'for everybody the same')
  const put = (who: PageUser, tag: string, fields: object = {}) =>
    who.api<Link>('PUT', path, { url, ...fields }, ifMatch(tag))
  const first = await put(ann, etag)
  t.match(first, { status: 200, json: { url } })
  const now = first.headers.etag ?? ''
  t.equal(await etagOf(path), now)
  const stale = [412, 'PRECONDITION_FAILED'] as const
  refuses(t, await root.api('DELETE', path, undefined, ifMatch(etag)), stale, 'DELETE')
  for (const wrong of [etag, '"x"', '', now.replaceAll('"', ''), `W/${now}`]) {
    refuses(t, await put(root, wrong), stale, wrong)
  }
  t.same(await ann.read(path), first.json, 'nothing was changed')
  // What is wrong besides is said first, as without the header.
  refuses(t, await put(root, etag, { url: '' }), [400, 'INVALID_URL'])
  await expectStatus(200, put(root, '*'))
  await expectStatus(200, put(root, `"other", ${await etagOf(path)}`))

  const seen = new Set([await etagOf(path)])
  const secure = { visibility: 'secure' }
  for (const change of [{ title: 'T' }, { tags: ['a'] }, secure, { append_path: true }]) {
    await ann.api('PUT', path, { url, ...change })
    seen.add(await etagOf(path))
  }
  await ann.api('POST', `${path}/owners`, { email: bob.email })
  seen.add(await etagOf(path))
  t.equal(seen.size, 6, 'each change has its own')
  await ann.api('POST', `${path}/shares`, { email: cyd.email })
  const last = await etagOf(path)
  t.ok(seen.has(last), 'a share is no change of the link')
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, n) => put([ann, bob][n % 2] ?? ann, last, { title: `${n}` })),
  )
  const won = answers.filter(({ status }) => status === 200)
  t.equal(won.length, 1, 'of all at once one wins')
  for (const answer of answers) if (answer !== won[0]) refuses(t, answer, stale)
  t.same(await ann.read(path), won[0]?.json)
  await expectStatus(204, bob.api('DELETE', path, undefined, ifMatch(await etagOf(path))))
})

const versionIn = (text: string) => /name="version"\s+value="([^"]+)"/.exec(text)?.[1] ?? ''

await t.test('the form of a link that somebody else has changed', async (t) => {
  const link = await makeLink(ann, 'form', { url: 'http://old/', title: 'Old', tags: ['a', 'b'] })
  const at = `/-/links/${link.id}/edit`
  const opened = versionIn(await ann.text(at))
  const typed = { url: 'http://ann/', title: 'Old', tags: 'a, b', visibility: 'public' }
  const other = { ...typed, url: 'http://root/', title: '<b>New', description: 'by root' }
  await expectStatus(303, root.post(at, { ...other, version: opened }))

  const stale = await expectStatus(412, ann.post(at, { ...typed, version: opened }, HTMX))
  t.match(stale.text, /^<form\s+id="link-form"/)
  const text = wordsOf(stale.text)
  for (const part of [
    'Somebody else has changed this link since you opened this form',
    'Leads to http://ann/ http://root/ Title Old &lt;b&gt;New Description none by root',
    'root@example.com changed the address from http://old/ to http://root/',
  ]) {
    t.match(text, part)
  }
  t.notMatch(text, /Tags a, b|Visibility public/, 'nothing that is as it was typed')
  t.match(stale.text, 'value="http://ann/"', 'what was typed stays')
  const page = await ann.post(at, { ...typed, version: opened }, NAVIGATION)
  t.match(page, { status: 412, text: /^<!doctype html>/ }, 'without script too')
  t.equal((await ann.read(`/links/${link.id}`)).url, 'http://root/', 'not saved')
  const invalid = await ann.post(at, { ...typed, url: 'nothing', version: opened }, HTMX)
  t.equal(versionIn(invalid.text), opened, 'a refused field does not bring the form up to date')
  const version = versionIn(stale.text)
  await expectStatus(303, ann.post(at, { ...typed, version }), 'it is saved knowingly')
  await expectStatus(412, ann.post(at, { ...typed, version: '' }))
  await expectStatus(303, ann.post(at, typed), 'a program may leave it out')
})

await t.test('the history of a link, page by page, newest first', async (t) => {
  const { id, path } = await shared('paged')
  await query(`insert into links.changes (link_id, at, actor, action, detail)
    select '${id}', now(), 'ann@example.com', 'edited', jsonb_build_object('title', array['', 'Title ' || n])
      from generate_series(0, 54) n`)
  const all = await changesOf(path)
  t.equal(all.length, 58)
  t.match(all[0], { actor: ann.email, action: 'edited', detail: { title: ['', 'Title 54'] } })
  t.match(all.slice(-3), [
    { action: 'shared', detail: { share: [null, cyd.email] } },
    { action: 'owner added' },
    { action: 'created' },
  ])
  t.same(await changesOf(path, 20), all)
  await expectStatus(200, cyd.api('GET', `${path}/history`), 'a recipient may read it')
  refuses(t, await eve.api('GET', `${path}/history`), [403, 'FORBIDDEN'])
  const cursor = Buffer.from('["x","changes"]').toString('base64url')
  refuses(t, await ann.api('GET', `${path}/history?cursor=${cursor}`), [400, 'BAD_REQUEST'])
  t.match(await ann.get(`/-/links/${id}/history`), { status: 200, text: /Title 54.*Title 6</s })
  const text = await ann.text(`/-/links/${id}`)
  const [, next = ''] = /href="([^"]*)">Older changes</.exec(text) ?? []
  const older = await ann.text(next.replaceAll('&amp;', '&'))
  t.match(older, /Title 4<.*made the link to/s)
  t.notMatch(older, 'Older changes')
})

await t.test('an earlier version is restored, by the API and on its page', async (t) => {
  const end = { expires_at: '2099-01-31T12:00:00.000Z', max_visits: 7, archived: true }
  const second = { title: 'Second', description: 'D', tags: ['two'], visibility: 'secure', ...end }
  const gone = { expires_at: null, max_visits: null, archived: false, visibility: 'public' }
  const { id, path } = await shared('way-back', { title: 'First', tags: ['one'] })
  const put = (fields: object) => ann.api('PUT', path, { url, ...fields })
  await ann.api('PUT', path, { url: 'https://way-back.test/', ...second })
  await ann.api('PUT', path, { url: 'https://way-back.test/', title: 'Third', ...gone })
  await put({ title: 'Fourth', append_path: true })
  const changes = await changesOf(path)
  const [, , ofSecond, ofShare] = changes
  const before = await ann.api<Link>('GET', path)
  const restore = (change: unknown, headers: Headers = {}, who = bob) =>
    who.api<Link>('POST', `${path}/history/${change}/restore`, undefined, headers)
  refuses(t, await restore(ofSecond?.id, {}, cyd), [403, 'FORBIDDEN'])
  refuses(t, await restore(ofShare?.id), [404, 'NOT_FOUND'], 'a change of shares')
  refuses(t, await restore(999_999), [404, 'NOT_FOUND'])
  refuses(t, await restore('x'), [400, 'BAD_REQUEST'])
  refuses(t, await restore(ofSecond?.id, ifMatch('"old"')), [412, 'PRECONDITION_FAILED'])
  t.same(await ann.read(path), before.json, 'nothing was changed')

  const restored = await restore(ofSecond?.id, ifMatch(before.headers.etag ?? ''))
  const wanted = { url: 'https://way-back.test/', ...second, append_path: false }
  t.match(restored, { status: 200, json: wanted })
  t.equal(restored.json.owners.length, 2, 'owners stay')
  t.equal(restored.headers.etag, await etagOf(path))
  const [newest] = await changesOf(path)
  t.match(newest, { action: 'version restored', actor: bob.email })
  t.match(newest?.detail, { title: ['Fourth', 'Second'] })
  const first = await restore(changes.at(-1)?.id)
  t.match(first.json, { title: 'First', tags: ['one'], description: '', archived: false })
  t.match((await restore(newest?.id)).json, wanted, 'a restored version is a version, too')

  t.notMatch(await cyd.text(`/-/links/${id}`), 'Restore this version')
  const at = `/-/links/${id}/history/${changes.at(-1)?.id}`
  await expectStatus(403, cyd.get(at))
  const shown = await ann.text(at)
  t.match(shown, /Title<\/th>\s*<td[^>]*><bdi>Second<.*<bdi>First</s)
  await put({ title: 'Fifth' })
  const version = versionIn(shown)
  const stale = await ann.post(`${at}/restore`, { version }, NAVIGATION)
  t.match(stale, { status: 412, text: /Somebody else has changed this link.*Fifth/s })
  const script = await ann.post(`${at}/restore`, { version }, HTMX)
  t.match(script, { status: 412, text: /^<section id="version"/ })
  await expectStatus(303, ann.post(`${at}/restore`, { version: versionIn(stale.text) }))
  t.match(await ann.text(at), 'It is the same as the link is now.')
})

await t.test('a deleted link comes back with all that it had', async (t) => {
  const fields = { tags: ['red'], visibility: 'private', title: 'handbook', max_visits: 9 }
  const { path, ...link } = await shared('returns', fields)
  const [page, form] = [`/-/links/${link.id}`, `/-/deleted/${link.id}/restore`]
  await visit(base, '/returns')
  const clicks = () => value("select clicks::int from links.links where slug = 'returns'")
  await until(async () => (await clicks()) === 1, 'the click')
  const etag = await etagOf(path)
  const changes = await changesOf(path)
  const tagged = async () =>
    (await cyd.api('GET', '/tags')).text.includes('{"slug":"red","link_count":1}')

  t.match(await ann.text(`${page}/delete`), /For 30 days an owner or an\s+admin/)
  await expectStatus(303, ann.post(`${page}/delete`))
  t.equal(await leadsTo(base, '/returns'), 404, 'gone')
  t.notOk(await tagged())
  const listed = await bob.read<{ deleted_links: readonly Link[] }>('/deleted-links?limit=200')
  const kept = { title: 'handbook', visibility: 'private', deleted_by: ann.email }
  const found = listed.deleted_links.find(({ id }) => id === link.id)
  t.match(found, { slug: 'returns', url: link.url, ...kept })
  for (const who of [ann, root, cyd]) {
    const shown = slugsIn(await who.text('/-/deleted')).includes('returns')
    t.equal(shown, who !== cyd, who.email)
  }
  await expectStatus(403, cyd.post(form))
  const restore = ({ api }: PageUser, asked = '') => api<Link>('POST', `${path}/restore${asked}`)
  refuses(t, await restore(cyd), [403, 'FORBIDDEN'])
  refuses(t, await restore(bob, '?slug=api'), [400, 'RESERVED_SLUG'])
  refuses(t, await restore(bob, '?slug=-'), [400, 'INVALID_SLUG'])
  refuses(t, await ann.api('POST', `/links/${ID}/restore`), [404, 'NOT_FOUND'])
  refuses(t, await ann.api('POST', '/links/x/restore'), [400, 'BAD_REQUEST'])
  const taken = await makeLink(eve, 'returns')
  const refused = await ann.post(form, {}, HTMX)
  t.match(refused, { status: 409, text: /^<div id="deleted-links">.*the name returns;/s })
  t.match(refused.text, `action="${form}?without_taken=true"`)
  t.match(refused.text, `action="${form}-as"`)
  const wrong = await ann.post(`${form}-as`, { slug: '-' }, HTMX)
  t.match(wrong, { status: 400, text: 'id="deleted-slug-refused"' })
  await expectStatus(204, eve.api('DELETE', `/links/${taken.id}`))

  const restored = await restore(bob)
  t.match(restored, { status: 200, headers: { etag } })
  t.same(restored.json, link)
  await expectStatus(200, cyd.api('GET', path), 'shares, too')
  t.ok(await tagged())
  const [back, deleted, ...rest] = await changesOf(path)
  t.match([back?.action, deleted?.action], ['restored', 'deleted'])
  t.same(rest, changes, 'its history')
  refuses(t, await restore(bob), [404, 'NOT_FOUND'], 'it is there')
  t.equal(await clicks(), 1, 'its clicks')
  t.same(slugsIn(await ann.text('/-/all?q=handbook')), ['returns'], 'the search finds it')
  await bob.api('DELETE', path)
  const open = await makeLink(ann, 'open-returns', { tags: ['blue'] })
  await expectStatus(204, ann.api('DELETE', `/links/${open.id}`))
  await expectStatus(200, ann.api('POST', `/links/${open.id}/restore`))
  t.match((await cyd.api('GET', '/tags')).text, '{"slug":"blue","link_count":1}')
  t.match(await ann.post(form), { status: 303, headers: { location: page } })
})

await t.test('what leads back to itself by now is not restored', async (t) => {
  const own = `http://localhost:${new URL(base).port}`
  const [far, near] = [await makeLink(ann, 'far-end'), await makeLink(ann, 'near-end')]
  const gone = await makeLink(ann, 'round', { url: `${own}/far-end` })
  await ann.api('DELETE', `/links/${gone.id}`)
  await ann.api('PUT', `/links/${far.id}`, { url: `${own}/round` })
  refuses(t, await ann.api('POST', `/links/${gone.id}/restore`), [400, 'INVALID_URL'])
  const path = `/links/${(await makeLink(ann, 'looping', { url: `${own}/near-end` })).id}`
  await ann.api('PUT', path, { url })
  await ann.api('PUT', `/links/${near.id}`, { url: `${own}/looping` })
  const [created] = (await changesOf(path)).slice(-1)
  const version = await ann.api('POST', `${path}/history/${created?.id}/restore`)
  refuses(t, version, [400, 'INVALID_URL'])
})

// Stops the server: the last one.
await t.test('deleted links: the last one first; after 30 days one is gone', async (t) => {
  for (const slug of ['old', 'late', 'later']) {
    const { id } = await makeLink(bob, slug)
    await bob.api('DELETE', `/links/${id}`)
  }
  const list = { path: '/deleted-links', rows: 'deleted_links', key: 'slug' }
  const listed = async (api: Api) => {
    const { keys } = await walk(api, list, 2)
    return keys.filter((slug) => /^(old|late)/.test(slug)).join(' ')
  }
  t.equal(await listed(bob.api), 'later late old')
  await query(`update links.deleted_links
    set deleted_at = now() - case slug when 'old' then interval '31 days' else interval '29 days' end
    where slug in ('old', 'late')`)
  t.same(await links.server.stop(), { code: 0, signal: null })
  const later = await openLinks(t, env)
  const api = later.api(bob.token)
  await until(async () => (await listed(api)) === 'later late', 'retention')
  const isPruned = () => later.server.logs().find((line) => line.includes('"pruned"'))
  t.match(JSON.parse(await until(isPruned, 'the line of retention')), { clicks: 0, deleted: 1 })
})
