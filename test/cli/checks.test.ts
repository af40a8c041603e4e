import { t } from 'tap'
import { changesLeave, command } from '../helpers/audit.ts'
import { postgres } from '../helpers/backends.ts'
import { refuseCommands, refusedRows, runCli, runOk, type CliOptions } from '../helpers/cli.ts'
import { inventoryFile, startOps } from '../helpers/ops.ts'
import { startReceiver } from '../helpers/replays.ts'
import { until } from '../helpers/until.ts'

type Shown = Readonly<Record<'service' | 'name' | 'state', string>> & {
  muted_until: string | null
  check: object
}

// A server whose inventory file has the check shop/front, and a port that takes connections.
const { port } = await startReceiver(t)
const front = { name: 'front', type: 'tcp', host: '127.0.0.1', port: 1 }
const { env, server } = await startOps(t, postgres, {
  OPS_INVENTORY: await inventoryFile(t, { services: [{ name: 'shop', checks: [front] }] }),
})

const checks = (words: string, options: CliOptions = {}) =>
  runCli(`checks ${words}`, { ...options, env })

/** What `checks … --json` prints. */
async function json<T = Shown>(words: string): Promise<T> {
  return JSON.parse((await runOk(`checks ${words} --json`, { env })).stdout)
}

const listed = () => json<readonly Shown[]>('list')
const namesOf = async () => (await listed()).map(({ service, name }) => `${service}/${name}`)
await until(async () => (await namesOf()).length === 1, 'the check of the file')

await t.test('a check that is made by hand', async (t) => {
  const made = await checks(
    `add db --service store --type tcp --host 127.0.0.1 --port ${port} --every 10m --retries 0`,
  )
  t.same(made, { code: 0, stdout: '', stderr: 'store/db runs from now on\n' })
  const seen = await until(async () => {
    const shown = await json('show store/db')
    return shown.state === 'ok' && shown
  }, 'its first look')
  const check = { type: 'tcp', name: 'db', host: '127.0.0.1', port, every: '10m', retries: 0 }
  t.match(seen, { source: 'hand', check, last_message: 'takes connections', every_s: 600 })

  // The server looks at once.
  t.match(await checks('run store/db'), { code: 0, stdout: 'ok  takes connections\n' })
  const changed = await checks('set store/db --port 1 --retries 5')
  t.match(changed, { code: 0, stderr: 'store/db is changed\n' })
  t.match(await checks('run store/db'), { code: 1, stdout: 'FAIL  connection refused\n' })
  t.match(await checks('set store/db --every 5m --without retries'), { code: 0 })
  const shown = await json('show store/db')
  const kept = { type: 'tcp', name: 'db', host: '127.0.0.1', port: 1, every: '5m' }
  t.same(shown.check, kept, 'what no flag names stays')
  t.match(await checks('show store/db'), { stdout: 'made by hand:\n' })
  t.match(await checks('show shop/front'), { stdout: 'from the inventory file\n' })
  const { stdout } = await checks('list')
  t.match(stdout, /^CHECK +STATE +SINCE +EVERY +MUTED UNTIL +LAST MESSAGE\n[^]*store\/db .*5m /)

  const input = JSON.stringify({ type: 'disk', path: '/', max_percent: 99.5 })
  const added = await checks('add root --service host --from - --every 60 --json', { input })
  t.match(added, { code: 0, stderr: 'host/root runs from now on\n' })
  const root = { type: 'disk', path: '/', max_percent: 99.5, every: 60, name: 'root' }
  t.same(JSON.parse(added.stdout).check, root, 'from JSON, by standard input')
  const removed = await checks('remove host/root')
  t.match(removed, { code: 0, stdout: '', stderr: 'host/root is removed\n' })
  t.same(await namesOf(), ['shop/front', 'store/db'])
})

await t.test('checks: what is refused', async (t) => {
  const state = async () =>
    (await listed()).map(({ service, name, check }) => [service, name, check])
  const add = 'checks add x --service s'
  const none = 'there is no check "store/none": checks list shows all as SERVICE/NAME'
  const ofFile = 'shop/front stands in the inventory file: change it there'
  await refuseCommands(t, { env, state }, [
    ...refusedRows(add, 2, [
      ['--type none --host h', '--type must be http, tcp, '],
      ['--host h', '--type is required, or --from with the JSON'],
      ['--type memory --every 9s', '--every must be 10s to 24h'],
      ['--type http --url http://a:b@c/', '--url must be a URL without user'],
      [
        '--type memory --investigate true',
        '--investigate must not be there without the level critical',
      ],
    ]),
    ['checks add x --type tcp --host h --port 1', 2, '--service is required'],
    ['checks set store/db --json', 2, 'Missing a setting'],
    ...refusedRows('checks', 1, [
      ['set store/db --without port', 'port is required'],
      ['remove shop/front', ofFile],
      ['remove store/none', none],
      ['show store/none', none],
      ['run store/none', none],
      ['set store/none --every 1m', none],
    ]),
    ...refusedRows(`${add} --type tcp --host h`, 2, [
      ['--retries 1', '--port is required'],
      ['--port x', '--port must be integer'],
      ['--port 1 --path /', '"checks add --type tcp" takes no --path'],
      ['--port 1 --none 1', '"checks add --type tcp" takes no --none'],
    ]),
    [
      { args: `${add} --from -`, input: '{"type": "command", "argv": ["true"]}' },
      2,
      '--type must not be command: a check that runs a program stands in the inventory file',
    ],
    [{ args: `${add} --from -`, input: '[]' }, 2, '--from must be a JSON'],
  ])
})

const mutedUntil = async () => (await json('show shop/front')).muted_until

await t.test('mute, a window to come, and unmute', async (t) => {
  const windows = async () =>
    await postgres.query(env, 'select service, check_name, reason, author from ops.mutes')
  const mute = (words: string) => checks(`mute ${words} --reason moving`)
  const muted = await mute('shop/front --for 1h')
  t.match(muted, { code: 0, stdout: '', stderr: 'shop/front is muted until ' })
  t.same(await windows(), [
    { service: 'shop', check_name: 'front', reason: 'moving', author: 'command' },
  ])
  const left = Date.parse((await mutedUntil()) ?? '') - Date.now()
  t.ok(left > 3_000_000 && left <= 3_600_000)
  t.match(await checks('unmute shop'), { code: 1, stderr: 'gatehouse: shop is not muted\n' })
  t.match(await checks('unmute shop/front'), { code: 0, stderr: 'is not muted any more' })
  t.equal(await mutedUntil(), null)

  const [start, end] = ['2099-01-01T00:00:00Z', '2099-01-01T02:00:00Z']
  const coming = await mute(`shop --starts-at ${start} --ends-at ${end} --json`)
  t.match(JSON.parse(coming.stdout), { service: 'shop', check_name: null, reason: 'moving' })
  t.equal(await mutedUntil(), null, 'not yet')
  t.match(await mute('shop --for 2h'), { code: 0 })
  const byItself = 'gatehouse: shop/front is not muted by itself: shop is\n'
  t.match(await checks('unmute shop/front'), { code: 1, stderr: byItself })

  await refuseCommands(t, { env, state: windows }, [
    ...refusedRows('checks mute shop --reason r', 1, [
      [`--starts-at ${end} --ends-at ${start}`, 'ends_at must be after starts_at'],
      ['', 'for, ends_at or every must be given, and one of them alone'],
    ]),
    ...refusedRows('checks mute shop', 2, [
      ['--reason r --for 1x', '--for must be a whole number with'],
      ['--reason r --ends-at noon', '--ends-at must be a time with its zone'],
      ['--for 1h', '--reason is required'],
      ['--for 1h --reason=', '--reason must say why'],
    ]),
  ])
})

await t.test('each change is in the audit, and nothing of a refused one', async (t) => {
  const row = (code: number, words: string, ...lines: readonly string[]) =>
    [words, () => command(env, code, 'checks', ...words.split(' ')), ...lines] as const
  await changesLeave(t, env, 'ops', [
    row(0, 'add me --service store --type memory', 'command: checks add store/me'),
    row(1, 'add me --service store --type memory'),
    row(0, 'set store/me --every 1m', 'command: checks set store/me'),
    row(1, 'remove shop/front'),
    row(0, 'remove store/me', 'command: checks remove store/me'),
    row(0, 'mute shop/front --for 1m --reason r', 'command: checks mute shop/front'),
    row(0, 'unmute shop', 'command: checks unmute shop', 'command: checks unmute shop'),
  ])
})

await t.test('without a server nobody looks', async (t) => {
  await server.stop()
  const { code, stderr } = await checks('run store/db')
  t.match([code, stderr], [1, /^gatehouse: no server has begun it/])
})
