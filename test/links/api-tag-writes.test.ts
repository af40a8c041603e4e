import { t } from 'tap'
import type { Test } from 'tap'
import { onPostgres } from '../helpers/backends.ts'
import type { Backend } from '../helpers/backends.ts'
import { makeLink, refuses, startLinks } from '../helpers/links-setup.ts'
import type { Link } from '../helpers/links-setup.ts'
import type { Env } from '../helpers/program.ts'

/** The tag `poison` can't be written, `counted-out` not counted. */
const TRIGGERS = `
  create function links.fail() returns trigger language plpgsql
   as $$ begin raise exception 'the disk of tags is full'; end $$;
  create trigger fail before insert or update on links.link_tags
   for each row when (new.tag = 'poison') execute function links.fail();
  create trigger fail before insert or update on links.tags
   for each row when (new.tag = 'counted-out') execute function links.fail()`

/** All that is stored of links, but what a visit or a token's use changes. */
const TABLES = [
  'links',
  'link_owners',
  'link_shares',
  'link_tags',
  'hidden_tags',
  'tags',
  'changes',
]

await onPostgres(t, 'tags that can’t be written', async (t: Test, backend) => {
  const before = await startLinks(t, backend)
  const ann = await before.user('ann')
  const kept = await makeLink(ann, 'kept', { title: 'As it was', tags: ['fine', 'shared'] })
  await before.server.stop()
  await backend.query(before.env, TRIGGERS)
  const stored = await everything(backend, before.env)

  const links = await startLinks(t, backend, before.env)
  const api = links.api(ann.token)
  const bad = [['poison'], ['fine', 'poison'], ['counted-out'], ['a', 'counted-out', 'z']]
  for (const tags of bad) {
    const what = tags.join(', ')
    const made = await api('POST', '/links', { slug: 'not-made', url: 'http://x/', tags })
    refuses(t, made, 500, 'TAG_WRITE_FAILED', { what: `POST with ${what}` })
    t.notMatch(made.text, /disk|exception|trigger|links\./, 'what failed inside is not told')
    const fields = { url: 'http://other/', title: 'Other', visibility: 'private', tags }
    const changed = await api('PUT', `/links/${kept.id}`, fields)
    refuses(t, changed, 500, 'TAG_WRITE_FAILED', { what: `PUT with ${what}` })
    t.same((await api('GET', `/links/${kept.id}`)).json, kept, 'the link is as it was')
  }
  const many = Array.from({ length: 12 }, (_, n) =>
    api('POST', '/links', { slug: 'not-made', url: `http://${n}/`, tags: ['poison'] }),
  )
  for (const answer of await Promise.all(many)) refuses(t, answer, 500, 'TAG_WRITE_FAILED')
  const list = await api<{ links: Link[] }>('GET', '/links')
  t.same(list.json.links, [kept], 'no link is there that was refused')
  const tags = await api('GET', '/tags')
  t.same(tags.json, {
    tags: [
      { slug: 'fine', link_count: 1 },
      { slug: 'shared', link_count: 1 },
    ],
    next_cursor: null,
  })
  await links.server.stop()
  const told = links.server.logs().filter((line) => line.includes('"tags not written"'))
  t.equal(told.length, 2 * bad.length + many.length, 'the log has each one')
  for (const line of told) t.match(JSON.parse(line), { error: /: the disk of tags is full$/ })
  t.same(await everything(backend, before.env), stored, 'nothing at all is left of them')

  const again = await startLinks(t, backend, before.env)
  const free = await again.api(ann.token)('POST', '/links', { slug: 'not-made', url: 'http://x/' })
  t.equal(free.status, 201, 'the slug is free, and good tags can be written')
  await makeLink({ api: again.api(ann.token) }, 'good', { tags: ['fine'] })
})

async function everything(backend: Backend, env: Env): Promise<unknown> {
  const parts = TABLES.map(
    (table) =>
      `(select jsonb_agg(to_jsonb(r) order by to_jsonb(r)::text) from links.${table} r) as ${table}`,
  )
  const [row] = await backend.query(env, `select ${parts.join(', ')}`)
  return row
}
