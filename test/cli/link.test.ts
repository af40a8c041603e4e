import { t } from 'tap'
import { postgres } from '../helpers/backends.ts'
import { refuseCommands, runCli, runOk, refusedRows } from '../helpers/cli.ts'
import { leadsTo, makeLink, openLinks, visit, type Caller, type Link } from '../helpers/links.ts'
import type { Env } from '../helpers/program.ts'
import { decodeQr, pixelsOfText } from '../helpers/qr.ts'
import { contentsOf } from '../helpers/transfer.ts'
import { until } from '../helpers/until.ts'
import { expectStatus } from '../helpers/refusals.ts'

const BASE = 'https://go.example.com'
const OPERATOR = 'operator@localhost'

const link = (env: Env, words: string) => runOk(`link ${words}`, { env })

/** The JSON that a command prints alone on stdout, an object a line. */
async function printed<T = Link>(env: Env, words: string): Promise<readonly T[]> {
  const { stdout } = await link(env, `${words} --json`)
  return stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as T)
}

/** What the API says of a link, and its newest change. */
async function apiLink(who: Caller, slug: string) {
  const { links } = await who.read<{ links: readonly Link[] }>('/links')
  const found = links.find((one) => one.slug === slug)
  if (found === undefined) throw new Error(`there is no link ${slug}`)
  const { changes } = await who.read<{ changes: object[] }>(`/links/${found.id}/history?limit=1`)
  return { found, change: changes[0] }
}

await t.test('a link by commands, beside a server', async (t) => {
  const given = { ...(await postgres.env(t)), LINKS_BASE_URL: BASE }
  const { base, env, user } = await openLinks(t, given)
  const root = await user('root', { admin: true })
  const ann = await user('ann')

  await t.test('add and show', async (t) => {
    const made = await runCli(['link', 'add', ' Docs', 'docs.example.com/start'], { env })
    t.same(made, {
      code: 0,
      stdout: `${BASE}/docs\n`,
      stderr: 'docs leads to https://docs.example.com/start\n',
    })
    t.equal(await leadsTo(base, '/docs'), 'https://docs.example.com/start')
    const { found, change } = await apiLink(root, 'docs')
    t.match(found, { owners: [{ email: OPERATOR, is_primary: true }], visibility: 'public' })
    t.match(change, { actor: OPERATOR, action: 'created' })
    const words = `add plan https://plan.example.com/ --title Plan --owner ${ann.email} --description Next --tag Red --tag blue --max-visits 9 --visibility secure --append-path true --expires 30d`
    const [whole] = await printed(env, words)
    const plan = await apiLink(root, 'plan')
    t.same(whole, plan.found, 'JSON as the API has it')
    t.match(plan.change, { actor: OPERATOR }, 'not by its owner')
    t.match(whole, {
      title: 'Plan',
      description: 'Next',
      max_visits: 9,
      tags: ['blue', 'red'],
      visibility: 'secure',
      append_path: true,
      owners: [{ email: ann.email, is_primary: true }],
    })
    const lives = Date.parse(whole?.expires_at ?? '') - Date.parse(whole?.created_at ?? '')
    t.equal(lives, 30 * 86_400_000, 'from now on')
    t.same(await printed(env, 'show plan'), [whole])
    const { stdout } = await link(env, 'show PLAN')
    for (const fact of [
      `address      ${BASE}/plan\n`,
      'url          https://plan.example.com/\n',
      'tags         blue, red\n',
      `owners       ${ann.email}\n`,
      'state        active\n',
      'max visits   9\n',
    ]) {
      t.match(stdout, fact)
    }
    const { stdout: drawn } = await link(env, 'show docs --qr')
    const code = drawn.slice(drawn.indexOf('█')).trimEnd()
    t.equal(decodeQr(pixelsOfText(code)), `${BASE}/docs`, 'read from the terminal')
  })

  await t.test('edit changes what is named', async (t) => {
    const before = (await apiLink(root, 'plan')).found
    const edited = await link(env, 'edit plan --title New')
    t.same(edited, { code: 0, stdout: '', stderr: 'plan is changed\n' })
    const { found: after, change } = await apiLink(root, 'plan')
    t.same({ ...after, updated_at: '' }, { ...before, title: 'New', updated_at: '' })
    t.match(change, { actor: OPERATOR, action: 'edited', detail: { title: ['Plan', 'New'] } })
    const cleared = '--expires= --max-visits= --tag= --description='
    const [bare] = await printed(env, `edit plan ${cleared}`)
    t.match(bare, { expires_at: null, max_visits: null, description: '', title: 'New' })
    t.same(bare?.tags, [])
    await link(env, 'edit docs --url https://moved.example.com/ --archived true')
    await until(async () => (await leadsTo(base, '/docs')) === 410, 'the end')
    await link(env, 'edit docs --archived false --append-path true')
    const moved = async () => (await leadsTo(base, '/docs/a')) === 'https://moved.example.com/a'
    await until(moved, 'the new address')
  })

  await t.test('stats', async (t) => {
    const { id } = await makeLink(ann, 'visited')
    const none = await link(env, 'stats visited')
    t.match(none.stdout, /^visits +0\nlast visit +never\npeople +0\n/)
    await visit(base, '/visited', { headers: { referer: 'https://wiki.example.com/a' } })
    type Stats = { total: number; referrers: unknown[]; clients: unknown[] }
    const stats = await until(async () => {
      const [counted] = await printed<Stats>(env, 'stats visited')
      const { total, referrers, clients } = counted ?? { total: 0, referrers: [], clients: [] }
      return total === 1 && referrers.length === 1 && clients.length === 1 && counted
    }, 'the visit with its host and its client')
    t.same(stats, await ann.read(`/links/${id}/stats`), 'JSON as the API has it')
    const { stdout } = await link(env, 'stats visited')
    t.match(stdout, /^visits +1\nlast visit +\d.*\npeople +1\n[^]*\nDAY +VISITS\n/)
    t.match(stdout, 'wiki.example.com 1\n')
  })

  await t.test('rm', async (t) => {
    const { id } = (await apiLink(root, 'plan')).found
    t.same(await link(env, 'rm plan'), {
      code: 0,
      stdout: '',
      stderr: `plan is removed; for 30 days it can be restored: ${BASE}/-/deleted\n`,
    })
    await until(async () => (await leadsTo(base, '/plan')) === 404, 'its end')
    const { stdout: audit } = await runCli('audit --limit 1 --json', { env })
    t.match(JSON.parse(audit), { actor: 'command', action: 'link delete', subject: 'plan' })
    await expectStatus(200, ann.api('POST', `/links/${id}/restore`))
    t.match(await printed(env, 'rm plan'), [{ id, slug: 'plan' }])
  })
})

t.test('lists of links, and what is refused', async (t) => {
  const links = await openLinks(t)
  const { env } = links
  const ann = await links.user('ann')
  const joann = await links.user('joann')
  await links.user('gone')
  await runCli('user disable gone@example.com', { env })
  await makeLink(ann, 'alpha', { tags: ['red'], title: 'First of all' })
  await makeLink(ann, 'beta', { visibility: 'secure', archived: true })
  await makeLink(joann, 'gamma', { tags: ['red', 'blue'], max_visits: 1 })
  const expires_at = new Date(Date.now() + 60_000).toISOString()
  await makeLink(joann, 'delta', { visibility: 'private', expires_at })
  for (const change of [
    `links set expires_at = '2026-01-01T00:00:00Z' where slug = 'delta'`,
    `links set clicks = 7 where slug = 'gamma'`,
    `link_texts set keys = '{used_up}' where slug = 'gamma'`,
  ]) {
    await postgres.query(env, `update links.${change}`)
  }
  const slugs = async (words = '') =>
    (await printed(env, `list ${words}`.trim())).map(({ slug }) => slug)

  await t.test('of everybody, filtered and sorted', async (t) => {
    for (const [words, wanted] of [
      ['', ['alpha', 'beta', 'delta', 'gamma']],
      ['--search first', ['alpha']],
      ['--tag Red', ['alpha', 'gamma']],
      ['--owner Ann@Example.com', ['alpha', 'beta']],
      [`--owner ${ann.email} --search #red`, ['alpha']],
      ['--state active', ['alpha']],
      ['--state archived', ['beta']],
      ['--state expired', ['delta']],
      ['--state used_up', ['gamma']],
      ['--sort clicks --limit 1', ['gamma']],
      ['--search 127.0.0.1:8081/alpha', ['alpha']],
      ['--tag none', []],
    ] as const) {
      t.same(await slugs(words), wanted, words)
    }
    const { stdout } = await link(env, 'list --state used_up')
    t.same(
      stdout.split('\n').map((line) => line.replaceAll(/ +/g, ' ')),
      ['SLUG STATE CLICKS OWNER URL', 'gamma used_up 7 joann@example.com https://gamma.test/', ''],
    )
    const cut = await link(env, 'list --limit 2')
    t.equal(cut.stdout.split('\n').length, 4)
    t.equal(cut.stderr, 'more links match than the 2 listed; --limit says how many are\n')
    t.equal((await link(env, 'list --limit 4')).stderr, '')
  })

  await t.test('all of them, beyond a page', async (t) => {
    const owners = [joann.email]
    const many = Array.from({ length: 450 }, (_, at) => `many-${at + 100}`)
    await links.store(many.map((slug) => ({ slug, owners })))
    t.same(await slugs(`--owner ${joann.email} --search many`), many)
  })

  await t.test('what is refused', async (t) => {
    const none = 'no link has this slug'
    const time = '--expires must be a time with its zone such as '
    await refuseCommands(t, { env, state: () => contentsOf(postgres, env) }, [
      ...refusedRows('link', 1, [
        ['show nothing', none],
        ['edit nothing --title x', none],
        ['rm nothing', none],
        ['stats nothing', none],
        ['add alpha https://a.test/', 'slug already taken'],
        ['add free ftp://a.test/', 'url must be an http:// or https:// URL with'],
        ['list --owner no@example.com', 'no user has the e-mail address'],
      ]),
      ...refusedRows('link add free https://a.test/ --owner', 1, [
        ['no@example.com', 'no user has the e-mail'],
        ['gone@example.com', 'this user is disabled'],
      ]),
    ])
    await refuseCommands(t, undefined, [
      ...refusedRows('link', 2, [
        ['make', 'Unknown action "make", expected one of list, show, add, edit, rm, stats'],
        ['add a_b https://a.test/', 'SLUG must have 2 to 64 of a-z'],
        ['add api https://a.test/', 'SLUG is reserved'],
        ['add free', 'Missing URL: where it leads'],
        ['edit taken', 'Nothing to change: name a field'],
        ['edit taken --url=', '--url must be an http'],
        ['edit taken --expires 0', '--expires must be in the future'],
        ['show taken --qr --json', '--qr and --json exclude each other'],
        ['list --state gone', '--state must be active, expired, used_up or archived'],
        ['list --limit 0', '--limit must be a whole number'],
        [`list --search ${'x'.repeat(201)}`, '--search may have 200'],
      ]),
      ...refusedRows('link add free https://a.test/', 2, [
        ['--expires 2020-01-31T12:00:00Z', '--expires must be in the future'],
        ['--expires soon', time],
        ['--expires 999999999d', time],
        ['--max-visits 0', /--max-visits must be a whole number from 1 to 1,000,000,000$/],
        ['--tag -x', '--tag needs a value'],
        ['--tag ä', 'tags: each must have 1 to 50'],
        [`--title ${'x'.repeat(201)}`, '--title may have 200'],
        ['--visibility open', '--visibility must be public, private or secure'],
      ]),
    ])
    const socket = { env: { ...env, LINKS_ADDR: 'unix:/nowhere/links.sock' } }
    t.match(await runCli('link show alpha --qr', socket), {
      code: 1,
      stderr: /^gatehouse: the address of links is not known: .* set LINKS_BASE_URL\n$/,
    })
    const { stdout } = await runOk('link show alpha', socket)
    t.match(stdout, 'address      http://HOST/alpha\n')
  })
})
