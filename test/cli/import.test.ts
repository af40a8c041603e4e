import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { t } from 'tap'
import { backends, connectionTo, eachBackend } from '../helpers/backends.ts'
import {
  refuseCommands,
  runCli,
  runOk,
  type CliResult,
  type RefusedCommand,
} from '../helpers/cli.ts'
import { leadsTo, makeLink, startLinks } from '../helpers/links.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import type { Env } from '../helpers/program.ts'
import { until } from '../helpers/until.ts'

const [, server] = backends
const env = await server.env(t)
await runCli('user add ann@example.com', { env })
const ANN = '--owner ann@example.com'

const query = (text: string) => server.query(env, text)

/** Runs `import -` on text. */
function importText(input: string | Uint8Array, flags: string, place: Env = {}) {
  return runCli(`import - ${flags}`, { env: { ...env, ...place }, input })
}

/** What `--json` said of each line, as `LINE SLUG OUTCOME MESSAGE`; the totals are the last line. */
function reportOf({ stdout }: CliResult) {
  const lines = stdout.trimEnd().split('\n')
  const { totals } = JSON.parse(lines.pop() ?? '')
  const reports = lines.map((text) => {
    const { line, slug, outcome, message } = JSON.parse(text)
    return `${line} ${slug} ${outcome} ${message}`
  })
  return { totals, reports }
}

/** Every row that an import may touch, counted. */
async function counts() {
  const tables = ['users', 'links', 'link_owners', 'link_shares', 'link_tags', 'tags', 'changes']
  const each = tables.map((name) => `(select count(*)::int from links.${name}) as ${name}`)
  return (await query(`select ${each.join(', ')}`))[0]
}

const HEADER = 'slug,url,title,description,tags,owner,visibility,append_path,created_at'
const CSV = [
  HEADER,
  'go,https://go.dev/,"The ""Go"" page","two\nlines, one cell",Lang;my_tag,ann@example.com,private,TRUE,2022-05-31T13:04:44.741457796-07:00',
  '',
  'docs,https://docs.example.com/,,,,ann@example.com,,,',
].join('\r\n')

t.test('CSV is imported, again without a change, and replaced with --update', async (t) => {
  const file = join(await temporaryFolder(t), 'links.csv')
  await writeFile(file, `\ufeff${CSV}\r\n`)
  const first = await runCli(`import ${file}`, { env })
  t.match(first, { code: 0, stderr: '' })
  t.equal(
    first.stdout,
    '     2  created       go\n     5  created       docs\n' +
      'created 2, updated 0, unchanged 0, conflict 0, refused 0, new users 0\n',
  )
  const [docs, go] = await query(
    `select l.*, c.actor, c.action, c.detail
       from links.shown_links l join links.changes c on c.link_id = l.id order by l.slug`,
  )
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
    created_at: created,
    updated_at: created,
  })
  t.match(docs, { title: '', visibility: 'public', append_path: false, tags: [] })
  const tags = await query(`select tag || ' ' || links as counted from links.tags order by tag`)
  t.same(tags, [{ counted: 'lang 1' }, { counted: 'my-tag 1' }])
  const before = await counts()
  const again = await runOk(`import ${file} --json`, { env })
  t.match(reportOf(again).reports, ['go unchanged', 'docs unchanged'])
  t.same(await counts(), before)

  const changed =
    'slug,url,tags\ngo,https://golang.org/,lang;my-tag\ndocs,https://docs.example.com/,'
  const conflict = await importText(changed, '--json')
  t.equal(conflict.code, 1)
  t.match(reportOf(conflict).reports, [
    '2 go conflict the link is there, and its url differs; an import with update replaces it',
    '3 docs unchanged',
  ])
  const dry = await importText(changed, '--update --dry-run')
  t.match(dry, { code: 0, stdout: / {5}2 {2}would update {2}go +its url differs\n/ })
  const link = async () => (await query(`select url, title from links.links where slug = 'go'`))[0]
  t.match(await link(), { url: 'https://go.dev/' }, 'a dry run replaces nothing')
  const updated = await importText(changed, '--update --json')
  t.equal(updated.code, 0)
  t.match(reportOf(updated).totals, { updated: 1, unchanged: 1 })
  const now = { url: 'https://golang.org/', title: 'The "Go" page' }
  t.match(await link(), now, 'no column, no say')
  const [change] = await query(
    `select c.actor, c.action from links.changes c join links.links l on l.id = c.link_id
      where l.slug = 'go' order by c.id desc limit 1`,
  )
  t.match(change, { actor: 'operator@localhost', action: 'edited' })
})

t.test('a dry run changes nothing and tells nobody', async (t) => {
  const sql = connectionTo(t, env)
  const heard: string[] = []
  await sql.listen('links_changed', (slug) => void heard.push(slug))
  const before = await counts()
  const lines = ['one', 'two', 'one'].map((name) => `one,https://${name}.test/,new@example.com`)
  const file = `slug,url,owner\n${lines.join('\n')}`
  const dry = await importText(file, '--dry-run --create-users')
  t.equal(dry.code, 1, 'as the run itself would end')
  t.match(dry.stdout, /would create {2}one\n.*conflict.*\n.*unchanged/)
  t.match(dry.stdout, /\ndry run, nothing was changed: would create 1, .*new users would be 1\n$/)
  t.same(await counts(), before)
  const real = reportOf(await importText(file, '--create-users --json'))
  t.match(real.reports, ['one created', 'one conflict', 'one unchanged'])
  t.equal(real.totals.users, 1)
  await sql.notify('links_changed', 'last')
  await until(() => heard.includes('last'), 'the last notice')
  t.same(heard, ['one', 'last'], 'only the run itself was announced, once')
})

t.test('each line is refused for its own reason, the others are taken', async (t) => {
  const own = 'http://127.0.0.1:8081'
  const x = 'https://x.example.com/'
  const cases = {
    'good,https://good.example.com/,,,,ann@example.com,,,': '2 good created ',
    [`Upper,${x},,,,ann@example.com,,,`]: 'refused slug must have 2 to 64',
    [`api,${x},,,,ann@example.com,,,`]: 'refused slug is reserved',
    'bad-url,ftp://x.example.com/,,,,ann@example.com,,,':
      'refused url must be an http:// or https',
    [`long-title,${x},${'x'.repeat(201)},,,ann@example.com,,,`]: 'refused title may have 200',
    [`bad-tag,${x},,,-x,ann@example.com,,,`]: 'refused tags: each must have',
    [`bad-visibility,${x},,,,ann@example.com,open,,`]: 'refused visibility must be public',
    [`bad-append,${x},,,,ann@example.com,,yes,`]: 'refused append_path must be true or',
    [`bad-time,${x},,,,ann@example.com,,,yesterday`]: 'refused created_at must be a time',
    [`no-owner,${x},,,,,,,`]: 'refused names no owner; give an owner for such links',
    [`bad-owner,${x},,,,ann,,,`]: 'refused its owner "ann" is no e-mail address',
    [`unknown,${x},,,,ben@example.com,,,`]:
      'ben@example.com; let the import create users, or give an owner',
    [`few,${x}`]: 'refused has 2 fields, the header has 9',
    [`quote,"${x}"y,,,,ann@example.com,,,`]: 'refused url must be an http',
    [`loop,${own}/loop,,,,ann@example.com,,,`]: 'refused url leads back to this link',
    [`near,${own}/far,,,,ann@example.com,,,`]: '17 near created ',
    [`far,${own}/near,,,,ann@example.com,,,`]: 'refused url leads back to this link',
    [`nul,${x},a\u0000b,,,ann@example.com,,,`]: 'refused title must have no NUL',
    'last,https://last.example.com/,,,,ann@example.com,,,': '20 last created ',
  }
  const file = Buffer.from(`${HEADER}\n${Object.keys(cases).join('\n')}\n`)
  const latin = Buffer.from(`latin,${x},caf\u00e9,,,,,,\n`, 'latin1')
  const result = await importText(Buffer.concat([file, latin]), '--json')
  t.match(result, { code: 1, stderr: '' })
  const { reports, totals } = reportOf(result)
  t.match(reports, [...Object.values(cases), 'refused is not UTF-8'])
  t.match(totals, { created: 3, refused: reports.length - 3 })
  const stored = await query(
    `select slug from links.links where url ~ 'example.com|8081' and slug <> 'docs' order by slug`,
  )
  t.same(stored, [{ slug: 'good' }, { slug: 'last' }, { slug: 'near' }])
  const open = await importText('slug,url\nnew,"https://a.example.com/\nnext,x', ANN)
  t.match(open, { code: 1, stdout: / {5}2 {2}refused .* a quoted field is never closed/ })
  const huge = await importText(`slug,url\nhuge,${'x'.repeat(1 << 20)}\nnext,x`, ANN)
  t.match(huge, { code: 1, stdout: / {5}2 {2}refused .* is longer than 1 MiB; nothing after it/ })
  t.notMatch(huge.stdout, 'next')
})

t.test('a link that leads back to itself is refused', async (t) => {
  const loop = async (url: string, place: Env) => {
    const said = await importText(`slug,url\nround,${url}/round\n`, ANN, place)
    return { code: said.code, refused: said.stdout.includes('leads back to this link') }
  }
  const base = { LINKS_BASE_URL: 'https://go.example.com' }
  for (const [url, place] of [
    ['http://localhost:8081', { LINKS_ADDR: '[::1]:8081' }],
    ['https://go.example.com', { ...base, LINKS_ADDR: 'unix:/tmp/none.sock' }],
    ['http://go', base],
    ['http://127.0.0.1:8081', { ...base, LINKS_ADDR: '127.0.0.1:8081' }],
  ] as const) {
    t.same(await loop(url, place), { code: 1, refused: true }, url)
  }
  for (const LINKS_ADDR of ['unix:/tmp/none.sock', '127.0.0.1:0']) {
    t.same(await loop('http://host', { LINKS_ADDR }), { code: 0, refused: false }, LINKS_ADDR)
    await query(`delete from links.links where slug = 'round'`)
  }
})

t.test('owners: made with --create-users, replaced by --owner', async (t) => {
  const file =
    'slug,url,owner,co_owners,shared_with\naa,https://a.example.com/,bob@example.com,ann@example.com;cy@example.com,dee@example.com\nbb,https://b.example.com/,,,'
  const owners = async () => {
    const rows = await query(
      `select array(select o->>'email' from jsonb_array_elements(owners) o) as people
         from links.shown_links where slug in ('aa', 'bb') order by slug`,
    )
    return rows.map(({ people }) => people)
  }
  const taken = await importText(file, '--owner Ann@example.com --json')
  t.equal(taken.code, 0)
  t.match(reportOf(taken).reports[0], 'without cy@example.com and dee@example.com')
  t.same(await owners(), [['ann@example.com'], ['ann@example.com']])
  await query(`delete from links.links where slug in ('aa', 'bb')`)
  const made = await importText(file, `--create-users ${ANN} --json`)
  t.match(reportOf(made).totals, { created: 2, users: 3 })
  const all = ['bob@example.com', 'ann@example.com', 'cy@example.com']
  t.same(await owners(), [all, ['ann@example.com']])
})

t.test('files that are none of ours', async (t) => {
  const refused = (input: string | Uint8Array, part: string): RefusedCommand => [
    { args: 'import -', input },
    1,
    new RegExp(RegExp.escape(part)),
  ]
  await refuseCommands(t, { env, state: counts }, [
    refused(
      'name,target\n',
      'The file has the columns name, target. A link needs slug and url, or the columns of golink, ',
    ),
    refused('', 'The file is empty: it has no header and no links'),
    refused('slug,url,visiblity\n', 'unknown column "visiblity"'),
    refused('slug|url\n', 'file has the columns slug|url.'),
    refused('slug,title\n', 'header must have the column url'),
    refused('slug,url,Slug\n', 'header has the column Slug twice'),
    refused(`slug,url${',x'.repeat(200)}\n`, 'header has 202 columns; 200 at most'),
    refused(Buffer.from('slug,\u00fc\n', 'latin1'), 'first line is not UTF-8'),
    refused('{"name": "x"}\n', 'is JSON, and its links have name. A link needs slug and url'),
    [['import', '/no/such/file'], 1, "ENOENT: no such file or directory, open '/no/such/file'"],
    [
      { args: 'import - --owner zoe@example.com', input: CSV },
      1,
      'no user has the e-mail address "zoe@',
    ],
  ])
})

const EXPORTED =
  'slug,url,title,description,tags,owner,visibility,append_path,expires_at,max_visits,archived,' +
  'created_at,updated_at,co_owners,shared_with,aliases'

await eachBackend(t, 'import and export beside a running server', async (t, backend) => {
  const service = await startLinks(t, backend)
  const { base } = service
  const ann = await service.user('ann')
  const bob = await service.user('bob')
  const link = await makeLink(ann, 'there', { url: 'https://old.test/', tags: ['x', 'y'] })
  t.match(await ann.api('POST', `/links/${link.id}/owners`, { email: bob.email }), { status: 201 })
  t.match(await ann.api('POST', `/links/${link.id}/shares`, { email: bob.email }), { status: 201 })
  t.equal(await leadsTo(base, '/there'), 'https://old.test/')

  const exported = await runCli('export', { env: service.env })
  const times = `${link.created_at},${link.updated_at}`
  t.same(exported, {
    code: 0,
    stdout:
      `${EXPORTED}\nthere,https://old.test/,,,x;y,${ann.email},public,false,,,false,${times},` +
      `${bob.email},${bob.email},\n`,
    stderr: '',
  })
  const file = `slug,url\nthere,https://new.test/\nnew,https://n.test/\n`
  const update = `import - --owner ${ann.email} --update --json`
  const imported = await runOk(update, { env: service.env, input: file })
  t.match(imported, { stderr: '', stdout: '"updated":1' })
  t.equal(await leadsTo(base, '/new'), 'https://n.test/')
  const moved = async () => (await leadsTo(base, '/there')) === 'https://new.test/'
  // The server that ran the command has forgotten the old link already; any other is told.
  if (backend.name === 'postgres') return void (await until(moved, 'the new url'))
  t.ok(await moved())
  // Which port it is that stands as 0 in the configuration, the server alone knows.
  const loop = `slug,url,owner\nloop,http://localhost:${new URL(base).port}/loop,${ann.email}\n`
  const closed = await runCli('import -', { env: service.env, input: loop })
  t.match(closed, { code: 1, stdout: /refused .*leads back to this link/ })
})

const CREATES = 'import - --create-users'

t.test('what is exported and imported is the same', async (t) => {
  const [one, two] = [await server.env(t), await server.env(t)]
  t.same(await runCli('export', { env: two }), { code: 0, stdout: `${EXPORTED}\n`, stderr: '' })
  t.same(await runCli('export --format jsonl', { env: two }), { code: 0, stdout: '', stderr: '' })
  const rows = [
    EXPORTED,
    'plain,https://a.test/,,,,ann@example.com,,,,,,2022-05-31T13:04:44.741Z,2023-01-01T00:00:00Z,,,p2;plain-too',
    `text,https://b.test/x,"=1+2, ""q""","line\r\nline\u2028\rend",t2;t1,bob@example.com,private,true,,,,,,"cy@example.com;ann@example.com",dee@example.com,`,
    'spaces,https://c.test/{*}?a={1},"  both ends ",\ufeffmark 😀,,ann@example.com,secure,false,2001-02-03T04:05:06.789Z,7,true,,,,,',
    'path,https://e.test/{id}/{x},,,,ann@example.com,,true,2099-01-31T00:00:00.000Z,,,,,,,',
  ]
  await runOk(CREATES, { env: one, input: `${rows.join('\n')}\n` })
  const csv = await runOk('export', { env: one })
  const copied = await runCli(CREATES, { env: two, input: csv.stdout })
  t.match(copied, { code: 0, stdout: /created 4,.*new users 4\n$/ })
  t.equal((await runCli('export', { env: two })).stdout, csv.stdout, 'CSV, byte by byte')

  const guarded = await runCli('export --for-spreadsheets', { env: one })
  t.match(guarded.stdout, `\ntext,https://b.test/x,"'=1+2, `)
  const open = await runCli('export --public-only', { env: one })
  const left = 'gatehouse: 2 links are private or secure, and left out\n'
  t.match(open, { code: 0, stderr: left, stdout: /^slug,.*\npath,.*\nplain,.*\n$/ })
  const refused = await runCli('export --format jsonl', { env: one })
  t.match(refused, { code: 1, stdout: '', stderr: 'gatehouse: 2 links are private or secure, ' })
  t.match(refused.stderr, /--public-only leaves them out, --format csv has everything\n$/)
})

t.test('golink: what it can hold is the same, the rest is said', async (t) => {
  const [one, two] = [await server.env(t), await server.env(t)]
  const input = [
    'slug,url,owner,append_path,max_visits',
    'aa,https://a.test/,ann@example.com,true,',
    'bb,https://b.test/{*}/{id}/{x},ann@example.com,,',
    'cc,https://c.test/{1},ann@example.com,,',
    'ff,https://f.test/,ann@example.com,,7',
    'gg,https://g.test/{*:a/b}?of={user},ann@example.com,,',
    'hh,https://h.test/?q={*:https://h.test/home}&of={user},ann@example.com,,',
    'ii,https://i.test/{user}?a=b,ann@example.com,true,',
    'jj,https://j.test/{user:you},ann@example.com,,',
    'kk,https://k.test/{user}/,ann@example.com,true,',
  ].join('\n')
  await runOk(CREATES, { env: one, input })
  await runOk('link add own https://own.test/ --visibility private', { env: one })
  const jsonl = 'export --format jsonl --public-only'
  const exported = await runCli(jsonl, { env: one })
  t.equal(exported.code, 1)
  t.match(exported.stderr.split('\n').toSorted(), [
    '',
    'gatehouse: 1 link is private or secure, and left out',
    'gatehouse: cc is left out: golink has no places',
    /^gatehouse: ff is left out: .* end/,
    'gatehouse: jj is left out: golink has no default for {user}',
  ])
  const lines = exported.stdout.trimEnd().split('\n')
  const links = lines.map((line): Readonly<Record<string, string>> => JSON.parse(line))
  t.same(Object.keys(links[0] ?? {}), ['Short', 'Long', 'Created', 'LastEdit', 'Owner'])
  for (const { Owner } of links) t.equal(Owner, 'ann@example.com')
  t.same(
    links.map(({ Short, Long }) => `${Short} ${Long}`),
    [
      'aa https://a.test/',
      'bb https://b.test/{{.Path}}/%7Bid%7D/%7Bx%7D',
      'gg https://g.test/{{with .Path}}{{.}}{{else}}a/b{{end}}?of={{.User}}',
      'hh {{if .Path}}https://h.test/?q={{.Path}}&of={{.User}}{{else}}https://h.test/home{{end}}',
      'ii https://i.test/{{.User}}{{with .Path}}/{{.}}{{end}}?a=b',
      'kk https://k.test/{{.User}}/{{.Path}}',
    ],
  )
  await runOk(CREATES, { env: two, input: exported.stdout })
  const again = await runCli(jsonl, { env: two })
  t.equal(again.stdout, exported.stdout, 'byte by byte')
})
