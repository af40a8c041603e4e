import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { leadsTo, makeLink, startLinks } from '../helpers/links.ts'
import type { Caller, Link } from '../helpers/links.ts'
import { run } from '../helpers/postgres.ts'

const [, postgres] = backends
const { base, env, user } = await startLinks(t, postgres)
const [ann, bob, eve] = [await user('ann'), await user('bob'), await user('eve')]
const root = await user('root', { admin: true })

/** What the service says of a new link: its status, and the code of a refusal. */
async function made(who: Caller, slug: string, url: string, append_path = false): Promise<string> {
  const { status, json } = await who.api<{ code?: string }>('POST', '/links', {
    slug,
    url,
    append_path,
  })
  return `${status} ${json.code ?? ''}`.trim()
}

const REFUSED = '400 INVALID_URL'

await t.test('what a visit adds decides of no link where it ends', async (t) => {
  for (const [slug, url, append] of [
    ['root', `${base}/`, true],
    ['pages', `${base}/-`, true],
    ['pages', `${base}/-/`, true],
    ['search', `${base}/-/go`, false],
    ['search', `${base}/-/go?q=other`, false],
  ] as const) {
    t.equal(await made(ann, slug, url, append), REFUSED, `${slug} ${url}`)
  }
  // Without further path it ends on the page.
  const { id } = await makeLink(ann, 'root', { url: `${base}/` })
  const append = { url: `${base}/`, append_path: true }
  const replaced = await ann.api('PUT', `/links/${id}`, append)
  t.match(replaced, { status: 400, json: { code: 'INVALID_URL' } }, 'nor may it begin to')

  // As they are after the service was given another address.
  const sql = `update links.links set url = $2, append_path = $3 where slug = $1`
  const url = env['DATABASE_URL'] ?? ''
  await makeLink(ann, 'docs')
  await run(url, sql, ['root', `${base}/`, true])
  t.equal(await made(ann, 'aa', `${base}/root/aa`), REFUSED)
  t.equal(await made(ann, 'aa', `${base}/root/root/aa`), REFUSED)
  t.equal(await made(ann, 'aa', `${base}/root/docs`), '201', 'this ends')
  t.equal(await leadsTo(base, '/root/docs'), `${base}/docs`)
})

await t.test('a loop does not tell where a secure link leads', async (t) => {
  const vault = await makeLink(ann, 'vault', { url: `${base}/guess`, visibility: 'secure' })
  await ann.api('POST', `/links/${vault.id}/shares`, { email: bob.email })
  const ways = ['vault', 'VAULT.', 'through']
  await makeLink(eve, 'through', { url: `${base}/vault` })
  for (const [at, way] of ways.entries()) {
    const url = `${base}/${way}`
    for (const who of [ann, bob, root]) t.equal(await made(who, 'guess', url), REFUSED, way)
    t.equal(await made(eve, `other-${at}`, url), '201', 'where it does not lead')
    const guess = await makeLink(eve, 'guess')
    const path = `/links/${guess.id}`
    t.equal((await eve.api('PUT', path, { url })).status, 200, `${way}: so where it leads`)
    await eve.api('DELETE', path)
    t.equal(await made(eve, 'guess', url), '201', 'a new link too')
    const { json } = await eve.api<{ links: readonly Link[] }>('GET', '/links')
    await eve.api('DELETE', `/links/${json.links.find(({ slug }) => slug === 'guess')?.id}`)
  }
  for (let at = 11; at > 0; at--) {
    await makeLink(ann, `deep-${at}`, { url: `${base}/deep-${at + 1}`, visibility: 'secure' })
  }
  t.equal(await made(ann, 'deep', `${base}/deep-1`), REFUSED)
  t.equal(await made(eve, 'deep', `${base}/deep-1`), '201', 'nor is it told that it leads far')
  for (const visibility of ['private', 'public']) {
    await ann.api('PUT', `/links/${vault.id}`, { url: `${base}/guess`, visibility })
    const what = `${visibility}: everybody may follow it, and sees where it leads`
    t.equal(await made(eve, 'guess', `${base}/vault`), REFUSED, what)
  }
})

await t.test('a url may lead through ten links, and through no more', async (t) => {
  for (const [end, what] of [
    ['https://example.com/', 'another site'],
    [`${base}/-/tags`, 'a page of ours'],
    [`${base}/nothing`, 'nothing'],
  ] as const) {
    const name = what.replaceAll(' ', '-')
    for (let at = 11; at > 0; at--) {
      const url = at === 11 ? end : `${base}/${name}-${at + 1}`
      t.equal(await made(ann, `${name}-${at}`, url), '201')
    }
    t.equal(await made(ann, `${name}-through-10`, `${base}/${name}-2`), '201', what)
    const url = `${base}/${name}-1`
    const refused = await ann.api('POST', '/links', { slug: `${name}-through-11`, url })
    const error = 'url leads through more than 10 links; give where it should end'
    t.match(refused, { status: 400, json: { code: 'INVALID_URL', error } }, what)
  }
})

await t.test('a url that leads back to the resolver is refused', async (t) => {
  const named = { ...env, LINKS_BASE_URL: 'https://go.example.com' }
  const { base, api } = await startLinks(t, postgres, named)
  const writer = { api: api(ann.token) }
  await makeLink(writer, 'first', { url: `${base}/second` })
  const loops = [
    'second',
    'Second',
    'second/x',
    'first',
    'FIRST.',
    '%66irst',
    '{1}',
    '{*}',
    '{1}/{1}',
    '-/go?q=second',
    '-/go?q=/First%20/x',
    '-/go?q=go/first',
    '-/go?q={1}',
    '-/go?q=docs/{1}',
    'second?of={user}',
    'first?of={user:nobody}',
    '{user}',
    '{user:docs}',
    'docs/{user:../second}',
    '{1:docs}',
    'docs/{1:../second}',
    'docs?q={*:https://example.com/}',
    '-/go',
    '-/{1}',
    '-',
    '-/',
    '',
    'x/../{1}',
    'docs/{*}/../..',
  ]
  const port = new URL(base).port
  const hosts = [
    'localhost',
    'localhost.',
    'any.localhost',
    'any.localhost.',
    '127.0.0.2',
    '[::1]',
  ]
  const others = [...hosts, '0.0.0.0', '[::]', '[::ffff:127.0.0.1]'].map(
    (h) => `http://${h}:${port}`,
  )
  const hostNames = [
    'https://go.example.com',
    'https://go.example.com.',
    'http://go',
    'http://go.:80',
  ]
  const urls = [
    ...loops.map((path) => `${base}/${path}`),
    ...[...others, ...hostNames].map((place) => `${place}/first`),
    `https://example.com/{*:${base}/second}`,
    `https://example.com/{user:http://go/first}`,
  ]
  for (const url of urls) {
    const refused = await writer.api('POST', '/links', { slug: 'second', url, append_path: true })
    t.match(refused, { status: 400, json: { code: 'INVALID_URL' } }, url)
  }
  for (const [at, url] of [
    `${base}/-/all?q={1}`,
    `${base}/docs/{1}?q={2}`,
    `${base}/docs/{1:a/b}?q={2:c}&of={user}`,
    `https://example.com/{*:https://example.org/second}`,
    `${base}/`,
    `${base}/-/`,
    `${base}/-/tags/{1}`,
    'http://go.example.org/first',
    'http://localhost.example:80/first',
  ].entries()) {
    const { status } = await writer.api('POST', '/links', { slug: `no-loop-${at}`, url })
    t.equal(status, 201, `${url} is no loop`)
  }
})
