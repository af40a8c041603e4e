import { t } from 'tap'
import type { Test } from 'tap'
import type { ApiResponse } from '../helpers/api.ts'
import { backends } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { NAVIGATION, pageUser, startPages } from '../helpers/links-pages.ts'
import type { PageUser } from '../helpers/links-pages.ts'
import { refuses, startLinks } from '../helpers/links-setup.ts'
import type { Caller } from '../helpers/links-setup.ts'

const [, postgres] = backends

type Users = { readonly users: readonly { id: string; email: string; role: string }[] }

await t.test('the last admin stays one', async (t: Test) => {
  const links = await startPages(t, postgres)
  const second = await startLinks(t, postgres, links.env)
  const ann = await pageUser(links, 'ann', { admin: true })
  const bob = await pageUser(links, 'bob')
  const command = (email: string, role: string) =>
    runCli(['user', 'role', email, role], { env: links.env })
  const { json } = await ann.api<Users>('GET', '/admin/users')
  const operator = json.users.find(({ email }) => email === 'operator@localhost')
  t.equal(operator?.role, 'admin', 'there is an operator, who does not count')

  await t.test('by the API, the pages and the command', async (t) => {
    const answer = await setRole(ann, ann, 'user')
    refuses(t, answer, 409, 'LAST_ADMIN', { what: 'the API' })
    const meant = { role: 'user', acknowledge_own: 'true' }
    const path = `/-/admin/users/${ann.id}/role`
    const refused = await ann.post(path, meant)
    t.match([refused.status, refused.json()], [409, { code: 'LAST_ADMIN' }], 'the page')
    const page = await ann.post(path, meant, NAVIGATION)
    t.match(page, { status: 409, text: /<!doctype html>[\s\S]*the last admin/i })
    const run = await command(ann.email, 'user')
    t.match(run, { code: 1, stdout: '', stderr: /^gatehouse: this is the last admin/ }, 'command')
    t.equal(await roleOf(ann), 'admin')
  })

  await t.test('what leaves an admin is carried out', async (t) => {
    t.equal((await setRole(ann, ann, 'admin')).status, 200, 'nothing is lost')
    t.equal((await setRole(ann, bob, 'user')).status, 200, 'who is no admin is not the last one')
    const other = { ...ann, id: operator?.id ?? '' }
    t.equal((await setRole(ann, other, 'user')).status, 200, 'the operator is not the last one')
    t.equal((await setRole(ann, other, 'admin')).status, 200)
    await setRole(ann, bob, 'admin')
    t.equal((await setRole(ann, ann, 'user')).status, 200)
    refuses(t, await setRole(bob, bob, 'user'), 409, 'LAST_ADMIN')
    t.match(await command(ann.email, 'admin'), { code: 0 })
  })

  await t.test('two admins who demote each other at once', async (t) => {
    for (let round = 0; round < 10; round++) {
      const far = { ...bob, api: second.api(bob.token) }
      const answers = await Promise.all([
        setRole(ann, bob, 'user'),
        setRole(far, ann, 'user'),
        setRole(far, bob, 'user'),
        setRole(ann, ann, 'user'),
      ])
      const statuses = answers.map(({ status }) => status)
      t.same(
        statuses.filter((status) => ![200, 403, 409].includes(status)),
        [],
      )
      const roles = [await roleOf(ann), await roleOf(bob)].toSorted()
      t.same(roles, ['admin', 'user'], `one is left: ${statuses.join(' ')}`)
      const left = (await roleOf(ann)) === 'admin' ? ann : bob
      await setRole(left, left === ann ? bob : ann, 'admin')
    }
  })
})

await t.test('an operator alone stays an admin', async (t) => {
  const { env } = await startLinks(t, postgres)
  const run = await runCli(['user', 'role', 'operator@localhost', 'user'], { env })
  t.match(run, { code: 1, stderr: /the last admin/ })
})

function setRole(by: Caller, who: Caller, role: string): Promise<ApiResponse<unknown>> {
  return by.api('PUT', `/admin/users/${who.id}/role`, { role })
}

async function roleOf({ api }: PageUser): Promise<string> {
  return (await api<{ role: string }>('GET', '/users/me')).json.role
}
