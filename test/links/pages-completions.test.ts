import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { HTMX, makeLink, pageUser, startPages, visitorAt } from '../helpers/links.ts'
import type { Visitor } from '../helpers/links.ts'

const [, postgres] = backends
/** What a browser sends for a page of another site that loads one of ours unseen. */
const FOREIGN = { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'image' }

/** What a field offers, unescaped as far as these tests need it. */
async function offered(who: Visitor, path: string): Promise<readonly string[]> {
  const { text } = await who.get(path, HTMX)
  return [...text.matchAll(/<option value="([^"]*)"/g)].map(([, value = '']) => value)
}

const links = await startPages(t, postgres)
const ann = await pageUser(links, 'ann')
const bob = await pageUser(links, 'bob')
const cleo = await pageUser(links, 'cleo')
const eve = await pageUser(links, 'eve', { admin: true })
await pageUser(links, 'ed')

const { id: own } = await makeLink(ann, 'own', { tags: ['wiki', 'work'] })
await makeLink(bob, 'open', { tags: ['well-known'] })
const { id: hidden } = await makeLink(bob, 'hidden', { visibility: 'secure', tags: ['w-secret'] })

await t.test('tags that the visitor may see, after those that were typed', async (t) => {
  const tags = (who: Visitor, typed: string) =>
    offered(who, `/-/complete/tags?${new URLSearchParams({ tags: typed }).toString()}`)
  t.same(await tags(ann, 'w'), ['well-known', 'wiki', 'work'])
  t.same(await tags(ann, ''), ['well-known', 'wiki', 'work'])
  t.same(await tags(ann, 'a b, WI'), ['a b, wiki'])
  t.same(await tags(ann, 'wiki, w'), ['wiki, well-known', 'wiki, work'], 'each once')
  t.same(await tags(ann, 'well_k'), ['well-known'])
  t.same(await tags(bob, 'w-'), ['w-secret'], 'of a link of one’s own')
  t.same(await tags(eve, 'w-'), ['w-secret'])
  for (const none of ['ä', '%', '"><b>', '\0', 'x'.repeat(3_000)]) {
    t.same(await tags(ann, none), [], none.slice(0, 10))
  }
  t.match((await ann.get('/-/new')).text, /list="link-tags-list"[^]*<option value="wiki"/)
  t.match((await ann.get(`/-/links/${own}/edit`)).text, '<option value="wiki, work"')
})

await t.test('people: all for admins, else those of the links that one may read', async (t) => {
  const people = (who: Visitor, typed: string) =>
    offered(who, `/-/complete/people?${new URLSearchParams({ email: typed }).toString()}`)
  t.same(await people(eve, 'E'), ['ed@example.com', 'eve@example.com'])
  t.same(await people(eve, 'b'), ['bob@example.com'])
  t.same(await people(ann, ''), [], 'nobody is known yet')
  t.same(await people(bob, 'ann'), [], 'a public link of somebody tells nothing of them')
  await bob.api('POST', `/links/${hidden}/shares`, { email: ann.email })
  await bob.api('POST', `/links/${hidden}/owners`, { email: cleo.email })
  t.same(await people(ann, ''), ['bob@example.com', 'cleo@example.com'])
  t.same(await people(ann, ' C'), ['cleo@example.com'])
  t.same(await people(bob, ''), ['ann@example.com', 'cleo@example.com'])
  for (const none of ['%', '_nn', '\0', 'x'.repeat(3_000)]) t.same(await people(bob, none), [])
  const page = (await bob.get(`/-/links/${hidden}`)).text
  t.match(page, /list="owners-email-list"[^]*<option value="ann@example\.com"/)
  t.match(page, 'id="shares-email-list"')
  t.notMatch((await ann.get(`/-/links/${hidden}`)).text, /datalist/, 'where nothing may be added')
})

await t.test('for those who are signed in', async (t) => {
  const nobody = visitorAt(links.base, '')
  for (const path of ['/-/complete/tags?tags=w', '/-/complete/people?email=a']) {
    t.equal((await nobody.get(path)).status, 403, path)
    t.equal((await ann.get(path, FOREIGN)).status, 403, path)
  }
})
