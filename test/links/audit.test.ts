import { t } from 'tap'
import { changesLeave, command } from '../helpers/audit.ts'
import { runCli } from '../helpers/cli.ts'
import { makeLink, openLinks, openPages, visitorAt } from '../helpers/links.ts'
import { expectStatus } from '../helpers/refusals.ts'

const links = await openPages(t)
const { base, env } = links
const { GATEHOUSE_TRUSTED_PROXIES: _, ...own } = env
const direct = await openLinks(t, own)
const ann = await links.user('ann', { admin: true })
/** Somebody at a browser on this machine. */
const operator = visitorAt(direct.base, '')
const NEVER = '00000000-0000-4000-8000-000000000000'

/** The id of ann's token with this name. */
async function tokenNamed(name: string) {
  const { tokens } = await ann.read<{ tokens: { id: string; name: string }[] }>('/tokens')
  return tokens.find((token) => token.name === name)?.id
}

await t.test('tokens: each change, on each of its faces', async (t) => {
  await changesLeave(t, env, 'links', [
    [
      'form of a user',
      () => expectStatus(200, ann.post('/-/tokens', { name: 'laptop', expires: '' })),
      'ann@example.com: token create laptop of ann@example.com',
    ],
    [
      'form: revoke',
      async () => expectStatus(200, ann.post(`/-/tokens/${await tokenNamed('laptop')}/revoke`)),
      'ann@example.com: token revoke laptop of ann@example.com',
    ],
    [
      'API',
      () => expectStatus(201, ann.api('POST', '/tokens', { name: 'ci' })),
      'token test of ann@example.com: token create ci of ann@example.com',
    ],
    [
      'form of the operator',
      () => expectStatus(200, operator.post('/-/tokens', { name: 'mine', expires: '' })),
      'operator: token create mine of operator@localhost',
    ],
    [
      'command',
      () => command(env, 0, 'token', 'create', ann.email, '--name', 'cron'),
      'command: token create cron of ann@example.com',
    ],
    // Refusals.
    ['no name', () => expectStatus(400, ann.post('/-/tokens', { name: '', expires: '' }))],
    ['API: no such token', () => expectStatus(404, ann.api('DELETE', `/tokens/${NEVER}`))],
    ['command: no such user', () => command(env, 1, 'token', 'create', 'nobody@example.com')],
  ])
})

await t.test('users: each change, on each of its faces', async (t) => {
  const bob = await links.user('bob')
  const file = 'slug,url,owner\nimported,https://example.com/,eve@example.com\n'
  await changesLeave(t, env, 'links', [
    [
      'form of a user',
      () =>
        expectStatus(200, ann.post('/-/admin/users', { email: 'cid@example.com', role: 'user' })),
      'ann@example.com: user add cid@example.com',
    ],
    [
      'API: role',
      () => expectStatus(200, ann.api('PUT', `/admin/users/${bob.id}/role`, { role: 'user' })),
      'token test of ann@example.com: user role bob@example.com to user',
    ],
    [
      'form: disable',
      () => expectStatus(200, ann.post(`/-/admin/users/${bob.id}/disabled`, { disabled: 'true' })),
      'ann@example.com: user disable bob@example.com',
    ],
    [
      'API: enable',
      () =>
        expectStatus(200, ann.api('PUT', `/admin/users/${bob.id}/disabled`, { disabled: false })),
      'token test of ann@example.com: user enable bob@example.com',
    ],
    ['command: enabled already', () => command(env, 0, 'user', 'enable', bob.email)],
    [
      'who signs in for the first time',
      () => expectStatus(200, visitorAt(base, 'New@example.com').get('/-/')),
      'New@example.com: user add new@example.com',
    ],
    [
      'an import that adds owners',
      () => runCli('import - --create-users', { env, input: file }),
      'command: user add eve@example.com',
    ],
    // Refusals.
    [
      'known',
      () => expectStatus(400, ann.post('/-/admin/users', { email: bob.email, role: 'user' })),
    ],
    ['no admin', () => expectStatus(403, bob.api('PUT', `/admin/users/${bob.id}/role`, {}))],
    ['command: known', () => command(env, 1, 'user', 'add', bob.email)],
  ])
})

await t.test('links that are deleted and restored', async (t) => {
  const [{ id: one }, { id: two }] = [await makeLink(ann, 'one'), await makeLink(ann, 'two')]
  await changesLeave(t, env, 'links', [
    [
      'API',
      () => expectStatus(204, ann.api('DELETE', `/links/${one}`)),
      'token test of ann@example.com: link delete one',
    ],
    [
      'form of an admin',
      () => expectStatus(200, ann.post('/-/admin/links/delete', `links=${two}`)),
      'ann@example.com: link delete two',
    ],
    [
      'form: restored',
      () => expectStatus(303, ann.post(`/-/deleted/${one}/restore`)),
      'ann@example.com: link restore one',
    ],
    // What is not: the link's page tells it.
    ['a new link', () => makeLink(ann, 'four')],
    ['gone already', () => expectStatus(404, ann.api('DELETE', `/links/${two}`))],
  ])
})

await t.test('the page is for admins', async (t) => {
  const shown = await expectStatus(200, ann.get('/-/admin/audit'))
  t.match(shown.text, /aria-current="page"[^>]*>Audit<[^]*link delete: <bdi>one<\/bdi>/)
  t.match(await ann.text('/-/'), '<a href="/-/admin/audit">audit</a>')
  const fay = await links.user('fay')
  t.notMatch(await fay.text('/-/'), '/-/admin/audit')
  await expectStatus(403, fay.get('/-/admin/audit'))
  const bearer = { authorization: `Bearer ${ann.token}` }
  await expectStatus(403, visitorAt(base, '').get('/-/admin/audit', bearer), 'no token')
  await expectStatus(200, operator.get('/-/admin/audit'))
})
