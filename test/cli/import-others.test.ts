import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { runCli, runOk } from '../helpers/cli.ts'
import { leadsTo, startLinks } from '../helpers/links.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { ROOT, type Env } from '../helpers/program.ts'

// What golink, Shlink and kutt export.

const [, server] = backends
/** Where nothing is expected of the whole database. */
const shared = await server.env(t)
const OWNED = '--owner ann@example.com'
const CREATES = '--create-users'
const FLAGS = `${OWNED} ${CREATES}`

const exported = (name: string) => readFile(join(ROOT, 'test/fixtures/link-exports', name), 'utf8')

/** Imports a file; each report is a text, `LINE SLUG OUTCOME MESSAGE`. */
async function imports(env: Env, input: string, flags = FLAGS) {
  const { code, stdout, stderr } = await runCli(`import - --json ${flags}`, { env, input })
  const lines = stdout.trimEnd().split('\n').filter(Boolean)
  const parsed = lines.map((line): Record<string, unknown> => JSON.parse(line))
  const totals = parsed.pop()?.['totals']
  const reports = parsed.map(
    ({ line, slug, outcome, message }) => `${line} ${slug} ${outcome} ${message}`,
  )
  return { code, stderr, totals, reports }
}

const stored = (env: Env) =>
  server.query(
    env,
    `select l.slug, url, title, description, append_path, expires_at, max_visits::int, archived, created_at, updated_at,
            (select string_agg(tag, ' ' order by tag) from links.link_tags t where t.slug = l.slug) as tags,
            (select email from links.link_owners o join links.users u on u.id = o.user_id where o.slug = l.slug) as owner
       from links.links l order by l.slug`,
  )

/** Imports a file: dry first, then twice, with and without `--update`. */
async function importAll(env: Env, input: string, wanted: readonly string[]) {
  const dry = await imports(env, input, `${OWNED} --dry-run`)
  t.match(dry, { code: 1, stderr: '', reports: wanted }, 'a dry run')
  t.same(await stored(env), [], 'which changes nothing')
  const { code, reports } = await imports(env, input, OWNED)
  t.same({ code, reports }, { code: 1, reports: dry.reports })
  t.equal(reports.length, wanted.length)
  const before = await stored(env)
  const again = await imports(env, input, `${OWNED} --update`)
  const unchanged = reports.map((row) => row.replace(' created ', ' unchanged '))
  t.same(again.reports, unchanged, 'nor does it the second time')
  t.same(await stored(env), before)
}

/** A line of golink's export. */
function golink(Short: string, Long: string, more: object = {}) {
  const Created = '2022-05-31T13:04:44.741457796-07:00'
  const LastEdit = '2022-06-01T13:04:44.741457796-07:00'
  return JSON.stringify({ Short, Long, Created, LastEdit, Owner: 'amelie@example.com', ...more })
}

/** What follows `https://a.test/` in golink, and here; links whose path is appended begin with `+`. */
const TEMPLATES = {
  a: '+a',
  '{1}/{*}': '+%7B1%7D/%7B*%7D',
  '{user}/{1:a}{*:': '+%7Buser%7D/%7B1:a%7D%7B*:',
  'a?q={{ .Path }}&x=1': 'a?q={*}&x=1',
  '?q={{QueryEscape .Path}}': '?q={*}',
  '{{.Path | PathEscape}}': '{*}',
  'x {{- .Path -}} /x': 'x{*}/x',
  '{{if .Path}}{{.Path}}{{end}}': '{*}',
  '{{with .Path}}{{.}}{{end}}': '{*}',
  'a{{with .Path}}/{{PathEscape .}}{{end}}?b=c': '+a?b=c',
  '{{/* a note */}}a': 'a',
  // What stands in the place of a missing path is its default, or the whole address is.
  '{{if .Path}}{{.Path}}{{else}}b{{end}}': '{*:b}',
  '{{or .Path "a/b"}}?c': '{*:a/b}?c',
  '{{if not .Path}}b{{else}}{{.Path}}{{end}}': '{*:b}',
  '{{if ne .Path ""}}{{.Path}}{{else}}{x}{{end}}': '{*:%7Bx%7D}',
  '{{if .Path}}?q={{QueryEscape .Path}}{{end}}': '?q={*:https://a.test/}',
  '{{if .Path}}{{with .Path}}{{.}}{{end}}{{else}}{{if .Path}}no{{end}}b{{end}}': '{*:b}',
  '{{.User}}{{with .Path}}/{{.}}{{end}}': '+{user}',
  '?of={{QueryEscape .User}}': '?of={user}',
  '{{with .Path}}{{.}}/{{$.User}}{{end}}': '{*:https://a.test/}/{user}',
}

/** URLs of golink that have no equal here, and why. */
const WITHOUT_EQUAL: readonly (readonly [url: string, message: string])[] = [
  ['https://a.test/{{with .Path}}{{.}}{{else}}{{.User}}{{end}}', 'leads elsewhere'],
  ['https://a.test/{{if eq .Path ""}}{{"b"}}{{end}}', 'has {{"b"}}'],
  ['http://{{if .Path}}{{.Path}}{{else}}host{{end}}.test/debug', 'no {placeholder} before'],
  [
    'http://wiki/{{.Now.Format "01-02-2006"}}',
    'has {{.Now.Format "01-02-2006"}}, which has no equal here',
  ],
  ['https://a.test/{{TrimSuffix .User "@example.com"}}', 'has {{TrimSuffix .User'],
  ['https://a.test/{{if Match "\\\\d+" .Path}}id{{end}}', 'has {{if Match "\\\\d+" .Path}}'],
  ['https://a.test/{{$p := .Path}}{{$p}}', 'has {{$p := .Path}}'],
  ['https://a.test/{{with .Path}}{{.Path}}{{end}}', 'has {{.Path}}'],
  ['https://a.test/{{.}}', 'has {{.}}'],
  ['https://a.test/{{end}}', 'has {{end}}'],
  ['https://a.test/{{if .Path}}a{{else}}b{{else}}c{{end}}', 'has {{else}}'],
  ['https://a.test/{{if .Path}}a{{else if .Path}}b{{end}}', 'has {{else if .Path}}'],
  ['https://a.test/{{.Path', 'a {{ is not closed'],
  [`https://a.test/${'{{'.repeat(5_000)}`, 'its url is too long'],
  [`https://a.test/${'{{if .Path}}'.repeat(600)}`, '{{end}} is missing'],
  ['/relative', 'must be an http:// or https:// URL'],
]

t.test('a URL of golink leads to the same place, or is refused', async (t) => {
  const env = await server.env(t)
  const equal = Object.entries(TEMPLATES)
  const longs = equal.map(([long]) => `https://a.test/${long}`)
  longs.push(...WITHOUT_EQUAL.map(([long]) => long))
  const input = longs.map((long, at) => golink(`n${at + 100}`, long)).join('\n')
  const { code, reports } = await imports(env, input, CREATES)
  t.equal(code, 1)
  const links = await stored(env)
  t.equal(links.length, equal.length)
  for (const [at, [long, here]] of equal.entries()) {
    t.match(reports[at], / created $/, long)
    const url = `https://a.test/${here.replace(/^\+/, '')}`
    t.match(links[at], { url, append_path: here.startsWith('+') }, long)
  }
  for (const [at, [long, message]] of WITHOUT_EQUAL.entries()) {
    const report = reports[equal.length + at]
    t.match(report, ' refused ', long)
    t.match(report, message, long)
  }
  t.match(links[0], {
    created_at: new Date('2022-05-31T20:04:44.741Z'),
    updated_at: new Date('2022-06-01T20:04:44.741Z'),
  })
})

t.test('a name of golink becomes a slug that visitors find', async (t) => {
  const env = await server.env(t)
  const long = `ab${'-'.repeat(2_000)}`
  const unknown = { Created: '0001-01-01T00:00:00Z', Extra: 1 }
  const cases = {
    [golink('my_team.wiki', 'https://b.test/')]: '2 my-team-wiki created was "my_team.wiki"',
    [golink('_edge-', 'https://c.test/')]: '3 edge created was "_edge-"',
    [golink('plain', 'https://d.test/', unknown)]: '4 plain created ',
    [golink(long, 'https://e.test/')]: `5 ${long} refused slug must have 2 to 64`,
    [golink('static', 'https://f.test/')]: '6 static refused slug is reserved',
    [golink('my-team_wiki', 'https://g.test/')]:
      '7 my-team-wiki conflict was "my-team_wiki"; the file has "my_team.wiki" before, which is the same name here',
    [golink('half', 'https://h.test/\ud800')]: '8 half created ',
    [golink('when', 'https://i.test/', { Created: 'today' })]:
      "9 when created created at a time that can't be read, today",
    '{"Short": "nowhere"}': '10 nowhere refused Long is missing',
    '{"Long": "https://j.test/"}': '11  refused Short is missing',
    '[1]': '12  refused is not a JSON object',
    '{': '13  refused is not a JSON object',
    [golink('tagged', 'https://k.test/', { Owner: 'tagged-devices' })]: 'is no e-mail address',
  }
  const input = `\r\n${Object.keys(cases).join('\r\n')}\r\n`
  const { reports } = await imports(env, input, CREATES)
  t.match(reports, Object.values(cases))
  const links = await stored(env)
  t.same(
    links.map(({ slug }) => slug),
    ['edge', 'half', 'my-team-wiki', 'plain', 'when'],
  )
  // Golink did not know the time, and said it was the year 1.
  t.ok(Number(links[3]?.['created_at']) > 0)
  const again = await imports(env, input, `${CREATES} --owner amelie@example.com`)
  t.match(again.totals, { created: 1, unchanged: 5, users: 0 }, 'what nobody owned has an owner')

  const commands = '{"Short": "\\u001b[2Jx", "Long": "https://a.test/{{\\u001b[0m}}"}\n'
  const { stdout } = await runCli('import -', { env, input: commands })
  t.match(stdout, 'refused')
  t.notMatch(stdout, '\u001b', 'a terminal is not commanded by a file')
})

t.test('answers of Shlink', async (t) => {
  const env = await server.env(t)
  const input = await exported('shlink.json')
  await runCli('user add ann@example.com', { env })
  const lost = 'without the tags käse; 72 of 400 visits are left; without its redirect rules'
  const domain = 'of example.com; passes queries on, which it did not; closed to search engines'
  await importAll(env, input, [
    `1 12c18 created was "12C18"; ${lost}`,
    '2 12kb3 created was "12Kb3"',
    '3 12c18 conflict the file has "12C18" before, which is the same name here',
    `4 123ba created was "123bA"; ${domain}, which it was not`,
    '5 12kb3 conflict of example.com; the file has "12Kb3" before',
    '6 my-talk-2019 created was "my_talk.2019"; title cut to 200 characters',
    '7 once created archived: its 1 visits are used up',
    '8 later refused begins at 2999-01-01T00:00:00.000Z, and links here have no beginning',
    '9 a/b refused slug must have 2 to 64',
    '10 über refused slug must have',
    '11 mail refused url must be an http',
  ])
  t.match(await stored(env), [
    { slug: '123ba', url: 'https://search.test/', title: '', tags: null, max_visits: null },
    {
      slug: '12c18',
      url: `https://shop.test/?a=1&b=%7B1%7D#"x'`,
      title: 'Welcome <to> the shop',
      description: '',
      tags: 'games',
      owner: 'ann@example.com',
      max_visits: 72,
      archived: false,
      expires_at: null,
      created_at: new Date('2016-08-21T18:34:16Z'),
      updated_at: new Date('2016-08-21T18:34:16Z'),
    },
    { slug: '12kb3', url: 'https://docs.test', tags: 'docs', archived: false },
    { slug: 'my-talk-2019', title: 't'.repeat(200), expires_at: new Date('2019-12-31T23:59:59Z') },
    { slug: 'once', max_visits: 1, archived: true },
  ])
  const { base } = await startLinks(t, server, env)
  t.equal(await leadsTo(base, '/12Kb3'), 'https://docs.test', 'as people have it')
  t.equal(await leadsTo(base, '/my_talk-2019'), 410)
})

t.test('the CSV of Shlink’s web client is known by its header', async (t) => {
  const env = await server.env(t)
  const input = await exported('shlink.csv')
  const { code, reports } = await imports(env, input)
  t.equal(code, 1)
  t.match(reports, [
    '2 12c18 created was "12C18"; of s.test',
    '3 12kb3 created was "12Kb3"; of s.test',
    /^5 .* conflict .*"s.test.12Kb3" before/,
  ])
  t.match(await stored(env), [
    { url: 'https://shop.test/?a=1&b="2"', tags: 'games tech', title: '' },
    { url: 'https://docs.test', tags: null, title: 'He said "hi",\nok' },
  ])
  const short = `${input.split('\n')[0]}\n"2016-05-01T20:34:16+02:00","s.test"\n`
  const refused = await imports(env, short)
  t.match(refused.reports, ['refused has 2 fields, the header has 8'])
})

t.test('answers of kutt', async (t) => {
  const env = await server.env(t)
  await runCli('user add ann@example.com', { env })
  await importAll(env, await exported('kutt.json'), [
    '1 6xy8kp created was "6Xy8Kp"',
    '2 6xy8kp conflict the file has "6Xy8Kp" before, which is the same name here',
    '3 team-wiki created was "Team_Wiki"',
    '4 sqlite created ',
    "5 secret refused asks for a password, which links here don't have; create it here as a",
    '6 spam created archived, as it was there',
    '7 own created of go.example.org',
    '8 x refused slug must have',
  ])
  const expires_at = new Date('2999-01-31T10:07:04Z')
  t.match(await stored(env), [
    {
      slug: '6xy8kp',
      url: 'https://docs.test/%7B*%7D?a="b"',
      owner: 'ann@example.com',
      description: 'The docs {of} ours',
      title: '',
      expires_at: null,
      archived: false,
      created_at: new Date('2024-11-03T08:39:33.123Z'),
      updated_at: new Date('2025-01-06T07:06:40Z'),
    },
    { slug: 'own' },
    { slug: 'spam', archived: true },
    { slug: 'sqlite', expires_at },
    { slug: 'team-wiki', expires_at },
  ])
})

t.test('answers to an admin of kutt name owners', async (t) => {
  const input = await exported('kutt-admin.json')
  const { reports } = await imports(shared, input, CREATES)
  t.match(reports, [
    'of-ann created ',
    'of-bob created of go.example.org',
    'refused names no owner; give an owner for such links',
  ])
  t.match(await stored(shared), [{ owner: 'ann@example.com' }, { owner: 'bob@example.com' }])
})

t.test('an answer of many reads, and of many pages', async (t) => {
  const links = Array.from({ length: 3_000 }, (_, at) => {
    return { address: `n${at}`, target: `https://a.test/${at}`, description: '„ü" }]' }
  })
  const pages = [links.slice(0, 2_500), links.slice(2_500)]
  const text = pages.map((data) => JSON.stringify({ total: 3_000, data }))
  const file = join(await temporaryFolder(t), 'kutt.json')
  await writeFile(file, text.join(''))
  const { stdout } = await runOk(`import ${file} ${FLAGS}`, { env: shared })
  t.match(stdout, '\ncreated 3000, updated 0, unchanged 0, conflict 0, refused 0, new users 0\n')
})

t.test('what is no whole export is said', async (t) => {
  const link = (address: string) =>
    `{"address": "${address}", "target": "https://a.test/", "x": [{}]}`
  const long = `{"address": "long", "description": "${'x'.repeat(2 ** 20)}"}`
  const page = (total: number, ...links: readonly string[]) =>
    `{"total": ${total}, "data": [${links.join(' , ')}]} \n`
  const cases: readonly (readonly [input: string, ...reports: readonly string[]])[] = [
    [
      `\ufeff${page(51, link('aa'))}`,
      '1 aa created ',
      '2  refused the file has 1 of 51 links; add the other pages to it',
    ],
    [
      page(3, link('bb'), '{"address": "b\\"]}"}') + page(3, link('cc')),
      '1 bb created ',
      '2 b"]} refused target is missing',
      '3 cc created ',
    ],
    [page(2, long, link('dd')), '1  refused is longer than 1 MiB', '2 dd created '],
    [`[${link('ee')}]`, '1 ee created '],
    [page(1, '{"address": }'), '1  refused is not a JSON object'],
    ['[]', '1  refused the file has no links'],
    ['{}', '1  refused is no link'],
    ['{"total": 1, "data": [{"address": "cut', '1  refused ends in the middle of an answer'],
    ['['.repeat(20), '1  refused has too many brackets in one another; nothing after it'],
    [`{"data": [], "x": "${'x'.repeat(2 ** 16)}"}`, '1  refused is longer than 64 KiB'],
  ]
  for (const [input, ...wanted] of cases) {
    const { reports } = await imports(shared, input)
    t.match(reports, wanted, input.slice(0, 60))
    t.equal(reports.length, wanted.length)
  }
})
