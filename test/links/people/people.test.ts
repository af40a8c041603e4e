import { t, type Test } from 'tap'
import { INSTANT } from '../../helpers/api.ts'
import { auditOf } from '../../helpers/audit.ts'
import { runCli } from '../../helpers/cli.ts'
import {
  HTMX,
  NAVIGATION,
  makeLink,
  openLinks,
  openPages,
  type Caller,
  type Link,
  type Visitor,
  visitorAt,
} from '../../helpers/links.ts'
import { expectStatus, refuses, type Refusal } from '../../helpers/refusals.ts'

const ID = '00000000-0000-4000-8000-000000000000'
const FORBIDDEN = [403, 'FORBIDDEN'] as const
const LAST_ADMIN = [409, 'LAST_ADMIN'] as const
const TEXT = { 'content-type': 'text/plain' }

type Users = { users: readonly { id: string; email: string }[] }

const links = await openPages(t)
const { env } = links
const ann = await links.user('ann')
const bob = await links.user('bob')
const cat = await links.user('cat')
const eve = await links.user('eve')
const root = await links.user('root', { admin: true })
const { users } = await root.read<Users>('/admin/users')
const operator = users.find(({ email }) => email === 'operator@localhost')
const command = (...words: readonly string[]) => runCli(['user', ...words], { env })

function setRole(by: Caller, { id }: { id: string }, role: string) {
  return by.api('PUT', `/admin/users/${id}/role`, { role })
}

function setDisabled(by: Caller, { id }: { id: string }, disabled: unknown) {
  return by.api<{ disabled_at: string | null }>('PUT', `/admin/users/${id}/disabled`, { disabled })
}

/** The addresses of a link's owners, the primary one first. */
async function ownersOf({ id }: Link) {
  const { owners } = await root.read(`/links/${id}`)
  return owners.map(({ email }) => email)
}

async function newestChange({ id }: Link): Promise<unknown> {
  const json = await root.read<{ changes: object[] }>(`/links/${id}/history?limit=1`)
  return json.changes[0]
}

/** Refuses calls of the API by somebody, who changes nothing of a link. */
function refuse(t: Test, by: Caller, link: Link, refusals: readonly Refusal[]) {
  const parts = ['', '/shares', '/history'].map((of) => `/links/${link.id}${of}`)
  return by.refused(t, () => Promise.all(parts.map((path) => root.read(path))), refusals)
}

await t.test('owners and shares: who adds and removes whom', async (t) => {
  const link = await makeLink(eve, 'shared', { visibility: 'secure' })
  const path = `/links/${link.id}`
  const add = (by: Caller, what: string, email: string) =>
    expectStatus(201, by.api('POST', `${path}/${what}`, { email }))
  t.same(await eve.read(`${path}/shares`), [], 'a bare array, empty')
  await add(eve, 'owners', ann.email)
  const made = await add(ann, 'shares', ` ${cat.email.toUpperCase()}\t`)
  const row = { id: cat.id, email: cat.email, shared_by: ann.email }
  t.match(made.json, { ...row, created_at: INSTANT })
  for (const [what, expected] of [
    ['owners', [eve, ann, bob]],
    ['shares', [bob, cat]],
  ] as const) {
    await add(root, what, bob.email)
    const rows = await cat.read<{ email: string }[]>(`${path}/${what}`)
    const emails = (of: readonly { email: string }[]) => of.map(({ email }) => email)
    t.same(emails(rows), emails(expected), 'the primary one first, then by address')
  }
  for (const [by, what, { id }] of [
    [ann, 'shares', cat],
    [bob, 'owners', ann],
    [bob, 'owners', bob],
    [root, 'shares', bob],
  ] as const) {
    await expectStatus(204, by.api('DELETE', `${path}/${what}/${id.toUpperCase()}`), what)
  }
  for (const { api } of [ann, bob, cat]) refuses(t, await api('GET', path), FORBIDDEN, 'at once')
})

await t.test('what is refused of owners and shares', async (t) => {
  const link = await makeLink(ann, 'guarded')
  const unknown = ['nobody@example.com', '', 'no address', `${bob.email}\0`, bob.id]
  unknown.push('\ud83d@example.com', `${'a'.repeat(300)}@example.com`)
  for (const what of ['owners', 'shares']) {
    const path = `/links/${link.id}/${what}`
    const call = `POST ${path}`
    await expectStatus(201, ann.api('POST', path, { email: bob.email }))
    const twice = what === 'owners' ? 'DUPLICATE_OWNER' : 'DUPLICATE_SHARE'
    await refuse(t, ann, link, [
      [{ call, body: { email: bob.email } }, 409, twice],
      [`DELETE ${path}/${root.id}`, 404, 'NOT_FOUND'],
      ...unknown.map((email): Refusal => [{ call, body: { email } }, 404, 'NOT_FOUND']),
      ...[undefined, 5, [bob.email]].map((email): Refusal => [
        { call, body: { email } },
        400,
        'BAD_REQUEST',
      ]),
      [{ call, body: 'x', headers: TEXT }, 415, 'UNSUPPORTED_MEDIA_TYPE'],
      [`DELETE ${path}/no-id`, 400, 'BAD_REQUEST'],
    ])
    // The order: id, existence, right, body.
    const calls = [`GET ${path}`, `POST ${path}`, `DELETE ${path}/${bob.id}`]
    const sent = (line: string) => ({ call: line, body: 'no json', headers: TEXT })
    await refuse(t, eve, link, [
      ...calls.map((line): Refusal => [sent(line.replace(link.id, 'no-id')), 400, 'BAD_REQUEST']),
      ...calls.map((line): Refusal => [sent(line.replace(link.id, ID)), 404, 'NOT_FOUND']),
      ...calls.map((line): Refusal => [sent(line), ...FORBIDDEN]),
    ])
  }
})

await t.test('a link is handed over, by the API and on its page', async (t) => {
  const fields = { visibility: 'secure', tags: ['kept'], owners: [bob.email] }
  const link = await makeLink(ann, 'handed', fields)
  const path = `/links/${link.id}`
  const handOver = (by: Caller, email: unknown, headers = {}) =>
    by.api<Link>('PUT', `${path}/owner`, { email }, headers)
  const before = await ann.api<Link>('GET', path)
  refuses(t, await handOver(bob, bob.email), FORBIDDEN, 'a co-owner does not take it')
  refuses(t, await handOver(ann, 'nobody@example.com'), [404, 'NOT_FOUND'])
  refuses(t, await handOver(ann, 7), [400, 'BAD_REQUEST'])
  const stale = await handOver(ann, bob.email, { 'if-match': '"old"' })
  refuses(t, stale, [412, 'PRECONDITION_FAILED'])
  t.same(await ann.read(path), before.json, 'nothing was changed')

  const ifMatch = { 'if-match': before.headers.etag ?? '' }
  const handed = await handOver(ann, ` ${cat.email.toUpperCase()}`, ifMatch)
  t.equal(handed.headers.etag, (await ann.api('GET', path)).headers.etag)
  t.match(handed.json.owners, [
    { id: cat.id, email: cat.email, is_primary: true },
    { id: ann.id, is_primary: false },
    { id: bob.id, is_primary: false },
  ])
  const change = { action: 'handed over', detail: { owner: [ann.email, cat.email] } }
  t.match(await newestChange(link), change)
  await expectStatus(200, cat.api('GET', '/tags/kept/links'), 'found by its tag')
  refuses(t, await handOver(ann, ann.email), FORBIDDEN, 'the former one is a co-owner')
  await expectStatus(200, handOver(cat, cat.email), 'to its owner: nothing changes')
  t.match(await newestChange(link), change)
  await expectStatus(200, handOver(root, ann.email), 'admins may')

  const page = `/-/links/${link.id}`
  await expectStatus(403, bob.post(`${page}/owner`, { email: bob.email }))
  const unknown = await ann.post(`${page}/owner`, { email: 'no@example.com' }, NAVIGATION)
  t.match(unknown, { status: 404, text: /<details[^>]* open[^]*id="owner-email-refused"/ })
  const done = await ann.post(`${page}/owner`, { email: bob.email }, HTMX)
  t.match(done.text, 'handed the link over from')
  t.notMatch(done.text, 'Hand over…', 'the former owner is a co-owner')
  t.match(await root.text(page), 'Hand over…')
  t.same(await ownersOf(link), [bob.email, ann.email, cat.email])
})

await t.test('a disabled user can neither sign in nor use tokens; the links go on', async (t) => {
  const dan = await links.user('dan')
  const link = await makeLink(dan, 'of-dan', { visibility: 'secure' })
  await makeLink(dan, 'open-of-dan')
  refuses(t, await setDisabled(ann, dan, true), FORBIDDEN)
  refuses(t, await setDisabled(root, dan, 'yes'), [400, 'BAD_REQUEST'])
  refuses(t, await setDisabled(root, { id: ID }, true), [404, 'NOT_FOUND'])
  const form = `/-/admin/users/${dan.id}/disabled`
  await expectStatus(403, ann.post(form, { disabled: 'true' }))
  await expectStatus(200, dan.get('/-/'), 'nothing was changed')

  const disabled = await setDisabled(root, dan, true)
  t.match(disabled, { status: 200, json: { id: dan.id, disabled_at: String } })
  t.same((await setDisabled(root, dan, true)).json, disabled.json, 'again changes nothing')
  refuses(t, await dan.api('GET', '/links'), [401, 'UNAUTHORIZED'])
  const page = await dan.get('/-/', NAVIGATION)
  t.match(page, { status: 403, text: /account is disabled; ask an admin/i })
  refuses(t, await dan.post('/-/new', { slug: 'x1', url: 'https://x.test/' }), FORBIDDEN)
  await expectStatus(403, dan.get('/of-dan'), 'the own secure link, too')
  await expectStatus(302, dan.get('/open-of-dan'), 'public links lead on for everybody')
  await expectStatus(302, root.get('/of-dan'))
  const to = await makeLink(ann, 'to-dan')
  const refused = await ann.api('PUT', `/links/${to.id}/owner`, { email: dan.email })
  refuses(t, refused, [
    400,
    'BAD_REQUEST',
    'this user is disabled, so the link would have no active owner',
  ])

  t.same((await setDisabled(root, dan, false)).json, { ...disabled.json, disabled_at: null })
  await expectStatus(200, dan.api('GET', '/links'), 'the same token works again')
  await expectStatus(200, dan.get(`/-/links/${link.id}`))
  const changed = await root.post(form, { disabled: 'true' }, HTMX)
  t.match(changed, { status: 200, text: />disabled<[^]*Is disabled now\.[^]*Enable…/ })
  t.match((await root.post(form, { disabled: 'false' }, HTMX)).text, 'Is enabled now.')
})

await t.test('the last admin stays one, and enabled', async (t) => {
  // There is an operator, who does not count.
  const local = { id: operator?.id ?? '' }
  refuses(t, await setRole(root, root, 'user'), LAST_ADMIN, 'the API')
  refuses(t, await setDisabled(root, root, true), LAST_ADMIN)
  const kept = 'the local operator of this machine cannot be disabled'
  refuses(t, await setDisabled(root, local, true), [400, 'BAD_REQUEST', kept])
  const path = `/-/admin/users/${root.id}/role`
  const page = await root.post(path, { role: 'user', acknowledge_own: 'true' }, NAVIGATION)
  t.match(page, { status: 409, text: /<!doctype html>[\s\S]*the last admin/i })
  t.notMatch(await root.text('/-/admin/users'), `/-/admin/users/${root.id}/disabled`)
  const last = { code: 1, stderr: 'gatehouse: this is the last admin' }
  t.match(await command('role', root.email, 'user'), last, 'the command')
  t.match(await command('disable', root.email), last)
  t.match(await root.read('/users/me'), { role: 'admin' })

  // What leaves an admin is carried out.
  for (const [who, role] of [
    [root, 'admin'],
    [bob, 'user'],
    [local, 'user'],
    [local, 'admin'],
    [bob, 'admin'],
  ] as const) {
    await expectStatus(200, setRole(root, who, role))
  }
  await expectStatus(200, setDisabled(root, bob, true))
  refuses(t, await setRole(root, root, 'user'), LAST_ADMIN, 'a disabled admin is no other one')
  t.match(await command('enable', bob.email), { code: 0 })
  await expectStatus(200, setRole(root, root, 'user'))
  refuses(t, await setRole(bob, bob, 'user'), LAST_ADMIN)
  t.match(await command('role', root.email, 'admin'), { code: 0 })
  await setRole(root, bob, 'user')
  const alone = await openLinks(t)
  const given = await runCli('user role operator@localhost user', { env: alone.env })
  t.match(given, { code: 1, stderr: 'the last admin' }, 'an operator alone')
})

await t.test('all places of a user go to another one', async (t) => {
  const flo = await links.user('flo')
  const gus = await links.user('gus')
  const hal = await links.user('hal')
  const transfer = (...args: readonly string[]) => command('transfer', ...args)
  const owned = await makeLink(flo, 'owned', { visibility: 'secure', tags: ['of-flo'] })
  const owners = [flo.email]
  const both = await makeLink(flo, 'of-both', { owners: [gus.email] })
  const cos = await makeLink(hal, 'co-owned', { owners })
  const lent = { visibility: 'secure', tags: ['of-hal'], shares: owners }
  const shared = await makeLink(hal, 'lent', lent)
  const gone = await makeLink(flo, 'gone')
  await flo.api('DELETE', `/links/${gone.id}`)
  await links.store(Array.from({ length: 205 }, (_, n) => ({ slug: `l${n}`, owners })))
  const transfers = async () =>
    (await auditOf(env, '--service', 'links'))
      .filter(({ action }) => action === 'user transfer')
      .map(({ subject }) => subject)

  const counts = 'from flo@example.com: links owned or co-owned: 208, shared: 1, deleted: 1\n'
  const dry = await transfer(flo.email, gus.email, '--dry-run')
  t.match(dry, { code: 0, stderr: `gus@example.com would get ${counts}` })
  t.same([await ownersOf(owned), await transfers()], [owners, []], 'nothing was moved')
  const done = await transfer(flo.email, gus.email)
  t.match(done, { code: 0, stdout: '', stderr: `gus@example.com got ${counts}` })
  t.same(await ownersOf(owned), [gus.email])
  t.same(await ownersOf(both), [gus.email], 'a co-owner becomes the primary owner')
  t.same(await ownersOf(cos), [hal.email, gus.email], 'a co-owner stays one')
  await expectStatus(200, gus.api('GET', `/links/${shared.id}`))
  for (const tag of ['of-flo', 'of-hal']) {
    await expectStatus(200, gus.api('GET', `/tags/${tag}/links`), tag)
    await expectStatus(404, flo.api('GET', `/tags/${tag}/links`), tag)
  }
  await expectStatus(403, flo.api('POST', `/links/${gone.id}/restore`))
  await expectStatus(200, gus.api('POST', `/links/${gone.id}/restore`), 'deleted ones, too')
  const by = { action: 'transferred', actor: 'command' }
  t.match(await newestChange(owned), { ...by, detail: { owner: [flo.email, gus.email] } })
  t.match(await newestChange(shared), { ...by, detail: { share: [flo.email, gus.email] } })
  const lines = ['deleted: 1', 'shared: 1', 'owned: 8', 'owned: 200'].map(
    (places) => `flo@example.com to gus@example.com, ${places}`,
  )
  t.same(await transfers(), lines, 'a line a transaction')

  await command('disable', flo.email)
  const ida = await links.user('ida', { admin: true })
  const move = (email: string, who: Visitor = ida) =>
    who.post('/-/admin/links/move', { from: gus.email, email })
  for (const [to, status, text] of [
    ['nobody@example.com', 404, /no user has (this|the) e-mail address/],
    [gus.email, 400, /to another user, not to the same one/],
    [flo.email, 400, /flo@example\.com is disabled/],
  ] as const) {
    t.match(await transfer(gus.email, to), { code: 1, stderr: text })
    t.match(await move(to), { status, text })
  }
  const fields = { from: 'nobody@example.com', email: hal.email }
  const unknown = await ida.post('/-/admin/links/move', fields, { accept: 'text/html' })
  t.match(unknown, { status: 404, text: 'No user has the e-mail address nobody@example.com.' })
  t.match(await move(hal.email, visitorAt(links.base, gus.email)), { status: 403 })
  t.same(await transfers(), lines, 'neither nothing nor a refusal leaves a line')
  const moved = await move(hal.email)
  t.match(moved, { status: 303, headers: { location: 'owner=hal%40example.com&done=moved' } })
  t.same(await ownersOf(owned), [hal.email], 'by the form of an admin')
})
