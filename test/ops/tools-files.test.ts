import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { calls, says, startModel } from '../helpers/model.ts'
import type { Call } from '../helpers/model.ts'
import { ended, inventoryFile, startOps, trigger } from '../helpers/ops.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { startReceiver } from '../helpers/replays.ts'
import { useTools } from '../helpers/tools.ts'

const folder = await temporaryFolder(t, 'tools')
const within = (...names: readonly string[]): string => join(folder, ...names)
for (const name of ['repos/shop', 'listed', 'listed-not', 'outside']) {
  mkdirSync(within(name), { recursive: true })
}
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
const [, postgres] = backends
const model = await startModel(t)
const ops = await startOps(t, postgres, {
  ...model.env,
  OPS_REPOS_DIR: within('repos'),
  // What commands answer is the same with bwrap and without.
  OPS_UNSANDBOXED: 'true',
  OPS_INVENTORY: await inventoryFile(t, inventory),
})
await ended(ops)

/** Calls tools in one turn of a session of tier 2, and gives what they answered. */
function use(...list: readonly Call[]): Promise<readonly string[]> {
  return useTools(t, { model, ops }, list)
}

t.test('read_file reads within the repositories and the listed folders', async (t) => {
  const paths: readonly (readonly [string, RegExp])[] = [
    ['shop/app.conf', /^shop\/app.conf, lines 1 to 5 of 5:\none\ntwo\nthree\nfour\n$/],
    [within('repos/shop/app.conf'), /\none\n/],
    ['inner.conf', /\none\n/],
    ['shop/../shop/app.conf', /\none\n/],
    [within('listed/notes.txt'), /:\na note$/],
    ['shop/large.log', /^shop\/large.log, lines 1 to 200 of \d+; only the last 4194304 bytes/],
    ['shop/binary', /^Error: That is no text file/],
    ['shop', /^Error: That is no file/],
    ['shop/nothing', /^Error: There is no such file/],
    ['loop', /^Error: Links go round/],
  ]
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

t.test('nothing leads out of them', async (t) => {
  const ways = [
    ...['../outside/private.txt', 'shop/../../outside/private.txt', '..', '/etc/passwd'],
    ...[
      'link.txt',
      'way/private.txt',
      'way',
      'way/../outside/private.txt',
      'way/../../etc/passwd',
    ],
    ...[within('outside/private.txt'), within('listed/../outside/private.txt')],
    ...[within('listed-not/notes.txt'), '/proc/self/environ', '/proc/self/root/etc/passwd'],
    ...['shop/app.conf\0/../../../outside/private.txt', '/nothing/there'],
    ...[within('outside/nothing'), `${within('repos')}/../outside/private.txt`],
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
    'inner.conf (link)\nlink.txt (link)\nloop (link)\nshop/\nway (link)',
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
      ...['http://127.0.0.1/', `http://me:pass@127.0.0.1:${shop.port}/`, 'file:///etc/passwd'],
      `http://127.0.0.1.nip.test:${shop.port}/`,
      'nonsense',
    ].map((url): Call => ['http_get', { url }]),
  )
  t.match(answers, [
    'status: 200\ncontent-type: text/plain\n\nyou asked for /page?q=1',
    /^status: 302\nlocation: http:\/\/10\.0\.0\.1\/\n\n$/,
    /^Error: 127\.0\.0\.1:\d+ is not in the inventory; these are: 127\.0\.0\.1:\d+$/,
    /^Error: 127\.0\.0\.1:80 is not in the inventory/,
    /^Error: The URL must have no user name/,
    /^Error: That is no http or https URL/,
    /^Error: 127\.0\.0\.1\.nip\.test:\d+ is not in the inventory/,
    /^Error: That is no http or https URL/,
  ])
  t.equal(stranger.connections(), 0)
})

t.test('of Gatehouse itself http_get reads how it is, and nothing that it holds', async (t) => {
  const own = await startModel(t)
  // The inventory that there is without a file has the health of our own listeners.
  const server = await startOps(t, postgres, { ...own.env, OPS_INVENTORY: '' })
  await ended(server)
  const { base } = server
  const paths = ['/healthz', '/', '/config', '/api/v1/sessions', '/healthz/', '/%68ealthz']
  const elsewhere = base.replace('127.0.0.1', 'localhost.')
  const urls = [...paths.map((path) => base + path), `${elsewhere}/config`]
  const call = urls.map((url): Call => ['http_get', { url }])
  const [health, ...others] = await useTools(t, { model: own, ops: server }, call)
  t.match(health, /^status: 200\n.*"status":"ok"/s)
  for (const [at, answer] of others.entries())
    t.equal(answer, 'Error: Of Gatehouse itself only /healthz can be read.', `${urls[at + 1]}`)
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
  t.same(
    answers.slice(2, 7),
    Array.from({ length: 5 }, () => refused),
  )
  t.match(answers[7], /^Error: argv must be a list of at most 100 texts.*; you sent "uname"$/)
})

t.test('journal: only well-formed units; list_services and run_check', async (t) => {
  const answers = await use(
    ['journal', { unit: '--file=/etc/passwd' }],
    ['journal', { unit: 'a b' }],
    ['journal', { lines: 100_000 }],
    ['list_services', {}],
    ['run_check', { service: 'shop', check: 'health' }],
    ['run_check', { service: 'shop', check: 'nothing' }],
    ['run_check', { service: 'nothing' }],
  )
  t.match(answers, [
    'Error: unit must be the name of a systemd unit, such as nginx.service; you sent "--file=/etc/passwd"',
    /^Error: unit must be the name of a systemd unit/,
    'Error: lines must be a number from 1 to 500; you sent 100000',
    'shop: sells things\n  check "health"\n  operation "restart": restart, 2 within 14400 s',
    /^ok health: answered 200/,
    'Error: Service "shop" has no check "nothing".',
    'Error: There is no service "nothing".',
  ])
})

t.test('list_services: a long list has pages, and each says how to get the next', async (t) => {
  const checks = Array.from({ length: 200 }, (_, at) => ({
    type: 'memory',
    name: `${at} ${'x'.repeat(180)}`,
  }))
  const services = Array.from({ length: 150 }, (_, at) => ({
    name: `service ${at}`,
    description: 'y'.repeat(300),
    checks: at === 70 ? checks : [{ type: 'memory', name: `check ${at}` }],
  }))
  const model = await startModel(t)
  // No session of the probe runs all those checks: each one is a model's.
  const file = await inventoryFile(t, { services })
  const ops = await startOps(t, postgres, { ...model.env, OPS_INVENTORY: file })
  await ended(ops)
  const pages: string[] = []
  model.answer(({ step, results }) => {
    pages.push(...results)
    // Literally what the page says.
    const [, args] = / call list_services with (\{.*\})\)$/.exec(results[0] ?? '') ?? []
    if (step > 0 && args === undefined) return says('Done.')
    return calls(['list_services', args ?? {}])
  })
  await trigger(ops)
  t.match(await ended(ops), { status: 'completed' })
  t.ok(pages.length > 3, `${pages.length} pages`)
  for (const page of pages) t.ok(page.length < 13_000, 'none is cut')
  const text = pages.join('\n').replaceAll(/\n\(lines .*\)|^service \d+ \(continued\)\n/gm, '')
  const expected = services.flatMap(({ name, description, checks }) => [
    `${name}: ${description}`,
    ...checks.map((check) => `  check "${check.name}"`),
  ])
  t.same(text.split('\n'), expected, 'together they are the list')
  t.match(pages.join('\n'), /^service 70 \(continued\)\n {2}check /m)
  const [beyond] = await useTools(t, { model, ops }, [['list_services', { offset: 9_999 }]])
  t.equal(beyond, 'Error: The list has 499 lines: offset must be less than that.')
})
