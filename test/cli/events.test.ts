import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t, type Test } from 'tap'
import { postgres } from '../helpers/backends.ts'
import { openCli, runOk, refuseCommands, refusedRows, runCli, runHere } from '../helpers/cli.ts'
import { accepted, addProvider, deliver, post, postForm, startHooks } from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'
import { addEndpoint } from '../helpers/mcp.ts'
import { temporaryFolder, type Owner } from '../helpers/owner.ts'
import { startReceiver } from '../helpers/replays.ts'
import { secret } from '../helpers/secrets.ts'
import { startServer } from '../helpers/server.ts'
import { startTcpProxy } from '../helpers/tcp-proxy.ts'
import { until } from '../helpers/until.ts'

/** Answers that the receiver holds back. */
const held: (() => void)[] = []
const receiver = await startReceiver(t, ({ path }, response) => {
  const answer = () => void response.writeHead(path === '/no' ? 410 : 204).end()
  if (path === '/held') held.push(answer)
  else answer()
})
const { base, env } = await startHooks(t, postgres, {
  HOOKS_REPLAY_TARGETS: `127.0.0.1:${receiver.port}`,
})
await addProvider(base, 'ci', { open: true })
const from = ['--from', base]
const LIST = ['events', 'list', ...from]
const BYTES = Buffer.from([0xff, 0x00, 0x0d, 0x0a, 0x1b, 0x5b, 0x41])

async function send(body: string | Uint8Array, type: string) {
  return accepted(post(base, 'generic/ci', body, { 'X-Event-Type': type }))
}

/** The ids that `events list` gives. */
async function listed(...args: readonly string[]) {
  const { code, stdout, stderr } = await runCli([...LIST, '--json', ...args])
  t.same({ code, stderr }, { code: 0, stderr: '' }, args.join(' '))
  const events: readonly { id: number }[] = JSON.parse(stdout)
  return events.map(({ id }) => id)
}

const first = await send('{"order":{"id":"o-1"}}', 'order.created')
const second = await send(BYTES, 'bytes')
const third = await accepted(deliver(base, 'code_host', '{"order":{"id":"o-2"}}'))

await t.test('list: a table, JSON, and the filters of the log', async (t: Test) => {
  const { stdout } = await runOk(LIST)
  const [head = '', ...rows] = stdout.trimEnd().split('\n')
  t.match(head, /^ID +RECEIVED +PROVIDER +TYPE +TRUST +SIZE$/)
  t.match(rows, [
    new RegExp(`^${third} +\\d{4}-\\S+Z +code_host +- +signed +22 B$`),
    new RegExp(`^${second} .* generic:ci +bytes +open +7 B$`),
    new RegExp(`^${first} .* order.created +open +22 B$`),
  ])
  const all = [third, second, first]
  for (const [args, ids] of [
    ['--provider code_host', [third]],
    ['--event-type Order.*', [first]],
    ['--event-type BYTES --since 1h', [second]],
    [`--until ${second}`, [second, first]],
    [`--since ${second}`, [third, second]],
    ['--since 2000-01-01', all],
    ['--verified true', [third]],
    ['--header x-event-type=bytes', [second]],
    ['--json-member order.id=o-1\norder.id=o-1 --verified false', [first]],
    ['--text o-2', [third]],
    ['--limit 2', [third, second]],
    ['--provider nobody', []],
  ] as const) {
    t.same(await listed(...args.split(' ')), ids, args)
  }
})

await t.test('show: facts, headers, payload; payload: the bytes and nothing else', async (t) => {
  const show = async (id: number, flag = '') =>
    (await runOk(`events show ${id} --from ${base} ${flag}`.trim())).stdout
  const text = await show(first)
  for (const line of [
    /^provider +generic:ci$/m,
    /^verify_detail +-$/m,
    '\nx-event-type: order.created\n',
    '\n\n{"order":{"id":"o-1"}}\n',
  ]) {
    t.match(text, line)
  }
  t.match(await show(third), '«redacted»')
  t.match(await show(second), `gatehouse events payload ${second}\n`)
  t.match(JSON.parse(await show(second, '--json')), { id: second, payload_encoding: 'base64' })

  const chunks: Buffer[] = []
  const surface = {
    stdout: (chunk: string | Buffer) => chunks.push(Buffer.from(chunk)),
    stderr: (said: string) => t.fail(said),
  }
  t.equal(await runHere(['events', 'payload', String(second), ...from], {}, surface), 0)
  t.same(Buffer.concat(chunks), BYTES)
})

const yes = `--to ${receiver.url}/yes`
const filter = `--provider generic:ci --until ${second}`
const proof = `--highest-id ${second} --confirm 2`

const REPLAY = `events replay --from ${base}`
const replay = (words: string) => runCli(`${REPLAY} ${words}`)

/** The events that the receiver got, in that order. */
function sent() {
  return receiver.received.map(({ headers }) => Number(headers['x-gatehouse-replay']))
}

await t.test('replay: events by their ids, in the order given', async (t) => {
  const both = await replay(`${third} ${first} ${yes}`)
  t.match(both, { code: 0, stderr: '' })
  t.match(both.stdout, new RegExp(`^${third}  delivered  204  \\d+ ms\n${first}  delivered`))
  t.same(sent(), [third, first])
  const failed = await replay(`${first} --to ${receiver.url}/no --json`)
  t.match(failed, { code: 1, stderr: '' })
  t.match(JSON.parse(failed.stdout), { id: first, outcome: 'failed', status: 410 })
  const local = await replay(`${first} --to http://10.0.0.1/`)
  t.match(local, { code: 1, stdout: /refused  -  \d+ ms  the target is not on the public/ })
})

await t.test('replay: a filter is counted, then exactly what was counted is sent', async (t) => {
  const { length } = receiver.received
  const dry = await replay(`${filter} --dry-run`)
  t.match(dry, { code: 0, stdout: `2 events; to send them: ${proof}\n`, stderr: '' })
  const json = await replay('--event-type order.created --dry-run --json')
  t.same(JSON.parse(json.stdout), { count: 1, more: false, highest_id: first })
  const none = await replay('--text nowhere --dry-run')
  t.match(none, { code: 0, stdout: 'no events match\n' })
  t.equal(receiver.received.length, length, 'nothing was sent')
  const done = await replay(`${filter} ${proof} ${yes}`)
  t.match(done, { code: 0, stdout: 'finished: 2 delivered, 0 failed\n' })
  t.same(sent().slice(length).toSorted(), [first, second])
  const refused = await replay(`${filter} ${proof} --to ${receiver.url}/no`)
  const ids = `${first} ${second}`
  t.match(refused, { code: 1, stdout: `finished: 0 delivered, 2 failed (${ids})\n` })
  const { stdout } = await replay(`${filter} ${proof} ${yes} --json`)
  t.match(JSON.parse(stdout), { state: 'finished', done: 2, failed_ids: [], waiting: 0 })
})

await t.test('replay: a signal ends the command, and the job goes on', async (t) => {
  const command = openCli(t, `${REPLAY} ${filter} ${proof} --to ${receiver.url}/held`)
  await until(() => held.length === 2, 'the events to arrive')
  t.equal(await command.stop(), 1)
  const told = /^sending: 0 delivered, 0 failed, 2 not sent; job (\w+) goes on\n$/
  const [, id] = told.exec(command.stdout()) ?? []
  t.ok(id)
  t.match(command.stderr(), `job ${id}: a signal ends this command, not the job\n`)
  for (const answer of held.splice(0)) answer()
  await until(async () => {
    const { text } = await request(`${base}/api/v1/replay-jobs/${id}`)
    return /"state":"finished".*"delivered":2/.test(text)
  }, 'the job to end')
})

await t.test('replay: what is refused sends nothing', async (t) => {
  const reader = await addEndpoint(base, 'reader')
  const id = String(first)
  const noTarget = 'the server answers 422: Give a target URL; the settings name no default target'
  await refuseCommands(t, { env: {}, state: async () => receiver.received.length }, [
    ...refusedRows(REPLAY, 2, [
      ['--dry-run', 'Give ids of events, or a filter such as --provider'],
      [`${id} ${filter}`, 'Give ids of events or a filter, not both'],
      [`${id} --dry-run`, 'Give ids of events or a filter, not both'],
      ['x', 'ID'],
      [`${filter} --confirm 2 ${yes}`, 'Run with --dry-run first'],
      [`${filter} --highest-id ${id} ${yes}`, 'Run with --dry-run first'],
      [`${filter} --dry-run --confirm 2`, '--dry-run sends nothing to confirm'],
      [`${filter} ${proof} --confirm 10001`, '--confirm'],
      [`${id} --to ftp://x`, '--to'],
    ]),
    ...refusedRows(REPLAY, 1, [
      [`999999 ${yes}`, 'the server answers 404: There is no event 999999.'],
      [id, noTarget],
      [`${filter} ${proof}`, noTarget],
      [
        `--event-type order.created ${proof} ${yes}`,
        'found 1 event, expected 2; run with --dry-run again',
      ],
    ]),
    [
      { args: `${REPLAY} ${id} ${yes} --token -`, input: reader.token },
      1,
      'the server answers 403: This token may not replay',
    ],
  ])
})

/** A running `gatehouse events list --follow`. */
function openFollow(t: Owner, args: readonly string[]) {
  const { stdout, stderr, stop, ended } = openCli(t, ['events', 'list', '--follow', ...args])
  const lines = () => stdout().split('\n').filter(Boolean)
  const ids = () => lines().map((line) => Number(/\d+/.exec(line)?.[0]))
  return { ids, lines, stderr, stop, ended }
}

await t.test('follow: what is stored, then what comes, over lost connections', async (t) => {
  const proxy = await startTcpProxy(t, base)
  const all = openFollow(t, ['--from', proxy.through(base), '--limit', '2', '--json'])
  const some = openFollow(t, [...from, '--event-type', 'wanted'])
  await until(() => all.ids().length === 2, 'the stored ones')
  t.same(all.ids(), [second, third], 'the oldest first')
  t.match(JSON.parse(all.lines()[1] ?? ''), { id: third, provider: 'code_host' })
  const wanted = await send('{}', 'wanted')
  const other = await send('{}', 'other')
  await until(() => all.ids().length === 4, 'the new ones')
  proxy.refuse()
  proxy.reset()
  await until(() => all.stderr() !== '', 'the loss to be noticed')
  t.match(all.stderr(), /^no connection \(.*\); it is tried again$/m)
  // More than a page of them.
  const stored = await postgres.query(
    env,
    `insert into hooks.events (provider, event_type, trust, headers, payload, received_at)
     select 'generic:ci', 'many', 3, '[]', 'x', now() from generate_series(1, 1300) returning id::int`,
  )
  const missed = [...stored.map(({ id }) => Number(id)), await send('{}', 'many')]
  await proxy.pass()
  const ids = [second, third, wanted, other, ...missed]
  await until(() => all.ids().at(-1) === ids.at(-1), 'the last of them', 60_000)
  t.same(all.ids(), ids)
  t.notMatch(all.stderr(), 'left out')
  const later = await send('{}', 'wanted')
  await until(() => some.ids().length === 2, 'the filtered ones')
  t.same(some.ids(), [wanted, later])
  t.match(some.lines()[0], /^\d+ {2}\S+Z {2}generic:ci {2}wanted {2}open {2}2 B$/)
  for (const one of [all, some]) t.equal(await one.stop(), 0)

  const many = (...args: readonly string[]) => listed('--event-type', 'many', ...args)
  t.equal((await many()).length, 50)
  const pages = await many('--limit', '1001')
  t.equal(new Set(pages).size, 1_001, 'through as many pages as it takes, no event twice')
})

await t.test('a token from a file or standard input', async (t) => {
  const { token } = await addEndpoint(base, 'agent')
  const file = join(await temporaryFolder(t), 'token')
  writeFileSync(file, `${token}\n`)
  const list = [...LIST, '--json', '--token']
  await runOk([...list, '-'], { input: `${token}\n` })
  const follower = openFollow(t, [...from, '--limit', '1', '--token', file])
  await until(() => follower.ids().length === 1, 'the stored one')
  const event = await send('{}', 'x')
  await until(() => follower.ids().at(-1) === event, 'the new one')
  await postForm(base, '/settings/endpoints/agent/revoke', {})
  t.equal(await follower.ended, 1, 'a revoked token ends it')
  t.match(follower.stderr(), 'gatehouse: the server answers 401: The token is missing or wrong')
  await refuseCommands(t, undefined, [
    [[...list, file], 1, 'the server answers 401: The token is missing or wrong'],
    [[...list, secret('typed')], 2, '--token must be - for standard input, or a file'],
  ])
})

await t.test('the server of the configuration, or the one that is named', async (t) => {
  const socket = `unix:${join(await temporaryFolder(t), 'hooks.sock')}`
  await startServer(t, { services: ['hooks'], env: { ...env, HOOKS_ADDR: socket } })
  const payload = ['events', 'payload', String(first)]
  for (const [args, HOOKS_ADDR] of [
    [payload, new URL(base).host],
    [[...payload, '--from', socket], '127.0.0.1:0'],
  ] as const) {
    const found = await runCli(args, { env: { HOOKS_ADDR } })
    t.match(found, { code: 0, stdout: '{"order":{"id":"o-1"}}' })
  }
  const unset = { HOOKS_ADDR: '127.0.0.1:0' }
  const endless = await startReceiver(t, (_, response) => {
    const more = (ended?: Error | null) => {
      if (!ended) response.write(' '.repeat(1024 * 1024), more)
    }
    more()
  })
  const unknown = /HOOKS_ADDR names no address to call; give --from/
  const noEvent = 'the server answers 404: There is no event'
  await refuseCommands(t, undefined, [
    [{ args: 'events list', env: unset }, 1, unknown],
    [{ args: 'forward http://127.0.0.1:9/', env: unset }, 1, unknown],
    ['events', 2, 'Missing action: one of list, show, payload'],
    ...refusedRows(LIST.join(' '), 2, [
      ['--limit 0', '--limit must be'],
      ['--since x', '--since must be an event id or a time'],
      ['--json-member x', '--json-member must be path=value'],
      [`--text ${'x'.repeat(501)}`, '--text may have 500 characters'],
      ['--verified maybe', '--verified must be true or false'],
      ['--follow --until 1h', '--follow takes no --text'],
    ]),
    [[...LIST, '--header', 'a b'], 2, '--header must be name or name=value'],
    ['events list --from ftp://x', 2, '--from must be'],
    [`events show 999999 --from ${base}`, 1, noEvent],
    [`events payload 999999 --from ${base}`, 1, noEvent],
    [
      'events list --follow --from http://127.0.0.1:1',
      1,
      'no server answers at http://127.0.0.1:1 (ECONNREFUSED',
    ],
    [`events list --from ${base}/log?x=`, 1, 'the server answers 404'],
    [`events list --from ${endless.url}`, 1, 'the answer is over 16 MiB'],
  ])
})
