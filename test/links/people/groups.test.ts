import { t } from 'tap'
import { runCli } from '../../helpers/cli.ts'
import {
  HTMX,
  leadsTo,
  makeLink,
  NAVIGATION,
  slugsIn,
  openLinks,
  openPages,
  suggested,
  visit,
  visitorAt,
  type Link,
  type PageUser,
  type Visitor,
} from '../../helpers/links.ts'
import { expectStatus, refuses, type Refusal } from '../../helpers/refusals.ts'
import { allIn } from '../../helpers/http.ts'

const HEADER = 'X-Forwarded-Groups'

const links = await openPages(t, { GATEHOUSE_GROUPS_HEADER: HEADER })
const ann = await links.user('ann')
const bob = await links.user('bob')
const root = await links.user('root', { admin: true })

/** A visitor with a header of groups. */
const asMember = ({ email }: PageUser, groups: string) =>
  visitorAt(links.base, email, { [HEADER]: groups })

async function add({ id }: Pick<Link, 'id'>, what: 'owners' | 'shares', email: string) {
  const added = ann.api<{ id: string }>('POST', `/links/${id}/${what}`, { email })
  return (await expectStatus(201, added)).json
}

/** What a visitor finds of a link: the statuses of its pages, and in how many lists it is. */
async function found(who: Visitor, { id, slug, tags: [tag = ''] }: Link) {
  const page = `/-/links/${id}`
  const statuses: number[] = []
  for (const path of [page, `${page}/history`, `/${slug}`, `/${slug}+`, `/-/tags/${tag}`]) {
    statuses.push((await who.get(path)).status)
  }
  let listed = 0
  const searches = ['q=wanted', `tag=${tag}`, `q=${slug}`, `q=${slug.slice(0, 2)}`]
  for (const query of ['', 'all?', 'all?sort=created', ...searches.map((of) => `all?${of}`)]) {
    if (slugsIn(await who.text(`/-/${query}`)).includes(slug)) listed++
  }
  const places = [
    (await who.text('/-/tags')).includes(`/-/tags/${tag}"`),
    suggested(await who.get(`/${slug}x`, NAVIGATION)).includes(slug),
    (await who.text(`/-/suggest?q=${slug}`)).includes(`/${slug}"`),
  ].filter(Boolean)
  return `${statuses.join(' ')}, ${listed} lists, ${places.length} places`
}

const EVERYWHERE = '200 200 302 200 200, 7 lists, 3 places'
const NOWHERE = '403 403 403 403 404, 0 lists, 0 places'

await t.test('members of a group find its links as long as the proxy names it', async (t) => {
  const fields = { visibility: 'secure', title: 'wanted by all', url: 'https://kept.test/' }
  const owned = await makeLink(ann, 'qq-owned', { ...fields, tags: ['t-owned'] })
  const read = await makeLink(ann, 'zz-read', { ...fields, tags: ['t-read'] })
  for (const link of [owned, read]) t.same(await found(bob, link), NOWHERE, link.slug)
  await add(owned, 'owners', 'group:ops')
  await add(read, 'shares', 'group:ops')

  const member = asMember(bob, 'dev, ops')
  t.same(await found(member, owned), EVERYWHERE, 'a group that co-owns')
  t.same(await found(member, read), EVERYWHERE, 'a group that reads')
  await expectStatus(200, member.get(`/-/links/${owned.id}/edit`))
  await expectStatus(403, member.get(`/-/links/${read.id}/edit`))
  for (const groups of ['dev', 'OPS', 'ops x', 'group:ops']) {
    t.same(await found(asMember(bob, groups), owned), NOWHERE, groups)
  }
  t.same(await found(bob, owned), NOWHERE, 'the membership is not remembered')

  const ops = { [HEADER]: 'ops' }
  t.equal(await leadsTo(links.base, '/qq-owned', { headers: ops }), 403, 'groups of nobody')
  const byToken = { ...ops, 'remote-email': bob.email }
  const direct = await bob.api('GET', `/links/${owned.id}`, undefined, byToken)
  refuses(t, direct, [403, 'FORBIDDEN'], 'not for tokens')
})

await t.test('headers as proxies write them', async (t) => {
  const names = ['ops team', '/root/Ops', 'ops@example.com', 'größe', 'role:app:x']
  const shares = names.map((name) => `group:${name}`)
  await makeLink(ann, 'written', { visibility: 'secure', shares })
  const status = async (groups: string | readonly string[]) => {
    const headers = { 'remote-email': bob.email, [HEADER]: groups }
    return (await visit(links.base, '/written', { headers })).status
  }
  for (const groups of [
    'a,b,ops team',
    'a|ops team|b',
    ' a , ops team ',
    '/root/Ops',
    'ops@example.com',
    'a,role:app:x',
    Buffer.from('größe').toString('latin1'),
    ['a', 'ops team'],
  ]) {
    t.equal(await status(groups), 302, String(groups))
  }
  t.equal(await status('CN=ops team,OU=x'), 403, 'the names of a directory are cut at commas')
  t.equal(await status('ops;team'), 403)

  const many = Array.from({ length: 501 }, (_, n) => `g${n}`)
  t.equal(await status([...many.slice(2), 'ops team'].join()), 302)
  const more = await bob.get('/-/', { [HEADER]: many.join() })
  t.match(more, { status: 400, text: /x-forwarded-groups .*500 groups/ })
  await expectStatus(400, bob.get('/-/', { [HEADER]: '\xff' }), 'not UTF-8')
  t.equal(await status([...many, 'ops team'].join()), 403, 'on open paths there are none then')
})

await t.test('a group is added and removed as people are, and is no user otherwise', async (t) => {
  const link = await makeLink(ann, 'of-groups', { visibility: 'private' })
  const path = `/links/${link.id}`
  const group = await add(link, 'owners', ' Group:Net ')
  t.match(group, { email: 'group:Net', is_primary: false })
  t.match((await ann.read(path)).owners, [{ email: ann.email, is_primary: true }, group])
  t.match(await add(link, 'shares', 'group:Net'), { id: group.id, shared_by: ann.email })
  t.match(await ann.read(`${path}/history`), {
    changes: [
      { action: 'shared', detail: { share: [null, 'group:Net'] } },
      { action: 'owner added', detail: { owner: [null, 'group:Net'] } },
      { action: 'created' },
    ],
  })

  const onlyMember = /co-owner or a recipient/
  const call = `POST ${path}/owners`
  const net = { email: 'group:Net' }
  const state = async () => [await ann.read(path), await ann.read(`${path}/shares`)]
  const wrong = ['group: ', 'group:a,b', 'group:a|b', 'group:a;b', 'group:a\nb']
  wrong.push(`group:${'x'.repeat(101)}`)
  const form =
    'a group is group: and a name of 1 to 100 characters, without control characters, commas, semicolons and vertical bars'
  await ann.refused(t, state, [
    [{ call, body: net }, 409, 'DUPLICATE_OWNER'],
    ...wrong.map((email): Refusal => [{ call, body: { email } }, 400, 'BAD_REQUEST', form]),
    [{ call: `PUT ${path}/owner`, body: net }, 400, 'BAD_REQUEST', onlyMember],
  ])
  await bob.refused(t, state, [[{ call, body: net }, 403, 'FORBIDDEN']])

  const users = await root.api('GET', '/admin/users')
  t.notMatch(users.text, 'group:', 'a group is not listed')
  for (const change of [{ role: 'admin' }, { disabled: true }]) {
    const [field = ''] = Object.keys(change)
    const refused = await root.api('PUT', `/admin/users/${group.id}/${field}`, change)
    refuses(t, refused, [404, 'NOT_FOUND'])
  }
  for (const words of [
    'token create group:Net',
    'user role group:Net admin',
    'user disable group:Net',
    'user transfer ann@example.com group:Net',
  ]) {
    const ended = await runCli(words, { env: links.env })
    t.match(ended, { code: 1, stderr: onlyMember }, words)
  }
  await expectStatus(403, bob.get('/-/', { 'remote-email': 'group:Net' }), 'nobody is a group')

  await expectStatus(204, ann.api('DELETE', `${path}/shares/${group.id}`))
  await expectStatus(204, ann.api('DELETE', `${path}/owners/${group.id}`))
  await expectStatus(403, asMember(bob, 'Net').get(`/-/links/${link.id}`))
})

await t.test('a link takes 100 groups of a kind', async (t) => {
  const shares = Array.from({ length: 99 }, (_, n) => `group:n${n}`)
  await links.query(`insert into links.users (email, display_name, created_at)
    select 'group:n' || n, 'n' || n, now() from generate_series(0, 98) n`)
  await links.store([{ slug: 'many-groups', owners: [ann.email], shares }])
  const { links: found } = await ann.read<{ links: Link[] }>('/links?q=many-groups')
  const id = found[0]?.id ?? ''
  await add({ id }, 'shares', 'group:n99')
  const refused = await ann.api('POST', `/links/${id}/shares`, { email: 'group:more' })
  refuses(t, refused, [
    400,
    'BAD_REQUEST',
    'a link takes 100 groups; remove one that is not needed first',
  ])
  await add({ id }, 'shares', bob.email)
  await add({ id }, 'owners', 'group:more')
})

await t.test('members of a co-owning group change, delete and restore its links', async (t) => {
  const link = await makeLink(ann, 'changed', { visibility: 'secure', tags: ['t-changed'] })
  const { id: group } = await add(link, 'owners', 'group:edit')
  const member = asMember(bob, 'edit')
  const page = `/-/links/${link.id}`
  t.match(await member.text(page), 'group:edit')
  t.notMatch(await member.text(page), 'Hand over…')
  await expectStatus(403, member.post(`${page}/owner`, { email: bob.email }))

  const form = { url: 'https://new.test/', visibility: 'secure' }
  await expectStatus(403, bob.post(`${page}/edit`, form, NAVIGATION))
  await expectStatus(303, member.post(`${page}/edit`, form, NAVIGATION))
  t.match(await member.text('/-/all?q=owner:group:edit'), 'data-slug="changed"')
  t.match(await member.text('/-/?role=co-owner'), /data-slug="changed"[^]*co-owner</)
  t.notMatch(await member.text('/-/?role=owner'), 'data-slug="changed"')

  await expectStatus(303, member.post(`${page}/delete`, {}, NAVIGATION))
  t.notMatch(await bob.text('/-/deleted'), 'changed')
  t.match(await member.text('/-/deleted'), 'changed')
  await expectStatus(403, bob.post(`/-/deleted/${link.id}/restore`, {}, NAVIGATION))
  await expectStatus(303, member.post(`/-/deleted/${link.id}/restore`, {}, NAVIGATION))
  t.equal((await member.get('/changed')).headers.location, 'https://new.test/')

  const removed = await member.post(`${page}/owners/${group}/remove`, {}, NAVIGATION)
  t.match(removed, { status: 303, headers: { location: '/-/' } }, 'who removes the own group')
  await expectStatus(403, member.get('/changed'))
})

await t.test('a link counts once for who owns it with a group', async (t) => {
  const groups = { owners: ['group:once'], shares: ['group:twice'] }
  const fields = { visibility: 'private', tags: ['t-once'], ...groups }
  const link = await makeLink(bob, 'once', fields)
  const member = asMember(bob, 'once,twice')
  for (const path of ['/-/', '/-/all?sort=changed', '/-/tags/t-once', '/-/?q=once']) {
    t.equal((await member.text(path)).split('data-slug="once"').length, 2, path)
  }
  t.match(await member.text('/-/tags'), /t-once[^]*?>1</)
  await expectStatus(303, member.post(`/-/links/${link.id}/delete`, {}, NAVIGATION))
  const deleted = await member.text('/-/deleted')
  t.equal(deleted.split(` action="/-/deleted/${link.id}/restore`).length, 2, 'deleted ones, too')
})

await t.test('forms take groups, and offer those of the links and of the visitor', async (t) => {
  const link = await makeLink(ann, 'offered', { owners: ['group:known'] })
  const offers = async (who: Visitor, path: string) =>
    allIn(await who.text(path, HTMX), /<option value="([^"]*)"/g)
  const member = asMember(ann, 'kin, Own')
  const path = '/-/complete/members?email='
  t.same(await offers(member, `${path}group:k`), ['group:known', 'group:kin'])
  t.same(await offers(member, `${path}group:O`), ['group:Own'])
  t.same(await offers(bob, `${path}group:k`), [], 'those of links of others are not offered')
  t.ok((await offers(root, `${path}group:k`)).includes('group:known'))
  t.same(await offers(member, '/-/complete/people?email=group:k'), [])
  const page = await member.text(`/-/links/${link.id}`)
  t.match(page, /<input(?![^>]*type="email")[^>]*id="owners-email"/, 'a browser takes `group:x`')
  const done = await ann.post(`/-/links/${link.id}/shares`, { email: 'group:new' }, HTMX)
  t.match(done, { status: 200, text: 'group:new may read the link now.' })
  t.match(done.text, /shared the link with.*group:new/s)
  const bulk = await root.post('/-/admin/links/owners', { links: link.id, email: 'group:bulk' })
  t.match(bulk, { status: 200, text: 'group:bulk is now a co-owner of' })
})

await t.test('without the header of groups there are none', async (t) => {
  const plain = await openPages(t)
  const eve = await plain.user('eve')
  const fay = await plain.user('fay')
  const link = await makeLink(eve, 'alone', { visibility: 'secure' })
  const notSetUp = /groups are not set up here.*GATEHOUSE_GROUPS_HEADER/i
  const group = { email: 'group:ops' }
  const added = await eve.api('POST', `/links/${link.id}/owners`, group)
  refuses(t, added, [400, 'BAD_REQUEST', notSetUp])
  const form = await eve.post(`/-/links/${link.id}/shares`, group, NAVIGATION)
  t.match(form, { status: 400, text: notSetUp })
  const bulk = { links: link.id, ...group }
  t.match(await eve.post('/-/own/owners', bulk), { status: 400, text: notSetUp })
  t.match(await eve.read(`/links/${link.id}`), { owners: { length: 1 } }, 'nothing was changed')
  t.match(await eve.text(`/-/links/${link.id}`), /<input[^>]*type="email"/)

  const kept = { ...plain.env, GATEHOUSE_GROUPS_HEADER: HEADER }
  const { stdout } = await runCli('export', { env: plain.env })
  const input = stdout.replace('\nalone', '\nimported').replace(/,,,$/m, ',group:ops,group:dev,')
  const refused = await runCli('import -', { env: plain.env, input })
  t.match(refused, { code: 1, stdout: notSetUp })
  const taken = await runCli('import -', { env: kept, input })
  t.match(taken, { code: 0, stdout: 'created 1' })
  const exported = (await runCli('export', { env: plain.env })).stdout
  t.match(exported, /imported.*,group:ops,group:dev,\n/)
  const named = { headers: { 'remote-email': fay.email, [HEADER]: 'ops' } }
  t.equal(await leadsTo(plain.base, '/imported', named), 403, 'the group has no members')
  const again = await openLinks(t, kept)
  t.equal(await leadsTo(again.base, '/imported', named), 'https://alone.test/')
})
