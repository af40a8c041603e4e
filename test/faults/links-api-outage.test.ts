import { setTimeout as pause } from 'node:timers/promises'
import { t } from 'tap'
import type { Api, ApiResponse } from '../helpers/api.ts'
import { backends } from '../helpers/backends.ts'
import { makeLink, startLinks } from '../helpers/links.ts'
import type { Link } from '../helpers/links.ts'
import { noFailureIn } from '../helpers/outages.ts'
import { ownPostgres } from '../helpers/postgres.ts'
import { refuses } from '../helpers/refusals.ts'
import { until } from '../helpers/until.ts'

const cluster = await ownPostgres(t)
const links = await startLinks(t, backends[1], { DATABASE_URL: await cluster.createDatabase() })
const root = await links.user('root', { admin: true })

await t.test('the database goes away', async (t) => {
  const link = await makeLink(root, 'kept', { tags: ['one'] })

  await cluster.stop('fast')
  for (const [method, path, body] of [
    ['GET', '/links', undefined],
    ['POST', '/links', { slug: 'lost', url: 'http://x/', tags: ['lost'] }],
    ['GET', `/links/${link.id}`, undefined],
    ['PUT', `/links/${link.id}`, { url: 'http://x/' }],
    ['DELETE', `/links/${link.id}`, undefined],
    ['GET', `/links/${link.id}/owners`, undefined],
    ['POST', `/links/${link.id}/owners`, { email: root.email }],
    ['GET', `/links/${link.id}/shares`, undefined],
    ['POST', `/links/${link.id}/shares`, { email: root.email }],
    ['GET', '/tags', undefined],
    ['GET', '/tags/one/links', undefined],
    ['GET', '/users/me', undefined],
    ['GET', '/tokens', undefined],
    ['POST', '/tokens', { name: 'lost' }],
    ['GET', '/admin/users', undefined],
    ['PUT', `/admin/users/${root.id}/role`, { role: 'user' }],
    ['GET', '/admin/links', undefined],
    ['GET', '/nothing', undefined],
    ['PATCH', '/links', undefined],
  ] as const) {
    const answer = await root.api(method, path, body)
    refuses(t, answer, [503, 'UNAVAILABLE'], `${method} ${path}`)
    t.match(answer.headers['retry-after'], /^[1-9]\d*$/, 'Retry-After in seconds')
    t.notMatch(answer.text, /ECONN|127\.0\.0\.1|postgres/i, 'nothing of the inside is told')
  }
  const head = await root.api('HEAD', '/links')
  t.same([head.status, head.text], [503, ''])
  t.equal((await links.api()('GET', '/config')).status, 200, 'the configuration needs none')
  refuses(t, await links.api()('GET', '/links'), [401, 'UNAUTHORIZED'], 'no token is no token')

  await cluster.start()
  await until(async () => (await root.api('GET', '/links')).status === 200, 'the API to be back')
  const now = await root.api<{ links: Link[] }>('GET', '/links')
  const made = now.json.links.filter(({ slug }) => slug !== 'kept')
  t.same(made, [], 'nothing was half done')
  t.same((await root.api('GET', `/links/${link.id}`)).json, link)
  t.match((await root.api('GET', '/users/me')).json, { role: 'admin' })
  noFailureIn(t, links.server)
})

await t.test(
  'the database crashes under writers: what was answered is what is there',
  async (t) => {
    const answers = new Map<string, ApiResponse<Link>>()
    let over = false
    async function write(api: Api, writer: number) {
      for (let n = 0; !over; n++) {
        const slug = `w${writer}-${n}`
        const tags = ['all', `t-${n % 5}`]
        const answer = await api<Link>('POST', '/links', { slug, url: 'http://x/', tags })
        answers.set(slug, answer)
        if (answer.status !== 201) await pause(50)
      }
    }
    const writers = [1, 2, 3, 4].map((writer) => write(root.api, writer))
    await until(() => answers.size > 40, 'writers to be under way')
    await cluster.stop('immediate')
    await until(() => [...answers.values()].some(({ status }) => status === 503), 'a refusal')
    await cluster.start()
    const refused = answers.size
    await until(
      () => [...answers.values()].slice(refused).some(({ status }) => status === 201),
      'writes to succeed again',
    )
    over = true
    await Promise.all(writers)

    const stored = new Map<string, Link>()
    let cursor = ''
    for (;;) {
      const { json } = await root.api<{ links: Link[]; next_cursor: string | null }>(
        'GET',
        `/links?limit=200${cursor}`,
      )
      for (const link of json.links) stored.set(link.slug, link)
      if (json.next_cursor === null) break
      cursor = `&cursor=${json.next_cursor}`
    }
    for (const [slug, answer] of answers) {
      const link = stored.get(slug)
      if (answer.status === 201) t.same(link, answer.json, `${slug} is as it was answered`)
      else {
        refuses(t, answer, [503, 'UNAVAILABLE'], slug)
        // Its commit's answer may have been lost; then all of it is there.
        if (link !== undefined)
          t.same([link.owners.length, link.tags.length], [1, 2], `${slug} is whole`)
      }
    }
    const counted = await root.api<{ tags: { slug: string; link_count: number }[] }>(
      'GET',
      '/tags',
    )
    for (const { slug, link_count } of counted.json.tags) {
      const having = [...stored.values()].filter(({ tags }) => tags.includes(slug))
      t.equal(link_count, having.length, `${slug} is counted right`)
    }
    noFailureIn(t, links.server)
  },
)
