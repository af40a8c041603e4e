import { t } from 'tap'
import type { Test } from 'tap'
import { backends, onPostgres } from '../helpers/backends.ts'
import {
  HTMX,
  leadsTo,
  makeLink,
  pageUser,
  slugsIn,
  startLinks,
  startPages,
  visit,
  type Link,
} from '../helpers/links.ts'
import { run } from '../helpers/postgres.ts'
import { refuses } from '../helpers/refusals.ts'
import { until } from '../helpers/until.ts'

type Deleted = {
  deleted_links: readonly { id: string; slug: string }[]
  next_cursor: string | null
}

const [, postgres] = backends
const NO_LINK = '00000000-0000-4000-8000-000000000000'

await onPostgres(t, 'a deleted link comes back with all that it had', async (t: Test, backend) => {
  const links = await startLinks(t, backend)
  const { base } = links
  const ann = await links.user('ann')
  const bob = await links.user('bob')
  const cyd = await links.user('cyd')
  const fields = { tags: ['red'], visibility: 'secure', title: 'Kept', max_visits: 9 }
  const link = await makeLink(ann, 'kept', fields)
  const path = `/links/${link.id}`
  await ann.api('POST', `${path}/owners`, { email: bob.email })
  await ann.api('POST', `${path}/shares`, { email: cyd.email })
  const before = await ann.api<Link>('GET', path)
  const history = async () =>
    (await ann.api<{ changes: { id: number; action: string }[] }>('GET', `${path}/history`)).json
      .changes
  const changes = await history()

  t.equal((await ann.api('DELETE', path)).status, 204)
  t.equal((await ann.api('GET', path)).status, 404)
  t.equal(await leadsTo(base, '/kept'), 404, 'gone')
  t.same((await cyd.api('GET', '/tags')).json, { tags: [], next_cursor: null })
  const listed = await bob.api<Deleted>('GET', '/deleted-links')
  t.match(listed.json, {
    deleted_links: [
      {
        ...{ id: link.id, slug: 'kept', url: link.url, title: 'Kept', visibility: 'secure' },
        deleted_by: ann.email,
      },
    ],
    next_cursor: null,
  })
  t.same((await cyd.api<Deleted>('GET', '/deleted-links')).json.deleted_links, [], 'a recipient')

  refuses(t, await cyd.api('POST', `${path}/restore`), [403, 'FORBIDDEN'])
  refuses(t, await ann.api('POST', `/links/${NO_LINK}/restore`), [404, 'NOT_FOUND'])
  refuses(t, await ann.api('POST', '/links/x/restore'), [400, 'BAD_REQUEST'])
  const taken = await makeLink(cyd, 'kept')
  const conflict = await bob.api('POST', `${path}/restore`)
  refuses(t, conflict, [409, 'SLUG_CONFLICT', 'slug already taken'])
  t.equal(await leadsTo(base, '/kept'), 'https://kept.test/', 'the other link stays')
  t.equal((await cyd.api('DELETE', `/links/${taken.id}`)).status, 204)

  const restored = await bob.api<Link>('POST', `${path}/restore`)
  t.match(restored, { status: 200, headers: { etag: before.headers.etag } })
  t.same(restored.json, before.json)
  t.equal((await cyd.api('GET', path)).status, 200, 'shares, too')
  t.same((await cyd.api('GET', '/tags')).json, {
    tags: [{ slug: 'red', link_count: 1 }],
    next_cursor: null,
  })
  const [back, deleted, ...rest] = await history()
  t.match([back?.action, deleted?.action], ['restored', 'deleted'])
  t.same(rest, changes, 'its history')
  refuses(t, await bob.api('POST', `${path}/restore`), [404, 'NOT_FOUND'], 'it is there')
  t.equal(await leadsTo(base, '/kept'), 'https://kept.test/', 'the operator may follow it')
  await ann.api('PUT', path, { url: 'https://new.test/', visibility: 'public' })
  t.equal(await leadsTo(base, '/kept'), 'https://new.test/')
})

await t.test('clicks, words, lists and pages', async (t) => {
  const links = await startPages(t, postgres)
  const { base } = links
  const url = links.env['DATABASE_URL'] ?? ''
  const ann = await pageUser(links, 'ann')
  const bob = await pageUser(links, 'bob')
  const root = await pageUser(links, 'root', { admin: true })
  const { id } = await makeLink(ann, 'clicked', { title: 'handbook', tags: ['blue'] })
  await visit(base, '/clicked')
  const clicks = async (): Promise<number> =>
    Number(
      (await run(url, "select clicks from links.links where slug = 'clicked'"))[0]?.['clicks'],
    )
  await until(async () => (await clicks()) === 1, 'the click')

  const more = `insert into links.changes (link_id, at, actor, action, detail)
    select $1, now(), 'ann@example.com', 'edited', '{}' from generate_series(1, 300)`
  await run(url, more, [id])

  const asks = await ann.get(`/-/links/${id}/delete`)
  t.match(asks.text, /For 30 days an owner or an\s+admin can restore it/)
  t.equal((await ann.post(`/-/links/${id}/delete`)).status, 303)
  t.same(slugsIn((await ann.get('/-/deleted')).text), ['clicked'])
  t.same(slugsIn((await bob.get('/-/deleted')).text), [])
  t.same(slugsIn((await root.get('/-/deleted')).text), ['clicked'])
  t.equal((await bob.post(`/-/deleted/${id}/restore`)).status, 403)

  const taken = await makeLink(bob, 'clicked')
  const refused = await ann.post(`/-/deleted/${id}/restore`, {}, HTMX)
  t.match(refused, { status: 409, text: /^<div id="deleted-links">.*Slug already taken\./s })
  await bob.api('DELETE', `/links/${taken.id}`)
  t.same(slugsIn((await root.get('/-/deleted')).text), ['clicked', 'clicked'], 'both')
  const done = await ann.post(`/-/deleted/${id}/restore`)
  t.match(done, { status: 303, headers: { location: `/-/links/${id}` } })
  t.equal(await clicks(), 1, 'its clicks')
  const kept = 'select count(*) from links.changes where link_id = $1'
  t.match(await run(url, kept, [id]), [{ count: '201' }], 'its newest changes, and this one')
  t.match((await bob.api('GET', '/tags')).json, { tags: [{ slug: 'blue', link_count: 1 }] })
  t.match((await ann.get(`/-/links/${id}`)).text, /1 person/)
  t.match((await ann.get('/handbo')).text, 'handbook', 'it is meant by its words')
  t.same(slugsIn((await ann.get('/-/all?q=clicked')).text), ['clicked'], 'the search finds it')

  for (let n = 0; n < 5; n++) {
    const made = await makeLink(ann, `many-${n}`)
    await ann.api('DELETE', `/links/${made.id}`)
  }
  const slugs: string[] = []
  for (let cursor: string | null = ''; cursor !== null;) {
    const after: string = cursor === '' ? '' : `&cursor=${cursor}`
    const { json } = await ann.api<Deleted>('GET', `/deleted-links?limit=2${after}`)
    slugs.push(...json.deleted_links.map(({ slug }) => slug))
    cursor = json.next_cursor
  }
  t.same(slugs, ['many-4', 'many-3', 'many-2', 'many-1', 'many-0'], 'the last one first')
})

await t.test('a deleted link that would lead back to itself', async (t) => {
  const links = await startLinks(t, postgres)
  const ann = await links.user('ann')
  const own = `http://localhost:${new URL(links.base).port}`
  const other = await makeLink(ann, 'far-end')
  const { id } = await makeLink(ann, 'round', { url: `${own}/far-end` })
  await ann.api('DELETE', `/links/${id}`)
  await ann.api('PUT', `/links/${other.id}`, { url: `${own}/round` })
  refuses(t, await ann.api('POST', `/links/${id}/restore`), [400, 'INVALID_URL'])
})

await t.test('after 30 days it is gone', async (t) => {
  const first = await startLinks(t, postgres)
  const ann = await first.user('ann')
  const [old, late] = [await makeLink(ann, 'old'), await makeLink(ann, 'late')]
  for (const { id } of [old, late]) await ann.api('DELETE', `/links/${id}`)
  const url = first.env['DATABASE_URL'] ?? ''
  const text = `update links.deleted_links set deleted_at = now() - $2 * interval '1 day' where slug = $1`
  await run(url, text, ['old', 31])
  await run(url, text, ['late', 29])
  t.same(await first.server.stop(), { code: 0, signal: null })
  const links = await startLinks(t, postgres, first.env)
  const api = links.api(ann.token)
  const listed = async (): Promise<readonly string[]> =>
    (await api<Deleted>('GET', '/deleted-links')).json.deleted_links.map(({ slug }) => slug)
  await until(async () => (await listed()).join() === 'late', 'retention')
  const logged = await until(
    () => links.server.logs().find((line) => line.includes('"pruned"')),
    'the line of retention',
  )
  t.match(JSON.parse(logged), { clicks: 0, changes: 0, deleted: 1 })
  refuses(t, await api('POST', `/links/${old.id}/restore`), [404, 'NOT_FOUND'])
})
