import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { run } from '../helpers/postgres.ts'
import type { Env } from '../helpers/program.ts'

const [, server] = backends

/** A line of golink's export. */
function golink(Short: string, Long: string, more: object = {}): string {
  const Created = '2022-05-31T13:04:44.741457796-07:00'
  const LastEdit = '2022-06-01T13:04:44.741457796-07:00'
  return JSON.stringify({ Short, Long, Created, LastEdit, Owner: 'amelie@example.com', ...more })
}

async function stored(env: Env) {
  const text =
    'select slug, url, append_path, created_at, updated_at from links.links order by slug'
  const rows = await run(env['DATABASE_URL'] ?? '', text)
  return new Map(rows.map((row) => [String(row['slug']), row]))
}

/** Too long to be looked through for what could be left of it. */
const LONG = `ab${'-'.repeat(2_000)}`

/** Long, and what it becomes: url and append_path, or why it has no equal. */
const LONGS: readonly (readonly [string, string | RegExp, boolean?])[] = [
  ['https://example.com/a', 'https://example.com/a', true],
  ['https://example.com/a/', 'https://example.com/a/', true],
  ['https://example.com/{id}', 'https://example.com/{id}', true],
  ['https://example.com/{1}/{*}', 'https://example.com/%7B1%7D/%7B*%7D', true],
  ['https://example.com/a/{{.Path}}', 'https://example.com/a/{*}', false],
  ['https://example.com/a?q={{ .Path }}&x=1', 'https://example.com/a?q={*}&x=1', false],
  ['https://example.com/?q={{QueryEscape .Path}}', 'https://example.com/?q={*}', false],
  ['https://example.com/{{PathEscape .Path}}', 'https://example.com/{*}', false],
  ['https://example.com/{{.Path | PathEscape}}', 'https://example.com/{*}', false],
  ['https://example.com/{{- .Path -}}/x', 'https://example.com/{*}/x', false],
  ['https://example.com/{{if .Path}}{{.Path}}{{end}}', 'https://example.com/{*}', false],
  ['https://example.com/{{with .Path}}{{.}}{{end}}', 'https://example.com/{*}', false],
  ['https://example.com{{if .Path}}/{{.Path}}{{end}}', 'https://example.com', true],
  ['https://example.com/a{{with .Path}}/{{PathEscape .}}{{end}}', 'https://example.com/a', true],
  ['https://example.com/{{/* a note */}}a', 'https://example.com/a', false],
  // What stands in the place of a missing path is its default, or the whole address is.
  [
    'https://example.com/{{if .Path}}{{.Path}}{{else}}b{{end}}',
    'https://example.com/{*:b}',
    false,
  ],
  ['https://example.com/{{or .Path "a/b"}}?c', 'https://example.com/{*:a/b}?c', false],
  [
    'https://example.com/{{if not .Path}}b{{else}}{{.Path}}{{end}}',
    'https://example.com/{*:b}',
    false,
  ],
  ['https://example.com/{{if eq .Path ""}}{{"b"}}{{end}}', /has \{\{"b"\}\}/],
  [
    'https://example.com/{{if ne .Path ""}}{{.Path}}{{else}}{x}{{end}}',
    'https://example.com/{*:%7Bx%7D}',
    false,
  ],
  [
    'https://example.com/{{if .Path}}?q={{QueryEscape .Path}}{{end}}',
    'https://example.com/?q={*:https://example.com/}',
    false,
  ],
  [
    'https://example.com{{if .Path}}/{{.Path}}{{end}}/edit',
    'https://example.com/{*:https://example.com/edit}/edit',
    false,
  ],
  [
    '{{with .Path}}https://a.test/{{.}}?of={{$.Path}}{{else}}https://b.test/{1}{{end}}',
    'https://a.test/{*:https://b.test/%7B1%7D}?of={*}',
    false,
  ],
  [
    'https://example.com/{{if .Path}}{{with .Path}}{{.}}{{end}}{{else}}{{if .Path}}no{{end}}b{{end}}',
    'https://example.com/{*:b}',
    false,
  ],
  ['https://example.com/a{{with .Path}}/{{.}}{{end}}?b=c', 'https://example.com/a?b=c', true],
  ['https://example.com/{{.User}}', 'https://example.com/{user}', false],
  ['https://example.com/?of={{QueryEscape .User}}', 'https://example.com/?of={user}', false],
  ['https://example.com/{{.User}}{{with .Path}}/{{.}}{{end}}', 'https://example.com/{user}', true],
  [
    'https://example.com/{{with .Path}}{{.}}/{{$.User}}{{end}}',
    'https://example.com/{*:https://example.com/}/{user}',
    false,
  ],
  ['https://example.com/{{with .Path}}{{.}}{{else}}{{.User}}{{end}}', /leads elsewhere/],
  ['https://example.com/ {{- .Path -}} /x', 'https://example.com/{*}/x', false],
  ['https://example.com/{user}/{1:a}{*:', 'https://example.com/%7Buser%7D/%7B1:a%7D%7B*:', true],
  // Without an equal.
  ['https://example.com/{{if .Path}}a{{else}}b{{end}}', /leads elsewhere when there is a/],
  ['http://{{if .Path}}{{.Path}}{{else}}host{{end}}.example/debug', /no \{placeholder\} before/],
  [
    'http://wiki/{{.Now.Format "01-02-2006"}}',
    /has \{\{\.Now\.Format "01-02-2006"\}\}, which has/,
  ],
  ['https://example.com/{{.Query}}', /has \{\{\.Query\}\}, which has no equal here/],
  ['https://example.com/{{ToLower .Path}}', /has \{\{ToLower \.Path\}\}/],
  ['https://example.com/{{TrimPrefix .Path "BUG-"}}', /has \{\{TrimPrefix/],
  ['https://example.com/{{TrimSuffix .User "@example.com"}}', /has \{\{TrimSuffix \.User/],
  [
    'https://example.com/{{if Match "\\\\d+" .Path}}id{{else}}search{{end}}/{{.Path}}',
    /has \{\{if Match "\\\\d\+" \.Path\}\}/,
  ],
  ['https://example.com/{{$p := .Path}}{{$p}}', /has \{\{\$p := \.Path\}\}/],
  ['https://example.com/{{with .Path}}{{.Path}}{{end}}', /has \{\{\.Path\}\}/],
  ['https://example.com/{{if .User}}{{.User}}{{end}}', /has \{\{if \.User\}\}/],
  ['https://example.com/{{else}}', /has \{\{else\}\}/],
  ['https://example.com/{{end}}', /has \{\{end\}\}/],
  ['https://example.com/{{if .Path}}a{{else}}b{{else}}c{{end}}', /has \{\{else\}\}/],
  ['https://example.com/{{if .Path}}a{{else if .Path}}b{{end}}', /has \{\{else if \.Path\}\}/],
  ['https://example.com/{{TrimSuffix .Path "/"}}', /has \{\{TrimSuffix \.Path "\/"\}\}/],
  ['https://example.com/{{.}}', /has \{\{\.\}\}/],
  ['https://example.com/{{if .Path}}/{{.Path}}', /\{\{end\}\} is missing/],
  ['https://example.com/{{.Path', /a \{\{ is not closed/],
  ['https://{{.Path}}.example.com/', /no \{placeholder\} before its path/],
  [`https://example.com/${'{{'.repeat(5_000)}`, /its url is too long/],
  [`https://example.com/${'{{if .Path}}'.repeat(600)}`, /\{\{end\}\} is missing/],
  ['/relative', /must be an http:\/\/ or https:\/\/ URL/],
]

t.test('a URL of golink leads to the same place', async (t) => {
  const env = await server.env(t)
  const input = LONGS.map(([long], at) => golink(`n${at}`, long)).join('\n')
  const result = await runCli(['import', '-', '--create-users', '--json'], { env, input })
  t.match(result, { code: 1, stderr: '' })
  const reports = result.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  const links = await stored(env)
  for (const [at, [long, wanted, append_path]] of LONGS.entries()) {
    if (typeof wanted === 'string') {
      t.match(reports[at], { line: at + 1, outcome: 'created', message: '' }, long)
      t.match(links.get(`n${at}`), { url: wanted, append_path }, long)
    } else t.match(reports[at], { line: at + 1, outcome: 'refused', message: wanted }, long)
  }
  t.match(links.get('n0'), {
    created_at: new Date('2022-05-31T20:04:44.741Z'),
    updated_at: new Date('2022-06-01T20:04:44.741Z'),
  })
})

t.test('a name of golink becomes a slug that visitors find', async (t) => {
  const env = await server.env(t)
  const cases: readonly (readonly [string, string, RegExp])[] = [
    [golink('Who', 'https://a.test/'), 'who', /^was "Who"$/],
    [golink('my_team.wiki', 'https://b.test/'), 'my-team-wiki', /^was "my_team\.wiki"$/],
    [golink('_edge-', 'https://c.test/'), 'edge', /^was "_edge-"$/],
    [
      golink('plain', 'https://d.test/', { Created: '0001-01-01T00:00:00Z', Extra: 1 }),
      'plain',
      /^$/,
    ],
    [golink('g', 'https://e.test/'), 'g', /slug must have 2 to 64/],
    [golink(LONG, 'https://e.test/'), LONG, /slug must have 2 to 64/],
    [golink('static', 'https://f.test/'), 'static', /slug is reserved/],
    [
      golink('my-team_wiki', 'https://g.test/'),
      'my-team-wiki',
      /^was "my-team_wiki"; the file has "my_team\.wiki" before, which is the same name here$/,
    ],
    [golink('half', 'https://h.test/\ud800'), 'half', /^$/],
    [golink('when', 'https://i.test/', { Created: 'today' }), 'when', /Created must be a time/],
    ['{"Short": "nowhere"}', 'nowhere', /Long is missing/],
    ['{"Long": "https://j.test/"}', '', /Short is missing/],
    ['[1]', '', /is not a JSON object/],
    ['{', '', /is not a JSON object/],
    [
      golink('tagged', 'https://k.test/', { Owner: 'tagged-devices' }),
      'tagged',
      /is no e-mail address/,
    ],
  ]
  const input = `\r\n${cases.map(([line]) => line).join('\r\n')}\r\n`
  const args = ['import', '-', '--create-users', '--json']
  const result = await runCli(args, { env, input })
  const reports = result.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  for (const [at, [line, slug, message]] of cases.entries()) {
    t.match(reports[at], { line: at + 2, slug, message }, line)
  }
  const links = await stored(env)
  t.same([...links.keys()], ['edge', 'half', 'my-team-wiki', 'plain', 'who'])
  t.not(links.get('plain')?.['created_at'].getUTCFullYear(), 1, 'golink did not know the time')
  const again = await runCli([...args, '--owner', 'amelie@example.com'], { env, input })
  const { totals } = JSON.parse(again.stdout.trimEnd().split('\n').at(-1) ?? '')
  t.match(totals, { created: 1, unchanged: 5, users: 0 }, 'and what nobody owned has an owner now')
})

t.test('a terminal is not commanded by a file', async (t) => {
  const env = await server.env(t)
  const input = '{"Short": "\\u001b[2Jx", "Long": "https://a.test/{{\\u001b[0m}}"}\n'
  const { code, stdout } = await runCli(['import', '-'], { env, input })
  t.equal(code, 1)
  t.notMatch(stdout, '\u001b')
})

t.test('lines may be long and many, a line that is too long is refused alone', async (t) => {
  const env = await server.env(t)
  const long = `{"Short": "huge", "Long": "https://a.test/${'x'.repeat(1 << 20)}"}`
  const many = Array.from({ length: 1_203 }, (_, at) => golink(`n${at}`, `https://a.test/${at}`))
  const input = [...many.slice(0, 600), long, ...many.slice(600)].join('\n')
  const { code, stdout } = await runCli(['import', '-', '--create-users'], { env, input })
  t.equal(code, 1)
  t.match(stdout, /\n {3}601 {2}refused .* is longer than 1 MiB\n/)
  t.match(stdout, /\ncreated 1203, updated 0, unchanged 0, conflict 0, refused 1, new users 1\n$/)
  t.equal((await stored(env)).size, 1_203)
})
