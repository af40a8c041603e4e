import { t } from 'tap'
import type { Test } from 'tap'
import { onPostgres } from '../helpers/backends.ts'
import { HTMX, NAVIGATION, pageUser, startPages, visitorAt } from '../helpers/links-pages.ts'
import type { Headers, PageUser } from '../helpers/links-pages.ts'
import { makeLink } from '../helpers/links-setup.ts'

const CROSS_SITE = { 'sec-fetch-site': 'cross-site' }
const NO_LINK = '00000000-0000-4000-8000-000000000000'
const FIELDS = { url: 'https://new.test/', title: 'New' }

/** A post of a link's page: its path below the link, and a body that would be taken. */
type Form = { readonly path: string; readonly fields: Headers; readonly reads: boolean }

/** All that the API tells of a link, to see that nothing was changed. */
async function stateOf({ api }: PageUser, id: string): Promise<unknown> {
  const parts = ['', '/owners', '/shares'].map((part) => api('GET', `/links/${id}${part}`))
  return (await Promise.all(parts)).map(({ json }) => json)
}

await onPostgres(t, 'forms of a link: who may not, and what is none', async (t: Test, backend) => {
  const links = await startPages(t, backend)
  const ann = await pageUser(links, 'ann')
  const bob = await pageUser(links, 'bob')
  const carol = await pageUser(links, 'carol')
  await pageUser(links, 'dan')
  const link = await makeLink(ann, 'docs')
  await ann.api('POST', `/links/${link.id}/owners`, { email: bob.email })
  await ann.api('POST', `/links/${link.id}/shares`, { email: carol.email })
  const stranger = await pageUser(links, 'eve')
  const nobody = visitorAt(links.base, '')
  const before = await stateOf(ann, link.id)

  const forms: readonly Form[] = [
    { path: '/edit', fields: FIELDS, reads: true },
    { path: '/owners', fields: { email: 'dan@example.com' }, reads: true },
    { path: '/shares', fields: { email: 'dan@example.com' }, reads: true },
    { path: `/owners/${bob.id}/remove`, fields: {}, reads: false },
    { path: `/shares/${carol.id}/remove`, fields: {}, reads: false },
    { path: '/delete', fields: {}, reads: false },
  ]
  for (const { path, fields, reads } of forms) {
    await t.test(path.replaceAll(/[0-9a-f-]{36}/g, '…'), async (t) => {
      const at = `/-/links/${link.id}${path}`
      const refused = async (status: number, what: string, answer: ReturnType<typeof ann.post>) => {
        const { status: got, text } = await answer
        t.equal(got, status, what)
        t.match(JSON.parse(text), { error: /\S/, code: /^[A-Z_]+$/ })
      }
      await refused(403, 'from another site', ann.post(at, fields, CROSS_SITE))
      await refused(403, 'nobody', nobody.post(at, fields))
      await refused(403, 'a stranger', stranger.post(at, fields))
      await refused(403, 'a recipient', carol.post(at, fields))
      await refused(404, 'no link', ann.post(at.replace(link.id, NO_LINK), fields))
      await refused(404, 'no id', ann.post(at.replace(link.id, 'docs'), fields))
      if (reads) {
        const json = { 'content-type': 'application/json' }
        await refused(415, 'no form', ann.post(at, JSON.stringify(fields), json))
        await refused(413, 'too large', ann.post(at, `url=${'a'.repeat(70_000)}`))
      }
      const page = await stranger.post(at, fields, NAVIGATION)
      t.equal(page.status, 403)
      t.match(page.text, /^<!doctype html>[^]*<h1>Forbidden<\/h1>/)
      t.same(await stateOf(ann, link.id), before, 'nothing was changed')
    })
  }

  await t.test('pages of a link', async (t) => {
    for (const [path, who, status] of [
      ['', carol, 200],
      ['', stranger, 403],
      ['/edit', carol, 403],
      ['/edit', bob, 200],
      ['/edit', stranger, 403],
      ['/delete', carol, 403],
      ['/delete', bob, 200],
    ] as const) {
      const { status: got, text } = await who.get(`/-/links/${link.id}${path}`)
      t.equal(got, status, `${path} for ${who.email}`)
      if (got === 403) t.notMatch(text, /docs\.test|bob@|"docs"/)
    }
    t.equal((await ann.get(`/-/links/${NO_LINK}`)).status, 404)
    t.equal((await ann.get('/-/links/docs', NAVIGATION)).status, 404)
    t.notMatch((await carol.get(`/-/links/${link.id}`)).text, /<form/)
  })
})

await onPostgres(t, 'owners and shares by their forms', async (t: Test, backend) => {
  const links = await startPages(t, backend)
  const ann = await pageUser(links, 'ann')
  const bob = await pageUser(links, 'bob')
  const { id } = await makeLink(ann, 'docs')
  const at = `/-/links/${id}`
  for (const kind of ['owners', 'shares'] as const) {
    await t.test(kind, async (t) => {
      for (const [email, status] of [
        ['nobody@example.com', 404],
        ['"><b>', 404],
        ['', 404],
      ] as const) {
        const answer = await ann.post(`${at}/${kind}`, { email }, HTMX)
        t.equal(answer.status, status, email)
        t.match(answer.text, /^<div id="members">/)
        t.match(answer.text, `id="${kind}-refused"`)
        t.match(answer.text, `value="${escaped(email)}"`)
      }
      const added = await ann.post(`${at}/${kind}`, { email: ' BOB@example.com ' }, HTMX)
      t.equal(added.status, 200)
      t.match(added.text, /role="status"[^]*bob@example\.com/)
      const twice = await ann.post(`${at}/${kind}`, { email: bob.email }, NAVIGATION)
      t.equal(twice.status, 409)
      t.match(twice.text, new RegExp(`^<!doctype html>[^]*id="${kind}-refused"`))
      t.equal((await bob.get(at)).status, 200)
      const gone = await ann.post(`${at}/${kind}/${bob.id}/remove`, {}, HTMX)
      t.equal(gone.status, 200)
      t.notMatch(gone.text, new RegExp(`/${bob.id}/remove`))
      t.equal((await bob.get(at)).status, 403)
      t.equal((await ann.post(`${at}/${kind}/${bob.id}/remove`)).status, 404)
      t.equal((await ann.post(`${at}/${kind}/bob/remove`)).status, 404)
    })
  }

  await t.test('the primary owner stays', async (t) => {
    const answer = await ann.post(`${at}/owners/${ann.id}/remove`)
    t.equal(answer.status, 400)
    t.equal(answer.json<{ code: string }>().code, 'PRIMARY_OWNER_PROTECTED')
  })

  await t.test('who gives up a co-ownership is led away from the link', async (t) => {
    await ann.post(`${at}/owners`, { email: bob.email })
    const answer = await bob.post(`${at}/owners/${bob.id}/remove`, {}, HTMX)
    t.equal(answer.headers['hx-redirect'], '/-/')
  })

  await t.test('history tells all of it', async (t) => {
    const { text } = await ann.get(at)
    const [, history = ''] = text.split('id="history"')
    const plain = history.replaceAll(/<[^>]*>/g, '').replaceAll(/\s+/g, ' ')
    for (const sentence of [
      'made the link to https://docs.test/.',
      'made bob@example.com a co-owner.',
      'ended the co-ownership of bob@example.com.',
      'shared the link with bob@example.com.',
      'ended the share with bob@example.com.',
    ]) {
      t.match(plain, `ann@example.com ${sentence}`)
    }
  })

  await t.test('deleted: its slug leads nowhere and is free', async (t) => {
    const answer = await ann.post(`${at}/delete`, {}, NAVIGATION)
    t.equal(answer.status, 303)
    t.equal(answer.headers.location, '/-/')
    t.equal((await ann.get(at)).status, 404)
    t.equal((await ann.get('/docs')).status, 404)
    t.equal((await ann.post(`${at}/delete`)).status, 404)
    t.match((await ann.get('/-/slug?slug=docs')).text, /is free/)
  })
})

/** Text as it stands in an attribute. */
function escaped(text: string): string {
  return text.replaceAll('"', '&quot;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
