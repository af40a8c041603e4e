import { t } from 'tap'
import type { Test } from 'tap'
import { onPostgres } from '../helpers/backends.ts'
import { ended, startOps } from '../helpers/ops.ts'
import type { Event, Memory } from '../helpers/ops.ts'
import { refuseAll, refuses } from '../helpers/refusals.ts'
import type { Refusal } from '../helpers/refusals.ts'

const NO_COUNTS = ['-1', '1.5', 'x', '', '1e3', ' 1']
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const FIELDS = [
  ...['id', 'service', 'category', 'observation', 'confidence', 'active', 'created_at'],
  ...['updated_at', 'session_id', 'tier'],
]
const NO_IDS = ['x', '1.5', '1x', '%201', '1%00']
const UNKNOWN = ['0', '-1', '999', '9223372036854775808', '99999999999999999999999']

/** A change of a memory that is not there, or by what is no id. */
function refusedIds(method: string, body?: object): readonly Refusal[] {
  const call = (id: string) => ({ call: `${method} /api/v1/memories/${id}`, body })
  return [
    ...NO_IDS.map((id): Refusal => [call(id), 400, undefined, /integer/]),
    ...UNKNOWN.map((id): Refusal => [call(id), 404, undefined, 'memory not found']),
  ]
}

type Events = { readonly events: readonly Event[] }
type Memories = { readonly memories: readonly Memory[] }

await onPostgres(t, 'memories of the API', async (t: Test, backend) => {
  const { api, base } = await startOps(t, backend)
  const list = async (query = ''): Promise<readonly Memory[]> =>
    (await api<Memories>('GET', `/memories${query}`)).json.memories
  const add = async (body: object): Promise<Memory> =>
    (await api<Memory>('POST', '/memories', body)).json

  await t.test('an empty list', async (t) => {
    const answer = await api('GET', '/memories')
    t.same([answer.status, answer.json], [200, { memories: [] }])
  })

  await t.test('201 with its defaults, and with all that may be given', async (t) => {
    const answer = await api<Memory>('POST', '/memories', {
      category: 'any',
      observation: 'é 🙂\n',
    })
    t.equal(answer.status, 201)
    t.same(Object.keys(answer.json).toSorted(), FIELDS.toSorted())
    const { id, created_at, updated_at, ...rest } = answer.json
    t.same(rest, {
      ...{ service: null, category: 'any', observation: 'é 🙂\n', confidence: 0.7, active: true },
      ...{ session_id: null, tier: 0 },
    })
    t.type(id, 'number')
    t.match(created_at, TIME)
    t.equal(updated_at, created_at)
    const all = {
      service: 'db',
      category: 'timing',
      observation: 'slow',
      confidence: 1,
      active: false,
    }
    t.match(await add({ ...all, tier: 3, session_id: 1, id: 1 }), {
      ...all,
      tier: 0,
      session_id: null,
    })
    t.match(await add({ category: 'a', observation: 'b', service: null, confidence: 0 }), {
      confidence: 0,
    })
    const twin = await add({ category: 'any', observation: 'é 🙂\n' })
    t.not(twin.id, id, 'always a new one')
    t.equal((await list()).length, 4)
  })

  await t.test('400, 415 and 413 for what can not be added', async (t) => {
    const good = { category: 'c', observation: 'o' }
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    const bodies: readonly (readonly [body: unknown, text: RegExp])[] = [
      [{ observation: 'o' }, /category/],
      [{ ...good, category: '' }, /category/],
      [{ ...good, category: 7 }, /category/],
      [{ ...good, category: 'x'.repeat(101) }, /category/],
      [{ category: 'c' }, /observation/],
      [{ ...good, observation: ' ' }, /observation/],
      [{ ...good, observation: 'x'.repeat(10_001) }, /observation/],
      [{ ...good, observation: null }, /observation/],
      [{ ...good, observation: 'a\0b' }, /observation/],
      [{ ...good, confidence: 1.01 }, /^confidence must be a number from 0 to 1$/],
      [{ ...good, confidence: -0.1 }, /confidence/],
      [{ ...good, confidence: '0.5' }, /confidence/],
      [{ ...good, confidence: null }, /confidence/],
      [{ ...good, active: 'yes' }, /active/],
      [{ ...good, active: null }, /active/],
      [{ ...good, service: 7 }, /service/],
      [{ ...good, service: '\0' }, /service/],
      ...['', '[]', 'null', '{'].map((body) => [body, /JSON object/] as const),
    ]
    const call = 'POST /api/v1/memories'
    await refuseAll(t, { service: 'ops', base, state: () => list() }, [
      ...bodies.map(([body, text]): Refusal => [{ call, body }, 400, undefined, text]),
      [{ call, body: 'category=c&observation=o', headers: form }, 415, undefined, /JSON/],
      [{ call, body: ' '.repeat(1_048_577) }, 413],
    ])
    t.equal((await list()).length, 4)
  })

  await t.test(
    'the list: surest first, inactive ones too; filters, limit and offset',
    async (t) => {
      const all = await list()
      t.same(
        all.map(({ confidence }) => confidence),
        [1, 0.7, 0.7, 0],
      )
      t.match(await list('?service=db'), [{ service: 'db', active: false }])
      t.equal((await list('?category=any')).length, 2)
      t.same(await list('?category=any&service=db'), [])
      for (const query of ['?service=%00', '?category=DB', '?service=d%25', "?service='"]) {
        t.same(await list(query), [], query)
      }
      t.same(await list('?limit=2&offset=1'), all.slice(1, 3))
      t.same(await list('?limit=5000'), all)
      t.same(await list('?limit=0'), [])
      refuses(t, await api('GET', '/memories?limit=2&limit=3'), [
        400,
        undefined,
        /^limit may be given once/,
      ])
      for (const name of ['limit', 'offset']) {
        for (const value of NO_COUNTS) {
          const query = `?${name}=${encodeURIComponent(value)}`
          refuses(
            t,
            await api('GET', `/memories${query}`),
            [400, undefined, new RegExp(name)],
            query,
          )
        }
      }
    },
  )

  await t.test('PUT: all three fields, the others stay', async (t) => {
    const memory = await add({ service: 'web', category: 'c', observation: 'o' })
    const change = { observation: 'new', confidence: 0.35, active: false }
    const answer = await api<Memory>('PUT', `/memories/${memory.id}`, { ...change, category: 'x' })
    t.equal(answer.status, 200)
    const { updated_at, ...rest } = answer.json
    const { updated_at: before, ...was } = memory
    t.same(rest, { ...was, ...change })
    t.ok(updated_at > before)
    const call = `PUT /api/v1/memories/${memory.id}`
    const { observation, confidence, active } = change
    const form = { 'content-type': 'text/plain' }
    await refuseAll(t, { service: 'ops', base, state: () => list() }, [
      [{ call, body: { confidence, active } }, 400, undefined, /observation/],
      [{ call, body: { observation, active } }, 400, undefined, /confidence/],
      [{ call, body: { observation, confidence } }, 400, undefined, /active/],
      [{ call, body: { ...change, observation: [] } }, 400, undefined, /observation/],
      [{ call, body: { ...change, confidence: [] } }, 400, undefined, /confidence/],
      [{ call, body: { ...change, active: [] } }, 400, undefined, /active/],
      [{ call, body: '{}', headers: form }, 415],
      ...refusedIds('PUT', change),
    ])
    t.same(await list('?service=web'), [answer.json])
  })

  await t.test('DELETE: 204 without a body, then 404', async (t) => {
    const [memory] = await list('?service=web')
    const gone = await api('DELETE', `/memories/${memory?.id}`)
    t.equal(gone.status, 204)
    refuses(t, await api('DELETE', `/memories/${memory?.id}`), [
      404,
      undefined,
      'memory not found',
    ])
    await refuseAll(t, { service: 'ops', base, state: () => list() }, refusedIds('DELETE'))
    refuses(t, await api('GET', `/memories/${memory?.id}`), [404], 'no single one is read')
  })
})

await onPostgres(t, 'events and cooldowns of the API', async (t: Test, backend) => {
  const first = await startOps(t, backend)
  await ended(first)
  t.same((await first.api('GET', '/events')).json, { events: [] })
  t.same((await first.api('GET', '/cooldowns')).json, { cooldowns: [] })
  await first.server.stop()
  await backend.query(
    first.env,
    `insert into ops.events (session_id, level, service, message, created_at)
     select case when i % 2 = 0 then 1 end, (array['info', 'warning', 'critical'])[i % 3 + 1],
            case when i % 5 > 0 then 'service ' || i % 5 end, 'message ' || i, now() - i * interval '1 second'
       from generate_series(1, 1200) i`,
  )
  await backend.query(
    first.env,
    `insert into ops.actions (service, action_type, operation, at)
     select s, a, 'op', now() - h * interval '1 hour'
       from (values ('web', 'restart', 3), ('web', 'restart', 5), ('web', 'redeployment', 1), ('db', 'restart', 2),
                    ('old', 'restart', 25)) v(s, a, h)`,
  )
  const { api } = await startOps(t, backend, first.env)
  const list = async (query = ''): Promise<readonly Event[]> =>
    (await api<Events>('GET', `/events${query}`)).json.events

  await t.test('events: newest first, 100 without a limit, 1,000 at most', async (t) => {
    const answer = await api<Events>('GET', '/events')
    t.equal(answer.json.events.length, 100)
    const [newest] = answer.json.events
    t.match(newest, {
      message: 'message 1',
      level: 'warning',
      service: 'service 1',
      session_id: null,
    })
    t.match(newest?.created_at, TIME)
    const keys = ['created_at', 'id', 'level', 'message', 'service', 'session_id']
    t.same(Object.keys(newest ?? {}).toSorted(), keys)
    const all = await list('?limit=1000')
    t.equal(all.length, 1_000)
    t.same(await list('?limit=99999'), all, 'over 1,000 counts as that')
    const times = all.map(({ created_at }) => created_at)
    t.same(times, times.toSorted().toReversed())
    t.same(await list('?limit=3&offset=50'), all.slice(50, 53))
    t.equal((await list('?limit=1000&offset=1150')).length, 50)
    t.same(await list('?offset=1200'), [])
  })

  await t.test('filters by level and service combine', async (t) => {
    const critical = await list('?level=critical&limit=1000')
    t.equal(critical.length, 400)
    t.ok(critical.every(({ level }) => level === 'critical'))
    const both = await list('?level=critical&service=service%202&limit=1000')
    t.equal(both.length, 80)
    t.ok(both.every(({ level, service }) => level === 'critical' && service === 'service 2'))
    for (const query of [
      '?level=fatal',
      '?service=service',
      '?level=%00',
      '?service=%00',
      '?level=Critical',
    ]) {
      t.same(await list(query), [], query)
    }
    for (const name of ['limit', 'offset']) {
      for (const value of NO_COUNTS) {
        const query = `?${name}=${encodeURIComponent(value)}`
        refuses(t, await api('GET', `/events${query}`), [400, undefined, new RegExp(name)], query)
      }
    }
  })

  await t.test('cooldowns: the last 24 hours, the newest action first', async (t) => {
    const answer = await api<{ cooldowns: readonly { last_action: string }[] }>(
      'GET',
      '/cooldowns',
    )
    t.match(answer.json, {
      cooldowns: [
        { service: 'web', action_type: 'redeployment', count: 1, last_action: TIME },
        { service: 'db', action_type: 'restart', count: 1 },
        { service: 'web', action_type: 'restart', count: 2 },
      ],
    })
    t.equal(answer.json.cooldowns.length, 3)
  })
})
