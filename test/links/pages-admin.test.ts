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
  startLinks,
  startPages,
  visitorAt,
} from '../helpers/links.ts'
import type { Caller } from '../helpers/links.ts'
import { request } from '../helpers/http.ts'

const [, postgres] = backends
const USERS = '/-/admin/users'
const LINKS = '/-/admin/links'

/** The e-mail addresses in a list of users, from top to bottom. */
function emailsIn(text: string): readonly string[] {
  const rows = [...text.matchAll(/<tr role="row" id="user-[^"]*">\s*<td [^>]*>\s*([^\s<]+)/g)]
  return rows.map(([, email = '']) => email)
}

async function roleOf({ api }: Caller): Promise<string> {
  return (await api<{ role: string }>('GET', '/users/me')).json.role
}

const links = await startPages(t, postgres)
const eve = await pageUser(links, 'eve', { admin: true })
const ann = await pageUser(links, 'ann')
const role = (who: Caller): string => `${USERS}/${who.id}/role`

await t.test('the list', async (t) => {
  const { text } = await eve.get(USERS)
  t.same(emailsIn(text), ['ann@example.com', 'eve@example.com', 'operator@localhost'])
  t.match(text, /eve@example\.com\s*<span class="badge">you<\/span>/)
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
  for (const [fields, code] of [
    [{ email: 'bob@example.com' }, 'BAD_REQUEST'],
    [{ email: 'no address' }, 'BAD_REQUEST'],
    [{ email: '"><b>@x.test' }, 'BAD_REQUEST'],
    [{ email: 'a\0@x.test' }, 'BAD_REQUEST'],
    [{}, 'BAD_REQUEST'],
    [{ email: 'dan@example.com', name: 'n'.repeat(101) }, 'BAD_REQUEST'],
    [{ email: 'dan@example.com', role: 'owner' }, 'INVALID_ROLE'],
  ] as const) {
    const refused = await eve.post(USERS, fields as Record<string, string>)
    t.equal(refused.status, 400, JSON.stringify(fields).slice(0, 60))
    t.match(refused.json(), { error: String, code })
  }
  const page = await eve.post(USERS, { email: '"><b>', name: '<u>' }, NAVIGATION)
  t.match(page, { status: 400, text: /<!doctype html>/ })
  t.match(page.text, 'value="&quot;&gt;&lt;b&gt;"')
  t.match(page.text, /aria-invalid="true"\s+aria-describedby="user-refused"/)
  t.notMatch(page.text, /<b>|<u>/)
  const type = { 'content-type': 'application/json' }
  t.match(await eve.post(USERS, {}, type), { status: 415 })
  t.match(await eve.post(USERS, 'email='.padEnd(70_000, 'x')), { status: 413 })
  t.match(await eve.post(`${USERS}?cursor=x`, { email: 'dan@example.com' }), { status: 400 })
  t.notMatch((await eve.get(USERS)).text, 'dan@', 'none of them was added')
})

await t.test('a role', async (t) => {
  const made = await eve.post(role(ann), { role: 'admin' })
  t.match(made, { status: 200, text: /^<tr role="row" id="user-[\s\S]*Is an admin now\./ })
  t.equal(await roleOf(ann), 'admin')
  t.match(await ann.get(USERS), { status: 200 })
  const page = await eve.post(`${role(ann)}?limit=1`, { role: 'user' }, NAVIGATION)
  t.match(page, { status: 200, text: /<!doctype html>[\s\S]*Is a user now\./ })
  t.same(emailsIn(page.text), ['ann@example.com'], 'on the same page of the list')
  t.equal(await roleOf(ann), 'user')
  for (const wrong of ['', 'owner', 'ADMIN']) {
    const refused = await eve.post(role(ann), { role: wrong })
    t.match([refused.status, refused.json()], [400, { code: 'INVALID_ROLE' }], wrong)
  }
  t.match(await eve.post(role(ann)), { status: 400 })
  t.match(await eve.post(`${role(ann)}?cursor=x`, { role: 'admin' }), { status: 400 })
  t.equal(await roleOf(ann), 'user', 'refused before anything is changed')
  const nobody = { ...ann, id: '00000000-0000-0000-0000-000000000000' }
  t.match(await eve.post(role(nobody), { role: 'admin' }), { status: 404 })
  t.match(await eve.post(`${USERS}/1/role`, { role: 'admin' }), { status: 404 })
  t.match(await eve.get(role(ann)), { status: 405 })
  t.match(await eve.post(role(ann), { role: 'user' }, { 'content-type': 'text/plain' }), {
    status: 415,
  })
})

await t.test("one's own admin role is not lost by accident", async (t) => {
  const { text } = await eve.get(USERS)
  t.match(text, 'gatehouse user role eve@example.com admin', 'the way back is said')
  const ways = [{ role: 'user' }, { role: 'user', acknowledge_own: 'no' }]
  for (const path of [role(eve), role({ ...eve, id: eve.id.toUpperCase() })]) {
    for (const fields of ways) {
      const refused = await eve.post(path, fields as Record<string, string>)
      t.match([refused.status, refused.json()], [400, { error: /your own admin role/ }], path)
    }
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

await t.test('another site changes nothing', async (t) => {
  for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { origin: 'https://evil.test' }]) {
    t.match(await eve.post(role(ann), { role: 'admin' }, headers), { status: 403 })
    t.match(await eve.post(USERS, { email: 'x@example.com' }, headers), { status: 403 })
  }
  t.equal(await roleOf(ann), 'user')
  t.notMatch((await eve.get(USERS)).text, 'x@example.com')
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
    ['a', ['a-b', 'a0', 'ab', 'ab-c', 'abc', 'abd']],
    ['ab', ['ab', 'ab-c', 'abc', 'abd']],
    ['ab-', ['ab-c']],
    [' AB ', ['ab', 'ab-c', 'abc', 'abd']],
    ['zz', ['zz', 'zzz']],
    ['-', []],
    ['%', []],
    ['ab{', []],
    ['\0', []],
    ['ä', []],
    ['c', []],
  ] as const) {
    const path = `${LINKS}?${new URLSearchParams({ q }).toString()}`
    t.same(slugsIn((await eve.get(path)).text), expected, `q=${q}`)
    t.same(await listedAll(eve, `${path}&limit=2`, 'all-links'), expected, `q=${q} by pages`)
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

await t.test(
  'without a proxy the operator is the admin; who comes by one is nobody',
  async (t) => {
    const { base } = await startLinks(t, postgres)
    const own = await request(base + USERS)
    t.match(own, { status: 200, text: /operator@localhost\s*<span class="badge">you/ })
    for (const headers of [
      { 'x-forwarded-for': '203.0.113.9' },
      { forwarded: 'for=203.0.113.9' },
      { 'x-forwarded-for': '203.0.113.9', 'remote-email': 'operator@localhost' },
    ]) {
      const page = await request(base + USERS, { headers: { accept: 'text/html', ...headers } })
      t.match(page, { status: 403, text: /A proxy that is not trusted/ }, JSON.stringify(headers))
    }
  },
)

await t.test('pages of users', async (t) => {
  const before = emailsIn((await eve.get(USERS)).text)
  const names = Array.from({ length: 55 }, (_, at) => `user-${String(at).padStart(2, '0')}`)
  for (const name of names) await eve.post(USERS, { email: `${name}@example.com` })
  const emails: string[] = []
  for (let next: string | undefined = USERS; next !== undefined;) {
    const { text } = await eve.get(next)
    emails.push(...emailsIn(text))
    next = nextOf(text, 'user-rows')
  }
  t.same(emails, [...before, ...names.map((name) => `${name}@example.com`)])
})
