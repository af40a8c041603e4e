import { t } from 'tap'
import {
  HTMX,
  NAVIGATION,
  listedAll,
  makeLink,
  nextOf,
  slugsIn,
  openPages,
  visitorAt,
  type Caller,
} from '../helpers/links.ts'
import { expectStatus, refuses } from '../helpers/refusals.ts'
import { allIn } from '../helpers/http.ts'

const USERS = '/-/admin/users'
const LINKS = '/-/admin/links'
const OWN = '/-/own'
const CROSS_SITE = { 'sec-fetch-site': 'cross-site' }
const NO_USER = '00000000-0000-0000-0000-000000000000'

const links = await openPages(t)
const eve = await links.user('eve', { admin: true })
const ann = await links.user('ann')
const role = ({ id }: { id: string }) => `${USERS}/${id}/role`
const shown = eve.text
const listed = async (query: Readonly<Record<string, string>>) =>
  slugsIn(await shown(`${LINKS}?${new URLSearchParams(query).toString()}`)).join(' ')

/** The e-mail addresses in a list of users, from top to bottom. */
function emailsIn(text: string) {
  const rows = [...text.matchAll(/<tr role="row" id="user-[^"]*">\s*<td [^>]*>\s*(<a.*?<\/a)/gs)]
  return rows.map(([, link = '']) => link.replaceAll(/<[^>]*>|<\/a$/g, '').trim())
}

/** The hidden fields of the form on a page, as a browser posts them. */
function formOf(text: string) {
  const fields = text.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)
  return [...fields].map(([, name, value]) => `${name}=${value}`).join('&')
}

/** The ids of a user's links, by slug. */
async function idsOf({ read }: Caller) {
  const { links: own } = await read<{ links: readonly { id: string }[] }>('/links')
  return own.map(({ id }) => id)
}

await t.test('users are listed and added', async (t) => {
  const text = await shown(USERS)
  t.same(emailsIn(text), ['ann@example.com', 'eve@example.com', 'operator@localhost'])
  t.match(text, /com<\/a>\s*<span class="badge">you<\/span>/)
  t.match(text, '3 users')
  t.match(text, 'href="/-/admin/links?owner=ann%40example.com"', 'a row leads to the links')
  t.match(text, 'gatehouse user role eve@example.com admin', 'the way back is said')
  t.match(await eve.get(USERS, HTMX), { text: /^<section id="users"/ })
  for (const query of ['limit=0', 'cursor=x']) {
    await expectStatus(400, eve.get(`${USERS}?${query}`), query)
  }

  const bob = { email: ' Bob@Example.com ', name: '', role: 'admin' }
  const added = await eve.post(USERS, bob)
  t.match(added, { status: 200, text: /role="status"[^>]*>\s*bob@example\.com is an admin now\./ })
  t.match(added.text, '<bdi>bob</bdi>', 'the name of the address when none is given')
  const dan = { email: 'dan@example.com' }
  refuses(t, await eve.post(USERS, { email: 'a\0@x.test' }), [400, 'BAD_REQUEST'])
  refuses(t, await eve.post(USERS, { ...dan, role: 'owner' }), [400, 'INVALID_ROLE'])
  const page = await eve.post(USERS, { email: '"><b>', name: `<u>${'n'.repeat(101)}` }, NAVIGATION)
  t.match(page, { status: 400, text: '<!doctype html>' })
  t.match(page.text, 'value="&quot;&gt;&lt;b&gt;"')
  t.match(page.text, /id="user-email-refused"[^]*id="user-name-refused"/, 'all that is wrong')
  await expectStatus(400, eve.post(`${USERS}?cursor=x`, dan))

  const [first, all] = [await shown(`${USERS}?limit=2`), await shown(USERS)]
  const rest = await shown(nextOf(first, 'user-rows') ?? '')
  t.same([...emailsIn(first), ...emailsIn(rest)], emailsIn(all), 'what was refused is not there')
})

await t.test('a role is given and taken; one’s own is not lost by accident', async (t) => {
  const made = await eve.post(role(ann), { role: 'admin' })
  t.match(made, { status: 200, text: /^<tr role="row" id="user-[\s\S]*Is an admin now\./ })
  await expectStatus(200, ann.get(USERS))
  const location = `${USERS}?limit=1`
  const page = await eve.post(`${role(ann)}?limit=1`, { role: 'user' }, NAVIGATION)
  t.match(page, { status: 303, headers: { location } }, 'to the same page of the list')
  refuses(t, await eve.post(role(ann), { role: 'ADMIN' }), [400, 'INVALID_ROLE'])
  await expectStatus(400, eve.post(`${role(ann)}?cursor=x`, { role: 'admin' }))
  t.match(await ann.read('/users/me'), { role: 'user' }, 'refused before anything is changed')
  for (const id of [NO_USER, '1']) {
    await expectStatus(404, eve.post(role({ id }), { role: 'admin' }))
  }
  await expectStatus(405, eve.get(role(ann)))

  const upper = role({ id: eve.id.toUpperCase() })
  const refused = await eve.post(upper, { role: 'user', acknowledge_own: 'no' })
  t.match(refused, { status: 400, text: 'your own admin role' })
  const gone = await eve.post(role(eve), { role: 'user', acknowledge_own: 'true' }, NAVIGATION)
  t.match(gone, { status: 303, headers: { location: '/-/' } })
  await expectStatus(403, eve.get(USERS), 'at once')
  await visitorAt(links.base, 'bob@example.com').post(role(eve), { role: 'admin' })
})

await t.test('links of everybody, by the beginning of their slug and by owner', async (t) => {
  t.match(await shown(LINKS), 'No links yet')
  const slugs = ['a-b', 'ab', 'ab-c', 'abc', 'b0']
  for (const slug of slugs) await makeLink(ann, slug, { visibility: 'private' })
  const secure = await makeLink(ann, 'zzz', { visibility: 'secure', title: '<i>"x"' })
  const dora = await links.user('dora')
  await makeLink(dora, 'dora-one', { owners: [ann.email] })
  await makeLink(dora, 'dora-two')
  for (const [query, expected] of [
    [{ q: ' AB ' }, 'ab ab-c abc'],
    [{ q: 'ab-' }, 'ab-c'],
    [{ q: '%' }, ''],
    [{ q: '\0' }, ''],
    [{ q: 'c' }, ''],
    [{ owner: ' DORA@example.com ' }, 'dora-one dora-two'],
    [{ owner: dora.email, q: 'dora-t' }, 'dora-two'],
    // A co-owner is not the owner.
    [{ owner: ann.email }, 'a-b ab ab-c abc b0 zzz'],
  ] as const) {
    t.equal(await listed({ ...query }), expected, JSON.stringify(query))
  }
  t.same(await listedAll(eve, `${LINKS}?limit=1&q=a`, 'all-links'), slugs.slice(0, 4))
  t.match(nextOf(await shown(`${LINKS}?q=a&limit=2`), 'all-links'), 'q=a&limit=2&cursor=')
  const row = await shown(`${LINKS}?q=zzz`)
  t.match(row, '&lt;i&gt;&quot;x&quot;')
  for (const path of ['', '/edit', '/delete']) {
    t.match(row, `href="/-/links/${secure.id}${path}"`)
    await expectStatus(200, eve.get(`/-/links/${secure.id}${path}`), path)
  }
  const none = await shown(`${LINKS}?q=%22%3E%3Cb%3E`)
  t.match(none, /value="&quot;&gt;&lt;b&gt;"[^]*No slug begins with “&quot;&gt;&lt;b&gt;”/)
  t.match(await eve.get(LINKS, HTMX), { text: /^<div id="admin-links"/ })
  await expectStatus(400, eve.get(`${LINKS}?cursor=x`))
  t.match(await shown(`${LINKS}?owner=nobody@example.com`), 'No links of this owner match')
})

await t.test('chosen links are given a co-owner, or deleted', async (t) => {
  const [fay, gil] = [await links.user('fay'), await links.user('gil')]
  await makeLink(fay, 'fay-1')
  await makeLink(fay, 'fay-2', { owners: [gil.email] })
  await makeLink(fay, 'fay-3')
  const [first = '', second = '', third = ''] = await idsOf(fay)
  const chosen = (...ids: readonly string[]) => ids.map((id) => `links=${id}`).join('&')
  const post = (action: string, body: string) => eve.post(`${LINKS}/${action}`, body)
  t.notMatch(await shown(`${LINKS}?q=fay-`), /name="links" value="[^"]*" checked/)
  const all = await shown(`${LINKS}?q=fay-&chosen=all`)
  t.equal(all.match(/name="links" value="[^"]*" checked/g)?.length, 3, 'all without script')

  const asked = await post('chosen', `${chosen(first, second)}&action=delete`)
  t.match(asked, { status: 200, text: /Delete 2 links\?[^]*fay-1[^]*fay-2/ }, 'it asks first')
  const many = Array.from({ length: 901 }, (_, at) => first.slice(0, -4) + (at + 1_000))
  for (const [action, body] of [
    ['chosen', 'action=delete'],
    ['chosen', `${chosen('x')}&action=delete`],
    ['chosen', `${chosen(...many)}&action=delete`],
    ['chosen', chosen(first)],
    // Over a portion, and no id.
    ['delete', chosen(...many.slice(0, 201))],
    ['delete', `${chosen(NO_USER)}&rest=x`],
  ] as const) {
    await expectStatus(400, post(action, body), body.slice(0, 60))
  }
  t.same(await idsOf(fay), [first, second, third], 'nothing was done')

  const added = await post('owners', `${chosen(first, second, NO_USER)}&email=GIL@example.com`)
  t.match(added, { status: 200, text: 'gil@example.com is now a co-owner of 1 link' })
  t.match(added.text, /Not changed: 2 links[^]*fay-2: This user is an owner already\./)
  t.match(added.text, 'A link: No link has this id.')
  const history = await fay.text(`/-/links/${first}`)
  t.match(history, /eve@example\.com<\/bdi>\s+made/, 'by the admin, as a single change is')
  const deleted = await post('delete', chosen(first, first, second))
  t.match(deleted, { status: 200, text: 'Deleted 2 links' })
  t.same(await idsOf(fay), [third])
})

await t.test('an owner changes many of their links, in portions', async (t) => {
  const [ivy, jon] = [await links.user('ivy'), await links.user('jon')]
  t.match(await ivy.text('/-/'), 'href="/-/own">Change several<')
  t.match(await ivy.text(OWN), 'No links yet')
  const owners = [ivy.email]
  await links.store(
    Array.from({ length: 203 }, (_, at) => ({ slug: `ivy-${1_000 + at}`, owners })),
  )
  const shared = await makeLink(jon, 'jon-shared', { owners })
  const foreign = await makeLink(jon, 'jon-only', { visibility: 'secure' })

  const page = await ivy.text(`${OWN}?q=jon&owner=${jon.email}`)
  t.same(slugsIn(page), ['jon-shared'], 'owned and co-owned, nothing else')
  t.notMatch(page, 'id="filter-owner"', 'who has which links is for admins')
  const whole = await ivy.text(`${OWN}?q=ivy-&chosen=all`)
  const ids = allIn(whole, /name="links" value="([^"]*)" checked/g)
  t.equal(ids.length, 203, 'all are chosen, on one page')

  const post = async (action: string, body: string, headers = HTMX) =>
    (await ivy.post(`${OWN}/${action}`, body, headers)).text
  const fields = ids.map((id) => `links=${id}`).join('&')
  const asked = await post('chosen', `${fields}&action=owners`)
  t.match(asked, /Add a co-owner to 200 links[^]*3 more links will be asked for/)
  const done = await post('owners', `${formOf(asked)}&email=${jon.email}`)
  t.match(done, /jon@example.com is now a co-owner of 200 links[^]*Go on with the other 3 links/)
  const rest = await post('chosen', formOf(done))
  t.match(rest, /Add a co-owner to 3 links[^]*name="email"[^>]*value="jon@example.com"/)
  t.notMatch(rest, 'will be asked for', 'the last portion')
  const last = await post('owners', `${formOf(rest)}&email=${jon.email}`)
  t.match(last, 'is now a co-owner of 3 links')
  t.notMatch(last, 'id="go-on"')
  const unknown = `${formOf(asked)}&email=nobody@example.com`
  const refused = await ivy.post(`${OWN}/owners`, unknown, NAVIGATION)
  const said = /id="owners-email-refused"[^]*No user has this e-mail address: people become users/
  t.match(refused, { status: 404, text: said })
  t.match(refused.text, `name="links" value="${ids[0]}"`, 'the links stay chosen')
  t.match(refused.text, '3 more links will be asked for', 'the rest stays, too')

  const others = [foreign, shared].map(({ id }) => `links=${id}`).join('&')
  const mine = await post('chosen', `${others}&action=delete`)
  t.match(mine, /Delete 1 link\?[^]*1 chosen link is gone meanwhile, or it is not yours/)
  t.notMatch(mine, 'jon-only')
  const tried = await post('delete', `${others}&rest=${ids[0]}`)
  t.match(tried, /Deleted 1 link\b[^]*Go on with the other 1 link…[^]*Not changed: 1 link/)
  t.notMatch(tried, 'jon-only', 'a name that the visitor may not see')
  await expectStatus(200, jon.api('GET', `/links/${foreign.id}`), 'only owners change a link')
  await expectStatus(200, ivy.api('GET', `/links/${ids[0]}`), 'not asked for yet')
  const nobody = visitorAt(links.base, '')
  await expectStatus(403, nobody.get(OWN))
  const body = `links=${ids[0]}&action=delete&email=${jon.email}`
  for (const path of ['chosen', 'delete', 'owners']) {
    await expectStatus(403, nobody.post(`${OWN}/${path}`, body), path)
    await expectStatus(403, ivy.post(`${OWN}/${path}`, body, CROSS_SITE), path)
  }
})

await t.test('for admins of this site only', async (t) => {
  const { id } = await makeLink(ann, 'stays')
  const posts = [
    [USERS, 'email=x@example.com'],
    [role(ann), 'role=admin'],
    [role({ id: '1' }), 'role=admin'],
    [`${LINKS}/chosen`, `links=${id}&action=delete`],
    [`${LINKS}/delete`, `links=${id}`],
    [`${LINKS}/owners`, `links=${id}&email=eve@example.com`],
  ] as const
  for (const [who, said] of [
    [ann, /Only admins may do this/],
    [visitorAt(links.base, ''), /You are not signed in/],
  ] as const) {
    for (const path of [USERS, LINKS, `${LINKS}?q=a`]) {
      const page = await who.get(path, NAVIGATION)
      t.match(page, { status: 403, text: said }, path)
      t.notMatch(page.text, /eve@|href="\/-\/admin/, 'without data')
      t.match((await who.get(path)).json(), { code: 'FORBIDDEN' })
    }
    for (const [path, body] of posts) await expectStatus(403, who.post(path, body), path)
  }
  for (const [path, body] of posts) {
    await expectStatus(403, eve.post(path, body, CROSS_SITE), path)
    if (path.startsWith(`${LINKS}/`)) await expectStatus(405, eve.get(path), path)
  }
  t.notMatch(await shown(USERS), 'x@example.com')
  t.match(await ann.read(`/links/${id}`), { owners: { length: 1 } }, 'it stays')
  const image = { ...CROSS_SITE, 'sec-fetch-dest': 'image' }
  await expectStatus(403, eve.get(`${LINKS}?q=a`, image), 'nor measures a search')
  await expectStatus(403, eve.get(USERS, { host: 'evil.test' }), 'nor under another name')
})
