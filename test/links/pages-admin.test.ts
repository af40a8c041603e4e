import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import {
  HTMX,
  NAVIGATION,
  listedAll,
  makeLink,
  nextOf,
  pageUser,
  slugsIn,
  startPages,
  visitorAt,
} from '../helpers/links.ts'
import type { Caller } from '../helpers/links.ts'
import { refuses } from '../helpers/refusals.ts'

const [, postgres] = backends
const USERS = '/-/admin/users'
const LINKS = '/-/admin/links'

/** The e-mail addresses in a list of users, from top to bottom. */
function emailsIn(text: string): readonly string[] {
  const rows = [...text.matchAll(/<tr role="row" id="user-[^"]*">\s*<td [^>]*>\s*(<a.*?<\/a)/gs)]
  return rows.map(([, link = '']) => link.replaceAll(/<[^>]*>|<\/a$/g, '').trim())
}

async function roleOf({ api }: Caller): Promise<string> {
  return (await api<{ role: string }>('GET', '/users/me')).json.role
}

/** The ids of a user's links, by slug. */
async function idsOf({ api }: Caller): Promise<readonly string[]> {
  const { json } = await api<{ links: readonly { id: string }[] }>('GET', '/links')
  return json.links.map(({ id }) => id)
}

const links = await startPages(t, postgres)
const eve = await pageUser(links, 'eve', { admin: true })
const ann = await pageUser(links, 'ann')
const role = (who: Caller): string => `${USERS}/${who.id}/role`

await t.test('the list', async (t) => {
  const { text } = await eve.get(USERS)
  t.same(emailsIn(text), ['ann@example.com', 'eve@example.com', 'operator@localhost'])
  t.match(text, /com<\/a>\s*<span class="badge">you<\/span>/)
  t.match(text, '3 users')
  t.match(text, 'href="/-/admin/links?owner=ann%40example.com"', 'a row leads to the links')
  t.match(text, /<a href="\/-\/admin\/users" aria-current="page" [^>]*>Admin<\/a\s*>/)
  const fragment = await eve.get(USERS, HTMX)
  t.match(fragment, { text: /^<section id="users"/, headers: { vary: 'HX-Request' } })
  for (const query of ['limit=0', 'cursor=x']) {
    t.match(await eve.get(`${USERS}?${query}`), { status: 400 }, query)
  }
})

await t.test('add', async (t) => {
  const added = await eve.post(USERS, {
    email: ' Bob@Example.com ',
    name: 'Bob <i>',
    role: 'admin',
  })
  t.equal(added.status, 200)
  t.match(added.text, /role="status"[^>]*>\s*bob@example\.com is an admin now\./)
  t.match(added.text, /<bdi>Bob &lt;i&gt;<\/bdi>/)
  const short = await eve.post(USERS, { email: 'cy@example.com', name: '' })
  t.match(short.text, /<bdi>cy<\/bdi>/, 'the name of the address when none is given')
  t.match(short.text, /cy@example\.com is a user now/)
  for (const fields of [
    { email: 'bob@example.com' },
    { email: 'a\0@x.test' },
    { email: 'dan@example.com', name: 'n'.repeat(101) },
  ]) {
    refuses(t, await eve.post(USERS, fields), [400, 'BAD_REQUEST'], fields.email)
  }
  const dan = { email: 'dan@example.com' }
  refuses(t, await eve.post(USERS, { ...dan, role: 'owner' }), [400, 'INVALID_ROLE'])
  const page = await eve.post(USERS, { email: '"><b>', name: '<u>' }, NAVIGATION)
  t.match(page, { status: 400, text: /<!doctype html>/ })
  t.match(page.text, 'value="&quot;&gt;&lt;b&gt;"')
  t.match(page.text, /aria-invalid="true"\s+aria-describedby="user-email-refused"/)
  t.notMatch(page.text, /<b>|<u>/)
  const both = await eve.post(USERS, { email: 'nobody', name: 'n'.repeat(101) }, HTMX)
  t.match(both.text, /id="user-email-refused"[^]*id="user-name-refused"/, 'all that is wrong')
  const type = { 'content-type': 'application/json' }
  t.match(await eve.post(USERS, {}, type), { status: 415 })
  t.match(await eve.post(USERS, 'email='.padEnd(70_000, 'x')), { status: 413 })
  t.match(await eve.post(`${USERS}?cursor=x`, dan), { status: 400 })
  t.notMatch((await eve.get(USERS)).text, 'dan@', 'none of them was added')
})

await t.test('a role', async (t) => {
  const made = await eve.post(role(ann), { role: 'admin' })
  t.match(made, { status: 200, text: /^<tr role="row" id="user-[\s\S]*Is an admin now\./ })
  t.equal(await roleOf(ann), 'admin')
  t.match(await ann.get(USERS), { status: 200 })
  const page = await eve.post(`${role(ann)}?limit=1`, { role: 'user' }, NAVIGATION)
  const location = `${USERS}?limit=1`
  t.match(page, { status: 303, headers: { location } }, 'to the same page of the list')
  t.equal(await roleOf(ann), 'user')
  refuses(t, await eve.post(role(ann), { role: 'ADMIN' }), [400, 'INVALID_ROLE'])
  t.match(await eve.post(`${role(ann)}?cursor=x`, { role: 'admin' }), { status: 400 })
  t.equal(await roleOf(ann), 'user', 'refused before anything is changed')
  const nobody = { ...ann, id: '00000000-0000-0000-0000-000000000000' }
  t.match(await eve.post(role(nobody), { role: 'admin' }), { status: 404 })
  t.match(await eve.post(`${USERS}/1/role`, { role: 'admin' }), { status: 404 })
  t.match(await eve.get(role(ann)), { status: 405 })
})

await t.test("one's own admin role is not lost by accident", async (t) => {
  const { text } = await eve.get(USERS)
  t.match(text, 'gatehouse user role eve@example.com admin', 'the way back is said')
  for (const path of [role(eve), role({ ...eve, id: eve.id.toUpperCase() })]) {
    const refused = await eve.post(path, { role: 'user', acknowledge_own: 'no' })
    t.match([refused.status, refused.json()], [400, { error: /your own admin role/ }], path)
  }
  t.equal(await roleOf(eve), 'admin')
  t.match(await eve.post(role(eve), { role: 'admin' }), { status: 200 }, 'it is no loss')
  const meant = { role: 'user', acknowledge_own: 'true' }
  const gone = await eve.post(role(eve), meant, NAVIGATION)
  t.match(gone, { status: 303, headers: { location: '/-/' } })
  t.equal(await roleOf(eve), 'user')
  t.match(await eve.get(USERS), { status: 403 }, 'at once')
  const bob = visitorAt(links.base, 'bob@example.com')
  await bob.post(role(eve), { role: 'admin' })
  const script = await eve.post(role(eve), meant, HTMX)
  t.match(script, { status: 204, headers: { 'hx-redirect': '/-/' } })
  await bob.post(role(eve), { role: 'admin' })
})

await t.test('for admins only', async (t) => {
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
    t.match(await who.post(USERS, { email: 'x@example.com' }), { status: 403 })
    t.match(await who.post(role(ann), { role: 'admin' }), { status: 403 })
    t.match(await who.post(`${USERS}/1/role`, { role: 'admin' }), { status: 403 }, '403 first')
  }
  t.equal(await roleOf(ann), 'user')
})

await t.test('another site changes and measures nothing', async (t) => {
  for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { origin: 'https://evil.test' }]) {
    t.match(await eve.post(role(ann), { role: 'admin' }, headers), { status: 403 })
    t.match(await eve.post(USERS, { email: 'x@example.com' }, headers), { status: 403 })
  }
  t.equal(await roleOf(ann), 'user')
  t.notMatch((await eve.get(USERS)).text, 'x@example.com')
  const image = { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'image' }
  t.match(await eve.get(`${LINKS}?q=a`, image), { status: 403 }, 'nor measures a search')
  const host = { host: 'evil.test' }
  t.match(await eve.get(USERS, host), { status: 403 }, 'nor under another name')
})

await t.test('links of everybody', async (t) => {
  t.match((await eve.get(LINKS)).text, 'No links yet')
  const slugs = ['a-b', 'a0', 'ab', 'ab-c', 'abc', 'abd', 'b0', 'zz']
  for (const slug of slugs) await makeLink(ann, slug, { visibility: 'private' })
  const secure = await makeLink(ann, 'zzz', { visibility: 'secure', title: '<i>"x"' })
  const all = [...slugs, 'zzz']

  t.same(slugsIn((await eve.get(LINKS)).text), all)
  for (const [q, expected] of [
    ['ab', ['ab', 'ab-c', 'abc', 'abd']],
    [' AB- ', ['ab-c']],
    ['%', []],
    ['\0', []],
    ['c', []],
  ] as const) {
    const path = `${LINKS}?${new URLSearchParams({ q }).toString()}`
    t.same(slugsIn((await eve.get(path)).text), expected, `q=${q}`)
  }
  t.match(nextOf((await eve.get(`${LINKS}?q=a&limit=2`)).text, 'all-links'), /q=a&limit=2&cursor=/)
  t.same(await listedAll(eve, `${LINKS}?limit=1`, 'all-links'), all)

  const row = (await eve.get(`${LINKS}?q=zzz`)).text
  t.match(row, '&lt;i&gt;&quot;x&quot;')
  for (const path of ['', '/edit', '/delete']) {
    t.match(row, `href="/-/links/${secure.id}${path}"`)
    t.match(await eve.get(`/-/links/${secure.id}${path}`), { status: 200 }, path)
  }
  const none = await eve.get(`${LINKS}?q=%22%3E%3Cb%3E`)
  t.match(none.text, 'No slug begins with “&quot;&gt;&lt;b&gt;”')
  t.match(none.text, 'value="&quot;&gt;&lt;b&gt;"')
  t.match(await eve.get(LINKS, HTMX), { text: /^<div id="admin-links"/ })
  t.match(await eve.get(`${LINKS}?cursor=x`), { status: 400 })
})

await t.test('links of one owner', async (t) => {
  const dora = await pageUser(links, 'dora')
  for (const slug of ['dora-one', 'dora-two']) await makeLink(dora, slug)
  const of = (owner: string, q = '') =>
    eve.get(`${LINKS}?${new URLSearchParams({ owner, q }).toString()}`)
  t.same(slugsIn((await of(' DORA@example.com ')).text), ['dora-one', 'dora-two'])
  t.same(slugsIn((await of(dora.email, 'dora-t')).text), ['dora-two'])
  t.match((await of('nobody@example.com')).text, /No links of this owner match/)
  await dora.api('POST', `/links/${(await idsOf(dora))[0]}/owners`, { email: ann.email })
  t.notMatch(slugsIn((await of(ann.email)).text), ['dora-one'], 'a co-owner is not the owner')
})

await t.test('chosen links', async (t) => {
  const fay = await pageUser(links, 'fay')
  const gil = await pageUser(links, 'gil')
  const slugs = ['fay-1', 'fay-2', 'fay-3', 'fay-4']
  for (const slug of slugs) await makeLink(fay, slug)
  const [first = '', second = '', third = '', fourth = ''] = await idsOf(fay)
  const chosen = (...ids: readonly string[]) => ids.map((id) => `links=${id}`).join('&')

  await t.test('every row may be chosen, all at once also without script', async (t) => {
    const one = (await eve.get(`${LINKS}?q=fay-`)).text
    t.equal(one.match(/type="checkbox" name="links"/g)?.length, 4)
    t.notMatch(one, /name="links" value="[^"]*" checked/)
    const all = (await eve.get(`${LINKS}?q=fay-&chosen=all`)).text
    t.equal(all.match(/name="links" value="[^"]*" checked/g)?.length, 4)
  })

  await t.test('it asks first', async (t) => {
    const asked = await eve.post(`${LINKS}/chosen`, `${chosen(first, second)}&action=delete`)
    t.match(asked, { status: 200, text: /Delete 2 links\?[^]*fay-1[^]*fay-2/ })
    t.same(await idsOf(fay), [first, second, third, fourth], 'nothing was done')
    const owners = await eve.post(`${LINKS}/chosen`, `${chosen(first)}&action=owners`)
    t.match(owners.text, /Add a co-owner to 1 link[^]*list="owners-email-list"/)
    for (const body of ['action=delete', `${chosen('x')}&action=delete`, chosen(first)]) {
      t.match(await eve.post(`${LINKS}/chosen`, body), { status: 400 }, body)
    }
    const many = Array.from({ length: 201 }, (_, at) => first.slice(0, -3) + (at + 100))
    t.match(await eve.post(`${LINKS}/chosen`, `${chosen(...many)}&action=delete`), {
      status: 400,
      text: /1 to 200/,
    })
  })

  await t.test('a co-owner: what was done, and what was refused', async (t) => {
    await fay.api('POST', `/links/${second}/owners`, { email: gil.email })
    const ids = chosen(first, second, first.replace(/.{12}$/, '000000000000'))
    const report = await eve.post(`${LINKS}/owners`, `${ids}&email=GIL@example.com`)
    t.equal(report.status, 200)
    t.match(report.text, 'gil@example.com is now a co-owner of 1 link')
    t.match(report.text, /Not changed: 2 links[^]*fay-2: This user is an owner already\./)
    t.match(report.text, /A link: No link has this id\./)
    const { json } = await fay.api('GET', `/links/${first}/owners`)
    t.match(json, [{ email: fay.email }, { email: gil.email, is_primary: false }])
    const history = (await fay.get(`/-/links/${first}`)).text
    t.match(history, /eve@example\.com<\/bdi>\s+made/, 'by the admin, as a single change is')

    const unknown = await eve.post(
      `${LINKS}/owners`,
      `${chosen(third)}&email=nobody@example.com`,
      NAVIGATION,
    )
    t.match(unknown, { status: 404, text: /id="owners-email-refused"[^]*No user has this e-mail/ })
    t.match(unknown.text, `name="links" value="${third}"`, 'the links stay chosen')
    t.match(unknown.text, 'value="nobody@example.com"')
  })

  await t.test('deleted', async (t) => {
    const report = await eve.post(`${LINKS}/delete`, chosen(first, first, second))
    t.match(report, { status: 200, text: /Deleted 2 links/ })
    t.same(await idsOf(fay), [third, fourth])
    t.match(await fay.get('/fay-1'), { status: 404 }, 'at once')
    const again = await eve.post(`${LINKS}/delete`, chosen(first, third))
    t.match(again.text, /Deleted 1 link\b[^]*Not changed: 1 link\b/)
  })

  await t.test('for admins of this site only', async (t) => {
    const other = { 'sec-fetch-site': 'cross-site' }
    for (const [path, more] of [
      ['chosen', '&action=delete'],
      ['delete', ''],
      ['owners', '&email=fay@example.com'],
    ] as const) {
      const body = chosen(fourth) + more
      t.match(await fay.post(`${LINKS}/${path}`, body), { status: 403 }, `${path} of one's own`)
      t.match(await eve.post(`${LINKS}/${path}`, body, other), { status: 403 }, path)
      t.match(await eve.get(`${LINKS}/${path}`), { status: 405 }, path)
    }
    t.same(await idsOf(fay), [fourth])
  })
})

await t.test('pages of users', async (t) => {
  const emails: string[] = []
  for (let next: string | undefined = `${USERS}?limit=3`; next !== undefined;) {
    const { text } = await eve.get(next)
    t.ok(emailsIn(text).length <= 3)
    emails.push(...emailsIn(text))
    next = nextOf(text, 'user-rows')
  }
  t.ok(emails.length > 6, 'on three pages or more')
  t.same(emails, emailsIn((await eve.get(USERS)).text))
})
