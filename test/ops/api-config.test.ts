import { t, type Test } from 'tap'
import type { Database } from '../../db/client.ts'
import { migrate } from '../../db/migrate.ts'
import { openDatabase } from '../../db/open.ts'
import { systemClock } from '../../kernel/time.ts'
import { createLog } from '../../kernel/log.ts'
import { openRunningConfig, type Config } from '../../services/ops/config.ts'
import { backends, onPostgres } from '../helpers/backends.ts'
import {
  ended,
  type OpsServer,
  sessionsOf,
  startOps,
  startOpsProcess,
  trigger,
} from '../helpers/ops.ts'
import { refuseAll, type Refusal } from '../helpers/refusals.ts'
import { until } from '../helpers/until.ts'

async function config({ api }: OpsServer): Promise<Config> {
  return (await api<Config>('GET', '/config')).json
}

await onPostgres(t, 'configuration of the API', async (t: Test, backend) => {
  const ops = await startOps(t, backend, { OPS_TIER2_MODEL: 'second', OPS_MAX_TIER: '2' })
  const { api } = ops
  const folder = `${ops.env['GATEHOUSE_DATA_DIR']}/ops`
  const usual = {
    ...{ interval: 3600, tier1_model: 'default', tier2_model: 'second', tier3_model: 'default' },
    ...{ dry_run: false, max_tier: 2, state_dir: `${folder}/state` },
    ...{ results_dir: `${folder}/results`, repos_dir: `${folder}/repos` },
  }

  await t.test('GET has all fields', async (t) => {
    const answer = await api('GET', '/config')
    t.equal(answer.status, 200)
    t.same(answer.json, usual)
  })

  await t.test('PUT changes what is given, and answers with all of it', async (t) => {
    const answer = await api('PUT', '/config', { interval: 7200 })
    t.equal(answer.status, 200)
    t.same(answer.json, { ...usual, interval: 7200 })
    const models = { tier1_model: 'one', tier3_model: 'org/three:8b é' }
    t.same((await api('PUT', '/config', models)).json, { ...usual, interval: 7200, ...models })
    const dry = await api<Config>('PUT', '/config', { dry_run: true, interval: 2_147_483_647 })
    t.same(dry.json, { ...usual, ...models, dry_run: true, interval: 2_147_483_647 })
    t.same(await config(ops), dry.json)
    t.same((await api('PUT', '/config', {})).json, dry.json, 'nothing given')
  })

  await t.test(
    'read-only and unknown fields are ignored: a full GET body can be sent back',
    async (t) => {
      const now = await config(ops)
      const back = {
        ...now,
        max_tier: 3,
        state_dir: '/tmp',
        unknown: [1],
      }
      const answer = await api('PUT', '/config', back)
      t.same([answer.status, answer.json], [200, now])
    },
  )

  await t.test('400 for a bad field, and nothing of the others is applied', async (t) => {
    const values = {
      interval: [0, -1, 1.5, '60', null, true, [], 2_147_483_648, 1e300],
      tier1_model: ['', ' ', null, 7, 'x'.repeat(201), 'a\0b', 'a\nb', '--yolo', '-x'],
      tier2_model: [{}],
      tier3_model: [false],
      dry_run: ['true', 0, null],
    }
    const call = 'PUT /api/v1/config'
    const others = { interval: 5, tier1_model: 'other', dry_run: false }
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    await refuseAll(t, { service: 'ops', base: ops.base, state: () => config(ops) }, [
      ...Object.entries(values).flatMap(([field, wrong]) =>
        wrong.map((value): Refusal => {
          return [{ call, body: { ...others, [field]: value } }, 400, undefined, new RegExp(field)]
        }),
      ),
      [{ call, body: { interval: 0 } }, 400, undefined, 'interval must be a positive integer'],
      ...['', '[]', '7', '{'].map((body): Refusal => {
        return [{ call, body }, 400, undefined, /JSON object/]
      }),
      [{ call, body: 'interval=5', headers: form }, 415, undefined, /JSON/],
      [{ call, body: ' '.repeat(1_048_577) }, 413],
    ])
  })

  await t.test(
    'what was saved survives a restart and wins over flag and environment',
    async (t) => {
      const now = await config(ops)
      await ops.server.stop()
      const env = {
        OPS_INTERVAL: '60',
        OPS_DRY_RUN: 'false',
        OPS_TIER1_MODEL: 'x',
        OPS_TIER2_MODEL: 'y',
      }
      const later = await startOps(t, backend, { ...ops.env, ...env, OPS_MAX_TIER: '1' })
      // The full body that was sent back has saved all five.
      t.same(await config(later), { ...now, max_tier: 1 })
    },
  )
})

await t.test('PUT config is applied to the scheduler that runs', async (t: Test) => {
  const [, postgres] = backends
  const ops = await startOps(t, postgres, { OPS_INTERVAL: '2147483647' })
  t.equal((await config(ops)).interval, 2_147_483_647)
  // Servers in one process count as one holder of sessions: the other one has its own process.
  const other = await startOpsProcess(t, postgres, ops.env)
  await ended(ops)
  t.equal((await sessionsOf(ops, '?limit=1000')).length, 1)
  await other.api('PUT', '/config', { interval: 2 })
  const byHand = () => until(() => trigger(ops).catch(() => undefined), 'a session by hand')
  t.match(await ended(ops, (await byHand()).id), { trigger: 'api' })
  const scheduled = await until(
    async () => {
      const found = (await sessionsOf(ops, '?limit=1000')).filter(
        ({ trigger: by }) => by === 'scheduled',
      )
      return found.length >= 3 && found
    },
    'sessions every 2 s',
    30_000,
  )
  const [third = 0, , first = 0] = scheduled.map(({ started_at }) => Date.parse(started_at))
  t.ok(third - first >= 3_000, 'two intervals lie between; those by hand do not move them')
  t.equal((await config(ops)).interval, 2, 'on every instance')
  await ops.api('PUT', '/config', { interval: 3_600 })
  const newest = await ended(ops)
  t.match(newest, { trigger: 'scheduled' })
  t.match(await ended(ops, (await byHand()).id), { status: 'completed' })
})

await t.test('a read that began before a change brings nothing old back', async (t: Test) => {
  const env = await backends[1].env(t)
  const log = createLog(
    () => undefined,
    () => new Date(),
  )
  const opened = await openDatabase({ url: env['DATABASE_URL'], dataDirectory: '' }, log)
  t.teardown(() => opened[Symbol.asyncDispose]())
  await migrate(opened.db)
  let hold: Promise<void> | undefined
  let held = false
  const slow: Database = {
    ...opened.db,
    // The changes of others are seen by the poll alone.
    listen: async () => undefined,
    async run(query, args) {
      const waits = query.name === 'readSettings' ? hold : undefined
      const rows = await opened.db.run(query, args)
      if (waits !== undefined) held = true
      await waits
      return rows
    },
  }
  let poll = (): void => undefined
  const clock = { ...systemClock, every: (_: number, tick: () => void) => ((poll = tick), tick) }
  const models = { tier1_model: 'x', tier2_model: 'x', tier3_model: 'x' }
  const folders = { state_dir: '', results_dir: '', repos_dir: '' }
  const running = await openRunningConfig(slow, clock, log, () => {
    return { ...models, ...folders, interval: 60, dry_run: false, max_tier: 3 }
  })
  const { promise, resolve } = Promise.withResolvers<void>()
  hold = promise
  poll()
  hold = undefined
  await until(() => held, 'the poll to have read')
  const updated = running.update({ interval: 7 }, { kind: 'operator' })
  resolve()
  t.match(await updated, { interval: 7 })
  t.equal(running.current.interval, 7)
})
