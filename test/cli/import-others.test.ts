import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { leadsTo, startLinks } from '../helpers/links.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { run } from '../helpers/postgres.ts'
import { ROOT, type Env } from '../helpers/program.ts'

const [, server] = backends

/** What became of a line: slug, outcome and message. */
type Row = readonly [slug: string, outcome: string, message: string | RegExp]

const exported = (name: string) => readFile(join(ROOT, 'test/fixtures/link-exports', name), 'utf8')

async function imports(env: Env, input: string, ...flags: readonly string[]) {
  const { code, stdout, stderr } = await runCli(['import', '-', '--json', ...flags], {
    env,
    input,
  })
  const lines = stdout.trimEnd().split('\n').filter(Boolean)
  const parsed = lines.map((line): Record<string, unknown> => JSON.parse(line))
  return { code, stderr, totals: parsed.at(-1)?.['totals'], reports: parsed.slice(0, -1) }
}

const stored = (env: Env) =>
  run(
    env['DATABASE_URL'] ?? '',
    `select l.slug, url, title, description, expires_at, max_visits::int, archived, created_at, updated_at,
            (select string_agg(tag, ' ' order by tag) from links.link_tags t where t.slug = l.slug) as tags,
            (select email from links.link_owners o join links.users u on u.id = o.user_id where o.slug = l.slug) as owner
       from links.links l order by l.slug`,
  )

/** Imports a file: dry first, then twice, with and without `--update`. */
async function importAll(
  env: Env,
  input: string,
  flags: readonly string[],
  rows: readonly Row[],
): Promise<void> {
  const wanted = rows.map(([slug, outcome, message], at) => {
    return { line: at + 1, slug, outcome, message }
  })
  const dry = await imports(env, input, '--dry-run', ...flags)
  t.match(dry, { code: 1, stderr: '', reports: wanted }, 'a dry run')
  t.same(await stored(env), [], 'which changes nothing')
  const { code, reports } = await imports(env, input, ...flags)
  t.match({ code, reports }, { code: 1, reports: wanted })
  t.equal(reports.length, rows.length)
  const before = await stored(env)
  const unchanged = wanted.map((row) => {
    return row.outcome === 'created' ? { ...row, outcome: 'unchanged' } : row
  })
  const again = await imports(env, input, '--update', ...flags)
  t.match(again.reports, unchanged, 'nor does it the second time')
  t.same(await stored(env), before)
}

t.test('answers of Shlink', async (t) => {
  const env = await server.env(t)
  const input = await exported('shlink.json')
  await runCli(['user', 'add', 'ann@example.com'], { env })
  const lost = 'without the tags käse; 72 of 400 visits are left; without its redirect rules'
  const domain = 'of example.com; passes queries on, which it did not; closed to search engines'
  await importAll(
    env,
    input,
    ['--format', 'shlink', '--owner', 'ann@example.com'],
    [
      ['12c18', 'created', `was "12C18"; ${lost}`],
      ['12kb3', 'created', 'was "12Kb3"'],
      ['12c18', 'conflict', 'the file has "12C18" before, which is the same name here'],
      ['123ba', 'created', `was "123bA"; ${domain}, which it was not`],
      ['12kb3', 'conflict', /^of example\.com; the file has "12Kb3" before/],
      ['my-talk-2019', 'created', 'was "my_talk.2019"; title cut to 200 characters'],
      ['once', 'created', 'archived: its 1 visits are used up'],
      [
        'later',
        'refused',
        /^begins at 2999-01-01T00:00:00.000Z, and links here have no beginning$/,
      ],
      ['a/b', 'refused', /^slug must have 2 to 64/],
      ['über', 'refused', /^slug must have/],
      ['mail', 'refused', /^url must be an http/],
    ],
  )
  const common = { owner: 'ann@example.com', description: '', expires_at: null }
  t.match(await stored(env), [
    { slug: '123ba', url: 'https://search.test/', title: '', tags: null, max_visits: null },
    {
      ...{ ...common, slug: '12c18', title: 'Welcome <to> the shop', tags: 'games' },
      ...{ url: `https://shop.test/?a=1&b=%7B1%7D#"x'`, max_visits: 72, archived: false },
      ...{
        created_at: new Date('2016-08-21T18:34:16Z'),
        updated_at: new Date('2016-08-21T18:34:16Z'),
      },
    },
    { ...common, slug: '12kb3', url: 'https://docs.test', tags: 'docs', archived: false },
    { slug: 'my-talk-2019', title: 't'.repeat(200), expires_at: new Date('2019-12-31T23:59:59Z') },
    { slug: 'once', max_visits: 1, archived: true },
  ])
  const { base } = await startLinks(t, server, env)
  t.equal(await leadsTo(base, '/12Kb3'), 'https://docs.test', 'as people have it')
  t.equal(await leadsTo(base, '/my_talk.2019'.replace('.', '-')), 410)
})

t.test('the CSV of Shlink’s web client is known by its header', async (t) => {
  const env = await server.env(t)
  const input = await exported('shlink.csv')
  const flags = ['--owner', 'ann@example.com', '--create-users']
  const dry = await imports(env, input, '--dry-run', ...flags)
  t.same(await stored(env), [])
  const { code, reports } = await imports(env, input, ...flags)
  const wanted = [
    { line: 2, slug: '12c18', outcome: 'created', message: 'was "12C18"; of s.test' },
    { line: 3, slug: '12kb3', outcome: 'created', message: 'was "12Kb3"; of s.test' },
    {
      line: 5,
      slug: '12kb3',
      outcome: 'conflict',
      message: /the file has "s\.test\/12Kb3" before/,
    },
  ]
  t.match([dry.reports, code, reports], [wanted, 1, wanted])
  t.match(await stored(env), [
    { url: 'https://shop.test/?a=1&b="2"', tags: 'games tech', title: '' },
    { url: 'https://docs.test', tags: null, title: 'He said "hi",\nok' },
  ])
  const short = `${input.split('\n')[0]}\n"2016-05-01T20:34:16+02:00","s.test"\n`
  const refused = await imports(env, short, ...flags)
  t.match(refused.reports, [{ outcome: 'refused', message: /^has 2 fields, the header has 8$/ }])
})

t.test('answers of kutt', async (t) => {
  const env = await server.env(t)
  await runCli(['user', 'add', 'ann@example.com'], { env })
  const flags = ['--format', 'kutt', '--owner', 'ann@example.com']
  await importAll(env, await exported('kutt.json'), flags, [
    ['6xy8kp', 'created', 'was "6Xy8Kp"'],
    ['6xy8kp', 'conflict', 'the file has "6Xy8Kp" before, which is the same name here'],
    ['team-wiki', 'created', 'was "Team_Wiki"'],
    ['sqlite', 'created', ''],
    [
      'secret',
      'refused',
      /^asks for a password, which links here don't have; create it here as a/,
    ],
    ['spam', 'created', 'archived: it was banned'],
    ['own', 'created', 'of go.example.org'],
    ['x', 'refused', /^slug must have/],
  ])
  t.match(await stored(env), [
    {
      ...{ slug: '6xy8kp', url: 'https://docs.test/%7B*%7D?a="b"', owner: 'ann@example.com' },
      ...{ description: 'The docs {of} ours', title: '', expires_at: null, archived: false },
      ...{
        created_at: new Date('2024-11-03T08:39:33.123Z'),
        updated_at: new Date('2025-01-06T07:06:40Z'),
      },
    },
    { slug: 'own' },
    { slug: 'spam', archived: true },
    { slug: 'sqlite', expires_at: new Date('2999-01-31T10:07:04Z') },
    { slug: 'team-wiki', expires_at: new Date('2999-01-31T10:07:04Z') },
  ])
})

t.test('answers to an admin of kutt name owners', async (t) => {
  const env = await server.env(t)
  const input = await exported('kutt-admin.json')
  const { reports } = await imports(env, input, '--format', 'kutt', '--create-users')
  t.match(reports, [
    { slug: 'of-ann', outcome: 'created', message: '' },
    { slug: 'of-bob', outcome: 'created', message: 'of go.example.org' },
    {
      slug: 'of-nobody',
      outcome: 'refused',
      message: 'names no owner; --owner EMAIL gives it one',
    },
  ])
  t.match(await stored(env), [{ owner: 'ann@example.com' }, { owner: 'bob@example.com' }])
})

t.test('an answer of many reads, and of many pages', async (t) => {
  const env = await server.env(t)
  const links = Array.from({ length: 3_000 }, (_, at) => {
    return { address: `n${at}`, target: `https://a.test/${at}`, description: '„ü" }]' }
  })
  const pages = [links.slice(0, 2_500), links.slice(2_500)]
  const text = pages.map((data) => JSON.stringify({ total: 3_000, data }))
  const file = join(await temporaryFolder(t), 'kutt.json')
  await writeFile(file, text.join(''))
  const flags = ['--format', 'kutt', '--owner', 'ann@example.com', '--create-users']
  const { code, stdout } = await runCli(['import', file, ...flags], { env })
  t.equal(code, 0)
  t.match(stdout, /\ncreated 3000, updated 0, unchanged 0, conflict 0, refused 0, new users 1\n$/)
})

t.test('what is no whole export is said', async (t) => {
  const env = await server.env(t)
  const link = (address: string) =>
    `{"address": "${address}", "target": "https://a.test/", "x": [{}]}`
  const long = `{"address": "long", "description": "${'x'.repeat(2 ** 20)}"}`
  const page = (total: number, ...links: readonly string[]) =>
    `{"total": ${total}, "data": [${links.join(' , ')}]} \n`
  const partial = /^the file has 1 of 51 links; add the other pages to it$/
  const cases: readonly (readonly [string, ...(readonly Row[])])[] = [
    [`\ufeff${page(51, link('aa'))}`, ['aa', 'created', ''], ['', 'refused', partial]],
    [
      page(3, link('bb'), '{"address": "b\\"]}"}') + page(3, link('cc')),
      ['bb', 'created', ''],
      ['b"]}', 'refused', /^target is missing$/],
      ['cc', 'created', ''],
    ],
    [
      page(2, long, link('dd')),
      ['', 'refused', /^is longer than 1024 KiB$/],
      ['dd', 'created', ''],
    ],
    [`[${link('ee')}]`, ['ee', 'created', '']],
    [page(1, '{"address": }'), ['', 'refused', /^address is missing$/]],
    [page(0), ['', 'refused', /^the file has no links$/]],
    ['', ['', 'refused', /^the file has no links$/]],
    [
      '{"error": "Unauthorized."}',
      ['', 'refused', /^is no list of links by kutt: data is missing$/],
    ],
    ['slug,url\n', ['', 'refused', /^is no list of links by kutt/]],
    [
      '{"total": 1, "data": [{"address": "cut',
      ['', 'refused', /^ends in the middle of an answer; nothing/],
    ],
    ['['.repeat(20), ['', 'refused', /^has too many brackets in one another; nothing after it/]],
    [`{"data": [], "x": "${'x'.repeat(2 ** 16)}"}`, ['', 'refused', /^is longer than 64 KiB$/]],
    [page(1, '{"address": "\u0000\\ud800"}'), ['', 'refused', /missing/]],
  ]
  const flags = ['--format', 'kutt', '--owner', 'ann@example.com', '--create-users']
  for (const [input, ...rows] of cases) {
    const { reports } = await imports(env, input, ...flags)
    const wanted = rows.map(([slug, outcome, message], at) => ({
      line: at + 1,
      slug,
      outcome,
      message,
    }))
    t.match(reports, wanted, input.slice(0, 60))
    t.equal(reports.length, rows.length)
  }
  const unnamed = await imports(env, await exported('shlink.json'), '--owner', 'ann@example.com')
  t.match(unnamed.reports, [{ message: /links of Shlink and kutt need --format$/ }])
  const wrong = await runCli(['import', '-', '--format', 'bitly'], { env, input: '' })
  t.match(wrong, { code: 2, stderr: /jsonl, csv, shlink or kutt/ })
})
