import { verify } from '@octokit/webhooks-methods'
import { t } from 'tap'
import type { Test } from 'tap'
import { apiOf } from '../helpers/api.ts'
import { backends } from '../helpers/backends.ts'
import {
  SECRETS,
  addProvider,
  deliver,
  post,
  postForm,
  startHooks,
  type Ack,
} from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'
import { addEndpoint } from '../helpers/mcp.ts'
import { refuseAll, type Refusal } from '../helpers/refusals.ts'
import { attemptsOf, startReceiver } from '../helpers/replays.ts'
import { secret } from '../helpers/secrets.ts'
import { startServer } from '../helpers/server.ts'
import { startTcpProxy } from '../helpers/tcp-proxy.ts'
import { until } from '../helpers/until.ts'

interface Job {
  id: string
  state: string
  target: string
  count: number
  done: number
  delivered: number
  failed: number
  last_id: number | null
  started_at: string
  ended_at: string | null
}

interface Answer {
  count: number
  highest_id: number | null
  job: Job | null
}

const START = '/events/replay'
const JOBS = '/replay-jobs'
const [, postgres] = backends
/** Answers that the receiver holds back. */
const held: (() => void)[] = []
const receiver = await startReceiver(t, ({ path }, response) => {
  const status = path === '/no' ? 410 : 204
  const answer = () => void response.writeHead(status).end()
  if (path === '/held') held.push(answer)
  else answer()
})
const { port } = receiver
const { base, env, server } = await startHooks(t, postgres, {
  HOOKS_REPLAY_TARGETS: `127.0.0.1:${port}`,
})
const api = apiOf(base)
await addProvider(base, 'ci', { open: true })

function target(path: string): string {
  return `http://127.0.0.1:${port}${path}`
}

async function send(type: string, body = '{}'): Promise<number> {
  return (await post(base, 'generic/ci', body, { 'X-Event-Type': type })).json<Ack>().id
}

async function count(filter: object): Promise<Answer> {
  const { status, json } = await api<Answer>('POST', START, { ...filter, dry_run: true })
  if (status !== 200) throw new Error(`a dry run answered ${status}: ${JSON.stringify(json)}`)
  return json
}

/** Starts a job for the events that a dry run has counted. */
async function start(filter: object, path: string, call = api): Promise<Job> {
  const { highest_id } = await count(filter)
  const body = { ...filter, highest_id, target_url: target(path) }
  const { status, json } = await call<Answer>('POST', START, body)
  if (status !== 200 || json.job === null) {
    throw new Error(`a job was answered ${status}: ${JSON.stringify(json)}`)
  }
  return json.job
}

async function jobOf(id: string): Promise<Job> {
  return (await api<Job>('GET', `${JOBS}/${id}`)).json
}

/** The job once it has ended. */
function ended({ id }: Job): Promise<Job> {
  return until(async () => {
    const job = await jobOf(id)
    return job.ended_at === null ? undefined : job
  }, 'the job to end')
}

async function left(): Promise<string | undefined> {
  const { text } = await request(`${base}/metrics`)
  return /^gatehouse_hooks_replay_job_left (\d+)$/m.exec(text)?.[1]
}

const first = await send('order', '{"order":{"id":"o-1"}}')
const second = await send('user')
const signed = (await deliver(base, 'code_host', '{"order":{"id":"o-2"}}')).json<Ack>().id
const last = await send('order')

await t.test('a dry run counts, and sends nothing', async (t: Test) => {
  const cases: readonly (readonly [object, number, number | null])[] = [
    [{}, 4, last],
    [{ provider: 'generic:ci' }, 3, last],
    [{ event_type: 'order' }, 2, last],
    [{ provider: 'generic:ci', event_type: 'user' }, 1, second],
    [{ since: second }, 3, last],
    [{ since: String(signed) }, 2, last],
    [{ since: '2000-01-01' }, 4, last],
    [{ highest_id: second }, 2, second],
    [{ since: second, highest_id: signed }, 2, signed],
    [{ text: 'o-2' }, 1, signed],
    [{ json: 'order.id=o-1' }, 1, first],
    [{ provider: 'generic:nobody' }, 0, null],
  ]
  for (const [filter, events, highest_id] of cases) {
    const expected = { count: events, highest_id, job: null }
    t.same(await count(filter), expected, JSON.stringify(filter))
  }
  t.equal(receiver.connections(), 0)
})

await t.test('exactly the events that were counted are sent, oldest first', async (t: Test) => {
  const { highest_id } = await count({})
  await send('order')
  const body = { highest_id, target_url: target('/yes?token=hush') }
  const { json } = await api<Answer>('POST', START, body)
  t.match(json, { count: 4, highest_id: last, job: { count: 4, target: /\/yes\?token=/ } })
  t.notMatch(json.job?.target, 'hush')
  const job = await ended(json.job as Job)
  const done = { state: 'finished', done: 4, delivered: 4, failed: 0, last_id: last }
  t.match(job, { id: json.job?.id, ...done, started_at: /Z$/, ended_at: /Z$/ })
  t.same(
    receiver.received.map(({ headers }) => Number(headers['x-gatehouse-replay'])),
    [first, second, signed, last],
  )
  const [, , sent] = receiver.received
  const signature = String(sent?.headers['x-hub-signature-256'])
  t.ok(await verify(SECRETS.code_host, String(sent?.body), signature), 'signed again')
  t.match(await attemptsOf(base, signed), [{ outcome: 'delivered', kind: /replay/i }])
})

await t.test('what is not delivered counts as failed, with its reason', async (t: Test) => {
  const refused = await ended(await start({ event_type: 'user' }, '/no'))
  t.match(refused, { state: 'finished', done: 1, delivered: 0, failed: 1, failed_ids: [second] })
  t.match((await attemptsOf(base, second))[0], { outcome: 'failed', answer: /^410/ })
})

await t.test('one job at a time, readable, and cancelled after the event', async (t: Test) => {
  const body = { highest_id: last, target_url: target('/held') }
  const job = await start({ since: second }, '/held')
  await until(() => held.length === 1, 'the first event to arrive')
  t.match(await jobOf(job.id), { state: 'running', done: 0, last_id: null, ended_at: null })
  t.equal(await left(), String(job.count))
  const again = await api<{ detail: string }>('POST', START, body)
  t.match(again, { status: 409, json: { detail: new RegExp(`job ${job.id} runs, 0 of`) } })
  t.equal((await count({ event_type: 'user' })).count, 1, 'counting goes on')

  held.pop()?.()
  await until(() => held.length === 1, 'the second event to arrive')
  t.match(await jobOf(job.id), { done: 1, delivered: 1, last_id: second })
  const cancelled = api<Job>('DELETE', `${JOBS}/${job.id}`)
  const isCancelling = async () => (await jobOf(job.id)).state === 'cancelling'
  await until(isCancelling, 'the job to be cancelled')
  held.pop()?.()
  const end = { state: 'cancelled', done: 2, delivered: 2, failed: 0, last_id: signed }
  t.match(await cancelled, { status: 200, json: end })
  t.equal(await left(), '0')
  t.match((await api<Job>('DELETE', `${JOBS}/${job.id}`)).json, end, 'a second time, too')

  const next = await start({ event_type: 'user' }, '/yes')
  t.match(await ended(next), { state: 'finished' })
  t.equal((await api('GET', `${JOBS}/${job.id}`)).status, 404, 'only the last job is known')
})

await t.test('who may start, read and cancel, and bad input', async (t: Test) => {
  const agent = await addEndpoint(base, 'agent')
  const { id } = await ended(await start({ event_type: 'user' }, '/yes'))
  const call = `POST /api/v1${START}`
  const job = { call: `GET /api/v1${JOBS}/${id}` }
  const cancel = { call: `DELETE /api/v1${JOBS}/${id}` }
  const body = { highest_id: last, target_url: target('/yes') }
  const reading = { authorization: `Bearer ${agent.token}` }
  const wrong = { authorization: `Bearer ${secret('wrong-token')}` }
  const foreign = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }
  const strangers = [{ call, body }, job, cancel].flatMap((row): Refusal[] => [
    [{ ...row, headers: reading }, 403, undefined, /may not replay/],
    [{ ...row, headers: wrong }, 401],
    [{ ...row, headers: { host: 'evil.example' } }, 403],
    [{ ...row, headers: { 'x-forwarded-for': '192.0.2.1' } }, 403],
  ])
  const inputs: readonly (readonly [object, number, RegExp])[] = [
    [{ target_url: target('/yes') }, 400, /highest_id is missing; ask with dry_run/],
    [{ highest_id: 0 }, 400, /highest_id/],
    [{ highest_id: 2 ** 53 }, 400, /highest_id/],
    [{ ...body, dry_run: 'yes' }, 400, /dry_run must be/],
    [{ ...body, since: 'yesterday' }, 400, /since must be/],
    [{ ...body, since: -1 }, 400, /since must be/],
    [{ ...body, json: 'x' }, 400, /json must be/],
    [{ ...body, provider: 1 }, 400, /provider/],
    [{ highest_id: last }, 422, /no default target/],
    [{ highest_id: last, target_url: 'ftp://x' }, 422, /must be an http/],
    [{ highest_id: last, target_url: 'https://u:p@example.com' }, 422, /without credentials/],
    [
      { highest_id: last, target_url: 'http://10.0.0.1/' },
      422,
      /not on the public internet; an operator can allow it in HOOKS_REPLAY_TARGETS\.$/,
    ],
  ]
  const { length } = receiver.received
  const state = async () => [await jobOf(id), receiver.received.length]
  await refuseAll(t, { service: 'hooks', base, state }, [
    ...strangers,
    [{ call, body, headers: foreign }, 403],
    [{ ...cancel, headers: foreign }, 403],
    [{ call, body: 'x' }, 400],
    ...inputs.map(([input, status, text]): Refusal => {
      return [{ call, body: input }, status, undefined, text]
    }),
    [`GET /api/v1${JOBS}/none`, 404, undefined, /a restart of the server/],
    [`DELETE /api/v1${JOBS}/none`, 404],
  ])
  t.equal(receiver.received.length, length)
})

await t.test('a job of a token ends with the token', async (t: Test) => {
  const { token } = await addEndpoint(base, 'sender', { allow_replay: 'true' })
  const program = apiOf(base, token)
  const job = await start({}, '/held', program)
  await until(() => held.length === 1, 'the first event to arrive')
  t.equal((await program('GET', `${JOBS}/${job.id}`)).status, 200)
  await postForm(base, '/settings/endpoints/sender/revoke', {})
  held.pop()?.()
  t.match(await ended(job), { state: 'cancelled', done: 1 })
})

await t.test('1,000 events at most', async (t: Test) => {
  await postgres.query(
    env,
    `insert into hooks.events (provider, trust, headers, payload, received_at)
     select 'generic:many', 3, '[]', ''::bytea, now() from generate_series(1, 1001)`,
  )
  const many = { provider: 'generic:many' }
  const [row] = await postgres.query(
    env,
    `select min(id)::int as oldest, max(id)::int as newest from hooks.events
      where provider = 'generic:many'`,
  )
  const { oldest, newest } = row as { oldest: number; newest: number }
  for (const more of [{ dry_run: true }, { highest_id: newest, target_url: target('/yes') }]) {
    const detail = new RegExp(`More than 1000 .* begin at event ${oldest + 1}:`)
    t.match(await api('POST', START, { ...many, ...more }), { status: 422, json: { detail } })
  }
  const counted = await count({ ...many, since: oldest + 1 })
  t.same(counted, { count: 1_000, highest_id: newest, job: null })
  const job = await start({ ...many, highest_id: newest - 1 }, '/held')
  t.equal(job.count, 1_000)
  await until(() => held.length === 1, 'the first event to arrive')
  const cancelled = api<Job>('DELETE', `${JOBS}/${job.id}`)
  await until(async () => (await jobOf(job.id)).state === 'cancelling', 'the end to begin')
  held.pop()?.()
  t.match((await cancelled).json, { state: 'cancelled', done: 1, last_id: oldest })
})

await t.test('without the database a job ends, and says how far it has come', async (t: Test) => {
  const proxy = await startTcpProxy(t, String(env['DATABASE_URL']))
  const through = { ...env, DATABASE_URL: proxy.through(String(env['DATABASE_URL'])) }
  const { hooks: shaky } = await startServer(t, { services: ['hooks'], env: through })
  const call = apiOf(shaky)
  const job = await start({ since: second, highest_id: last }, '/held', call)
  await until(() => held.length === 1, 'the first event to arrive')
  held.pop()?.()
  await until(() => held.length === 1, 'the second event to arrive')
  proxy.refuse()
  proxy.reset()
  held.pop()?.()
  const over = await until(async () => {
    const { json } = await call<Job>('GET', `${JOBS}/${job.id}`)
    return json.ended_at === null ? undefined : json
  }, 'the job to end')
  t.match(over, { state: 'interrupted', done: 1, last_id: second })
  await proxy.pass()
})

await t.test('a stop of the server ends the job, whatever the target does', async (t: Test) => {
  const job = await start({ provider: 'generic:ci' }, '/held')
  await until(() => held.length === 1, 'the first event to arrive')
  await server.stop()
  const lines = server.logs().filter((line) => line.includes('"replay job ended"'))
  t.match(JSON.parse(lines.at(-1) ?? '{}'), {
    job: job.id,
    state: 'cancelled',
    done: 1,
    failed: 1,
  })
  const again = await startServer(t, { services: ['hooks'], env })
  t.equal((await apiOf(again.hooks)('GET', `${JOBS}/${job.id}`)).status, 404)
})
