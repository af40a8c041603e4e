import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { HTMX, makeLink, NAVIGATION, pageUser, startPages } from '../helpers/links.ts'
import type { Caller, Link } from '../helpers/links.ts'
import { refuses } from '../helpers/refusals.ts'

const [, postgres] = backends

type Change = { readonly action: string; readonly actor: string; readonly detail: object }

const links = await startPages(t, postgres)
const ann = await pageUser(links, 'ann')
const bob = await pageUser(links, 'bob')
const cyd = await pageUser(links, 'cyd')
const root = await pageUser(links, 'root', { admin: true })

/** The addresses of a link's owners, the primary one first. */
async function ownersOf({ id }: Pick<Link, 'id'>): Promise<readonly string[]> {
  const { json } = await root.api<Link>('GET', `/links/${id}`)
  return json.owners.map(({ email }) => email)
}

async function newestChange({ id }: Pick<Link, 'id'>): Promise<Change | undefined> {
  const { json } = await root.api<{ changes: Change[] }>('GET', `/links/${id}/history?limit=1`)
  return json.changes[0]
}

await t.test('PUT /links/{id}/owner', async (t) => {
  const link = await makeLink(ann, 'handed', { visibility: 'secure', tags: ['kept'] })
  const path = `/links/${link.id}`
  const handOver = (by: Caller, email: unknown, headers = {}) =>
    by.api<Link>('PUT', `${path}/owner`, { email }, headers)
  await ann.api('POST', `${path}/owners`, { email: bob.email })

  const before = await ann.api<Link>('GET', path)
  refuses(t, await handOver(bob, bob.email), [403, 'FORBIDDEN'], 'a co-owner does not take it')
  refuses(t, await handOver(cyd, cyd.email), [403, 'FORBIDDEN'])
  refuses(t, await handOver(ann, 'nobody@example.com'), [404, 'NOT_FOUND'])
  refuses(t, await handOver(ann, 7), [400, 'BAD_REQUEST'])
  const stale = await handOver(ann, bob.email, { 'if-match': '"old"' })
  refuses(t, stale, [412, 'PRECONDITION_FAILED'])
  t.same((await ann.api('GET', path)).json, before.json, 'nothing was changed')

  const etag = before.headers.etag ?? ''
  const handed = await handOver(ann, ` ${cyd.email.toUpperCase()}`, { 'if-match': etag })
  t.equal(handed.status, 200)
  t.same(handed.json.owners, [
    { id: cyd.id, email: cyd.email, is_primary: true },
    { id: ann.id, email: ann.email, is_primary: false },
    { id: bob.id, email: bob.email, is_primary: false },
  ])
  t.equal(handed.headers.etag, (await ann.api('GET', path)).headers.etag)
  const change = { action: 'handed over', actor: ann.email }
  t.match(await newestChange(link), { ...change, detail: { owner: [ann.email, cyd.email] } })
  const tagged = await cyd.api('GET', '/tags/kept/links')
  t.equal(tagged.status, 200, 'the new owner finds it by its tag')

  refuses(t, await handOver(ann, ann.email), [403, 'FORBIDDEN'], 'the former one is a co-owner')
  const again = await handOver(cyd, cyd.email)
  t.equal(again.status, 200, 'to hand it to its owner changes nothing')
  t.match(await newestChange(link), { detail: { owner: [ann.email, cyd.email] } })
  t.equal((await handOver(root, bob.email)).status, 200, 'admins may')
  t.same(await ownersOf(link), [bob.email, ann.email, cyd.email], 'a co-owner becomes primary')
  t.equal((await bob.api('DELETE', `${path}/owners/${cyd.id}`)).status, 204)
})

await t.test('a link is handed over on its page', async (t) => {
  const link = await makeLink(ann, 'by-page')
  const page = `/-/links/${link.id}`
  await ann.api('POST', `/links/${link.id}/owners`, { email: bob.email })
  t.match((await ann.get(page)).text, 'Hand over…')
  t.match((await root.get(page)).text, 'Hand over…')
  t.notMatch((await bob.get(page)).text, 'Hand over…', 'not for co-owners')

  t.equal((await bob.post(`${page}/owner`, { email: bob.email })).status, 403)
  const unknown = await ann.post(`${page}/owner`, { email: 'no@example.com' }, NAVIGATION)
  t.match(unknown, { status: 404, text: /<details[^>]* open[^]*id="owner-email-refused"/ })
  t.same(await ownersOf(link), [ann.email, bob.email])

  const done = await ann.post(`${page}/owner`, { email: bob.email }, HTMX)
  t.match(done, { status: 200, text: /bob@example\.com is the primary owner now\./ })
  t.match(done.text, /handed the link over from.*ann@example\.com.*to.*bob@example\.com/s)
  t.notMatch(done.text, 'Hand over…', 'the former owner is a co-owner')
  t.same(await ownersOf(link), [bob.email, ann.email])
})

await t.test('a disabled user can neither sign in nor use tokens; the links go on', async (t) => {
  const dan = await pageUser(links, 'dan')
  const link = await makeLink(dan, 'of-dan', { visibility: 'secure', url: 'https://dan.test/' })
  const open = await makeLink(dan, 'open-of-dan', { url: 'https://dan.test/open' })
  const at = `/admin/users/${dan.id}/disabled`
  const setDisabled = (disabled: unknown, by: Caller = root) =>
    by.api<{ disabled_at: string | null }>('PUT', at, { disabled })

  refuses(t, await setDisabled(true, ann), [403, 'FORBIDDEN'])
  refuses(t, await setDisabled('yes'), [400, 'BAD_REQUEST'])
  const nobody = '/admin/users/00000000-0000-4000-8000-000000000000/disabled'
  refuses(t, await root.api('PUT', nobody, { disabled: true }), [404, 'NOT_FOUND'])
  t.equal((await dan.get('/-/')).status, 200, 'nothing was changed')

  const disabled = await setDisabled(true)
  t.match(disabled, { status: 200, json: { id: dan.id, disabled_at: /^\d{4}-/ } })
  t.same((await setDisabled(true)).json, disabled.json, 'again changes nothing')
  refuses(t, await dan.api('GET', '/links'), [401, 'UNAUTHORIZED'])
  const page = await dan.get('/-/', NAVIGATION)
  t.match(page, { status: 403, text: /account is disabled; ask an admin/i })
  refuses(t, await dan.post('/-/new', { slug: 'x1', url: 'https://x.test/' }), [403, 'FORBIDDEN'])
  t.equal((await dan.get('/of-dan')).status, 403, 'the own secure link, too')
  t.match(await dan.get('/open-of-dan'), { status: 302 }, 'public links lead on for everybody')
  t.match(await root.get('/of-dan'), { status: 302 })
  const users = (await root.get('/-/admin/users')).text
  const [row = ''] = users.slice(users.indexOf(`user-${dan.id}`)).split('</tr>')
  t.match(row, '>disabled</span>')
  const refused = await ann.api('PUT', `/links/${(await makeLink(ann, 'to-dan')).id}/owner`, {
    email: dan.email,
  })
  refuses(t, refused, [400, 'BAD_REQUEST', /disabled/])

  t.same((await setDisabled(false)).json, { ...disabled.json, disabled_at: null })
  t.equal((await dan.api('GET', '/links')).status, 200, 'the same token works again')
  t.equal((await dan.get(`/-/links/${link.id}`)).status, 200)
  t.same(await ownersOf(open), [dan.email])

  const form = `/-/admin/users/${dan.id}/disabled`
  t.equal((await ann.post(form, { disabled: 'true' })).status, 403)
  const changed = await root.post(form, { disabled: 'true' }, HTMX)
  t.match(changed, { status: 200, text: /^<tr [^]*Is disabled now\.[^]*Enable…/ })
  t.match((await root.post(form, { disabled: 'false' }, HTMX)).text, 'Is enabled now.')
  t.notMatch((await root.get('/-/admin/users')).text, `/-/admin/users/${root.id}/disabled`)
})

await t.test('neither the last admin nor the operator can be disabled', async (t) => {
  const { json } = await root.api<{ users: { id: string; email: string }[] }>(
    'GET',
    '/admin/users',
  )
  const operator = json.users.find(({ email }) => email === 'operator@localhost')
  const setDisabled = (id = '') =>
    root.api('PUT', `/admin/users/${id}/disabled`, { disabled: true })
  refuses(t, await setDisabled(operator?.id), [400, 'BAD_REQUEST', /operator/])
  refuses(t, await setDisabled(root.id), [409, 'LAST_ADMIN'])
  const command = await runCli(['user', 'disable', root.email], { env: links.env })
  t.match(command, { code: 1, stderr: /^gatehouse: this is the last admin/ })

  const second = await pageUser(links, 'second', { admin: true })
  t.equal((await setDisabled(second.id)).status, 200)
  const role = await root.api('PUT', `/admin/users/${root.id}/role`, { role: 'user' })
  refuses(t, role, [409, 'LAST_ADMIN'], 'a disabled admin is not the other one')
  t.match(await runCli(['user', 'enable', second.email], { env: links.env }), { code: 0 })
  t.equal((await second.api('GET', '/admin/users')).status, 200)
})
