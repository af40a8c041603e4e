import { spawnSync } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { t, type Test } from 'tap'
import { docker, framed, startEngine } from '../engine.ts'
import { MODEL_KEY, calls, says, startModelOps, type Call } from '../../helpers/model.ts'
import { holdChecks, inventoryFile, runSession } from '../../helpers/ops.ts'
import { temporaryFolder } from '../../helpers/owner.ts'
import { startPrometheus } from '../../helpers/prometheus.ts'
import { startReceiver } from '../../helpers/replays.ts'
import { secret } from '../../helpers/secrets.ts'
import { useTools } from '../../helpers/tools.ts'
import { deploymentParts, journalWriter, lacks, onPath } from '../../runner/system-parts.ts'

const folder = await temporaryFolder(t, 'tools')
const within = (...names: readonly string[]) => join(folder, ...names)
for (const name of ['repos/shop', 'listed', 'listed-not', 'outside']) {
  mkdirSync(within(name), { recursive: true })
}
mkdirSync(within('repos/faces'))
writeFileSync(within('repos/shop/app.conf'), 'one\ntwo\nthree\nfour\n')
writeFileSync(within('repos/shop/large.log'), `${'a line of text\n'.repeat(300_000)}the end`)
writeFileSync(within('repos/shop/binary'), Uint8Array.of(1, 0, 2))
writeFileSync(within('listed/notes.txt'), 'a note')
writeFileSync(within('listed-not/notes.txt'), 'not listed')
writeFileSync(within('outside/private.txt'), 'private text')
symlinkSync(within('outside/private.txt'), within('repos/link.txt'))
symlinkSync(within('outside'), within('repos/way'))
symlinkSync(within('repos/shop/app.conf'), within('repos/inner.conf'))
symlinkSync('loop', within('repos/loop'))

/** What commands answer is the same with bwrap, whose /tmp has no journal of ours, and without. */
const programs = await temporaryFolder(t, 'programs')
function program(name: string, script: string) {
  writeFileSync(join(programs, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
}
program('bwrap', 'exit 1')
const path = process.env['PATH']
process.env['PATH'] = `${programs}${delimiter}${path}`
t.teardown(() => (process.env['PATH'] = path))

const shop = await startReceiver(t, ({ path }, response) => {
  if (path === '/away') return void response.writeHead(302, { location: 'http://10.0.0.1/' }).end()
  response.writeHead(200, { 'content-type': 'text/plain' }).end(`you asked for ${path}`)
})
const stranger = await startReceiver(t)
const inventory = {
  services: [
    {
      name: 'shop',
      description: 'sells things',
      checks: [{ type: 'http', name: 'health', url: `${shop.url}/health` }],
      operations: [{ name: 'restart', action_type: 'restart', argv: ['true'] }],
    },
  ],
  roots: [within('listed'), within('missing')],
  readonly: [['uname'], ['echo', 'fixed']],
}
const file = await inventoryFile(t, inventory)
const { ops, model } = await startModelOps(t, {
  OPS_REPOS_DIR: within('repos'),
  OPS_UNSANDBOXED: 'true',
  OPS_INVENTORY: file,
})
await holdChecks(ops.env)

/** Calls tools in one turn of a session of tier 2, and gives what they answered. */
function use(...list: readonly Call[]) {
  return useTools(t, { model, ops }, list)
}

/** What the next sessions have as their inventory. */
function write(inventory: object) {
  writeFileSync(file, JSON.stringify(inventory))
}

t.test('read_file reads within the repositories and the listed folders', async (t) => {
  const paths = [
    ['shop/app.conf', /^shop\/app.conf, lines 1 to 5 of 5:\none\ntwo\nthree\nfour\n$/],
    [within('repos/shop/app.conf'), /\none\n/],
    ['inner.conf', /\none\n/],
    ['shop/../shop/app.conf', /\none\n/],
    [within('listed/notes.txt'), /:\na note$/],
    ['shop/large.log', /^shop\/large.log, lines 1 to 200 of \d+; only the last 4194304 bytes/],
    ['shop/binary', 'Error: That is no text file'],
    ['shop', 'Error: That is no file'],
    ['shop/nothing', 'Error: There is no such file'],
    ['loop', 'Error: Links go round'],
  ] as const
  const answers = await use(...paths.map(([path]): Call => ['read_file', { path }]))
  for (const [at, [path, wanted]] of paths.entries()) t.match(answers[at], wanted, path)
  const [part] = await use(['read_file', { path: 'shop/app.conf', from_line: 2, lines: 2 }])
  t.equal(part, 'shop/app.conf, lines 2 to 3 of 5:\ntwo\nthree')
  const found = await use(
    ['read_file', { path: 'shop/app.conf', contains: 'o', lines: 1 }],
    ['read_file', { path: 'shop/app.conf', contains: 'o', from_line: 3 }],
    ['read_file', { path: 'shop/app.conf', contains: '.*' }],
    ['read_file', { path: 'shop/large.log', contains: 'the end' }],
  )
  t.same(found.slice(0, 3), [
    '(older lines left out: 2; searched: 5 lines)\n4: four',
    '(searched: 3 lines)\n4: four',
    'Not in 5 lines.',
  ])
  t.match(found[3], /^\(searched: the newest \d{6} lines\)\n\d{6}: the end$/)
})

t.test('a long answer is not cut within a character', async (t) => {
  // Whatever stands before them, one of the two is cut within a pair.
  const names = ['faces-0', 'faces-1']
  for (const [at, name] of names.entries()) {
    writeFileSync(within('repos/faces', name), `${'x'.repeat(at)}${'😀'.repeat(10_000)}`)
  }
  const answers = await use(...names.map((name): Call => ['read_file', { path: `faces/${name}` }]))
  for (const answer of answers) {
    t.match(answer, /\n\(\d+ characters are cut off\)$/)
    t.ok(answer.isWellFormed())
  }
})

t.test('nothing leads out of them', async (t) => {
  const ways = [
    '../outside/private.txt',
    'shop/../../outside/private.txt',
    '/etc/passwd',
    'link.txt',
    'way/private.txt',
    'way/../outside/private.txt',
    within('outside/private.txt'),
    within('listed-not/notes.txt'),
    '/proc/self/environ',
    'shop/app.conf\0/../../../outside/private.txt',
    within('outside/nothing'),
  ]
  for (const tool of ['read_file', 'list_files']) {
    const answers = await use(...ways.map((path): Call => [tool, { path }]))
    for (const [at, path] of ways.entries()) {
      t.match(answers[at], /^Error: (That is outside of the folders|There is no such file)/, path)
    }
    t.notMatch(answers.join('\n'), /private|root:|notes|SECRET|passwd/)
  }
})

t.test('list_files', async (t) => {
  const answers = await use(
    ['list_files', {}],
    ['list_files', { path: 'shop' }],
    ['list_files', { path: within('listed') }],
    ['list_files', { path: 'shop/app.conf' }],
  )
  t.same(answers, [
    'faces/\ninner.conf (link)\nlink.txt (link)\nloop (link)\nshop/\nway (link)',
    'app.conf\nbinary\nlarge.log',
    'notes.txt',
    'Error: That is no folder.',
  ])
})

t.test('http_get reaches what the inventory names, and nothing else', async (t) => {
  const answers = await use(
    ...[
      `${shop.url}/page?q=1`,
      `${shop.url}/away`,
      stranger.url,
      'http://127.0.0.1/',
      `http://me:pass@127.0.0.1:${shop.port}/`,
      'file:///etc/passwd',
      `http://127.0.0.1.nip.test:${shop.port}/`,
    ].map((url): Call => ['http_get', { url }]),
  )
  t.match(answers, [
    'status: 200\ncontent-type: text/plain\n\nyou asked for /page?q=1',
    'status: 302\nlocation: http://10.0.0.1/\n\n',
    /^Error: 127\.0\.0\.1:\d+ is not in the inventory; these are: 127\.0\.0\.1:\d+$/,
    'Error: 127.0.0.1:80 is not in the inventory',
    'Error: The URL must have no user name',
    'Error: That is no http or https URL',
    /^Error: 127\.0\.0\.1\.nip\.test:\d+ is not in the inventory/,
  ])
  t.equal(stranger.connections(), 0)
})

t.test('run_readonly runs what the inventory allows, without a shell', async (t) => {
  const answers = await use(
    ...[
      ['uname', '-s'],
      ['echo', 'fixed', '$(id)', ';', 'id', '|', '*'],
      ['echo', 'other'],
      ['echo'],
      ['/bin/uname'],
      ['sh', '-c', 'uname'],
      [],
    ].map((argv): Call => ['run_readonly', { argv }]),
    ['run_readonly', { argv: 'uname' }],
  )
  t.same(answers.slice(0, 2), ['Linux', 'fixed $(id) ; id | *'])
  const refused =
    'Error: That is not allowed. These commands are, with whatever follows: uname; echo fixed.'
  for (const answer of answers.slice(2, 7)) t.equal(answer, refused)
  t.match(answers[7], /^Error: argv must be a list of at most 100 texts.*; you sent "uname"$/)
})

t.test('journal: only well-formed units; list_services and run_check', async (t) => {
  const answers = await use(
    ['journal', { unit: '--file=/etc/passwd' }],
    ['journal', { unit: 'a b' }],
    ['journal', { lines: 100_000 }],
    ['list_services', {}],
    ['run_check', { service: 'shop', check: 'nothing' }],
    ['run_check', { service: 'nothing' }],
    ['read_runbook', {}],
  )
  t.match(answers, [
    'Error: unit must be the name of a systemd unit, such as nginx.service; you sent "--file=/etc/passwd"',
    'Error: unit must be the name of a systemd unit',
    'Error: lines must be a number from 1 to 500; you sent 100000',
    'shop: sells things\n  check "health"\n  operation "restart": restart, 2 within 14400 s',
    'Error: Service "shop" has no check "nothing".',
    'Error: There is no service "nothing".',
    'Error: There are no runbooks.',
  ])
  t.notMatch(model.asked.at(-1)?.messages[0]?.content, 'Runbooks, written')
})

t.test('of Gatehouse itself http_get reads how it is, and nothing that it holds', async (t) => {
  const { base } = ops
  const checks = [{ type: 'http', name: 'health', url: `${base}/healthz` }]
  write({ services: [{ name: 'ops', checks }] })
  const paths = ['/healthz', '/', '/config', '/api/v1/sessions', '/healthz/', '/%68ealthz']
  const elsewhere = base.replace('127.0.0.1', 'localhost.')
  const urls = [...paths.map((path) => base + path), `${elsewhere}/config`]
  const call = urls.map((url): Call => ['http_get', { url }])
  const [health, ...others] = await use(...call)
  t.match(health, /^status: 200\n.*"status":"ok"/s)
  for (const [at, answer] of others.entries())
    t.equal(answer, 'Error: Of Gatehouse itself only /healthz can be read.', `${urls[at + 1]}`)
})

t.test('list_services: a long list has pages, and each says how to get the next', async (t) => {
  const services = Array.from({ length: 150 }, (_, at) => ({
    name: `service ${at}`,
    description: 'y'.repeat(300),
    checks: Array.from({ length: at === 70 ? 200 : 1 }, (_, check) => {
      return { type: 'memory', name: `${check} ${'x'.repeat(180)}` }
    }),
  }))
  write({ services })
  const pages: string[] = []
  model.answer(({ step, results }) => {
    pages.push(...results)
    // Literally what the page says.
    const [, args] = / call list_services with (\{.*\})\)$/.exec(results[0] ?? '') ?? []
    if (step > 0 && args === undefined) return says('Done.')
    return calls(['list_services', args ?? {}])
  })
  t.match(await runSession(ops), { status: 'completed' })
  for (const page of pages) t.ok(page.length < 13_000, 'none is cut')
  const text = pages.join('\n').replaceAll(/\n\(lines .*\)|^service \d+ \(continued\)\n/gm, '')
  const expected = services.flatMap(({ name, description, checks }) => [
    `${name}: ${description}`,
    ...checks.map((check) => `  check "${check.name}"`),
  ])
  t.same(text.split('\n'), expected, 'together they are the list')
  t.match(pages.join('\n'), /^service 70 \(continued\)\n {2}check /m)
  const [beyond] = await use(['list_services', { offset: 9_999 }])
  t.equal(beyond, 'Error: The list has 499 lines: offset must be less than that.')
})
/** Entries of a journal, a minute apart, the last one a minute ago. */
type Entry = readonly [unit: string, message: string]

/** Makes a journal, which `journalctl` on the path then reads, and nothing else. */
async function writeJournal(t: Test, entries: readonly Entry[]) {
  const folder = await temporaryFolder(t, 'journal')
  const [journal, source] = [join(folder, 'test.journal'), join(folder, 'source')]
  const id = '0123456789abcdef0123456789abcdef'
  const first = Date.now() - entries.length * 60_000
  const text = entries.map(([unit, message], at) => {
    const bytes = Buffer.from(message)
    const size = Buffer.alloc(8)
    size.writeBigUInt64LE(BigInt(bytes.length))
    const fields = [
      `__REALTIME_TIMESTAMP=${(first + at * 60_000) * 1_000}\n__MONOTONIC_TIMESTAMP=${at}`,
      `_BOOT_ID=${id}\n_MACHINE_ID=${id}\n_HOSTNAME=web-1\n_PID=7\nPRIORITY=${at === 0 ? 3 : 6}`,
      `_SYSTEMD_UNIT=${unit}\nSYSLOG_IDENTIFIER=shop\nMESSAGE\n`,
    ]
    // The export format of systemd: a value of any bytes has its length before it.
    return Buffer.concat([Buffer.from(fields.join('\n')), size, bytes, Buffer.from('\n\n')])
  })
  writeFileSync(source, Buffer.concat(text))
  const made = spawnSync(journalWriter() ?? '', ['-o', journal, source])
  t.equal(made.status, 0, String(made.stderr))
  program('journalctl', `exec ${onPath('journalctl')} --file=${journal} "$@"`)
}

t.test('logs of units', { skip: lacks(deploymentParts.journal) }, async (t) => {
  const key = MODEL_KEY
  await writeJournal(t, [
    ['shop.service', 'started\nwith two lines'],
    ['other.service', 'not of the shop'],
    ['shop.service', 'disk .* 90 %'],
    ['shop.service', `key ${key} is used`],
    ['shop.service', 'disk full'],
  ])
  const logs = [{ name: 'web', unit: 'shop.service' }, { unit: 'quiet.service' }]
  const services = [{ name: 'shop', checks: [], logs }]
  write({ services, journal: false })
  const log = (args: object): Call => ['read_log', { service: 'shop', ...args }]
  const web = (args: object): Call => log({ log: 'web', ...args })
  const answers = await use(
    web({}),
    web({ lines: 2 }),
    web({ minutes: 2 }),
    web({ contains: 'disk' }),
    web({ contains: 'disk', lines: 1 }),
    web({ contains: 'd.*k' }),
    // Nobody finds a secret by guessing at its beginning.
    web({ contains: key.slice(0, 6) }),
    log({ log: 'quiet.service' }),
    log({}),
    log({ log: 'other.service' }),
    ['read_log', { service: 'nothing' }],
    ['journal', { unit: 'other.service' }],
    ['list_services', {}],
  )
  const [all = ''] = answers
  const line = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+\d{4} web-1 shop\[7\]: /gm
  t.same(all.replaceAll(line, '').replaceAll(/\n +/g, '\n').split('\n'), [
    'started',
    'with two lines',
    'disk .* 90 %',
    'key «redacted» is used',
    'disk full',
  ])
  t.match(answers, [
    all,
    /^\S+ web-1 shop\[7\]: key «redacted» is used\n\S+ web-1 shop\[7\]: disk full$/,
    /^\S+ web-1 shop\[7\]: disk full$/,
    /^\(searched: 5 lines\)\n.*disk \.\* 90 %\n.*disk full$/,
    /^\(older lines left out: 1; searched: 5 lines\)\n.*disk full$/,
    'Not in 5 lines.',
    'Not in 5 lines.',
    'No lines.',
    'Error: Name a log of "shop"; there are: "web", "quiet.service".',
    'Error: Name a log of "shop"; there are: "web", "quiet.service".',
    'Error: There is no service "nothing".',
    'Error: The inventory allows the logs that it names alone: use read_log.',
    'shop\n  log "web"\n  log "quiet.service"',
  ])

  write({ services })
  const [others = '', urgent = '', found = ''] = await use(
    ['journal', { unit: 'other.service' }],
    ['journal', { errors_only: true }],
    ['journal', { contains: 'full' }],
  )
  t.match(others, ': not of the shop', 'the contract has the whole journal')
  t.match(urgent, /: started\n +with two lines$/)
  t.match(found, /^\(searched: 6 lines\)\n.*disk full$/)
})

t.test('logs of containers', async (t) => {
  const count = 12_000
  const at = '2026-11-26T04:00:00.123456789Z'
  const running = { Status: 'running' }
  const asked: URLSearchParams[] = []
  /** The newest lines, each of 1 KB. */
  const long = (query: URLSearchParams) => {
    asked.push(query)
    const tail = Number(query.get('tail'))
    const numbers = Array.from({ length: tail }, (_, before) => count - tail + before)
    return framed(...numbers.map((number) => `${at} line ${number} ${'x'.repeat(1_000)}\n`))
  }
  const terminal = Buffer.from(`${at} \u001b[31mred\u001b[0m\r\n${at} key ${MODEL_KEY}\r\n`)
  const engine = {
    version: '1.51',
    list: [],
    unhealthy: [],
    containers: {
      web: docker('web', running),
      long: docker('long', running),
      tty: docker('tty', running, { Config: { Tty: true } }),
      other: docker('other', running),
    },
    logs: {
      web: framed(`${at} GET /\n`, `${at} GET `, '/basket\n'),
      tty: terminal.toString('base64'),
      long,
      other: framed('of another team\n'),
    },
  }
  const { socket, requests } = await startEngine(t, engine)
  const named = ['web', 'long', 'tty', 'gone']
  const away = { name: 'away', container: 'web', socket: '/nowhere.sock' }
  const logs = [...named.map((container) => ({ container, socket })), away]
  write({ services: [{ name: 'shop', checks: [], logs }] })
  const log = (name: string, args: object = {}): Call => {
    return ['read_log', { service: 'shop', log: name, ...args }]
  }
  const answers = await use(
    log('web'),
    log('web', { minutes: 5 }),
    log('tty'),
    log('long', { contains: 'line 11999' }),
    log('long', { lines: 500 }),
    log('gone'),
    log('away'),
    log('other'),
    log('../web'),
  )
  t.match(answers, [
    `${at} GET /\n${at} GET /basket`,
    `${at} GET /\n${at} GET /basket`,
    `${at} red\n${at} key «redacted»`,
    /^\(searched: the newest 1250 lines\)\n\S+ line 11999 x{1000}$/,
    /^\(older lines left out: 489\)\n\S+ line 11989 /,
    'Error: There is no such container.',
    'Error: not looked at: /nowhere.sock: no such file',
    'Error: Name a log of "shop"; there are: "web", "long", "tty", "gone", "away".',
    'Error: Name a log of',
  ])
  t.same(
    asked.map((query) => query.get('tail')),
    ['10000', '1250', '500'],
    'with fewer lines the newest ones are read',
  )
  const [since = ''] = requests.flatMap((request) => /since=(\d+)/.exec(request)?.[1] ?? [])
  t.ok(Math.abs(Number(since) - Date.now() / 1_000 + 300) < 60, 'five minutes ago')
  t.ok(requests.every((request) => /^GET \S*\/(_ping|web|long|tty|gone)/.test(request)))
})

const metrics = (query: string, more: object = {}): Call => ['query_metrics', { query, ...more }]
const logs = (query: string, more: object = {}): Call => ['query_logs', { query, ...more }]

t.test('Prometheus', { skip: lacks(deploymentParts.prometheus) }, async (t) => {
  const now = Math.floor(Date.now() / 1_000)
  const minutes = Array.from({ length: 90 }, (_, at) => now - (89 - at) * 60)
  const label = `job="say \\"hello\\"\\nnext",key="${MODEL_KEY}"`
  const { url } = await startPrometheus(t, [
    ...minutes.map((seconds, at) => ['disk_free{path="/"}', 90 - at, seconds] as const),
    ...Array.from({ length: 300 }, (_, at) => [`many{number="${at}"}`, at, now] as const),
    [`hostile{${label}}`, 1, now],
  ])
  const source = { name: 'main', type: 'prometheus', url, description: 'all hosts' }
  write({ services: [], sources: [source] })
  const answers = await use(
    metrics('disk_free'),
    metrics('disk_free', { minutes: 10 }),
    metrics('disk_free', { minutes: 3_000 }),
    metrics('many'),
    metrics('hostile'),
    metrics('1 + 1', { source: 'main' }),
    metrics('nothing_like_it'),
    metrics('disk_free{'),
    metrics('disk_free', { source: 'other' }),
    ['list_services', {}],
  )
  const time = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`
  t.match(answers, [
    new RegExp(`^1 series:\ndisk_free{path="/"} ${time} 1$`),
    new RegExp(`^1 series from ${time} to ${time}, a point every 15 s:\ndisk_free{path="/"}\n  `),
    / a point every 3000 s:\ndisk_free\{path="\/"\}\n {2}\d\d-\d\dT\d\d:\d\d \d/,
    /^300 series:\nmany\{number="\d+"\} [^]*\n\(\d+ more are left out: narrow the query, as by topk\)$/,
    new RegExp(
      `^1 series:\nhostile{job="say \\\\"hello\\\\"\\\\nnext", key="«redacted»"} ${time} 1$`,
    ),
    new RegExp(`^${time} 2$`),
    'No series.',
    /^Error: "main" answered 400: .*parse error/,
    'Error: Name a source of the type prometheus; there are: "main".',
    'source "main" (prometheus): all hosts',
  ])
  const points = /\n {2}\d\d:\d\d:\d\d \d+(?:, [^,\n]+){40}$/
  t.match(answers[1], points, 'ten minutes in steps of 15 s')
})

t.test('Loki, by its documentation', async (t) => {
  const at = (second: number) => `${1_795_000_000 + second}123456789`
  const asked: URL[] = []
  const headers: unknown[] = []
  const streams = [
    {
      stream: { app: 'shop', host: 'web-1' },
      values: [
        [at(3), 'third'],
        [at(1), `first ${MODEL_KEY}\u001b[31m`],
      ],
    },
    { stream: { app: 'shop', host: 'web-2' }, values: [[at(2), 'second', { trace: '1' }]] },
  ]
  const token = secret('loki-token')
  const matrix = [{ metric: { level: 'warn' }, values: [[1_795_000_000, '137.95']] }]
  const answers: Readonly<Record<string, object>> = {
    '{app="shop"}': { resultType: 'streams', result: streams },
    'sum(rate({app="shop"}[5m]))': { resultType: 'matrix', result: matrix },
    '{app="none"}': { resultType: 'streams', result: [] },
  }
  const loki = await startReceiver(t, ({ path, headers: sent }, response) => {
    const url = new URL(path, 'http://loki')
    asked.push(url)
    headers.push(sent['x-scope-orgid'])
    const data = answers[url.searchParams.get('query') ?? '']
    if (data !== undefined) return void response.end(JSON.stringify({ status: 'success', data }))
    // Loki refuses in plain text.
    response.writeHead(400).end(`parse error at line 1, for ${sent.authorization}`)
  })
  const shared = { authorization: `Bearer ${token}`, 'X-Scope-OrgID': 'shop' }
  const source = { name: 'logs', type: 'loki', url: `${loki.url}/`, headers: shared }
  write({ services: [], sources: [source] })
  const said = await use(
    logs('{app="shop"}', { minutes: 30, lines: 20 }),
    logs('sum(rate({app="shop"}[5m]))'),
    logs('{app="none"}'),
    logs('{app='),
    metrics('up'),
  )
  t.match(said, [
    [
      '2026-11-18T11:06:41.123Z {app="shop", host="web-1"} first «redacted» [31m',
      '2026-11-18T11:06:42.123Z {app="shop", host="web-2"} second',
      '2026-11-18T11:06:43.123Z {app="shop", host="web-1"} third',
    ].join('\n'),
    /^1 series from .*, a point every 60 s:\n\{level="warn"\}\n {2}11:06:40 137\.95$/,
    'No lines.',
    'Error: "logs" answered 400: parse error at line 1, for «redacted»',
    'Error: The inventory has no source of the type prometheus.',
  ])
  t.ok(asked.every(({ pathname }) => pathname === '/loki/api/v1/query_range'))
  t.ok(headers.every((tenant) => tenant === 'shop'))
  const { limit, direction, step, start, end } = Object.fromEntries(asked[0]?.searchParams ?? [])
  t.same([limit, direction, step], ['20', 'backward', '30s'])
  t.equal((BigInt(end ?? 0) - BigInt(start ?? 0)) / 1_000_000_000n, 1_800n)
})

t.test('a source that is away, redirects, or answers without end', async (t) => {
  const elsewhere = await startReceiver(t)
  const redirecting = await startReceiver(t, (_request, response) => {
    response.writeHead(302, { location: elsewhere.url }).end()
  })
  const endless = await startReceiver(t, (_request, response) => {
    const piece = 'x'.repeat(100_000)
    const write = () => {
      while (!response.destroyed && response.write(piece));
    }
    response.on('drain', write)
    write()
  })
  const silent = await startReceiver(t, () => new Promise(() => undefined))
  const odd = await startReceiver(t, (_request, response) => {
    response.end(JSON.stringify({ status: 'success', data: { resultType: 'vector', result: 7 } }))
  })
  const urls = { redirecting, endless, silent, odd }
  const sources = Object.entries(urls).map(([name, { url }]) => {
    return { name, type: 'prometheus', url, ...(name === 'silent' && { timeout_s: 0.2 }) }
  })
  const away = { name: 'away', type: 'prometheus', url: 'http://127.0.0.1:1' }
  write({ services: [], sources: [...sources, away] })
  const names = [...Object.keys(urls), 'away']
  const answers = await use(...names.map((source) => metrics('up', { source })), metrics('up'))
  t.match(answers, [
    'Error: "redirecting" answered 302: ',
    'Error: The answer is over 4 MiB: narrow the query.',
    `Error: "silent" can't be asked: no answer within 0.2 s`,
    'No series.',
    /^Error: "away" can't be asked: connect ECONNREFUSED/,
    'Error: Name a source of the type prometheus; there are: "redirecting", "endless", ',
  ])
  t.equal(elsewhere.connections(), 0)
})
