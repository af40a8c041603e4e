import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import postgres from 'postgres'
import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { refuseCommands, runCli, runHere } from '../helpers/cli.ts'
import type { CliResult, RefusedCommand } from '../helpers/cli.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { run } from '../helpers/postgres.ts'
import type { Env } from '../helpers/program.ts'
import { until } from '../helpers/until.ts'

const [, server] = backends

/** Runs `import -` on text. */
function importText(env: Env, input: string | Uint8Array, ...flags: string[]): Promise<CliResult> {
  return runCli(['import', '-', ...flags], { env, input })
}

/** What `--json` said of each line: number, slug, outcome and message; the totals are the last line. */
function reportOf({ stdout }: CliResult) {
  const lines = stdout.trimEnd().split('\n')
  const { totals } = JSON.parse(lines.pop() ?? '')
  const reports: readonly { line: number; slug: string; outcome: string; message: string }[] =
    lines.map((line) => JSON.parse(line))
  return { totals, reports, outcomes: reports.map(({ outcome }) => outcome) }
}

async function emptyDatabase(t: Test): Promise<Env> {
  const env = await server.env(t)
  t.match(await runCli(['user', 'add', 'ann@example.com'], { env }), { code: 0 })
  return env
}

/** Every row that an import may touch, counted. */
async function counts(env: Env): Promise<unknown> {
  const tables = ['users', 'links', 'link_owners', 'link_shares', 'link_tags', 'tags', 'changes']
  const each = tables.map((name) => `(select count(*)::int from links.${name}) as ${name}`)
  return (await run(env['DATABASE_URL'] ?? '', `select ${each.join(', ')}`))[0]
}

const HEADER = 'slug,url,title,description,tags,owner,visibility,append_path,created_at'
const CSV = [
  HEADER,
  'go,https://go.dev/,"The ""Go"" page","two\nlines, one cell",Lang;my_tag,ann@example.com,private,TRUE,2022-05-31T13:04:44.741457796-07:00',
  '',
  'docs,https://docs.example.com/,,,,ann@example.com,,,',
].join('\r\n')

t.test('CSV is imported, and again nothing changes', async (t) => {
  const env = await emptyDatabase(t)
  const file = join(await temporaryFolder(t), 'links.csv')
  await writeFile(file, `\ufeff${CSV}\r\n`)
  const first = await runCli(['import', file], { env })
  t.match(first, { code: 0, stderr: '' })
  t.equal(
    first.stdout,
    '     2  created       go\n     5  created       docs\n' +
      'created 2, updated 0, unchanged 0, conflict 0, refused 0, new users 0\n',
  )
  const text = `select l.slug, url, title, description, visibility, append_path, tags, owners,
                       created_at, updated_at, c.actor, c.action, c.detail
                  from links.shown_links l join links.changes c on c.link_id = l.id order by l.slug`
  const [docs, go] = await run(env['DATABASE_URL'] ?? '', text)
  const created = new Date('2022-05-31T20:04:44.741Z')
  t.match(go, {
    url: 'https://go.dev/',
    title: 'The "Go" page',
    description: 'two\nlines, one cell',
    visibility: 'private',
    append_path: true,
    tags: ['lang', 'my-tag'],
    owners: [{ email: 'ann@example.com', is_primary: true }],
    actor: 'operator@localhost',
    action: 'imported',
    detail: { url: [null, 'https://go.dev/'] },
  })
  t.same([go?.['created_at'], go?.['updated_at']], [created, created])
  t.match(docs, { title: '', visibility: 'public', append_path: false, tags: [] })
  const tags = await run(env['DATABASE_URL'] ?? '', 'select * from links.tags order by tag')
  const count = { links: '1', public_links: '0' }
  t.match(
    tags,
    [
      { tag: 'lang', ...count },
      { tag: 'my-tag', ...count },
    ],
    'tags are counted',
  )

  const before = await counts(env)
  const again = await runCli(['import', file, '--json'], { env })
  t.equal(again.code, 0)
  t.same(reportOf(again).outcomes, ['unchanged', 'unchanged'])
  t.same(await counts(env), before)
})

t.test('a link that is there is left alone, or replaced with --update', async (t) => {
  const env = await emptyDatabase(t)
  t.equal((await importText(env, CSV)).code, 0)
  const changed =
    'slug,url,tags\ngo,https://golang.org/,lang;my-tag\ndocs,https://docs.example.com/,'
  const conflict = await importText(env, changed, '--json')
  t.equal(conflict.code, 1)
  t.match(reportOf(conflict).reports, [
    {
      line: 2,
      outcome: 'conflict',
      message: 'the link is there, and its url differs; --update replaces it',
    },
    { line: 3, outcome: 'unchanged' },
  ])
  const dry = await importText(env, changed, '--update', '--dry-run')
  t.match(dry, { code: 0, stdout: / {5}2 {2}would update {2}go +its url differs\n/ })
  const url = async () =>
    (
      await run(env['DATABASE_URL'] ?? '', `select url, title from links.links where slug = 'go'`)
    )[0]
  t.match(await url(), { url: 'https://go.dev/' }, 'a dry run replaces nothing')

  const updated = await importText(env, changed, '--update', '--json')
  t.equal(updated.code, 0)
  t.match(reportOf(updated).totals, { updated: 1, unchanged: 1 })
  t.match(await url(), { url: 'https://golang.org/', title: 'The "Go" page' }, 'no column, no say')
  const text = `select actor, action from links.changes order by id desc limit 1`
  const [change] = await run(env['DATABASE_URL'] ?? '', text)
  t.match(change, { actor: 'operator@localhost', action: 'edited' })
  t.same(reportOf(await importText(env, changed, '--update', '--json')).totals.unchanged, 2)
})

t.test('a dry run changes nothing and tells nobody', async (t) => {
  const env = await emptyDatabase(t)
  const url = env['DATABASE_URL'] ?? ''
  const sql = postgres(url, { max: 1, onnotice: () => undefined })
  t.teardown(() => sql.end())
  const heard: string[] = []
  await sql.listen('links_changed', (slug) => void heard.push(slug))
  const before = await counts(env)
  const file = `${HEADER}\none,https://one.example.com/,,,a,new@example.com,,,\none,https://two.example.com/,,,a,new@example.com,,,\none,https://one.example.com/,,,a,new@example.com,,,`
  const dry = await importText(env, file, '--dry-run', '--create-users')
  t.equal(dry.code, 1, 'as the run itself would end')
  t.match(dry.stdout, /would create {2}one\n.*conflict.*\n.*unchanged/)
  t.match(dry.stdout, /\ndry run, nothing was changed: would create 1, .*new users would be 1\n$/)
  t.same(await counts(env), before)
  const real = await importText(env, file, '--create-users', '--json')
  t.same(reportOf(real).outcomes, ['created', 'conflict', 'unchanged'])
  t.equal(reportOf(real).totals.users, 1)
  await sql.notify('links_changed', 'last')
  while (!heard.includes('last')) await new Promise((resolve) => setTimeout(resolve, 10))
  t.same(heard, ['one', 'last'], 'only the run itself was announced, once')
})

t.test('each line is refused for its own reason, the others are taken', async (t) => {
  const env = await emptyDatabase(t)
  const own = 'http://127.0.0.1:8081'
  const cases: readonly (readonly [string, string | RegExp])[] = [
    ['good,https://good.example.com/,,,,ann@example.com,,,', ''],
    ['Upper,https://x.example.com/,,,,ann@example.com,,,', /slug must have 2 to 64/],
    ['api,https://x.example.com/,,,,ann@example.com,,,', /slug is reserved/],
    ['bad-url,ftp://x.example.com/,,,,ann@example.com,,,', /url must be an http:\/\/ or https/],
    [
      `long-title,https://x.example.com/,${'x'.repeat(201)},,,ann@example.com,,,`,
      /title may have 200/,
    ],
    ['bad-tag,https://x.example.com/,,,-x,ann@example.com,,,', /tags: each must have/],
    [
      'bad-visibility,https://x.example.com/,,,,ann@example.com,open,,',
      /visibility must be public/,
    ],
    ['bad-append,https://x.example.com/,,,,ann@example.com,,yes,', /append_path must be true or/],
    [
      'bad-time,https://x.example.com/,,,,ann@example.com,,,yesterday',
      /created_at must be a time/,
    ],
    ['no-owner,https://x.example.com/,,,,,,,', /names no owner; --owner EMAIL/],
    ['bad-owner,https://x.example.com/,,,,ann,,,', /its owner "ann" is no e-mail address/],
    [
      'unknown,https://x.example.com/,,,,bob@example.com,,,',
      /no user .* bob@example\.com; --create/,
    ],
    ['few,https://x.example.com/', /has 2 fields, the header has 9/],
    ['quote,"https://x.example.com/" ,,,,,,,', /a quoted field is followed by something else/],
    [`loop,${own}/loop,,,,ann@example.com,,,`, /url leads back to this link/],
    [`near,${own}/far,,,,ann@example.com,,,`, ''],
    [`far,${own}/near,,,,ann@example.com,,,`, /url leads back to this link/],
    ['nul,https://x.example.com/,a\u0000b,,,ann@example.com,,,', /title must have no NUL/],
    ['last,https://last.example.com/,,,,ann@example.com,,,', ''],
  ]
  const file = Buffer.from(`${HEADER}\n${cases.map(([line]) => line).join('\n')}\n`)
  const bytes = Buffer.concat([
    file,
    Buffer.from('latin,https://x.example.com/,caf\u00e9,,,,,,\n', 'latin1'),
  ])
  const result = await importText(env, bytes, '--json')
  t.match(result, { code: 1, stderr: '' })
  const { reports, totals } = reportOf(result)
  for (const [at, [line, reason]] of cases.entries()) {
    const outcome = reason === '' ? 'created' : 'refused'
    t.match(reports[at], { line: at + 2, outcome, message: reason }, line.slice(0, 20))
  }
  t.match(reports.at(-1), { line: cases.length + 2, outcome: 'refused', message: 'is not UTF-8' })
  t.match(totals, { created: 3, refused: cases.length - 2 })
  const rows = await run(env['DATABASE_URL'] ?? '', 'select slug from links.links order by slug')
  t.same(
    rows.map(({ slug }) => slug),
    ['good', 'last', 'near'],
  )
  const open = await importText(
    env,
    'slug,url\nnew,"https://a.example.com/\nnext,x',
    '--owner',
    'ann@example.com',
  )
  t.match(open, { code: 1, stdout: / {5}2 {2}refused .* a quoted field is never closed/ })
})

t.test('a link that leads back to itself is refused', async (t) => {
  const env = await emptyDatabase(t)
  const loop = async (url: string, place: Env) => {
    const file = `slug,url\nloop,${url}/loop\n`
    const said = await importText({ ...env, ...place }, file, '--owner', 'ann@example.com')
    return { code: said.code, refused: said.stdout.includes('leads back to this link') }
  }
  const base = { LINKS_BASE_URL: 'https://go.example.com' }
  for (const [url, place] of [
    ['http://[::1]:8081', { LINKS_ADDR: '[::1]:8081' }],
    ['http://localhost:8081', { LINKS_ADDR: '[::1]:8081' }],
    ['http://localhost:8081', { LINKS_ADDR: '127.0.0.1:8081' }],
    ['https://go.example.com', base],
    ['http://go', base],
    ['http://127.0.0.1:8081', { ...base, LINKS_ADDR: '127.0.0.1:8081' }],
    ['https://go.example.com', { ...base, LINKS_ADDR: 'unix:/tmp/none.sock' }],
  ] as const) {
    t.same(await loop(url, place), { code: 1, refused: true }, url)
  }
  for (const LINKS_ADDR of ['unix:/tmp/none.sock', 'fd:links', '127.0.0.1:0']) {
    t.same(await loop('http://host', { LINKS_ADDR }), { code: 0, refused: false }, LINKS_ADDR)
    await run(env['DATABASE_URL'] ?? '', 'delete from links.links')
  }
})

t.test('owners: made with --create-users, replaced by --owner', async (t) => {
  const env = await emptyDatabase(t)
  const file =
    'slug,url,owner,co_owners,shared_with\naa,https://a.example.com/,bob@example.com,ann@example.com;cy@example.com,dee@example.com\nbb,https://b.example.com/,,,'
  const owners = async () => {
    const text = `select slug, array(select o->>'email' from jsonb_array_elements(owners) o) as people
                    from links.shown_links order by slug`
    return (await run(env['DATABASE_URL'] ?? '', text)).map(({ slug, people }) => [slug, people])
  }
  const taken = await importText(env, file, '--owner', 'Ann@example.com', '--json')
  t.equal(taken.code, 0)
  t.match(reportOf(taken).reports[0]?.message, 'without cy@example.com and dee@example.com')
  t.same(await owners(), [
    ['aa', ['ann@example.com']],
    ['bb', ['ann@example.com']],
  ])
  await run(env['DATABASE_URL'] ?? '', 'delete from links.links')
  const made = await importText(
    env,
    file,
    '--create-users',
    '--owner',
    'ann@example.com',
    '--json',
  )
  t.match(reportOf(made).totals, { created: 2, users: 3 })
  t.same(await owners(), [
    ['aa', ['bob@example.com', 'ann@example.com', 'cy@example.com']],
    ['bb', ['ann@example.com']],
  ])
})

t.test('who becomes a user during an import is known from its next batch on', async (t) => {
  const env = await emptyDatabase(t)
  const stdin = new PassThrough()
  let stdout = ''
  const ended = runHere(['import', '-', '--json'], env, {
    stdin,
    stdout: (text) => (stdout += text),
    stderr: () => undefined,
  })
  const lines = (from: number, to: number): string =>
    Array.from(
      { length: to - from },
      (_, n) => `link-${from + n},https://a.test/,new@example.com\n`,
    ).join('')
  stdin.write(`slug,url,owner\n${lines(0, 501)}`)
  await until(() => stdout.split('\n').length === 501, 'the report of the first batch', 30_000)
  t.match(await runCli(['user', 'add', 'new@example.com'], { env }), { code: 0 })
  stdin.end(lines(501, 600))
  const code = await ended
  t.match(reportOf({ code, stdout, stderr: '' }).totals, { refused: 500, created: 100 })
})

t.test('files that are none of ours', async (t) => {
  const env = await emptyDatabase(t)
  const refused = (input: string | Uint8Array, line: RegExp): RefusedCommand => [
    { args: ['import', '-'], input },
    1,
    line,
  ]
  await refuseCommands(t, { env, state: () => counts(env) }, [
    refused(
      'name,target\n',
      /first line must be a header of column names separated by commas: slug, url/,
    ),
    refused('slug;url\n', /first line must be a header/),
    refused('slug,title\n', /header must have the column url/),
    refused('slug,url,Slug\n', /header has the column slug twice/),
    refused(Uint8Array.of(0xff, 0xfe, 0x73, 0x00), /first line is not UTF-8/),
    [['import', '/no/such/file'], 1, /^gatehouse: ENOENT.*\/no\/such\/file/],
    [
      { args: ['import', '-', '--owner', 'zoe@example.com'], input: CSV },
      1,
      /no user has the e-mail address "zoe@/,
    ],
  ])
  t.match(await importText(env, ''), { code: 0, stdout: /^created 0, .*\n$/, stderr: '' })
})
