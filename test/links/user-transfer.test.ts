import { t } from 'tap'
import type { Test } from 'tap'
import { auditOf } from '../helpers/audit.ts'
import { backends, onPostgres } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { insertLinks, makeLink, startLinks } from '../helpers/links.ts'
import type { Caller, Link } from '../helpers/links.ts'

type Changes = { readonly changes: readonly { action: string; actor: string; detail: object }[] }

await onPostgres(t, 'all places of a user go to another one', async (t: Test, backend) => {
  const links = await startLinks(t, backend)
  const { env } = links
  const ann = await links.user('ann')
  const bob = await links.user('bob')
  const cyd = await links.user('cyd')
  const transfer = (...args: readonly string[]) => runCli(['user', 'transfer', ...args], { env })
  const owners = async ({ id }: Link, who: Caller) =>
    (await who.api<Link>('GET', `/links/${id}`)).json.owners.map(({ email }) => email)
  const add = (link: Link, what: 'owners' | 'shares', { email }: Caller, by: Caller) =>
    by.api('POST', `/links/${link.id}/${what}`, { email })

  const owned = await makeLink(ann, 'owned', { visibility: 'secure', tags: ['of-ann'] })
  const both = await makeLink(ann, 'of-both')
  await add(both, 'owners', bob, ann)
  const cos = await makeLink(cyd, 'co-owned')
  await add(cos, 'owners', ann, cyd)
  const bobs = await makeLink(bob, 'of-bob')
  await add(bobs, 'owners', ann, bob)
  const shared = await makeLink(cyd, 'shared', { visibility: 'secure', tags: ['of-cyd'] })
  await add(shared, 'shares', ann, cyd)
  const known = await makeLink(bob, 'known')
  await add(known, 'shares', ann, bob)
  const gone = await makeLink(ann, 'gone')
  await ann.api('DELETE', `/links/${gone.id}`)
  const transfers = async () =>
    (await auditOf(env, '--service', 'links')).filter(({ action }) => action === 'user transfer')

  const counts = `links owned or co-owned: 4, shared: 2, deleted: 1`
  const from = `ann@example.com: ${counts}\n`
  const dry = await transfer(ann.email, bob.email, '--dry-run')
  t.match(dry, { code: 0, stderr: `bob@example.com would get from ${from}` })
  t.same(await owners(owned, ann), [ann.email], 'nothing was moved')
  t.same(await transfers(), [])

  const done = await transfer(ann.email, bob.email)
  t.match(done, { code: 0, stdout: '', stderr: `bob@example.com got from ${from}` })
  t.same(await owners(owned, bob), [bob.email])
  t.same(await owners(both, bob), [bob.email], 'a co-owner becomes the primary owner')
  t.same(await owners(cos, bob), [cyd.email, bob.email], 'a co-owner stays one')
  t.same(await owners(bobs, bob), [bob.email], 'the primary owner stays one')
  t.equal((await bob.api('GET', `/links/${shared.id}`)).status, 200)
  t.same((await bob.api('GET', `/links/${known.id}/shares`)).json, [], 'an owner needs no share')
  for (const tag of ['of-ann', 'of-cyd']) {
    t.equal((await bob.api('GET', `/tags/${tag}/links`)).status, 200, tag)
    t.equal((await ann.api('GET', `/tags/${tag}/links`)).status, 404, tag)
  }
  t.same((await ann.api('GET', '/links')).json, { links: [], next_cursor: null })
  t.equal((await ann.api('POST', `/links/${gone.id}/restore`)).status, 403)
  t.equal((await bob.api('POST', `/links/${gone.id}/restore`)).status, 200, 'deleted ones, too')
  t.same(await owners(gone, bob), [bob.email])

  const people = [ann.email, bob.email]
  for (const [link, detail] of [
    [owned, { owner: people }],
    [bobs, { owner: people }],
    [shared, { share: people }],
  ] as const) {
    const { json } = await bob.api<Changes>('GET', `/links/${link.id}/history?limit=1`)
    t.match(json.changes, [{ action: 'transferred', actor: 'command', detail }], link.slug)
  }
  const kept = (await bob.api<Changes>('GET', `/links/${gone.id}/history`)).json.changes
  t.same(
    kept.map(({ action }) => action),
    ['restored', 'transferred', 'deleted', 'created'],
    'also in the history of a deleted link',
  )

  const subjects = ['deleted: 1', 'shared: 2', 'owned: 4'].map(
    (places) => `ann@example.com to bob@example.com, ${places}`,
  )
  t.same(
    (await transfers()).map(({ subject }) => subject),
    subjects,
    'a line a transaction',
  )

  const again = await transfer(ann.email, bob.email)
  const none = 'links owned or co-owned: 0, shared: 0, deleted: 0'
  t.match(again, { code: 0, stderr: `bob@example.com got from ann@example.com: ${none}\n` })

  const refused: readonly (readonly [readonly string[], RegExp])[] = [
    [[ann.email, 'nobody@example.com'], /"nobody@example\.com"/],
    [['nobody@example.com', ann.email], /"nobody@example\.com"/],
    [[bob.email, bob.email], /cannot get the own links/],
    [[bob.email, ann.email], /ann@example\.com is disabled/],
    [[bob.email, ann.email, '--dry-run'], /ann@example\.com is disabled/],
  ]
  await runCli(['user', 'disable', ann.email], { env })
  for (const [args, stderr] of refused) t.match(await transfer(...args), { code: 1, stderr })
  t.same(await owners(owned, bob), [bob.email])
  t.equal((await transfers()).length, 3, 'neither nothing nor a refusal leaves a line')
})

await t.test('many links are moved some in each transaction', async (t) => {
  const [, postgres] = backends
  const links = await startLinks(t, postgres)
  const { env } = links
  const ann = await links.user('ann')
  const bob = await links.user('bob')
  const many = Array.from({ length: 205 }, (_, n) => ({ slug: `l${n}`, owners: [ann.email] }))
  await insertLinks(links, postgres, many)
  t.match(await runCli(['user', 'transfer', ann.email, bob.email], { env }), { code: 0 })
  const lines = await auditOf(env, '--service', 'links')
  const transfers = lines.filter(({ action }) => action === 'user transfer')
  t.same(
    transfers.map(({ subject }) => subject.split(', ')[1]),
    ['owned: 5', 'owned: 200'],
  )
  t.match(await runCli(['user', 'transfer', ann.email, bob.email, '--dry-run'], { env }), {
    stderr: /owned: 0/,
  })
})
