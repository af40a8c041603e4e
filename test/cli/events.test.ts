import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { refuseCommands, runCli, runHere, type RefusedCommand } from '../helpers/cli.ts'
import { addProvider, deliver, post, postForm, startHooks, type Ack } from '../helpers/hooks.ts'
import { addEndpoint } from '../helpers/mcp.ts'
import { temporaryFolder, type Owner } from '../helpers/owner.ts'
import { secret } from '../helpers/secrets.ts'
import { startServer } from '../helpers/server.ts'
import { startTcpProxy } from '../helpers/tcp-proxy.ts'
import { until } from '../helpers/until.ts'

type Listed = { id: number; provider: string; event_type: string | null; received_at: string }

const [, postgres] = backends
const { base, env } = await startHooks(t, postgres)
await addProvider(base, 'ci', { open: true })
const from = ['--from', base]
const BYTES = Buffer.from([0xff, 0x00, 0x0d, 0x0a, 0x1b, 0x5b, 0x41])

async function send(body: string | Uint8Array, type: string): Promise<number> {
  return (await post(base, 'generic/ci', body, { 'X-Event-Type': type })).json<Ack>().id
}

async function listed(...args: readonly string[]): Promise<readonly number[]> {
  const { code, stdout, stderr } = await runCli(['events', 'list', ...from, '--json', ...args])
  t.same({ code, stderr }, { code: 0, stderr: '' }, args.join(' '))
  const events: readonly Listed[] = JSON.parse(stdout)
  return events.map(({ id }) => id)
}

const first = await send('{"order":{"id":"o-1"}}', 'order.created')
const second = await send(BYTES, 'bytes')
const third = (await deliver(base, 'code_host', '{"order":{"id":"o-2"}}')).json<Ack>().id

await t.test('list: a table, JSON, and the filters of the log', async (t: Test) => {
  const { code, stdout } = await runCli(['events', 'list', ...from])
  t.equal(code, 0)
  const [head = '', ...rows] = stdout.trimEnd().split('\n')
  t.match(head, /^ID +RECEIVED +PROVIDER +TYPE +TRUST +SIZE$/)
  t.match(rows, [
    new RegExp(`^${third} +\\d{4}-\\S+Z +code_host +- +signed +22 B$`),
    new RegExp(`^${second} .* generic:ci +bytes +open +7 B$`),
    new RegExp(`^${first} .* order.created +open +22 B$`),
  ])
  const cases: readonly (readonly [readonly string[], readonly number[]])[] = [
    [[], [third, second, first]],
    [['--provider', 'code_host'], [third]],
    [['--event-type', 'bytes'], [second]],
    [['--event-type', 'Order.*'], [first]],
    [['--event-type', 'BYTES', '--since', '1h'], [second]],
    [
      ['--until', String(second)],
      [second, first],
    ],
    [['--verified', 'true'], [third]],
    [['--header', 'x-event-type=bytes'], [second]],
    [['--json-member', 'order.id=o-1\norder.id=o-1', '--verified', 'false'], [first]],
    [
      ['--since', String(second)],
      [third, second],
    ],
    [
      ['--since', '2000-01-01'],
      [third, second, first],
    ],
    [['--text', 'o-2'], [third]],
    [['--json-member', 'order.id=o-1'], [first]],
    [
      ['--limit', '2'],
      [third, second],
    ],
    [['--provider', 'nobody'], []],
  ]
  for (const [args, ids] of cases) t.same(await listed(...args), ids, args.join(' '))
})

await t.test('list goes through as many pages as it takes', async (t: Test) => {
  const many = await startHooks(t, postgres)
  await postgres.query(
    many.env,
    `insert into hooks.events (provider, trust, headers, payload, received_at)
     select 'generic:many', 3, '[]', 'x', now() from generate_series(1, 450)`,
  )
  const count = async (...args: readonly string[]): Promise<number> => {
    const flags = ['--from', many.base, '--json', ...args]
    const { stdout } = await runCli(['events', 'list', ...flags])
    const events: readonly Listed[] = JSON.parse(stdout)
    t.equal(new Set(events.map(({ id }) => id)).size, events.length, 'no event comes twice')
    return events.length
  }
  t.equal(await count(), 50)
  t.equal(await count('--limit', '401'), 401)
  t.equal(await count('--limit', '1000', '--text', 'x'), 450)
})

await t.test('show: facts, headers, payload', async (t: Test) => {
  const show = async (id: number, ...args: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await runCli(['events', 'show', String(id), ...from, ...args])
    t.same({ code, stderr }, { code: 0, stderr: '' })
    return stdout
  }
  const text = await show(first)
  t.match(text, new RegExp(`^id +${first}$`, 'm'))
  t.match(text, /^provider +generic:ci$/m)
  t.match(text, /^verify_detail +-$/m)
  t.match(text, /^x-event-type: order.created$/m)
  t.match(text, /\n\n\{"order":\{"id":"o-1"\}\}\n$/)
  t.match(await show(third), /«redacted»/)
  t.match(await show(second), new RegExp(`gatehouse events payload ${second}\\n$`))
  t.match(JSON.parse(await show(second, '--json')), { id: second, payload_encoding: 'base64' })
})

await t.test('payload: the bytes and nothing else', async (t: Test) => {
  const chunks: Buffer[] = []
  const code = await runHere(
    ['events', 'payload', String(second), ...from],
    {},
    {
      stdout: (chunk) => chunks.push(Buffer.from(chunk)),
      stderr: (text) => t.fail(text),
    },
  )
  t.equal(code, 0)
  t.same(Buffer.concat(chunks), BYTES)
})

/** Runs `gatehouse events list --follow`; it ends with the test. */
function openFollow(t: Owner, args: readonly string[]) {
  let [stdout, stderr] = ['', '']
  const stop = Promise.withResolvers<string>()
  const run = runHere(
    ['events', 'list', '--follow', ...args],
    {},
    {
      stdout: (text) => (stdout += text.toString()),
      stderr: (text) => (stderr += text),
      stop: stop.promise,
    },
  )
  async function end(): Promise<number> {
    stop.resolve('SIGTERM')
    return run
  }
  t.teardown(end)
  const lines = () => stdout.split('\n').filter((line) => line !== '')
  return {
    ids: () => lines().map((line) => Number(/^(?:\{"id":)?(\d+)/.exec(line)?.[1])),
    lines,
    said: () => stderr,
    end,
    run,
  }
}

await t.test('follow: what is stored, then what comes, over lost connections', async (t: Test) => {
  const proxy = await startTcpProxy(t, base)
  const through = ['--from', proxy.through(base)]
  const all = openFollow(t, [...through, '--limit', '2', '--json'])
  const some = openFollow(t, [...from, '--event-type', 'wanted'])
  await until(() => all.ids().length === 2, 'the stored ones')
  t.same(all.ids(), [second, third], 'the oldest first')
  t.match(JSON.parse(all.lines()[1] ?? ''), { id: third, provider: 'code_host' })
  const wanted = await send('{}', 'wanted')
  const other = await send('{}', 'other')
  await until(() => all.ids().length === 4, 'the new ones')
  proxy.reset()
  const later = await send('{}', 'wanted')
  await until(() => all.ids().length === 5, 'the one that came meanwhile')
  t.same(all.ids(), [second, third, wanted, other, later])
  t.match(all.said(), /^no connection \(.*\); it is tried again$/m)
  await until(() => some.ids().length === 2, 'the filtered ones')
  t.same(some.ids(), [wanted, later])
  t.match(some.lines()[0], /^\d+ {2}\S+Z {2}generic:ci {2}wanted {2}open {2}2 B$/)
  t.equal(await all.end(), 0)
  t.equal(await some.end(), 0)
})

await t.test('a token from a file or standard input', async (t: Test) => {
  const { token } = await addEndpoint(base, 'agent')
  const file = join(await temporaryFolder(t), 'token')
  writeFileSync(file, `${token}\n`)
  const list = ['events', 'list', ...from, '--json', '--token']
  t.equal((await runCli([...list, file])).code, 0)
  t.equal((await runCli([...list, '-'], { input: `${token}\n` })).code, 0)
  const follower = openFollow(t, [...from, '--limit', '1', '--token', file])
  await until(() => follower.ids().length === 1, 'the stored one')
  const event = await send('{}', 'x')
  await until(() => follower.ids().at(-1) === event, 'the new one')
  await postForm(base, '/settings/endpoints/agent/revoke', {})
  t.equal(await follower.run, 1, 'a revoked token ends it')
  t.match(follower.said(), /gatehouse: the server answers 401: The token is missing or wrong/)
  await refuseCommands(t, undefined, [
    [[...list, file], 1, /the server answers 401: The token is missing or wrong/],
    [[...list, secret('typed')], 2, /^gatehouse: --token must be - for standard input, or a file/],
  ])
})

await t.test('a unix socket', async (t: Test) => {
  const socket = join(await temporaryFolder(t), 'hooks.sock')
  await startServer(t, { services: ['hooks'], env: { ...env, HOOKS_ADDR: `unix:${socket}` } })
  const named = await runCli(['events', 'list', '--json', '--from', `unix:${socket}`])
  t.equal(named.code, 0)
  t.equal(JSON.parse(named.stdout).at(-1)?.id, first)
  const configured = { env: { HOOKS_ADDR: `unix:${socket}` } }
  const { stdout } = await runCli(['events', 'list', '--json'], configured)
  t.equal(stdout, named.stdout, 'the socket of the configuration')
})

await t.test('the server of the configuration, unless another one is named', async (t: Test) => {
  const { host } = new URL(base)
  const { code, stdout } = await runCli(['events', 'payload', String(first)], {
    env: { HOOKS_ADDR: host },
  })
  t.equal(code, 0)
  t.not(stdout, '')
  for (const args of [
    ['events', 'list'],
    ['forward', 'http://127.0.0.1:9/'],
  ]) {
    const refused = await runCli(args, { env: { HOOKS_ADDR: '127.0.0.1:0' } })
    t.equal(refused.code, 1)
    t.match(refused.stderr, 'HOOKS_ADDR names no address to call; give --from')
  }
})

await t.test('refused', async (t: Test) => {
  const list = (...args: readonly string[]) => ['events', 'list', ...from, ...args]
  const rows: readonly RefusedCommand[] = [
    [['events'], 2, 'Missing action: one of list, show, payload'],
    [list('--limit', '0'), 2, /--limit must be/],
    [list('--since', 'x'), 2, /--since must be an event id or a time/],
    [list('--json-member', 'x'), 2, /--json-member must be path=value/],
    [list('--text', 'x'.repeat(501)), 2, /--text may have 500 characters/],
    [list('--verified', 'maybe'), 2, /--verified must be true or false/],
    [list('--header', 'a b'), 2, /--header must be name or name=value/],
    [list('--until', 'x'), 2, /--until must be an event id or a time/],
    [list('--follow', '--text', 'x'), 2, /--follow takes no --text/],
    [list('--follow', '--until', '1h'), 2, /--follow takes no --text/],
    [['events', 'list', '--from', 'ftp://x'], 2, /--from must be/],
    [['events', 'show', ...from], 2, /Missing ID/],
    [['events', 'show', 'x', ...from], 2, 'ID must be the id of an event'],
    [['events', 'show', '999999', ...from], 1, /the server answers 404: There is no event/],
    [['events', 'payload', '999999', ...from], 1, /the server answers 404: There is no event/],
    [['events', 'list', '--from', 'http://127.0.0.1:1'], 1, /ECONNREFUSED/],
    [['events', 'list', '--follow', '--from', 'http://127.0.0.1:1'], 1, /ECONNREFUSED/],
    [['events', 'list', '--from', `${base}/log?x=`], 1, /the server answers 40[04]/],
  ]
  await refuseCommands(t, undefined, rows)
})

await t.test('follow: what came meanwhile, however much', async (t: Test) => {
  const proxy = await startTcpProxy(t, base)
  const follower = openFollow(t, ['--from', proxy.through(base), '--limit', '1', '--json'])
  await until(() => follower.ids().length === 1, 'the stored one')
  const start = await send('{}', 'start')
  await until(() => follower.ids().length === 2, 'the new one')
  proxy.refuse()
  proxy.reset()
  await until(() => follower.said() !== '', 'the loss to be noticed')
  const missed: number[] = []
  for (let n = 0; n < 26; n++) {
    const some = Array.from({ length: 50 }, (_, at) => send(`${n} ${at}`, 'many'))
    missed.push(...(await Promise.all(some)))
  }
  await proxy.pass()
  const last = missed.toSorted((a, b) => a - b).at(-1)
  await until(() => follower.ids().at(-1) === last, 'the last of them', 60_000)
  const known = follower.ids().slice(follower.ids().indexOf(start) + 1)
  t.same(
    known,
    missed.toSorted((a, b) => a - b),
  )
  t.notMatch(follower.said(), 'left out')
})
