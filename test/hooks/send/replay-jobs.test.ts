import { verify } from '@octokit/webhooks-methods'
import { t } from 'tap'
import { apiOf } from '../../helpers/api.ts'
import { postgres } from '../../helpers/backends.ts'
import {
  accepted,
  SECRETS,
  addProvider,
  deliver,
  postForm,
  startHooks,
  store,
} from '../../helpers/hooks.ts'
import { request } from '../../helpers/http.ts'
import { addEndpoint } from '../../helpers/mcp.ts'
import { refuseAll, type Refusal } from '../../helpers/refusals.ts'
import { attemptsOf, startReceiver } from '../../helpers/replays.ts'
import { secret } from '../../helpers/secrets.ts'
import { startServer } from '../../helpers/server.ts'
import { startTcpProxy } from '../../helpers/tcp-proxy.ts'
import { until } from '../../helpers/until.ts'

interface Job {
  id: string
  state: string
  target: string
  count: number
  delivered: number
  failed: number
  last_detail: string | null
  ended_at: string | null
}

interface Answer {
  highest_id: number | null
  job: Job | null
}

const START = '/events/replay'
const JOBS = '/replay-jobs'
const FINISHED = { state: 'finished' }
/** Answers that the receiver holds back. */
const held: (() => void)[] = []
let isDown = false
const receiver = await startReceiver(t, ({ path }, response) => {
  const status = path === '/no' ? 410 : 204
  const answer = () => void response.writeHead(status).end()
  if (path.startsWith('/held')) held.push(answer)
  else if (path === '/shaky' && isDown) response.destroy()
  else answer()
})
const { port } = receiver
const { base, env, server } = await startHooks(t, postgres, {
  HOOKS_REPLAY_TARGETS: `127.0.0.1:${port}`,
})
const query = postgres.query.bind(undefined, env)
// The tests hold requests back: on a slow machine longer than the default of 10 s.
await query('alter table hooks.destinations alter timeout_s set default 30')
const api = apiOf(base)
await addProvider(base, 'ci', { open: true })

function target(path: string) {
  return `http://127.0.0.1:${port}${path}`
}

const send = (type: string, body = '{}') => store(base, 'ci', body, { 'X-Event-Type': type })

async function count(filter: object) {
  const { status, json } = await api<Answer>('POST', START, { ...filter, dry_run: true })
  if (status !== 200) throw new Error(`a dry run answered ${status}: ${JSON.stringify(json)}`)
  return json
}

/** Starts a job for the events that a dry run has counted. */
async function start(filter: object, path: string, call = api) {
  const { highest_id } = await count(filter)
  const body = { ...filter, highest_id, target_url: target(path) }
  const { status, json } = await call<Answer>('POST', START, body)
  if (status !== 200 || json.job === null) {
    throw new Error(`a job was answered ${status}: ${JSON.stringify(json)}`)
  }
  return json.job
}

async function jobOf(id: string) {
  return (await api<Job>('GET', `${JOBS}/${id}`)).json
}

/** The job once it has these values. */
function untilJob({ id }: Job, wanted: Partial<Job>, call = api) {
  const have = async () => {
    const { json } = await call<Job>('GET', `${JOBS}/${id}`)
    const names = Object.keys(wanted) as (keyof Job)[]
    return names.every((name) => json[name] === wanted[name]) && json
  }
  return until(have, `a job with ${JSON.stringify(wanted)}`, undefined, 100)
}

/** The events that came to a path, as they came. */
function sentTo(path: string) {
  return receiver.received
    .filter((one) => one.path === path)
    .map(({ headers }) => Number(headers['x-gatehouse-replay']))
}

const byId = (one: number, other: number) => one - other

function answerHeld() {
  for (const answer of held.splice(0)) answer()
}

async function left() {
  const { text } = await request(`${base}/metrics`)
  return /^gatehouse_hooks_replay_job_left (\d+)$/m.exec(text)?.[1]
}

const first = await send('order', '{"order":{"id":"o-1"}}')
const second = await send('user')
const signed = await accepted(deliver(base, 'code_host', '{"order":{"id":"o-2"}}'))
const last = await send('order')

const insertMany = (provider: string, count: number) =>
  query(
    `with made as (
       insert into hooks.events (provider, trust, headers, payload, received_at)
       select $1, 3, '[]', ''::bytea, now() from generate_series(1, $2)
       returning id
     ) select min(id)::int as oldest from made`,
    [provider, count],
  )
const [many] = await insertMany('generic:many', 10_500)
const oldest = Number(many?.['oldest'])

await t.test('a dry run counts, and sends nothing', async (t) => {
  const cases: readonly (readonly [object, number, number | null])[] = [
    [{ highest_id: last }, 4, last],
    [{ provider: 'generic:ci', event_type: 'order' }, 2, last],
    [{ since: second, until: last }, 3, last],
    [{ since: '2000-01-01', highest_id: signed }, 3, signed],
    [{ text: 'o-2' }, 1, signed],
    [{ json: 'order.id=o-1' }, 1, first],
    [{ provider: 'generic:nobody' }, 0, null],
  ]
  for (const [filter, events, highest_id] of cases) {
    const expected = { count: events, more: false, highest_id, job: null }
    t.same(await count(filter), expected, JSON.stringify(filter))
  }
  t.equal(receiver.connections(), 0)
})

await t.test('exactly the events that were counted are sent', async (t) => {
  const { highest_id } = await count({ highest_id: last })
  await send('order')
  const body = { since: first, highest_id, target_url: target('/yes?token=hush') }
  const { json } = await api<Answer>('POST', START, body)
  t.match(json, {
    count: null,
    highest_id: last,
    job: { state: /planning|sending|finished/, target: /\/yes\?token=/ },
  })
  t.notMatch(json.job?.target, 'hush')
  const job = await untilJob(json.job as Job, FINISHED)
  const done = { count: 4, done: 4, delivered: 4, failed: 0, waiting: 0 }
  t.match(job, { id: json.job?.id, ...done, last_status: 204, started_at: /Z$/, ended_at: /Z$/ })
  t.match(job, { filter: { since: String(first) }, highest_id: last })
  const sent = receiver.received.find(({ headers }) => {
    return headers['x-gatehouse-replay'] === String(signed)
  })
  t.same(sentTo('/yes?token=hush').toSorted(byId), [first, second, signed, last])
  const signature = String(sent?.headers['x-hub-signature-256'])
  t.ok(await verify(SECRETS.code_host, String(sent?.body), signature), 'signed again')
  t.equal(sent?.headers['idempotency-key'], undefined, 'known by the ids of its sender')
  t.match(await attemptsOf(base, signed), [{ outcome: 'delivered', kind: /replay/i }])
  const { text } = await request(`${base}/destinations`)
  t.notMatch(text, job.id, 'no destination of the page')
  t.same((await api<object>('GET', '/destinations')).json, { destinations: [] })
  t.notMatch((await request(`${base}/metrics`)).text, job.id)
})

await t.test('what is not delivered counts as failed, with its reason', async (t) => {
  const refused = await start({ event_type: 'user' }, '/no')
  const job = await untilJob(refused, FINISHED)
  const counts = { done: 1, delivered: 0, failed: 1, failed_ids: [second], last_status: 410 }
  t.match(job, counts)
  t.match((await attemptsOf(base, second))[0], { outcome: 'failed', answer: /^410/ })
  const { json } = await api<{ jobs: readonly Job[] }>('GET', JOBS)
  t.match(json.jobs[0], { id: refused.id, failed_ids: [second] }, 'the newest first')
})

await t.test('many events: the oldest first, two jobs beside each other', async (t) => {
  const more = await count({ provider: 'generic:many' })
  t.same(more, { count: 10_000, more: true, highest_id: more.highest_id, job: null })
  const job = await start({ provider: 'generic:many' }, '/held')
  const sending = await untilJob(job, { state: 'sending', count: 10_500 })
  t.equal(sending.ended_at, null)
  const first = Array.from({ length: 64 }, (_, at) => oldest + at)
  await until(() => held.length === 64, 'as many as may be under way')
  t.same(sentTo('/held').toSorted(byId), first, 'the oldest of all')
  t.match(await jobOf(job.id), { done: 0, waiting: 10_500 })
  t.equal(await until(left, 'the gauge'), '10500')

  const other = await start({ event_type: 'user' }, '/yes')
  // Another one runs meanwhile.
  await untilJob(other, { ...FINISHED, delivered: 1 })

  const { json } = await api<Job>('DELETE', `${JOBS}/${job.id}`)
  t.match(json, { state: 'cancelled', delivered: 0, waiting: 10_500, ended_at: /Z$/ })
  answerHeld()
  await untilJob(job, { delivered: 64 })
  t.equal(held.length, 0, 'what was sent is counted, and nothing follows')
  t.match((await api<Job>('DELETE', `${JOBS}/${job.id}`)).json, { state: 'cancelled' }, 'again')
  await until(async () => (await left()) === '0', 'the gauge')
})

await t.test('a receiver that is down, and up again', async (t) => {
  isDown = true
  const job = await start({ provider: 'generic:ci' }, '/shaky')
  const tried = await until(async () => {
    const now = await jobOf(job.id)
    return now.last_detail === null ? undefined : now
  }, 'a try')
  t.match(tried, { state: 'sending', failed: 0, last_status: null })
  isDown = false
  // The second try is made after 5 s.
  t.match(await untilJob(job, FINISHED), { failed: 0, waiting: 0 })
})

await t.test('who may start, read and cancel, and bad input', async (t) => {
  const agent = await addEndpoint(base, 'agent')
  const { id } = await untilJob(await start({ event_type: 'user' }, '/yes'), FINISHED)
  const call = `POST /api/v1${START}`
  const job = { call: `GET /api/v1${JOBS}/${id}` }
  const cancel = { call: `DELETE /api/v1${JOBS}/${id}` }
  const body = { highest_id: last, target_url: target('/yes') }
  const reading = { authorization: `Bearer ${agent.token}` }
  const wrong = { authorization: `Bearer ${secret('wrong-token')}` }
  const foreign = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }
  const strangers = [{ call, body }, job, cancel].flatMap((row): Refusal[] => [
    [{ ...row, headers: reading }, 403, /may not replay/],
    [{ ...row, headers: wrong }, 401],
    [{ ...row, headers: { host: 'evil.example' } }, 403],
    [{ ...row, headers: { 'x-forwarded-for': '192.0.2.1' } }, 403],
  ])
  const inputs: readonly (readonly [object, number, RegExp])[] = [
    [{ target_url: target('/yes') }, 400, /highest_id is missing; ask with dry_run/],
    [{ highest_id: 0 }, 400, /highest_id/],
    [{ ...body, dry_run: 'yes' }, 400, /dry_run must be/],
    [{ ...body, since: 'yesterday' }, 400, /since must be/],
    [{ ...body, json: 'x' }, 400, /json must be/],
    [{ highest_id: last }, 422, /no default target/],
    [{ highest_id: last, target_url: 'ftp://x' }, 422, /must be an http/],
    [{ highest_id: last, target_url: 'http://10.0.0.1/' }, 422, /not on the public internet; an/],
  ]
  const state = async () => [await jobOf(id), receiver.received.length]
  await refuseAll(t, { service: 'hooks', base, state }, [
    ...strangers,
    [{ call, body, headers: foreign }, 403],
    [{ ...cancel, headers: foreign }, 403],
    [{ call, body: 'x' }, 400],
    ...inputs.map(([input, status, text]): Refusal => {
      return [{ call, body: input }, status, undefined, text]
    }),
    [`GET /api/v1${JOBS}/none`, 404, /kept for a week/],
    [`DELETE /api/v1${JOBS}/none`, 404],
  ])
})

await t.test('a job of a token ends with the token', async (t) => {
  const { token } = await addEndpoint(base, 'sender', { allow_replay: 'true' })
  const program = apiOf(base, token)
  const job = await start({ provider: 'generic:many' }, '/held', program)
  const own = await start({ provider: 'generic:many' }, '/held')
  await until(() => held.length === 128, 'both to send')
  t.equal((await program('GET', `${JOBS}/${job.id}`)).status, 200)
  await postForm(base, '/settings/endpoints/sender/revoke', {})
  t.match(await jobOf(job.id), { state: 'cancelled' })
  t.match(await jobOf(own.id), { state: 'sending' }, 'those of others go on')
  await api('DELETE', `${JOBS}/${own.id}`)
  answerHeld()
  await untilJob(job, { delivered: 64 })
  await untilJob(own, { delivered: 64 })
})

await t.test('what retention removes counts as failed; ended jobs are kept a week', async (t) => {
  const job = await start({ provider: 'generic:many' }, '/held')
  await until(() => held.length === 64, 'the first to be sent')
  await postForm(base, '/settings', { retention_max_rows: '1' })
  // What a destination is owed is spared for seven days of its age.
  await query(`update hooks.events set received_at = received_at - interval '8 days'`)
  await postForm(base, '/settings', { retention_max_rows: '2' })
  await until(async () => (await jobOf(job.id)).failed > 0, 'the removal')
  const over = await until(async () => {
    answerHeld()
    const now = await jobOf(job.id)
    return now.ended_at !== null && now
  }, 'the end')
  t.match(over, { ...FINISHED, count: 10_500, done: 10_500, waiting: 0 })

  const { json } = await api<{ jobs: readonly Job[] }>('GET', JOBS)
  await query(`update hooks.replay_jobs set ended_at = ended_at - interval '8 days'
      where destination <> 'replay:${job.id}'`)
  await postForm(base, '/settings', { retention_max_rows: '3' })
  await until(async () => {
    const now = await api<{ jobs: readonly Job[] }>('GET', JOBS)
    return now.json.jobs.length === 1
  }, 'the old jobs to go')
  t.ok(json.jobs.length > 3)
  const rows = () => query(`select 1 from hooks.destinations where kind = 'replay'`)
  await until(async () => (await rows()).length === 1, 'their rows to go')
})

await t.test('two instances share a job; one without its database waits', async (t) => {
  await postForm(base, '/settings', { retention_max_rows: '50000' })
  const [made] = await insertMany('generic:both', 200)
  const url = String(env['DATABASE_URL'])
  const proxy = await startTcpProxy(t, url)
  const through = { ...env, DATABASE_URL: proxy.through(url) }
  const { hooks } = await startServer(t, { services: ['hooks'], env: through })
  const other = apiOf(hooks)
  const all = { provider: 'generic:both' }
  const shared = await start(all, '/both')
  t.match(await untilJob(shared, FINISHED, other), { delivered: 200, failed: 0 })
  const ids = Array.from({ length: 200 }, (_, at) => Number(made?.['oldest']) + at)
  t.same(sentTo('/both').toSorted(byId), ids, 'each once')

  const job = await start(all, '/held')
  await until(() => held.length > 0, 'the first event to arrive')
  const end = await other<Job>('DELETE', `${JOBS}/${job.id}`)
  t.match(end.json, { state: 'cancelled' }, 'either ends it')
  answerHeld()

  await server.stop()
  const id = await accepted(deliver(hooks, 'code_host', '{}'))
  // What the jobs before have left under way may still come to their own path.
  const body = { since: id, highest_id: id, target_url: target('/held/alone') }
  const alone = (await other<Answer>('POST', START, body)).json.job
  await until(() => sentTo('/held/alone').length === 1, 'the event to arrive')
  proxy.refuse()
  proxy.reset()
  answerHeld()
  await proxy.pass()
  const over = await until(async () => {
    answerHeld()
    const { json } = await other<Job>('GET', `${JOBS}/${alone?.id}`)
    return json.ended_at !== null && json
  }, 'the job to end')
  t.match(over, { ...FINISHED, delivered: 1 })
})
