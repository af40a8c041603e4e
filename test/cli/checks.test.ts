import { createServer, type AddressInfo } from 'node:net'
import { t } from 'tap'
import type { Test } from 'tap'
import { changesLeave, command } from '../helpers/audit.ts'
import { backends, onPostgres } from '../helpers/backends.ts'
import { refuseCommands, runCli, type CliOptions } from '../helpers/cli.ts'
import { inventoryFile, startOps } from '../helpers/ops.ts'
import type { Env } from '../helpers/program.ts'
import { until } from '../helpers/until.ts'

type Listed = { readonly id: number; readonly service: string; readonly name: string }
type Shown = Listed & {
  readonly state: string
  readonly last_message: string
  readonly every_s: number
  readonly source: string
  readonly definition: object | null
}

type Muted = Listed & { readonly muted_until: string | null }

/** What `checks ACTION … --json` prints. */
async function json<T>(env: Env, ...words: readonly string[]): Promise<T> {
  const { stdout, stderr } = await runCli(['checks', ...words, '--json'], { env })
  if (stdout === '') throw new Error(`checks ${words.join(' ')}: ${stderr}`)
  return JSON.parse(stdout)
}

const namesOf = async (env: Env): Promise<readonly string[]> =>
  (await json<readonly Listed[]>(env, 'list')).map(({ service, name }) => `${service}/${name}`)

const FILE = { name: 'front', type: 'tcp', host: '127.0.0.1', port: 1 }

/** A server whose inventory file has the check shop/front, and a port that takes connections. */
async function start(t: Test, backend: (typeof backends)[number], more: Env = {}) {
  const server = createServer((socket) => socket.destroy())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => void server.close())
  const inventory = await inventoryFile(t, { services: [{ name: 'shop', checks: [FILE] }] })
  const ops = await startOps(t, backend, { OPS_INVENTORY: inventory, ...more })
  const { env } = ops
  await until(async () => (await namesOf(env)).length === 1 || undefined, 'the check of the file')
  const checks = async (words: string, options: CliOptions = {}) =>
    await runCli(['checks', ...words.split(' ')], { ...options, env })
  return { ...ops, checks, port: (server.address() as AddressInfo).port, inventory }
}

await onPostgres(t, 'a check that is made by hand', async (t: Test, backend) => {
  const { env, checks, port } = await start(t, backend)
  const made = await checks(
    `add db --service store --type tcp --host 127.0.0.1 --port ${port} --every 10m --retries 0`,
  )
  t.same(made, { code: 0, stdout: '', stderr: 'store/db runs from now on\n' })
  t.same(await namesOf(env), ['shop/front', 'store/db'])
  const seen = await until(async () => {
    const shown = await json<Shown>(env, 'show', 'store/db')
    return shown.state === 'ok' ? shown : undefined
  }, 'its first look')
  const definition = { type: 'tcp', name: 'db', host: '127.0.0.1', port, every: '10m', retries: 0 }
  t.match(seen, { source: 'hand', definition, last_message: 'takes connections', every_s: 600 })

  await t.test('run: the server looks at once, and it counts at once', async (t) => {
    t.match(await checks('run store/db'), { code: 0, stdout: 'ok  takes connections\n' })
    t.match(await checks('set store/db --port 1 --retries 5'), {
      code: 0,
      stderr: 'store/db is changed\n',
    })
    t.match(await checks('run store/db'), { code: 1, stdout: 'FAIL  connection refused\n' })
  })

  await t.test('set: what no flag names stays', async (t) => {
    t.match(await checks('set store/db --every 5m --without retries'), { code: 0 })
    const { retries: _, ...rest } = definition
    const shown = await json<Shown>(env, 'show', 'store/db')
    t.match(shown, { every_s: 300, definition: { ...rest, port: 1, every: '5m' } })
    t.notOk('retries' in (shown.definition ?? {}))
    t.match(await checks('show store/db'), { code: 0, stdout: /^made by hand:$/m })
    t.match(await checks('show shop/front'), { code: 0, stdout: /^from the inventory file$/m })
  })

  await t.test('the table', async (t) => {
    const { code, stdout } = await checks('list')
    t.equal(code, 0)
    t.match(stdout, /^CHECK +STATE +SINCE +EVERY +MUTED UNTIL +LAST MESSAGE$/m)
    t.match(stdout, /^store\/db +\S+ +\S+Z +5m /m)
  })

  await t.test('from JSON, by standard input', async (t) => {
    const input = JSON.stringify({ type: 'disk', path: '/', max_percent: 99.5 })
    const added = await checks('add root --service host --from - --every 60 --json', { input })
    t.match(added, { code: 0, stderr: 'host/root runs from now on\n' })
    const { definition: kept } = JSON.parse(added.stdout) as Shown
    t.same(kept, { type: 'disk', path: '/', max_percent: 99.5, every: 60, name: 'root' })
    t.match(await checks('remove host/root'), { code: 0, stderr: 'host/root is removed\n' })
  })

  await t.test('remove: it is gone, and its name is free', async (t) => {
    t.match(await checks('remove store/db'), { code: 0, stdout: '' })
    t.same(await namesOf(env), ['shop/front'])
    t.match(await checks(`add db --service store --type tcp --host ::1 --port 2`), { code: 0 })
    t.same(await namesOf(env), ['shop/front', 'store/db'])
  })
})

await onPostgres(t, 'checks: what is refused', async (t: Test, backend) => {
  const { env, checks } = await start(t, backend)
  await checks('add db --service store --type tcp --host 127.0.0.1 --port 1')
  const state = async (): Promise<unknown> => [
    await namesOf(env),
    (await json<Shown>(env, 'show', 'store/db')).definition,
    (await json<Shown>(env, 'show', 'shop/front')).definition,
  ]
  const add = (words: string) => ['checks', 'add', 'x', ...words.split(' ')]
  const checksOf = (words: string) => ['checks', ...words.split(' ')]
  const none = 'there is no check "store/none": checks list shows all as SERVICE/NAME'
  const ofFile = 'shop/front stands in the inventory file: change it there'
  await refuseCommands(t, { env, state }, [
    [add('--service s --type none --host h'), 2, /^gatehouse: --type must be http, tcp, /],
    [add('--service s --host h'), 2, '--type is required, or --from with the JSON'],
    [add('--type tcp --host h --port 1'), 2, '--service is required'],
    [add('--service s --type tcp --host h'), 2, '--port is required'],
    [add('--service s --type tcp --host h --port 0'), 2, /^gatehouse: --port must be >= 1$/],
    [add('--service s --type tcp --host h --port x'), 2, /^gatehouse: --port must be integer$/],
    [add('--service s --type tcp --host h --port 1 --path /'), 2, '--path is not known'],
    [add('--service s --type memory --every 9s'), 2, '--every must be 10s to 24h'],
    [add('--service s --type tcp --host h --port 1 --investigate 4'), 2, /--investigate must be /],
    [
      add('--service s --type memory --investigate true'),
      2,
      '--investigate must not be there without the level critical',
    ],
    [add('--service s --type memory --retries 11'), 2, /^gatehouse: --retries must be <= 10$/],
    [add('--service s --type process'), 2, 'the check must have match or program'],
    [add('--service s --type http --url http://a:b@c/'), 2, /--url must be a URL without user/],
    [add('--service shop --type memory --none 1'), 2, '"checks add" takes no --none'],
    [
      { args: add('--service s --from -'), input: '{"type": "command", "argv": ["true"]}' },
      2,
      '--type must not be command: a check that runs a program stands in the inventory file',
    ],
    [{ args: add('--service s --from -'), input: '[]' }, 2, /^gatehouse: --from must be a JSON/],
    [
      ['checks', 'add', 'front', '--service', 'shop', '--type', 'memory'],
      1,
      'there is a check shop/front already: choose another name',
    ],
    [
      ['checks', 'add', 'db', '--service', 'store', '--type', 'memory'],
      1,
      'there is a check store/db already: choose another name',
    ],
    [checksOf('set store/db --every 1s'), 1, 'every must be 10s to 24h'],
    [checksOf('set store/db --without port'), 1, 'port is required'],
    [checksOf('set shop/front --every 1m'), 1, ofFile],
    [checksOf('remove shop/front'), 1, ofFile],
    [checksOf('remove store/none'), 1, none],
    [checksOf('set store/none --every 1m'), 1, none],
    [checksOf('show store/none'), 1, none],
    [checksOf('run store/none'), 1, none],
    [checksOf('run store'), 1, /there is no check "store"/],
  ])
})

t.test('each change is in the audit, and nothing of a refused one', async (t) => {
  const { env } = await start(t, backends[1])
  const add = ['checks', 'add', 'db', '--service', 'store', '--type', 'memory']
  await changesLeave(t, env, 'ops', [
    ['add', () => command(env, 0, ...add), 'command: checks add store/db'],
    ['add again', () => command(env, 1, ...add)],
    [
      'set',
      () => command(env, 0, 'checks', 'set', 'store/db', '--every', '1m'),
      'command: checks set store/db',
    ],
    ['remove of the file', () => command(env, 1, 'checks', 'remove', 'shop/front')],
    [
      'remove',
      () => command(env, 0, 'checks', 'remove', 'store/db'),
      'command: checks remove store/db',
    ],
  ])
})

t.test('without a server nobody looks', async (t) => {
  const { checks, server } = await start(t, backends[1])
  await checks('add db --service store --type memory')
  await server.stop()
  const { code, stderr } = await checks('run store/db')
  t.match([code, stderr], [1, /^gatehouse: no server has begun it/])
})

t.test('mute, a window to come, and unmute', async (t) => {
  const { env, checks } = await start(t, backends[1])
  const mutedUntil = async () =>
    (await json<readonly Muted[]>(env, 'list'))[0]?.muted_until ?? null
  t.equal(await mutedUntil(), null)
  const windows = async (): Promise<unknown> =>
    await backends[1].query(env, 'select service, check_name, reason, author from ops.mutes')
  const mute = (...words: readonly string[]) =>
    runCli(['checks', 'mute', ...words, '--reason', 'we move'], { env })
  t.match(await mute('shop/front', '--for', '1h'), {
    code: 0,
    stdout: '',
    stderr: /^shop\/front is muted until \S+Z$/m,
  })
  t.same(await windows(), [
    { service: 'shop', check_name: 'front', reason: 'we move', author: 'command' },
  ])
  const until = new Date((await mutedUntil()) ?? 0).getTime() - Date.now()
  t.ok(until > 3_000_000 && until <= 3_600_000)
  t.match(await checks('unmute shop'), {
    code: 1,
    stderr: 'gatehouse: shop is not muted\n',
  })
  t.match(await checks('unmute shop/front'), { code: 0, stderr: /is not muted any more/ })
  t.equal(await mutedUntil(), null)

  const [from, end] = ['2099-01-01T00:00:00Z', '2099-01-01T02:00:00Z']
  const coming = await mute('shop', '--starts-at', from, '--ends-at', end, '--json')
  t.match(JSON.parse(coming.stdout), { service: 'shop', check_name: null, reason: 'we move' })
  t.equal(await mutedUntil(), null, 'not yet')
  t.match(await mute('shop', '--for', '2h'), { code: 0 })
  t.match(await checks('unmute shop/front'), {
    code: 1,
    stderr: 'gatehouse: shop/front is not muted by itself: shop is\n',
  })

  const bad = (...words: readonly string[]) => ['checks', 'mute', ...words]
  const why = ['--reason', 'r']
  const ends = ['--ends-at', '2020-01-01T00:00:00Z', ...why]
  await refuseCommands(t, { env, state: windows }, [
    [bad('shop', ...ends), 1, 'ends_at must end in the future'],
    [bad('shop', '--for', '0', ...why), 1, 'for must end in the future'],
    [bad('shop', '--for', '9999d', ...why), 1, 'for must end within a year'],
    [
      bad('shop', '--starts-at', end, '--ends-at', from, ...why),
      1,
      'ends_at must end after starts_at',
    ],
    [bad('shop', ...why), 1, 'for, ends_at or every must be given, and one of them alone'],
    [bad('shop', '--for', '1x', ...why), 2, /^gatehouse: --for must be a whole number with/],
    [
      bad('shop', '--ends-at', 'noon', ...why),
      2,
      /^gatehouse: --ends-at must be a time with its zone/,
    ],
    [bad('shop', '--for', '1h'), 2, /^gatehouse: --reason is required/],
    [bad('shop', '--for', '1h', '--reason', ' '), 2, /^gatehouse: --reason must say why/],
    [bad('none', '--for', '1h', ...why), 1, /^gatehouse: there is no check "none"/],
    [bad('shop/none', '--for', '1h', ...why), 1, /there is no check "shop\/none"/],
  ])

  await changesLeave(t, env, 'ops', [
    [
      'mute',
      () => command(env, 0, 'checks', 'mute', 'shop/front', '--for', '1m', ...why),
      'command: checks mute shop/front',
    ],
    [
      'unmute',
      () => command(env, 0, 'checks', 'unmute', 'shop'),
      'command: checks unmute shop',
      'command: checks unmute shop',
    ],
  ])
})
