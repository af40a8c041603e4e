import { t } from 'tap'
import type { Test } from 'tap'
import { backends, eachBackend, onPostgres } from '../helpers/backends.ts'
import { refuseCommands, runCli } from '../helpers/cli.ts'
import {
  insertLinks,
  leadsTo,
  makeLink,
  startLinks,
  visit,
  type Caller,
  type Link,
} from '../helpers/links.ts'
import { run } from '../helpers/postgres.ts'
import type { Env } from '../helpers/program.ts'
import { decodeQr, pixelsOfText } from '../helpers/qr.ts'
import { contentsOf } from '../helpers/transfer.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends
const BASE = 'https://go.example.com'
const OPERATOR = 'operator@localhost'

const link = (env: Env, ...args: readonly string[]) => runCli(['link', ...args], { env })

/** The JSON that a command prints alone on stdout, an object a line. */
async function printed<T = Link>(env: Env, ...args: readonly string[]): Promise<readonly T[]> {
  const { code, stdout, stderr } = await link(env, ...args, '--json')
  if (code !== 0) throw new Error(`link ${args.join(' ')}: ${stderr}`)
  const lines = stdout.split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line) as T)
}

async function slugs(env: Env, ...args: readonly string[]): Promise<readonly string[]> {
  return (await printed(env, 'list', ...args)).map(({ slug }) => slug)
}

/** What the API says of a link. */
async function apiLink({ api }: Caller, slug: string): Promise<Link | undefined> {
  const { json } = await api<{ links: readonly Link[] }>('GET', '/links')
  return json.links.find((one) => one.slug === slug)
}

type Change = { readonly actor: string; readonly action: string; readonly detail: object }

async function newestChange({ api }: Caller, { id }: Pick<Link, 'id'>) {
  const { json } = await api<{ changes: Change[] }>('GET', `/links/${id}/history?limit=1`)
  return json.changes[0]
}

await eachBackend(t, 'a link by commands, beside a server', async (t: Test, backend) => {
  const given = { ...(await backend.env(t)), LINKS_BASE_URL: BASE }
  const { base, env, user } = await startLinks(t, backend, given)
  const root = await user('root', { admin: true })
  const ann = await user('ann')

  await t.test('add', async (t) => {
    const made = await link(env, 'add', ' Docs', 'docs.example.com/start')
    t.match(made, {
      code: 0,
      stdout: `${BASE}/docs\n`,
      stderr: 'docs leads to https://docs.example.com/start\n',
    })
    t.equal(await leadsTo(base, '/docs'), 'https://docs.example.com/start')
    const stored = await apiLink(root, 'docs')
    t.match(stored, { owners: [{ email: OPERATOR, is_primary: true }], visibility: 'public' })
    if (stored !== undefined) {
      t.match(await newestChange(root, stored), { actor: OPERATOR, action: 'created' })
    }
    const [whole] = await printed(
      env,
      ...['add', 'plan', 'https://plan.example.com/', '--title', 'The plan', '--owner', ann.email],
      ...['--description', 'What is next', '--tag', 'Red', '--tag', 'blue', '--max-visits', '9'],
      ...['--visibility', 'secure', '--append-path', 'true', '--expires', '30d'],
    )
    t.same(whole, await apiLink(root, 'plan'), 'JSON as the API has it')
    t.match(whole, {
      ...{ slug: 'plan', title: 'The plan', description: 'What is next', max_visits: 9 },
      ...{ tags: ['blue', 'red'], visibility: 'secure', append_path: true, archived: false },
    })
    t.same(
      whole?.owners.map(({ email, is_primary }) => [email, is_primary]),
      [[ann.email, true]],
    )
    const lives = Date.parse(whole?.expires_at ?? '') - Date.parse(whole?.created_at ?? '')
    t.equal(lives, 30 * 86_400_000, 'from now on')
    if (whole !== undefined) {
      t.match(await newestChange(root, whole), { actor: OPERATOR }, 'not by its owner')
    }
  })

  await t.test('show', async (t) => {
    t.same(await printed(env, 'show', 'plan'), [await apiLink(root, 'plan')])
    const { stdout } = await link(env, 'show', 'PLAN')
    for (const fact of [
      `address      ${BASE}/plan`,
      'url          https://plan.example.com/',
      'tags         blue, red',
      `owners       ${ann.email}`,
      'state        active',
      'max visits   9',
    ]) {
      t.match(stdout, `${fact}\n`)
    }
    const { stdout: drawn } = await link(env, 'show', 'docs', '--qr')
    const code = drawn.slice(drawn.indexOf('█')).trimEnd()
    t.equal(decodeQr(pixelsOfText(code)), `${BASE}/docs`, 'read from the terminal')
  })

  await t.test('edit changes what is named', async (t) => {
    const before = await apiLink(root, 'plan')
    const edited = await link(env, 'edit', 'plan', '--title', 'New')
    t.match(edited, { code: 0, stdout: '', stderr: 'plan is changed\n' })
    const after = await apiLink(root, 'plan')
    t.same({ ...after, updated_at: '' }, { ...before, title: 'New', updated_at: '' })
    if (after !== undefined) {
      const detail = { title: ['The plan', 'New'] }
      t.match(await newestChange(root, after), { actor: OPERATOR, action: 'edited', detail })
    }
    const cleared = ['--expires', '', '--max-visits=', '--tag', '', '--description', '']
    const [bare] = await printed(env, 'edit', 'plan', ...cleared, '--visibility', 'private')
    t.match(bare, { expires_at: null, max_visits: null, description: '', visibility: 'private' })
    t.same([bare?.tags, bare?.title], [[], 'New'])
    await link(env, 'edit', 'docs', '--url', 'https://moved.example.com/', '--archived', 'true')
    t.equal(await until(async () => (await leadsTo(base, '/docs')) === 410, 'the end'), true)
    await link(env, 'edit', 'docs', '--archived', 'false', '--append-path', 'true')
    const moved = async () => (await leadsTo(base, '/docs/a')) === 'https://moved.example.com/a'
    t.equal(await until(moved, 'the new address'), true)
  })

  await t.test('stats', async (t) => {
    const { id } = await makeLink(ann, 'visited')
    const none = await link(env, 'stats', 'visited')
    t.match(none.stdout, /^visits +0\nlast visit +never\npeople +0\n/)
    await visit(base, '/visited', { headers: { referer: 'https://wiki.example.com/a' } })
    const counted = async () => {
      const [stats] = await printed<{ total: number; referrers: unknown[] }>(
        env,
        ...['stats', 'visited'],
      )
      return stats?.total === 1 && stats.referrers.length === 1 && stats
    }
    const stats = await until(counted, 'the visit with its host')
    t.same(stats, (await ann.api('GET', `/links/${id}/stats`)).json, 'JSON as the API has it')
    const { stdout } = await link(env, 'stats', 'visited')
    t.match(stdout, /^visits +1\nlast visit +\d{4}-.*\npeople +1\n/)
    t.match(stdout, /^came from +wiki\.example\.com 1$/m)
    t.match(stdout, /^DAY +VISITS\n\d{4}-\d\d-\d\d +1$/m)
  })

  await t.test('rm', async (t) => {
    const known = await apiLink(root, 'plan')
    const removed = await link(env, 'rm', 'plan')
    t.match(removed, {
      ...{ code: 0, stdout: '' },
      stderr: `plan is removed; for 30 days it can be restored: ${BASE}/-/deleted\n`,
    })
    t.equal(await until(async () => (await leadsTo(base, '/plan')) === 404, 'its end'), true)
    const { stdout: audit } = await runCli(['audit', '--limit', '1', '--json'], { env })
    t.match(JSON.parse(audit), { actor: 'command', action: 'link delete', subject: 'plan' })
    t.equal((await ann.api('POST', `/links/${known?.id}/restore`)).status, 200)
    t.match(await printed(env, 'rm', 'plan'), [{ id: known?.id, slug: 'plan' }])
  })
})

await onPostgres(t, 'lists of links', async (t: Test, backend) => {
  const links = await startLinks(t, backend)
  const { env } = links
  const ann = await links.user('ann')
  const joann = await links.user('joann')
  await makeLink(ann, 'alpha', { tags: ['red'], title: 'First of all' })
  await makeLink(ann, 'beta', { visibility: 'secure', archived: true })
  await makeLink(joann, 'gamma', { tags: ['red', 'blue'], max_visits: 1 })
  const soon = new Date(Date.now() + 60_000).toISOString()
  await makeLink(joann, 'delta', { visibility: 'private', expires_at: soon })
  const url = env['DATABASE_URL'] ?? ''
  await run(url, `update links.links set expires_at = $1 where slug = 'delta'`, [
    '2026-01-01T00:00:00Z',
  ])
  await run(url, `update links.links set clicks = 7 where slug = 'gamma'`, [])
  await run(url, `update links.link_texts set keys = '{used_up}' where slug = 'gamma'`, [])

  await t.test('of everybody, filtered and sorted', async (t) => {
    t.same(await slugs(env), ['alpha', 'beta', 'delta', 'gamma'])
    for (const [args, wanted] of [
      [['--search', 'first'], ['alpha']],
      [
        ['--tag', 'Red'],
        ['alpha', 'gamma'],
      ],
      [
        ['--owner', ' Ann@Example.com'],
        ['alpha', 'beta'],
      ],
      [['--owner', ann.email, '--search', '#red'], ['alpha']],
      [['--state', 'active'], ['alpha']],
      [['--state', 'archived'], ['beta']],
      [['--state', 'expired'], ['delta']],
      [['--state', 'used_up'], ['gamma']],
      [['--sort', 'clicks', '--limit', '1'], ['gamma']],
      [['--search', '127.0.0.1:8081/alpha'], ['alpha']],
      [['--tag', 'none'], []],
    ] as const) {
      t.same(await slugs(env, ...args), wanted, args.join(' '))
    }
    const { stdout } = await link(env, 'list', '--state', 'used_up')
    t.match(
      stdout,
      /^SLUG +STATE +CLICKS +OWNER +URL\ngamma +used_up +7 +joann@example\.com +https:\/\/gamma\.test\/\n$/,
    )
    const cut = await link(env, 'list', '--limit', '2')
    t.equal(cut.stdout.split('\n').length, 4)
    t.equal(cut.stderr, 'more links match than the 2 listed; --limit says how many are\n')
    t.equal((await link(env, 'list', '--limit', '4')).stderr, '')
  })

  await t.test('all of them, beyond a page', async (t) => {
    const rows = Array.from({ length: 450 }, (_, at) => ({
      slug: `many-${String(at).padStart(3, '0')}`,
      owners: [joann.email],
    }))
    await insertLinks(links, backend, rows)
    t.equal((await slugs(env)).length, 454)
    t.same(
      await slugs(env, '--owner', joann.email, '--search', 'many'),
      rows.map(({ slug }) => slug),
    )
    const cut = await link(env, 'list', '--limit', '200')
    t.equal(cut.stdout.split('\n').length, 202)
    t.match(cut.stderr, 'more links match')
  })
})

await onPostgres(t, 'what is refused', async (t: Test, backend) => {
  const links = await startLinks(t, backend)
  const { env } = links
  const ann = await links.user('ann')
  await links.user('gone')
  await makeLink(ann, 'taken')
  await runCli(['user', 'disable', 'gone@example.com'], { env })
  const url = 'https://a.test/'
  const form = /^gatehouse: URL must be an http:\/\/ or https:\/\/ URL with a host/
  const time = /^gatehouse: --expires must be a time with its zone .*, or a whole number with s, m/

  await refuseCommands(t, { env, state: () => contentsOf(postgres, env) }, [
    [['link', 'show', 'nothing'], 1, 'no link has this slug'],
    [['link', 'edit', 'nothing', '--title', 'x'], 1, 'no link has this slug'],
    [['link', 'rm', 'nothing'], 1, 'no link has this slug'],
    [['link', 'stats', 'nothing'], 1, 'no link has this slug'],
    [['link', 'add', 'taken', url], 1, 'slug already taken'],
    [['link', 'add', 'free', url, '--owner', 'no@example.com'], 1, /no user has the e-mail/],
    [['link', 'add', 'free', url, '--owner', 'gone@example.com'], 1, /this user is disabled/],
    [['link', 'list', '--owner', 'no@example.com'], 1, /no user has the e-mail address/],
  ])
  await refuseCommands(t, undefined, [
    [['link', 'add', 'a b', url], 2, /^gatehouse: SLUG must have 2 to 64 of a-z/],
    [['link', 'add', 'api', url], 2, /^gatehouse: SLUG is reserved/],
    [['link', 'add', 'free', 'nowhere'], 2, form],
    [['link', 'add', 'free', 'ftp://a.test/'], 2, form],
    [['link', 'add', 'free'], 2, 'Missing URL: where it leads'],
    [
      ['link', 'add', 'free', url, '--expires', '2020-01-31T12:00:00Z'],
      2,
      /must be in the future/,
    ],
    [['link', 'add', 'free', url, '--expires', 'soon'], 2, time],
    [['link', 'add', 'free', url, '--expires', '999999999d'], 2, time],
    [['link', 'add', 'free', url, '--max-visits', '0'], 2, /--max-visits must be a whole number/],
    [['link', 'add', 'free', url, '--tag', '-x'], 2, /--tag needs a value/],
    [['link', 'add', 'free', url, '--tag', 'ä'], 2, /^gatehouse: tags: each must have 1 to 50/],
    [['link', 'add', 'free', url, '--title', 'x'.repeat(201)], 2, /--title may have 200/],
    [['link', 'add', 'free', url, '--visibility', 'open'], 2, /must be public, private or secure/],
    [['link', 'edit', 'taken'], 2, /^gatehouse: Nothing to change: name a field/],
    [['link', 'edit', 'taken', '--url', ''], 2, /--url must be an http/],
    [['link', 'edit', 'taken', '--expires', '0'], 2, '--expires must be in the future'],
    [['link', 'show', 'taken', '--qr', '--json'], 2, '--qr and --json exclude each other'],
    [['link', 'list', '--state', 'gone'], 2, /must be active, expired, used_up or archived/],
    [['link', 'list', '--limit', '0'], 2, /--limit must be a whole number/],
    [['link', 'list', '--search', 'x'.repeat(201)], 2, /^gatehouse: --search may have 200/],
    [
      ['link', 'make'],
      2,
      /Unknown action "make", expected one of list, show, add, edit, rm, stats/,
    ],
  ])
  const socket = { env: { ...env, LINKS_ADDR: 'unix:/nowhere/links.sock' } }
  t.match(await runCli(['link', 'show', 'taken', '--qr'], socket), {
    code: 1,
    stderr: /^gatehouse: the address of links is not known: .* set LINKS_BASE_URL\n$/,
  })
  t.match(await runCli(['link', 'show', 'taken'], socket), {
    code: 0,
    stdout: /^address +http:\/\/HOST\/taken$/m,
  })
})
