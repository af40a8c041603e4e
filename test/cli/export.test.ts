import { t } from 'tap'
import type { Test } from 'tap'
import { backends, eachBackend, onPostgres } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { request } from '../helpers/http.ts'
import { makeLink, startLinks } from '../helpers/links.ts'
import { until } from '../helpers/until.ts'

const HEADER =
  'slug,url,title,description,tags,owner,visibility,append_path,expires_at,max_visits,archived,' +
  'created_at,updated_at,co_owners,shared_with,aliases'

await eachBackend(t, 'import and export beside a running server', async (t: Test, backend) => {
  const service = await startLinks(t, backend)
  const { env, base } = service
  const ann = await service.user('ann')
  const bob = await service.user('bob')
  const link = await makeLink(ann, 'there', { url: 'https://old.example.com/', tags: ['x', 'y'] })
  t.match(await ann.api('POST', `/links/${link.id}/owners`, { email: bob.email }), { status: 201 })
  t.match(await ann.api('POST', `/links/${link.id}/shares`, { email: bob.email }), { status: 201 })
  const title = 'a "quoted", long\u2028title '
  const description = 'two\r\nlines'
  await makeLink(bob, 'other', { title, description, visibility: 'secure', append_path: true })
  t.match(await request(`${base}/there`), { headers: { location: 'https://old.example.com/' } })

  const exported = await runCli(['export'], { env })
  t.match(exported, { code: 0, stderr: '' })
  const times = `${link.created_at},${link.updated_at}`
  t.ok(exported.stdout.startsWith(`${HEADER}\nother,https://other.test/,"a ""quoted"", long`))
  t.match(exported.stdout, `,"two\r\nlines",,${bob.email},secure,true,`)
  const row = `there,https://old.example.com/,,,x;y,${ann.email},public,false,,,false,${times},${bob.email},${bob.email},`
  t.ok(exported.stdout.endsWith(`\n${row}\n`))

  const file = `slug,url,owner\nthere,https://new.example.com/,${ann.email}\nnew,https://n.test/,${ann.email}\n`
  const imported = await runCli(['import', '-', '--update', '--json'], { env, input: file })
  t.match(imported, { code: 0, stderr: '', stdout: /"updated":1/ })
  t.match(await request(`${base}/new`), { headers: { location: 'https://n.test/' } })
  const location = async () => (await request(`${base}/there`)).headers.location
  // The server that ran the command has forgotten the old link already; any other is told.
  if (backend.name === 'embedded') t.equal(await location(), 'https://new.example.com/')
  else await until(async () => (await location()) === 'https://new.example.com/', 'the new url')

  // Which port it is that stands as 0 in the configuration, the server alone knows.
  const own = `http://localhost:${new URL(base).port}`
  const loop = `slug,url,owner\nloop,${own}/loop,${ann.email}\n`
  if (backend.name === 'embedded') {
    const closed = await runCli(['import', '-'], { env, input: loop })
    t.match(closed, { code: 1, stdout: /refused .*leads back to this link/ })
  }

  const many = Array.from({ length: 3_000 }, (_, at) => `l${at},https://l.test/${at},${ann.email}`)
  const input = `slug,url,owner\n${many.join('\n')}\n`
  const bulk = await runCli(['import', '-'], { env, input })
  t.match(bulk, { code: 0, stdout: /\ncreated 3000, / }, 'a file of several reads')
  const refused = await runCli(['import', '-', '--owner', 'no@example.com'], { env, input })
  t.match(refused, { code: 1, stdout: '', stderr: /no user has the e-mail address/ })
  const golink = await runCli(['export', '--format', 'jsonl', '--public-only'], { env })
  const all = golink.stdout.trimEnd().split('\n')
  t.equal(all.length, 3_002)
  const slugs = all.map((line): string => JSON.parse(line).Short)
  t.same(slugs, slugs.toSorted(), 'sorted by slug')
})

await onPostgres(t, 'what is exported and imported is the same', async (t: Test, backend) => {
  const [one, two] = [await backend.env(t), await backend.env(t)]
  const rows = [
    HEADER,
    'plain,https://a.test/,,,,ann@example.com,,,,,,2022-05-31T13:04:44.741Z,2023-01-01T00:00:00Z,,,p2;plain-too',
    `text,https://b.test/x,"=1+2, ""q""","line\r\nline\rend",t2;t1,bob@example.com,private,true,,,,,,"cy@example.com;ann@example.com",dee@example.com,`,
    'spaces,https://c.test/{*}?a={1},"  both ends ",\ufeffmark 😀,,ann@example.com,secure,false,2001-02-03T04:05:06.789Z,7,true,,,,,',
    'braces,https://d.test/{id}/{{x}},,,,ann@example.com,,true,,,,,,,,',
    'path,https://e.test/{*},,,,ann@example.com,,,2099-01-31T00:00:00.000Z,,,,,,,',
  ]
  const input = `${rows.join('\n')}\n`
  const made = await runCli(['import', '-', '--create-users'], { env: one, input })
  t.match(made, { code: 0, stderr: '' })
  const csv = await runCli(['export'], { env: one })
  t.match(csv, { code: 0, stdout: /\n/, stderr: '' })
  const copied = await runCli(['import', '-', '--create-users'], { env: two, input: csv.stdout })
  t.match(copied, { code: 0, stdout: /created 5,.*new users 4\n$/ })
  t.equal((await runCli(['export'], { env: two })).stdout, csv.stdout, 'CSV, byte by byte')
})

t.test('golink: what it can hold is the same, the rest is said', async (t) => {
  const [, postgres] = backends
  const [one, two] = [await postgres.env(t), await postgres.env(t)]
  const input = [
    'slug,url,owner,append_path,max_visits',
    'aa,https://a.test/,ann@example.com,true,',
    'bb,https://b.test/{*},ann@example.com,,',
    'cc,https://c.test/{1},ann@example.com,,',
    'dd,https://d.test/{id}/{{x}},ann@example.com,,',
    'ee,https://e.test/{*}/{id},ann@example.com,,',
    'ff,https://f.test/,ann@example.com,,7',
    'gg,https://g.test/{*:a/b}?of={user},ann@example.com,,',
    'hh,https://h.test/?q={*:https://h.test/home}&of={user},ann@example.com,,',
    'ii,https://i.test/{user}?a=b,ann@example.com,true,',
    'jj,https://j.test/{user:you},ann@example.com,,',
    'kk,https://k.test/{user}/,ann@example.com,true,',
  ].join('\n')
  t.equal((await runCli(['import', '-', '--create-users'], { env: one, input })).code, 0)
  const exported = await runCli(['export', '--format', 'jsonl'], { env: one })
  const left = new RegExp(
    '^gatehouse: cc is left out: golink has no places.*\\n' +
      '.* ff is left out: .* end.*\\n.* jj is left out: golink has no default for \\{user\\}\\n$',
  )
  t.match(exported, { code: 1, stderr: left })
  const lines = exported.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  t.same(Object.keys(lines[0]), ['Short', 'Long', 'Created', 'LastEdit', 'Owner'])
  t.same(
    lines.map(({ Short, Long, Owner }) => [Short, Long, Owner]),
    [
      ['aa', 'https://a.test/', 'ann@example.com'],
      ['bb', 'https://b.test/{{.Path}}', 'ann@example.com'],
      ['dd', 'https://d.test/%7Bid%7D/%7B%7Bx%7D%7D', 'ann@example.com'],
      ['ee', 'https://e.test/{{.Path}}/%7Bid%7D', 'ann@example.com'],
      [
        'gg',
        'https://g.test/{{with .Path}}{{.}}{{else}}a/b{{end}}?of={{.User}}',
        'ann@example.com',
      ],
      [
        'hh',
        '{{if .Path}}https://h.test/?q={{.Path}}&of={{.User}}{{else}}https://h.test/home{{end}}',
        'ann@example.com',
      ],
      ['ii', 'https://i.test/{{.User}}{{with .Path}}/{{.}}{{end}}?a=b', 'ann@example.com'],
      ['kk', 'https://k.test/{{.User}}/{{.Path}}', 'ann@example.com'],
    ],
  )
  const back = ['import', '-', '--create-users']
  t.equal((await runCli(back, { env: two, input: exported.stdout })).code, 0)
  const again = await runCli(['export', '--format', 'jsonl'], { env: two })
  t.equal(again.stdout, exported.stdout, 'byte by byte')
})

t.test('no private or secure link is written where its visibility is lost', async (t) => {
  const [, postgres] = backends
  const env = await postgres.env(t)
  const input = [
    'slug,url,owner,visibility',
    'aa,https://a.test/,ann@example.com,public',
    'bb,https://b.test/,ann@example.com,private',
    'cc,https://c.test/,ann@example.com,secure',
  ].join('\n')
  t.equal((await runCli(['import', '-', '--create-users'], { env, input })).code, 0)
  const refused = await runCli(['export', '--format', 'jsonl'], { env })
  t.match(refused, { code: 1, stdout: '', stderr: /^gatehouse: 2 links are private or secure, / })
  t.match(refused.stderr, /--public-only leaves them out, --format csv has everything\n$/)
  const said = 'gatehouse: 2 links are private or secure, and left out\n'
  const golink = await runCli(['export', '--format', 'jsonl', '--public-only'], { env })
  t.match(golink, { code: 0, stderr: said, stdout: /^\{"Short":"aa".*\}\n$/ })
  const csv = await runCli(['export', '--public-only'], { env })
  t.match(csv, { code: 0, stderr: said, stdout: /^slug,.*\naa,.*\n$/ })
  const whole = await runCli(['export'], { env })
  t.match(whole, { code: 0, stderr: '', stdout: /\naa,.*\nbb,.*\ncc,/ })
})

t.test('an empty database has a header, and nothing for golink', async (t) => {
  const [, postgres] = backends
  const env = await postgres.env(t)
  t.same(await runCli(['export'], { env }), { code: 0, stdout: `${HEADER}\n`, stderr: '' })
  t.same(await runCli(['export', '--format', 'jsonl'], { env }), {
    code: 0,
    stdout: '',
    stderr: '',
  })
})
