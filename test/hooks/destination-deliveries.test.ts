import { t } from 'tap'
import type { Test } from 'tap'
import { apiOf } from '../helpers/api.ts'
import { onPostgres } from '../helpers/backends.ts'
import { refuseCommands } from '../helpers/cli.ts'
import { addDestination, destination, listed, untilListed } from '../helpers/destinations.ts'
import { request } from '../helpers/http.ts'
import { addProvider, FORM_TYPE, post, startHooks, type Ack } from '../helpers/hooks.ts'
import { refuseAll } from '../helpers/refusals.ts'
import { startReceiver } from '../helpers/replays.ts'
import { until } from '../helpers/until.ts'

type Row = Readonly<Record<string, unknown>> & { event_id: number }
type Page = { deliveries: readonly Row[]; next_cursor: string | null }

await onPostgres(t, 'what a destination is owed', async (t: Test, backend) => {
  const { base, env } = await startHooks(t, backend, { HOOKS_REPLAY_TARGETS: '127.0.0.1' })
  const api = apiOf(base)
  await addProvider(base, 'lan', { open: true })
  let status = 503
  // Without Retry-After, those with 503 would be tried again after 5 s.
  const receiver = await startReceiver(t, (_, response) => {
    response.writeHead(status, { 'Retry-After': '3600' }).end()
  })
  await addDestination(env, 'erp', receiver.url)
  const send = async (type: string) =>
    (await post(base, 'generic/lan', '{}', { 'X-Event-Type': type })).json<Ack>().id
  const list = async (query = '') => {
    return (await api<Page>('GET', `/destinations/erp/deliveries${query}`)).json
  }
  const idsOf = ({ deliveries }: Page) => deliveries.map(({ event_id }) => event_id)
  const ids: number[] = []
  for (let n = 0; n < 3; n++) ids.push(await send(`late-${n}`))
  await until(() => receiver.received.length === 3, 'the first tries')
  await untilListed(env, 'erp', { waiting: 3, last_status: 503 })
  status = 410
  for (let n = 0; n < 3; n++) ids.push(await send(`gone-${n}`))
  await untilListed(env, 'erp', { waiting: 3, dead: 3 })
  const dead = ids.slice(3)

  await t.test('API, page and command list it, with the last answer to each', async (t) => {
    const waiting = await list()
    t.same(idsOf(waiting), ids.slice(0, 3))
    t.match(waiting.deliveries[0], {
      ...{ state: 'waiting', provider: 'generic:lan', event_type: 'late-0', tries: 1 },
      ...{ last_status: 503, last_detail: null, next_at: /^\d{4}-/, last_at: /^\d{4}-/ },
    })
    const gone = await list('?state=dead')
    t.same(idsOf(gone), dead)
    t.match(gone.deliveries[0], { state: 'dead', next_at: null, last_status: 410 })
    const first = await list('?state=dead&limit=2')
    t.same(idsOf(first), dead.slice(0, 2))
    const rest = await list(`?state=dead&limit=2&cursor=${first.next_cursor ?? ''}`)
    t.same([idsOf(rest), rest.next_cursor], [dead.slice(2), null])

    const page = (await request(`${base}/destinations/erp?state=dead`)).text
    t.match(page, /Waiting \(3\)[\s\S]*Given up \(3\)/)
    for (const id of dead) t.match(page, `data-delivery="${id}"`)
    t.match(page, /hx-get="\/destinations\/erp\?state=dead" hx-trigger="every 3s"/, 'it is live')
    const { stdout } = await destination(env, 'deliveries', 'erp', '--dead')
    t.match(stdout, /gone-0 +1 +given up +410, /)
    t.match((await destination(env, 'deliveries', 'erp')).stdout, /late-0 +1 +\d{4}-.* +503, /)
  })

  await t.test('one, some or all are tried again', async (t) => {
    status = 204
    const [first = 0, second = 0, third = 0] = dead
    const retry = (body: object) => api('POST', '/destinations/erp/retry', body)
    t.same((await retry({ events: [] })).json, { retried: 0 })
    t.same((await retry({ events: [first] })).json, { retried: 1 })
    await untilListed(env, 'erp', { delivered: 1, dead: 2, waiting: 3 })
    const { stderr } = await destination(env, 'retry', 'erp', '--event', String(second))
    t.equal(stderr, '1 delivery is tried again\n')
    await untilListed(env, 'erp', { delivered: 2, dead: 1, waiting: 3 })
    const body = `events=${third}&events=${ids[0] ?? 0}`
    const form = { method: 'POST', headers: FORM_TYPE, body }
    const answer = await request(`${base}/destinations/erp/deliveries?state=dead`, form)
    t.match(answer, { status: 200, headers: { 'gatehouse-done': 'Retried%202%20deliveries.' } })
    await untilListed(env, 'erp', { delivered: 4, dead: 0, waiting: 2 })
    t.same((await retry({})).json, { retried: 2 })
    await untilListed(env, 'erp', { delivered: 6, dead: 0, waiting: 0 })
    t.same(await list(), { deliveries: [], next_cursor: null })
  })

  await t.test('what is refused', async (t) => {
    const retry = (body: object) => ({ call: 'POST /api/v1/destinations/erp/retry', body })
    const state = () => listed(env, 'erp')
    const many = Array.from({ length: 1_001 }, (_, n) => n + 1)
    await refuseAll(t, { service: 'hooks', base, state }, [
      ['GET /api/v1/destinations/none/deliveries', 404],
      ['GET /api/v1/destinations/erp/deliveries?state=done', 400, undefined, /waiting or dead/],
      ['GET /api/v1/destinations/erp/deliveries?limit=201', 400, undefined, /from 1 to 200/],
      ['GET /api/v1/destinations/erp/deliveries?cursor=x', 400, undefined, /^cursor is not valid/],
      [retry({ events: 'all' }), 400, undefined, /^events must be/],
      [retry({ events: [0] }), 400, undefined, /^events must be a list of event ids/],
      [retry({ events: [1.5] }), 400],
      [retry({ events: many }), 400, undefined, /1000 at most/],
      [{ call: 'POST /api/v1/destinations/none/retry', body: { events: [1] } }, 404],
      [
        { call: 'POST /destinations/erp/deliveries', headers: FORM_TYPE, body: 'events=x' },
        ...([422, undefined, /^events must be/] as const),
      ],
      [{ call: 'POST /destinations/none/deliveries', headers: FORM_TYPE, body: 'events=1' }, 404],
    ])
    await refuseCommands(t, { env, state }, [
      [['destination', 'deliveries', 'none'], 1, /There is no destination "none"/],
      [['destination', 'retry', 'erp', '--event', 'x'], 2, /--event must be a list of event ids/],
      [['destination', 'retry', 'erp', '--event', '1', '--dead'], 2, /takes no other flag/],
    ])
  })
})

await onPostgres(t, 'a step of planning reads few bytes', async (t: Test, backend) => {
  const { base, env } = await startHooks(t, backend, { HOOKS_REPLAY_TARGETS: '127.0.0.1' })
  await addProvider(base, 'lan', { open: true })
  const receiver = await startReceiver(t)
  await addDestination(env, 'member', receiver.url, '--json-member', 'n=1')
  t.equal((await destination(env, 'disable', 'member')).code, 0)
  // Ids are missing where retention has removed events, or a transaction was rolled back.
  const drawn = "select setval(pg_get_serial_sequence('hooks.events', 'id'), 5000)"
  await backend.query(env, drawn)
  const body = JSON.stringify({ n: 1, filler: 'x'.repeat(300_000) })
  for (let n = 0; n < 8; n++) await post(base, 'generic/lan', body)
  await backend.query(env, 'create table reads (step xid8)')
  await backend.query(
    env,
    `create or replace function hooks.payload_json(payload bytea) returns jsonb
     language plpgsql volatile strict
     as $$ begin insert into reads values (pg_current_xact_id()); return '{"n": 1}'; end $$`,
  )
  t.equal((await destination(env, 'enable', 'member')).code, 0)
  await untilListed(env, 'member', { delivered: 8, waiting: 0 })
  const steps = 'select count(*)::int as n from reads group by step order by step::text::bigint'
  t.same(
    await backend.query(env, steps),
    [{ n: 4 }, { n: 4 }],
    'one that passes 1 MiB is the last',
  )
})
