import { t } from 'tap'
import type { Response } from '../helpers/http.ts'
import { identity, leadsTo, makeLink, openLinks, suggested, visit } from '../helpers/links.ts'
import { expectStatus, refuses } from '../helpers/refusals.ts'

/** Behind a proxy on 127.0.0.1 that names who is signed in; 127.0.0.2 is somebody else. */
const PROXIED = { GATEHOUSE_TRUSTED_PROXIES: '127.0.0.1/32' }
const VISITORS = ['anonymous', 'stranger', 'recipient', 'owner', 'boss']

const as = (visitor: string) => {
  return { headers: identity(visitor === 'anonymous' ? '' : `${visitor}@example.com`) }
}

const { base, server, user } = await openLinks(t, PROXIED)
const owner = await user('owner')
const recipient = await user('recipient')
await user('boss', { admin: true })
/** One link of each visibility, each shared with the recipient and owned by the owner. */
const house = new Map<string, string>()
for (const visibility of ['public', 'private', 'secure']) {
  const fields = { visibility, append_path: true, shares: [recipient.email] }
  const { slug, id } = await makeLink(owner, `house-${visibility}`, fields)
  house.set(slug, id)
}

await t.test('who is redirected', async (t) => {
  // In the order of VISITORS.
  const expected = {
    'house-public': '302 302 302 302 302',
    'house-private': '302 302 302 302 302',
    'house-secure': '403 403 302 302 302',
    'house-public+': '200 200 200 200 200',
    'house-private+': '404 200 200 200 200',
    'house-secure+': '403 403 200 200 200',
  }
  for (const [path, wanted] of Object.entries(expected)) {
    for (const method of ['GET', 'HEAD']) {
      const statuses: number[] = []
      for (const visitor of VISITORS) {
        const { status, headers } = await visit(base, `/${path}`, { method, ...as(visitor) })
        statuses.push(status)
        t.match(headers, { 'cache-control': 'no-store', 'x-robots-tag': 'noindex' })
        t.equal(headers.location !== undefined, status === 302)
      }
      t.equal(statuses.join(' '), wanted, `${method} ${path}`)
    }
  }
})

await t.test('did you mean: nothing tells a hidden link from none', async (t) => {
  for (const visitor of ['anonymous', 'stranger']) {
    const page = await expectStatus(404, visit(base, '/house', as(visitor)))
    t.same(suggested(page), ['house-public'], visitor)
    t.notMatch(page.text, /house-private|house-secure/, visitor)
    const creates = page.text.includes('action="/-/new"')
    t.equal(creates, visitor === 'stranger', `${visitor}: a button to make it`)
  }
  for (const typo of ['house-privat', 'huose-secure']) {
    t.same(suggested(await visit(base, `/${typo}`, as('stranger'))), [], `${typo} by a stranger`)
    t.equal(suggested(await visit(base, `/${typo}`, as('owner'))).length, 1)
  }
  const without = (path: string, page: Response) => page.text.replaceAll(path, '…')
  const invisible = await visit(base, '/house-private+')
  const nothing = await visit(base, '/house-nothing+')
  t.equal(without('house-private', invisible), without('house-nothing', nothing), 'no difference')
})

await t.test('a secure link keeps to itself where it leads', async (t) => {
  const hidden = 'hush-hush-where-it-leads'
  const id = house.get('house-secure')
  const url = `https://${hidden}.test/${hidden}`
  const texts = { title: hidden, description: hidden, tags: [hidden] }
  await expectStatus(200, owner.api('PUT', `/links/${id}`, { ...texts, url }))
  for (const path of ['house-secure', 'house-secure+', 'house-secur', 'House-Secure./x']) {
    for (const visitor of ['anonymous', 'stranger']) {
      for (const accept of ['text/html', 'application/json']) {
        const headers = { ...as(visitor).headers, accept }
        const { status, text, rawHeaders } = await visit(base, `/${path}`, { headers })
        t.ok([403, 404].includes(status), `${path}: ${status}`)
        t.notMatch(text + rawHeaders.join('\n'), hidden, `${path}, ${visitor}, ${accept}`)
      }
    }
  }
  t.equal(await leadsTo(base, '/house-secure', as('owner')), url)
  t.notMatch(server.logs().join('\n'), hidden, 'nor does the log')
})

await t.test('a link with {user} leads each visitor to an address of their own', async (t) => {
  const url = 'https://x.test/{user}/tasks?of={user}&{*}'
  for (const visibility of ['public', 'secure']) {
    const fields = { url, visibility, shares: [recipient.email] }
    const { slug } = await makeLink(owner, `mine-${visibility}`, fields)
    // Twice: from the database and from memory.
    for (const visitor of ['owner', 'recipient', 'owner', 'recipient']) {
      const answer = await visit(base, `/${slug}/a?b=c`, as(visitor))
      const name = `${visitor}%40example.com`
      const location = `https://x.test/${name}/tasks?of=${name}&a&b=c`
      t.match(answer, { status: 302, headers: { location, 'cache-control': 'no-store' } })
      const preview = await visit(base, `/${slug}+`, as(visitor))
      t.match(preview.text, 'That site is told your e-mail address.')
      t.match(preview.text, `https://x.test/${name}/tasks?of=${name}&amp;a/b`)
    }
    for (const accept of ['text/html', 'application/json']) {
      const answer = await visit(base, `/${slug}`, { headers: { accept } })
      const headers = { location: undefined, 'cache-control': 'no-store' }
      const text = 'come through the address where you sign in'
      t.match(answer, { status: 403, headers, text })
      t.notMatch(answer.text, '@example.com')
    }
  }
  t.notMatch((await visit(base, '/house-public+', as('owner'))).text, 'told your e-mail')
  const odd = { headers: { 'Remote-Email': 'A+b/?&#%@Example.com' } }
  const name = 'a%2Bb%2F%3F%26%23%25%40example.com'
  t.equal(await leadsTo(base, '/mine-public', odd), `https://x.test/${name}/tasks?of=${name}&`)
})

await t.test('a page of another site that loads a link learns nobody’s name', async (t) => {
  await makeLink(owner, 'tells', { url: 'https://x.test/?{user}' })
  await makeLink(owner, 'greets', { url: 'https://x.test/?{user:https://x.test/sign-in}' })
  const named = 'https://x.test/?boss%40example.com'
  for (const [site, destination, more, told] of [
    ['none', 'document', {}, true],
    ['same-origin', 'image', {}, true],
    ['cross-site', 'document', {}, true],
    ['cross-site', 'image', {}, false],
    ['same-site', 'iframe', {}, false],
    ['cross-site', 'empty', {}, false],
    ['cross-site', 'document', { 'Sec-Purpose': 'prefetch' }, false],
  ] as const) {
    const fetched = { 'Sec-Fetch-Site': site, 'Sec-Fetch-Dest': destination }
    const request = { headers: { ...as('boss').headers, ...fetched, ...more } }
    const what = `${site} ${destination}`
    t.equal(await leadsTo(base, '/tells', request), told ? named : 403, what)
    t.equal(await leadsTo(base, '/greets', request), told ? named : 'https://x.test/sign-in', what)
  }
  t.equal(await leadsTo(base, '/greets'), 'https://x.test/sign-in', 'and nobody is not signed in')
})

await t.test('a refusal says how to get access, and not from whom', async (t) => {
  const { text } = await visit(base, '/house-secure', as('stranger'))
  t.match(text, 'ask the person who gave you the link, or an administrator')
  t.match(text, 'to share it with stranger@example.com')
  t.notMatch(text, owner.email)
  const headers = { ...as('stranger').headers, accept: 'application/json' }
  const refused = await visit(base, '/house-secure', { headers })
  refuses(t, refused, [403, 'FORBIDDEN', /to share it with stranger@example\.com$/])
})

await t.test('who may find a link sees in its preview what it is', async (t) => {
  const fields = { title: 'The <b>plan</b>', description: 'Read\nthis', tags: ['plans'] }
  for (const visibility of ['public', 'private']) {
    await makeLink(owner, `plan-${visibility}`, { ...fields, visibility })
  }
  /** Who sees how many of these parts, in their order. */
  const parts = ['The &lt;b&gt;plan', 'Read', owner.email, '/-/tags/plans', '/-/links/']
  for (const [path, visitor, seen] of [
    ['/plan-public', 'owner', 5],
    ['/plan-public', 'boss', 5],
    ['/plan-public', 'stranger', 4],
    ['/plan-public', 'anonymous', 1],
    ['/plan-private', 'owner', 5],
    ['/plan-private', 'stranger', 0],
  ] as const) {
    const { text } = await visit(base, `${path}+`, as(visitor))
    const found = parts.filter((part) => text.includes(part))
    t.same(found, parts.slice(0, seen), `${path} ${visitor}`)
    t.match(text, `https:/${path}.test/`, 'all see where it leads')
    t.match(text, `href="${path}" rel="noreferrer">Follow the link`)
  }
})

await t.test('a right counts from the next visit on', async () => {
  const shares = `/links/${house.get('house-secure')}/shares`
  const stranger = as('stranger')
  await expectStatus(403, visit(base, '/house-secure', stranger))
  // Who was named by the proxy once is a user.
  const sent = { email: 'stranger@example.com' }
  const { json } = await owner.api<{ id: string }>('POST', shares, sent)
  await expectStatus(302, visit(base, '/house-secure', stranger))
  await expectStatus(204, owner.api('DELETE', `${shares}/${json.id}`))
  await expectStatus(403, visit(base, '/house-secure', stranger))
})

await t.test('the preview is a page that goes nowhere by itself', async (t) => {
  const url = 'https://x.test/"><script>alert(1)</script>?a=1&b=2'
  await makeLink(owner, 'hostile', { url })
  for (const path of ['/hostile+', '/Hostile.+', '/hostile%2B', '/hostile+?next=1']) {
    const page = await expectStatus(200, visit(base, path), path)
    t.notOk(page.headers.location ?? page.headers['refresh'])
    t.notMatch(page.text, /<script>alert|http-equiv/i)
    t.match(page.text, '&lt;script&gt;alert(1)&lt;/script&gt;')
    t.notMatch(page.text, /(?:href|src|action)="[^"]*x\.test/, 'it is text there, and no link')
    t.match(page.text, 'href="/hostile"')
  }
})

await t.test('whoever sees an open page gets its style', async (t) => {
  // A foreign host name, which the pages below /-/ refuse.
  const headers = { host: 'go.elsewhere.example' }
  await expectStatus(403, visit(base, '/-/', { headers }))
  for (const [path, status] of [
    ['/house-public+', 200],
    ['/house-nothing', 404],
    ['/house-secure', 403],
    ['/-/', 403],
  ] as const) {
    const page = await expectStatus(status, visit(base, path, { headers }), path)
    for (const policy of ['cross-origin-opener-policy', 'cross-origin-resource-policy']) {
      t.equal(page.headers[policy], 'same-origin', path)
    }
    const files = [...page.text.matchAll(/(?:src|href)="(\/-\/assets\/[^"]+)"/g)]
    t.ok(files.length >= 3, 'a style sheet, a script and an icon')
    for (const [, file = ''] of files) await expectStatus(200, visit(base, file, { headers }))
  }
  const explorer = visit(base, '/api/docs/swagger-ui-bundle.js', { headers })
  await expectStatus(403, explorer, 'the files of the explorer are for its page')
  const redirect = await expectStatus(302, visit(base, '/house-public', { headers }))
  t.notMatch(redirect.rawHeaders.join(), /cross-origin/i, 'others may embed a link')
})

await t.test('who is believed', async () => {
  await makeLink(await user('jörg'), 'jorgs', { visibility: 'secure' })
  const utf8 = (text: string) => Buffer.from(text).toString('latin1')
  const by = (name: string | readonly string[]) => ({ 'Remote-Email': name })
  const two = ['owner@example.com', 'boss@example.com']
  for (const [what, path, headers, status, localAddress = '127.0.0.1'] of [
    ['whom the proxy names', '/house-secure', by(owner.email), 302],
    ['in other letters', '/house-secure', { 'remote-email': ' OWNER@example.com ' }, 302],
    ['a peer that is no trusted proxy', '/house-secure', by(owner.email), 403, '127.0.0.2'],
    ['another header', '/house-secure', { 'Remote-User': owner.email }, 403],
    ['no e-mail address', '/house-secure', by('owner'), 403],
    ['two at once', '/house-secure', by(two), 403],
    ['the operator is no name of a proxy', '/house-secure', by('operator@localhost'), 403],
    ['nor in other letters', '/house-secure', by(' Operator@LOCALHOST'), 403],
    ['with proxies nobody is the local operator', '/house-secure', {}, 403],
    ['UTF-8', '/jorgs', by(utf8('Jörg@example.com')), 302],
    ['UTF-8 on pages', '/-/', by(utf8('jörg@example.com')), 200],
    ['Latin-1 names nobody', '/jorgs', by('j\xf6rg@example.com'), 403],
    ['Latin-1 is refused on pages', '/-/', by('j\xf6rg@example.com'), 400],
  ] as const) {
    await expectStatus(status, visit(base, path, { headers, localAddress }), what)
  }
})

await t.test('the local operator', async (t) => {
  const { base, user } = await openLinks(t)
  await makeLink(await user('owner'), 'house-secure', { visibility: 'secure' })
  const status = async (headers: Record<string, string>) =>
    (await visit(base, '/house-secure', { headers })).status
  const local = new URL(base)
  for (const host of [local.host, 'localhost', `localhost:${local.port}`, '[::1]:8081']) {
    t.equal(await status({ host }), 302, host)
  }
  for (const host of ['go', 'localhost.evil.example', '192.0.2.1', '127.0.0.1.evil']) {
    t.equal(await status({ host }), 403, host)
  }
  const named = { 'Remote-Email': 'owner@example.com', host: 'go.example' }
  t.equal(await status(named), 403, 'without trusted proxies nobody is named')
  const { text } = await visit(base, '/house')
  t.match(text, /operator@localhost[^]*href="\/house-secure"/, 'an admin')
})
