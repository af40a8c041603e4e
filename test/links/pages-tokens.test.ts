import { t } from 'tap'
import type { Test } from 'tap'
import { onPostgres } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import type { Response } from '../helpers/http.ts'
import {
  HTMX,
  NAVIGATION,
  fillTokens,
  identity,
  makeLink,
  pageUser,
  startPages,
  visitorAt,
} from '../helpers/links.ts'
import type { Caller, Headers, PageUser } from '../helpers/links.ts'
import { refuses } from '../helpers/refusals.ts'
import { keepSecret } from '../helpers/secrets.ts'

const PATH = '/-/tokens'
const DAY_MS = 86_400_000

type Rows = {
  tokens: { id: string; name: string; scope: string; expires_at: string | null }[]
}

/** A user's tokens as the API has them, without the one that asks. */
async function tokensOf({ api }: Caller): Promise<Rows['tokens']> {
  const { json } = await api<Rows>('GET', '/tokens')
  return json.tokens.filter(({ name }) => name !== 'test' && name !== 'command line')
}

async function tokenNamed(who: Caller, name: string) {
  return (await tokensOf(who)).find((token) => token.name === name)
}

await onPostgres(t, 'tokens page', async (t: Test, backend) => {
  const links = await startPages(t, backend)
  const ann = await pageUser(links, 'ann')
  const bob = await pageUser(links, 'bob')
  await makeLink(ann, 'docs')

  /** Posts the form; the answer shows a token by design. */
  const make = (who: PageUser, fields: Headers, headers: Headers = {}): Promise<Response> =>
    request(links.base + PATH, {
      method: 'POST',
      body: new URLSearchParams(fields).toString(),
      headers: {
        ...identity(who.email),
        'content-type': 'application/x-www-form-urlencoded',
        ...headers,
      },
      secretShown: true,
    })

  await t.test('a token is made, shown this once, and works', async (t) => {
    const before = Date.now()
    const made = await make(ann, { name: ' laptop ', scope: 'read', expires: '7d' })
    t.equal(made.status, 200)
    t.equal(made.headers['cache-control'], 'no-store')
    t.match(made.text, /^<section id="tokens"/, 'the fragment')
    const token = tokenIn(made)
    t.match(
      made.text,
      `curl -H &#39;Authorization: Bearer ${token}&#39; &#39;${links.base}/api/v1/links&#39;`,
    )
    const url = `${links.base}/mcp/links`
    const shown = /id="made-configuration"[^>]*><code>(.*?)<\/code>/s.exec(made.text)?.[1]
    t.same(JSON.parse((shown ?? '').replaceAll('&quot;', '"')), {
      mcpServers: {
        'gatehouse-links': { type: 'http', url, headers: { Authorization: `Bearer ${token}` } },
      },
    })
    t.equal((await links.api(token)('GET', '/links')).status, 200)
    t.equal((await links.api(token)('POST', '/links', {})).status, 403, 'within its scope')
    const row = await tokenNamed(ann, 'laptop')
    t.match(row, { scope: 'read' })
    const lives = new Date(row?.expires_at ?? 0).getTime() - before
    t.ok(lives >= 7 * DAY_MS && lives < 7 * DAY_MS + 60_000, 'for seven days')
    // The transcripts of these pages are searched for the token as well.
    for (const path of [PATH, '/-/']) t.notOk((await ann.get(path)).text.includes(token))
    t.match((await ann.get(PATH)).text, /<bdi>laptop<\/bdi>/)
  })

  await t.test('scopes and lives', async (t) => {
    const full = tokenIn(await make(ann, { name: 'no fields' }))
    t.match(await tokenNamed(ann, 'no fields'), { scope: 'full', expires_at: null })
    t.equal((await links.api(full)('GET', '/tokens')).status, 200)
    const creates = await make(ann, { name: 'ci', scope: 'create', expires: '' })
    t.match(creates.text, '&quot;slug&quot;', 'a command within its scope')
    const create = links.api(tokenIn(creates))
    t.equal(
      (await create('POST', '/links', { slug: 'by-ci', url: 'https://x.test/' })).status,
      201,
    )
    t.equal((await create('GET', '/links')).status, 403)
    const at = new Date(Date.now() + 3_600_000).toISOString()
    tokenIn(await make(ann, { name: 'a time', expires: at }))
    t.match(await tokenNamed(ann, 'a time'), { expires_at: at })
  })

  await t.test('what is refused', async (t) => {
    const many = (await tokensOf(ann)).length
    for (const [fields, said] of [
      [{}, /^name must/],
      [{ name: '   ' }, /^name must/],
      [{ name: 'x', scope: '' }, /^scope must/],
      [{ name: 'x', expires: 'soon' }, /^expires must/],
      [{ name: 'x', expires: '0' }, /^expires must/],
      [{ name: 'x', expires: '999999999d' }, /^expires must/],
      [{ name: 'x', expires: '2020-01-01T00:00:00Z' }, /^expires must/],
    ] as const) {
      const answer = await make(ann, fields as Headers)
      refuses(t, answer, [400, 'BAD_REQUEST', said], JSON.stringify(fields))
    }
    const json = { 'content-type': 'application/json' }
    refuses(t, await make(ann, { name: 'x' }, json), [415, 'UNSUPPORTED_MEDIA_TYPE'])
    t.equal((await make(ann, { name: 'x'.repeat(70_000) })).status, 413)
    const cross = { 'sec-fetch-site': 'cross-site' }
    t.equal((await make(ann, { name: 'x' }, cross)).status, 403)
    t.equal((await tokensOf(ann)).length, many, 'none of them made one')
  })

  await t.test('a refused form keeps what was typed', async (t) => {
    const typed = { name: '"><script>alert(1)</script>', scope: 'create', expires: 'soon' }
    const page = await make(ann, typed, NAVIGATION)
    t.equal(page.status, 400)
    t.match(page.text, /<!doctype html>/)
    t.match(page.text, 'value="&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"')
    t.match(page.text, /value="create"\s+checked/)
    t.match(page.text, /id="token-expires-refused"[^>]*>\s*Expires must be a time/)
    t.notMatch(page.text, '<script>alert')
    const fragment = await make(ann, typed, HTMX)
    t.match(fragment, { status: 400, text: /^<section id="tokens"/ })
  })

  await t.test('the form of a page from before the newest token creates none', async (t) => {
    const newest = (page: Response) => /name="newest" value="([^"]*)"/.exec(page.text)?.[1] ?? '?'
    const seen = newest(await ann.get(PATH))
    const first = await make(ann, { name: 'once', newest: seen }, NAVIGATION)
    t.equal(first.status, 200)
    tokenIn(first)
    const count = (await tokensOf(ann)).length
    const again = await make(ann, { name: 'once', newest: seen }, NAVIGATION)
    t.match(again, { status: 409, text: /A token was created since this page was loaded/ })
    t.equal((await tokensOf(ann)).length, count)
    const next = await make(ann, { name: 'twice', newest: newest(again) }, NAVIGATION)
    t.equal(next.status, 200, 'the form that it shows creates one')
    tokenIn(next)
  })

  await t.test('revoked: it stops at once', async (t) => {
    const token = tokenIn(await make(ann, { name: 'short <b>lived</b>' }))
    const row = await tokenNamed(ann, 'short <b>lived</b>')
    t.match((await ann.get(PATH)).text, 'short &lt;b&gt;lived&lt;/b&gt;')
    t.equal((await links.api(token)('GET', '/links')).status, 200)
    const other = await bob.post(`${PATH}/${row?.id}/revoke`)
    refuses(t, other, [404, 'NOT_FOUND'])
    t.equal((await links.api(token)('GET', '/links')).status, 200, 'never by another')
    const cross = { 'sec-fetch-site': 'cross-site' }
    t.equal((await ann.post(`${PATH}/${row?.id}/revoke`, {}, cross)).status, 403)
    const gone = await ann.post(`${PATH}/${row?.id}/revoke`)
    t.match(gone, { status: 200, text: /^<section id="tokens"/ })
    t.notMatch(gone.text, 'lived')
    t.equal((await links.api(token)('GET', '/links')).status, 401)
    const again = await ann.post(`${PATH}/${row?.id}/revoke`, {}, NAVIGATION)
    t.match(again, { status: 404, text: /<!doctype html>[\s\S]*You have no token with this id\./ })
    t.equal((await ann.post(`${PATH}/x/revoke`)).status, 404)
    t.equal((await ann.get(`${PATH}/${row?.id}/revoke`)).status, 405)
  })

  await t.test('never those of another', async (t) => {
    tokenIn(await make(bob, { name: 'of-bob' }))
    t.match((await bob.get(PATH)).text, 'of-bob')
    t.notMatch((await ann.get(PATH)).text, 'of-bob')
    t.notMatch((await bob.get(PATH)).text, 'laptop')
    t.match(await bob.get(PATH, { 'remote-email': 'eve@example.com' }), {
      text: /You have no tokens yet/,
    })
  })

  await t.test('one more than a thousand', async (t) => {
    const cat = await pageUser(links, 'cat')
    await fillTokens(links.env['DATABASE_URL'] ?? '', cat.email, 1_000)
    const text = /role="alert">\s*A user may have 1,000 tokens; revoke/
    t.match(await make(cat, { name: 'more' }, HTMX), { status: 400, text })
  })

  await t.test('who is not signed in sees and makes none', async (t) => {
    const nobody = visitorAt(links.base, '')
    const page = await nobody.get(PATH, NAVIGATION)
    t.match(page, { status: 403, text: /You are not signed in/ })
    t.notMatch(page.text, /laptop|of-bob|<form/)
    t.equal((await nobody.post(PATH, { name: 'x' })).status, 403)
    const row = await tokenNamed(ann, 'laptop')
    t.equal((await nobody.post(`${PATH}/${row?.id}/revoke`)).status, 403)
    t.same(await tokenNamed(ann, 'laptop'), row, 'it stays')
  })
})

function tokenIn({ text }: Response): string {
  const token = /id="made-token"[^>]*><code>(gh_[0-9A-Za-z]{43})</.exec(text)?.[1]
  if (token === undefined) throw new Error(`the page shows no token: ${text.slice(0, 300)}`)
  return keepSecret('page-token', token)
}
