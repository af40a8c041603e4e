import { t } from 'tap'
import type { Test } from 'tap'
import { RESERVED_SLUGS } from '../../services/links/slug.ts'
import { backends, eachBackend } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import type { Response } from '../helpers/http.ts'
import { makeLink, startLinks } from '../helpers/links-setup.ts'
import { rawExchange } from '../helpers/raw-http.ts'
import { leadsTo, suggested, visit } from '../helpers/visits.ts'

const [, postgres] = backends
const NOWHERE = { status: 404, headers: { 'cache-control': 'no-store', 'x-robots-tag': 'noindex' } }

await eachBackend(t, 'a slug in every spelling leads to its link', async (t: Test, backend) => {
  const { base, user } = await startLinks(t, backend)
  const ann = await user('ann')
  await makeLink(ann, 'team-docs', { url: 'https://docs.test/team?x=1#top' })
  await makeLink(ann, 'team', { url: 'https://team.test/' })
  await makeLink(ann, 'a1', { url: 'http://intranet' })
  const spellings = ['team-docs', 'Team-Docs', 'TEAM-DOCS', 'team_docs', 'Team_Docs', 'team-docs/']
  const ends = ['team-docs.', 'team-docs,', 'team-docs!?', 'team-docs)', 'team-docs-', 'team-docs_']
  const encoded = [
    'team%2Ddocs',
    'team%5Fdocs',
    '%54eam-docs',
    'team-docs%2E',
    'team-docs%E2%80%A6',
  ]
  for (const spelling of [...spellings, ...ends, ...encoded]) {
    t.equal(await leadsTo(base, `/${spelling}`), 'https://docs.test/team?x=1#top', spelling)
  }
  t.equal(await leadsTo(base, '/team'), 'https://team.test/')
  t.equal(await leadsTo(base, '/A1'), 'http://intranet', 'as its owner wrote it')
  const others = ['team--docs', '-team-docs', '.team-docs', 'team-doc', 'team.docs', 'team docs']
  for (const other of others) {
    t.equal(await leadsTo(base, `/${encodeURIComponent(other)}`), 404, `"${other}" is another slug`)
  }
})

await t.test('a redirect says what it must and nothing more', async (t) => {
  const { base, user } = await startLinks(t, postgres)
  await makeLink(await user('ann'), 'docs', { url: 'https://docs.test/a' })
  for (const method of ['GET', 'HEAD']) {
    const { status, headers, text } = await request(`${base}/docs`, { method })
    t.equal(status, 302)
    t.equal(text, '')
    t.match(headers, {
      location: 'https://docs.test/a',
      'cache-control': 'no-store',
      'x-robots-tag': 'noindex',
      'x-content-type-options': 'nosniff',
      'content-length': '0',
    })
    t.notOk(headers['set-cookie'] ?? headers['content-type'])
  }
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
    const { status, headers } = await request(`${base}/docs`, { method })
    t.same({ status, allow: headers.allow }, { status: 405, allow: 'GET, HEAD' }, method)
    t.notOk(headers.location)
  }
  t.equal((await request(`${base}/nobody`, { method: 'POST' })).status, 405, 'also of no link')
  const port = Number(new URL(base).port)
  const absolute = await rawExchange(
    port,
    'GET http://go/docs?q=1 HTTP/1.1\r\nHost: go\r\nConnection: close\r\n\r\n',
  )
  t.match(absolute.text, /^HTTP\/1\.1 302 .*\r\nlocation: https:\/\/docs\.test\/a\?q=1\r\n/s)
  const old = await rawExchange(port, 'GET /docs HTTP/1.0\r\n\r\n')
  t.match(
    old.text,
    /^HTTP\/1\.1 302 .*\r\nlocation: https:\/\/docs\.test\/a\r\n/s,
    'without a Host',
  )
})

await t.test('no visit reaches what is reserved', async (t) => {
  const { base, env, user } = await startLinks(t, postgres)
  await user('ann')
  // As if an older version had let somebody take it: the list counts in the resolver, too.
  for (const slug of [...RESERVED_SLUGS].filter((reserved) => reserved.length > 1)) {
    await postgres.query(
      env,
      `insert into links.links (slug, url, title, description, visibility, append_path, created_at, updated_at)
       values ($1, 'https://taken.test/', '', '', 'public', true, now(), now())`,
      [slug],
    )
  }
  for (const slug of RESERVED_SLUGS) {
    if (slug === 'healthz' || slug === 'metrics') continue
    t.equal(await leadsTo(base, `/${slug}`), 404, slug)
    t.equal(await leadsTo(base, `/${slug}/more`), 404, `${slug}/more`)
    t.equal(await leadsTo(base, `/${slug.toUpperCase()}`), 404, slug.toUpperCase())
    t.equal(await leadsTo(base, `/${slug}+`), 404, `${slug}+`)
    t.equal((await request(`${base}/${slug}`, { method: 'POST' })).status, 404, `POST ${slug}`)
  }
  t.equal((await request(`${base}/healthz`)).status, 200)
  t.equal((await request(`${base}/metrics`)).status, 200)
  t.equal(await leadsTo(base, '/-/nothing'), 404)
})

await t.test('robots are told to stay away', async (t) => {
  const { base } = await startLinks(t, postgres)
  const robots = await request(`${base}/robots.txt`, { headers: { host: 'go.example' } })
  t.equal(robots.status, 200)
  t.equal(robots.headers['content-type'], 'text/plain; charset=utf-8')
  t.equal(robots.text, 'User-agent: *\nDisallow: /\n')
})

await eachBackend(
  t,
  'an unknown slug: what was meant, and a way to make it',
  async (t: Test, backend) => {
    const { base, user } = await startLinks(t, backend)
    const ann = await user('ann')
    for (const slug of ['standup', 'standup-notes', 'payroll', 'zz-unlike']) {
      await makeLink(ann, slug, { title: slug === 'standup' ? 'Daily <b>standup</b>' : '' })
    }
    const mistakes = ['standp', 'stanndup', 'stnadup', 'stamdup', 'STANDUPP']
    for (const mistake of mistakes) {
      const page = await visit(base, `/${mistake}`)
      t.match(page, NOWHERE, mistake)
      t.equal(suggested(page)[0], 'standup', mistake)
      t.notOk(suggested(page).includes('zz-unlike'))
    }
    const page = await visit(base, '/standu')
    t.same(suggested(page), ['standup', 'standup-notes'], 'one letter less, then what begins so')
    t.match(page.text, 'Daily &lt;b&gt;standup&lt;/b&gt;')
    t.match(
      page.text,
      /<form method="get" action="\/-\/new">\s*<input[^>]*name="slug" value="standu"/,
    )
    t.match(
      (await visit(base, '/New_Thing.')).text,
      /name="slug" value="new-thing"/,
      'in good form',
    )
    t.notMatch(
      (await visit(base, '/x.y%20z')).text,
      'action="/-/new"',
      'no link can have this slug',
    )

    const hostile = await visit(base, '/%3Cscript%3Ealert(1)%3C%2Fscript%3E%22%27')
    t.match(hostile, NOWHERE)
    t.match(hostile.text, '&lt;script&gt;alert(1)&lt;/script&gt;')
    t.notMatch(hostile.text, '<script>alert')
    t.match(await visit(base, `/${'long-'.repeat(800)}x`), NOWHERE, 'a long one')
  },
)

await t.test('a program gets JSON', async (t) => {
  const { base, user } = await startLinks(t, postgres)
  await makeLink(await user('ann'), 'docs')
  const json = (path: string): Promise<Response> =>
    visit(base, path, { headers: { accept: 'application/json' } })
  const unknown = await json('/dosc')
  t.match(unknown, NOWHERE)
  t.equal(unknown.headers['content-type'], 'application/json')
  t.same(unknown.json(), { error: 'link not found', code: 'NOT_FOUND' })
  const further = await json('/docs/further')
  t.match(further, NOWHERE)
  t.match(further.json(), { code: 'NOT_FOUND', error: /takes no further path/ })
  t.equal((await json('/docs')).status, 302)
})

await t.test('paths that are none', async (t) => {
  const { base, server, user } = await startLinks(t, postgres)
  const ann = await user('ann')
  await makeLink(ann, 'docs', { url: 'https://docs.test/x', append_path: true })
  const broken = [
    '%',
    '%zz',
    '%e9',
    '%C0%AF',
    '%00',
    'docs%00',
    'do%00cs',
    '%ED%A0%80',
    '%2',
    '..',
    '.',
  ]
  for (const segment of broken) {
    t.match(await visit(base, `/${segment}`), NOWHERE, segment)
    if (segment !== '%') t.match(await visit(base, `/docs/${segment}`), NOWHERE, `docs/${segment}`)
  }
  for (const path of ['/docs/a/../b', '/docs/%2e%2e/b', '/docs/.%2E', '/../docs', '/%2e/docs']) {
    t.match(await visit(base, path), NOWHERE, path)
  }
  t.match(await visit(base, '//docs'), { status: 404 })
  t.match(await visit(base, '/+'), NOWHERE)
  t.match(await visit(base, '/%2B'), NOWHERE)
  t.notMatch(server.logs().join('\n'), /handler failed|"level":"error"/)
})
