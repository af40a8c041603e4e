import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { refuseCommands, runCli, runHere, type CliResult } from '../helpers/cli.ts'
import { addProvider, deliver, post, startHooks, type Ack } from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'
import { addEndpoint } from '../helpers/mcp.ts'
import { attemptsOf, startReceiver } from '../helpers/replays.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends
/** Answers that the receiver holds back. */
const held: (() => void)[] = []
const receiver = await startReceiver(t, ({ path }, response) => {
  const answer = () => void response.writeHead(path === '/no' ? 410 : 204).end()
  if (path === '/held') held.push(answer)
  else answer()
})
const { base } = await startHooks(t, postgres, {
  HOOKS_REPLAY_TARGETS: `127.0.0.1:${receiver.port}`,
})
await addProvider(base, 'ci', { open: true })
const yes = ['--to', `${receiver.url}/yes`]

async function send(type: string): Promise<number> {
  return (await post(base, 'generic/ci', '{}', { 'X-Event-Type': type })).json<Ack>().id
}

function replay(...args: readonly string[]): Promise<CliResult> {
  return runCli(['events', 'replay', '--from', base, ...args])
}

/** The events that the receiver got, in that order. */
function sent(): readonly number[] {
  return receiver.received.map(({ headers }) => Number(headers['x-gatehouse-replay']))
}

const first = await send('order')
const second = await send('user')
const signed = (await deliver(base, 'code_host', '{"n":1}')).json<Ack>().id
const filter = ['--provider', 'generic:ci', '--since', String(first)]
const proof = ['--highest-id', String(second), '--confirm', '2']

await t.test('events by their ids, in the order given', async (t: Test) => {
  const both = await replay(String(signed), String(first), ...yes)
  t.match(both, { code: 0, stderr: '' })
  t.match(both.stdout, new RegExp(`^${signed}  delivered  204  \\d+ ms\n${first}  delivered`))
  t.same(sent(), [signed, first])
  t.match(await attemptsOf(base, first), [{ outcome: 'delivered', kind: /replay/i }])

  const failed = await replay(String(first), '--to', `${receiver.url}/no`, '--json')
  t.match(failed, { code: 1, stderr: '' })
  t.match(JSON.parse(failed.stdout), { id: first, outcome: 'failed', status: 410 })
  const local = await replay(String(first), '--to', 'http://10.0.0.1/')
  t.match(local, { code: 1, stdout: /refused  -  \d+ ms  the target is not on the public/ })
})

await t.test('a filter: counted, then exactly what was counted', async (t: Test) => {
  const { length } = receiver.received
  const dry = await replay(...filter, '--dry-run')
  t.match(dry, { code: 0, stdout: `2 events; to send them: ${proof.join(' ')}\n`, stderr: '' })
  const json = await replay('--event-type', 'order', '--dry-run', '--json')
  t.same(JSON.parse(json.stdout), { count: 1, more: false, highest_id: first })
  const none = await replay('--text', 'nowhere', '--dry-run')
  t.match(none, { code: 0, stdout: 'no events match\n' })
  t.equal(receiver.received.length, length, 'nothing was sent')

  await send('later')
  const done = await replay(...filter, ...proof, ...yes)
  t.match(done, { code: 0, stdout: 'finished: 2 delivered, 0 failed\n' })
  t.same(sent().slice(length).toSorted(), [first, second])
  const refused = await replay(...filter, ...proof, '--to', `${receiver.url}/no`)
  const ids = `${first} ${second}`
  t.match(refused, { code: 1, stdout: `finished: 0 delivered, 2 failed (${ids})\n` })
  const { stdout } = await replay(...filter, ...proof, ...yes, '--json')
  t.match(JSON.parse(stdout), { state: 'finished', done: 2, failed_ids: [], waiting: 0 })
})

await t.test('a signal ends the command, and the job goes on', async (t: Test) => {
  const stop = Promise.withResolvers<string>()
  let [stdout, stderr] = ['', '']
  const args = ['events', 'replay', '--from', base, ...filter, ...proof]
  const code = runHere(
    [...args, '--to', `${receiver.url}/held`],
    {},
    {
      stdout: (text) => (stdout += text),
      stderr: (text) => (stderr += text),
      stop: stop.promise,
    },
  )
  await until(() => held.length === 2, 'the events to arrive')
  stop.resolve('SIGINT')
  t.equal(await code, 1)
  const [, id] =
    /^sending: 0 delivered, 0 failed, 2 not sent; job (\w+) goes on\n$/.exec(stdout) ?? []
  t.ok(id, stdout)
  t.match(stderr, new RegExp(`^job ${id}: a signal ends this command, not the job\n`))
  for (const answer of held.splice(0)) answer()
  await until(async () => {
    const { text } = await request(`${base}/api/v1/replay-jobs/${id}`)
    return /"state":"finished".*"delivered":2/.test(text)
  }, 'the job to end')
})

await t.test('what is refused sends nothing', async (t: Test) => {
  const reader = await addEndpoint(base, 'reader')
  const refused = (...args: readonly string[]) => ['events', 'replay', '--from', base, ...args]
  const id = String(first)
  const state = async (): Promise<number> => receiver.received.length
  await refuseCommands(t, { env: {}, state }, [
    [refused(), 2, /Give ids of events, or a filter such as --provider/],
    [refused('--dry-run'), 2, /Give ids of events, or a filter/],
    [refused(id, ...filter), 2, /not both/],
    [refused(id, '--dry-run'), 2, /not both/],
    [refused('x'), 2, /ID/],
    [refused(...filter, ...yes), 2, /--dry-run first/],
    [refused(...filter, '--confirm', '2', ...yes), 2, /--dry-run first/],
    [refused(...filter, '--highest-id', id, ...yes), 2, /--dry-run first/],
    [refused(...filter, '--dry-run', '--confirm', '2'), 2, /nothing to confirm/],
    [refused(...filter, ...proof, '--confirm', '10001'), 2, /--confirm/],
    [refused(id, '--to', 'ftp://x'), 2, /--to/],
    [refused('--since', 'x', '--dry-run'), 2, /--since must be/],
    [refused('--json-member', 'x', '--dry-run'), 2, /--json-member must be/],
    [refused('999999', ...yes), 1, 'the server answers 404: There is no event 999999.'],
    [refused(id), 1, /no default target/],
    [refused(...filter, ...proof), 1, /no default target/],
    [
      { args: refused(id, ...yes, '--token', '-'), input: reader.token },
      1,
      /403: This token may not replay/,
    ],
    [
      refused('--event-type', 'order', ...proof, ...yes),
      1,
      'found 1 event, expected 2; run with --dry-run again',
    ],
  ])
})
