import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { HTMX, makeLink, pageUser, startPages, type Link } from '../helpers/links.ts'
import { refuses } from '../helpers/refusals.ts'

type Change = { id: number; at: string; actor: string; action: string; detail: object }
type History = { changes: Change[]; next_cursor: string | null }

const [, postgres] = backends
const links = await startPages(t, postgres)
const ann = await pageUser(links, 'ann')
const bob = await pageUser(links, 'bob')
const cyd = await pageUser(links, 'cyd')

/** A link that was edited often, and its changes by the API, all pages. */
async function editedLink(slug: string, edits: readonly object[]) {
  const { id, url } = await makeLink(ann, slug, { title: 'First', tags: ['one'] })
  for (const fields of edits) await ann.api('PUT', `/links/${id}`, { url, ...fields })
  return { id, path: `/links/${id}` }
}

async function allChanges(path: string, limit: number): Promise<readonly Change[]> {
  const changes: Change[] = []
  for (let cursor: string | null = ''; cursor !== null;) {
    const after: string = cursor === '' ? '' : `&cursor=${cursor}`
    const { json } = await ann.api<History>('GET', `${path}/history?limit=${limit}${after}`)
    changes.push(...json.changes)
    cursor = json.next_cursor
  }
  return changes
}

await t.test('the history, page by page, newest first', async (t) => {
  const edits = Array.from({ length: 7 }, (_, n) => ({ title: `Title ${n}` }))
  const { id, path } = await editedLink('paged', edits)
  await ann.api('POST', `${path}/shares`, { email: cyd.email })
  const all = await allChanges(path, 50)
  t.equal(all.length, 9)
  t.match(all[0], { action: 'shared', actor: ann.email, detail: { share: [null, cyd.email] } })
  t.match(all[1], { action: 'edited', detail: { title: ['Title 5', 'Title 6'] } })
  t.match(all.at(-1), { action: 'created' })
  t.same(await allChanges(path, 2), all)
  t.equal((await cyd.api('GET', `${path}/history`)).status, 200, 'a recipient may read it')
  refuses(t, await bob.api('GET', `${path}/history`), [403, 'FORBIDDEN'])
  const cursor = Buffer.from('["x","changes"]').toString('base64url')
  refuses(t, await ann.api('GET', `${path}/history?cursor=${cursor}`), [400, 'BAD_REQUEST'])
  const page = await ann.get(`/-/links/${id}/history`)
  t.match(page, { status: 200, text: /Title 6.*Title 0.*made the link to/s })
  t.equal((await bob.get(`/-/links/${id}/history`)).status, 403)
})

await t.test('a long history goes on from the page of the link', async (t) => {
  const edits = Array.from({ length: 55 }, (_, n) => ({ title: `Long ${n}` }))
  const { id } = await editedLink('long', edits)
  const first = await ann.get(`/-/links/${id}`)
  const [, next = ''] = /href="([^"]*)">Older changes</.exec(first.text) ?? []
  const older = await ann.get(next.replaceAll('&amp;', '&'))
  t.match(older, { status: 200, text: /Long 4<.*made the link to/s })
  t.notMatch(older.text, 'Older changes')
})

await t.test('restore a version: by the API', async (t) => {
  const end = { expires_at: '2099-01-31T12:00:00.000Z', max_visits: 7, archived: true }
  const second = { title: 'Second', description: 'D', tags: ['two'], visibility: 'secure', ...end }
  const gone = { expires_at: null, max_visits: null, archived: false, visibility: 'public' }
  const { path } = await editedLink('way-back', [second, { title: 'Third', ...gone }])
  await ann.api('POST', `${path}/owners`, { email: bob.email })
  await ann.api('PUT', path, {
    url: 'https://elsewhere.test/',
    title: 'Fourth',
    append_path: true,
  })
  const changes = await allChanges(path, 50)
  const [, , , ofSecond, ofFirst] = changes
  const before = await ann.api<Link>('GET', path)
  const restore = (id = 0, headers = {}, who = bob) =>
    who.api<Link>('POST', `${path}/history/${id}/restore`, undefined, headers)

  refuses(t, await restore(ofSecond?.id, {}, cyd), [403, 'FORBIDDEN'])
  refuses(t, await restore(changes[1]?.id), [404, 'NOT_FOUND'], 'a change of owners')
  refuses(t, await restore(999_999), [404, 'NOT_FOUND'])
  refuses(t, await ann.api('POST', `${path}/history/x/restore`), [400, 'BAD_REQUEST'])
  refuses(t, await restore(ofSecond?.id, { 'if-match': '"old"' }), [412, 'PRECONDITION_FAILED'])
  t.same((await ann.api('GET', path)).json, before.json, 'nothing was changed')

  const etag = before.headers.etag ?? ''
  const restored = await restore(ofSecond?.id, { 'if-match': etag })
  const { title, description, tags, visibility } = second
  const wanted = { url: 'https://way-back.test/', title, description, tags, visibility, ...end }
  t.match(restored, { status: 200, json: { ...wanted, append_path: false } })
  t.equal(restored.json.owners.length, 2, 'owners stay')
  t.equal(restored.headers.etag, (await ann.api('GET', path)).headers.etag)
  const [newest] = await allChanges(path, 1)
  t.match(newest, { action: 'version restored', actor: bob.email })
  t.match(newest?.detail, { title: ['Fourth', 'Second'] })

  const first = await restore(ofFirst?.id)
  t.match(first.json, { title: 'First', tags: ['one'], description: '', archived: false })
  const back = await restore(newest?.id)
  t.match(back.json, wanted, 'a restored version is a version, too')
})

await t.test('restore a version: on its page', async (t) => {
  const { id, path } = await editedLink('by-page', [{ title: 'Second' }, { title: 'Third' }])
  const [, second] = await allChanges(path, 50)
  const page = await ann.get(`/-/links/${id}`)
  t.equal(page.text.match(/Restore this version/g)?.length, 2, 'the present one is no choice')
  await ann.api('POST', `${path}/shares`, { email: cyd.email })
  t.notMatch((await cyd.get(`/-/links/${id}`)).text, 'Restore this version')
  const at = `/-/links/${id}/history/${second?.id}`
  t.equal((await cyd.get(at)).status, 403)
  t.equal((await ann.get(`/-/links/${id}/history/999999`)).status, 404)
  const shown = await ann.get(at)
  t.match(shown.text, /Title<\/th>\s*<td[^>]*><bdi>Third<.*<bdi>Second</s)
  const [, version = ''] = /name="version"\s+value="([^"]+)"/.exec(shown.text) ?? []
  await ann.api('PUT', path, { url: 'https://by-page.test/', title: 'Fourth' })
  const stale = await ann.post(`${at}/restore`, { version }, { accept: 'text/html' })
  t.match(await ann.post(`${at}/restore`, { version }, HTMX), {
    status: 412,
    text: /^<section id="version"/,
  })
  t.match(stale, { status: 412, text: /Somebody else has changed this link.*Fourth/s })
  const [, now = ''] = /name="version"\s+value="([^"]+)"/.exec(stale.text) ?? []
  t.match(await ann.post(`${at}/restore`, { version: now }), { status: 303 })
  t.equal((await ann.api<Link>('GET', path)).json.title, 'Second')
  t.match((await ann.get(at)).text, 'It is the same as the link is now.')
})

await t.test('a version that leads back to the link by now is refused', async (t) => {
  const own = `http://localhost:${new URL(links.base).port}`
  const other = await makeLink(ann, 'other-end')
  const { id } = await makeLink(ann, 'looping', { url: `${own}/other-end` })
  await ann.api('PUT', `/links/${id}`, { url: 'https://x.test/' })
  const there = { url: `${own}/looping` }
  t.equal((await ann.api('PUT', `/links/${other.id}`, there)).status, 200)
  const [, created] = await allChanges(`/links/${id}`, 50)
  const answer = await ann.api('POST', `/links/${id}/history/${created?.id}/restore`)
  refuses(t, answer, [400, 'INVALID_URL'])
})
