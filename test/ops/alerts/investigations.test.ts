import { t } from 'tap'
import { holderOf } from '../../../kernel/processes/proc.ts'
import { openRunningConfig, type Config } from '../../../services/ops/config.ts'
import { startInvestigations } from '../../../services/ops/alerts/investigations/investigations.ts'
import { readWaits } from '../../../services/ops/alerts/investigations/waiting.ts'
import { setPause } from '../../../services/ops/agent/pause.ts'
import { createRedact } from '../../../services/ops/redact.ts'
import { NO_OUTCOME, type Outcome } from '../../../services/ops/agent/runners/runner.ts'
import { openSessions } from '../../../services/ops/agent/sessions/sessions.ts'
import type { ShownAlert } from '../../helpers/alerts.ts'
import { startModelOps } from '../../helpers/model.ts'
import { ended, inventoryFile, listOf, sessionsOf } from '../../helpers/ops.ts'
import { temporaryFolder, type Owner } from '../../helpers/owner.ts'
import { openTimed } from '../../helpers/timed.ts'
import { until } from '../../helpers/until.ts'

const OPERATOR = { kind: 'operator' } as const
const GATHERED = 'what fails together is gathered for 30 s'

/** Checks whose state the test decides, and an instance that looks at them when it says so. */
type Watched = Awaited<ReturnType<typeof openWatched>>

async function openWatched(
  t: Owner,
  marked: Readonly<Record<string, number | null>> = { front: 1, db: 1, disk: null },
) {
  const { db, clock, log, query, later } = await openTimed(t, 'investigations')
  const resultsDir = await temporaryFolder(t, 'results')
  const settings = { cooldown: 3_600, budget: undefined as number | undefined, maxTier: 3 }
  const configured = (): Config => ({
    interval: 3_600,
    tier1_model: 'a',
    tier2_model: 'b',
    tier3_model: 'c',
    dry_run: false,
    max_tier: settings.maxTier,
    state_dir: resultsDir,
    results_dir: resultsDir,
    repos_dir: resultsDir,
  })
  const waiting = {
    investigateCooldownS: () => settings.cooldown,
    dayBudget: () => settings.budget,
  }
  const redact = createRedact(() => [])
  const config = await openRunningConfig(db, clock, log, configured)
  const rounds = new Set<{ now(): Promise<void> }>()
  const closings = new Set<() => Promise<void>>()
  const running = new Set<(outcome: Outcome) => void>()
  t.teardown(async () => {
    for (const close of closings) await close()
    await config.close()
  })

  async function open(): Promise<() => Promise<void>> {
    const sessions = await openSessions({
      db,
      clock,
      log,
      redact,
      resultsDir,
      config,
      holder: holderOf(),
      // As if each had a machine of its own: on one of them, a session is that of the process.
      machine: `machine ${rounds.size}`,
      patience: { firstMs: () => 60_000, idleMs: () => 60_000 },
      random: (size) => Buffer.alloc(size, 1),
      runner: () => ({
        modelOf: () => 'none',
        run: ({ signal }) =>
          new Promise((resolve) => {
            running.add(resolve)
            signal.addEventListener('abort', () => resolve(NO_OUTCOME))
          }),
      }),
    })
    const round = startInvestigations({ db, clock, log, redact, sessions, ...waiting })
    rounds.add(round)
    async function close() {
      closings.delete(close)
      rounds.delete(round)
      await round.stop()
      await sessions.close()
    }
    closings.add(close)
    return close
  }

  for (const [name, tier] of Object.entries(marked)) {
    await query(
      `insert into ops.checks (service, name, type, every_s, version, next_at, state, since, checked_at, investigate)
       values ('shop', '${name}', 'tcp', 60, 'v', now(), 'ok', now(), now(), ${tier})`,
    )
  }
  const close = await open()
  const at = () => `timestamptz '${clock.now().toISOString()}'`
  return {
    settings,
    query,
    /** Stops the first instance. */
    close,
    /** Starts another one. */
    open,
    /** Has checks of the service `shop` fail, each told by an event. */
    async fail(...names: readonly string[]) {
      for (const name of names) {
        await query(
          `with told as (
             insert into ops.events (level, service, message, created_at)
             values ('critical', 'shop', '${name}: connection refused', ${at()})
             returning id
           )
           update ops.checks set state = 'fail', since = ${at()}, message = 'connection refused', told_event = told.id,
                  told_at = ${at()}
             from told where name = '${name}'`,
        )
      }
    },
    /** Has all well again. */
    mend: () =>
      query(
        `update ops.checks set state = 'ok', since = ${at()}, told_event = null, told_at = null`,
      ),
    /** Lets time pass, and then has each instance look. */
    async pass(seconds: number) {
      later(seconds)
      await Promise.all([...rounds].map((round) => round.now()))
    },
    /** Has these fail, and lets the time pass in which others are gathered. */
    async failTogether(...names: readonly string[]) {
      await this.fail(...names)
      await this.pass(30)
    },
    /** Ends the session that runs. */
    async finish() {
      for (const resolve of running) resolve(NO_OUTCOME)
      running.clear()
      await until(async () => {
        const [row] = await query(
          `select count(*)::integer as left from ops.sessions where status = 'running'`,
        )
        return row?.['left'] === 0
      }, 'the end of the session')
    },
    /** What waits for a session, and why. */
    async waits() {
      const all = await readWaits(db, waiting, clock.now())
      return all.map(({ name, reason }) => `${name}: ${reason}`)
    },
    /** The sessions so far, with the checks that they look into. */
    sessions: () =>
      query(
        `select s.id::integer, s.tier, s.status, s.trigger, a.fingerprint, a.source, a.outcome, a.count,
                coalesce((select string_agg(c.name, ' ' order by c.name)
                            from ops.investigations i join ops.checks c on c.id = i.check_id
                           where i.session_id = s.id), '') as checks
           from ops.sessions s left join ops.alerts a on a.id = s.alert_id order by s.id`,
      ),
    pause: (investigations: boolean) =>
      setPause({ db, actor: OPERATOR }, { investigations }, clock.now()),
  }
}

/** Ends the session that runs, and lets all be well until each cooldown is over. */
async function over(shop: Watched) {
  await shop.finish()
  await shop.mend()
  await shop.pass(3_600)
}

await t.test('what fails together starts one session', async (t) => {
  const shop = await openWatched(t)
  await shop.fail('front', 'disk')
  await shop.pass(20)
  t.same(await shop.sessions(), [], 'nothing starts while others may fail, too')
  t.same(await shop.waits(), [`front: ${GATHERED}`], 'one that is not marked starts nothing')
  await shop.fail('db')
  await shop.pass(10)
  const fingerprint = 'check:shop/db, shop/front'
  const alert = { source: 'gatehouse', fingerprint, outcome: 'triggered', count: 1 }
  t.match(await shop.sessions(), [{ tier: 1, trigger: 'alert', checks: 'db front', ...alert }])
  t.same(await shop.waits(), [])
  await shop.finish()
  await shop.pass(7_200)
  t.equal((await shop.sessions()).length, 1, 'a failure that lasts is looked into once')

  await shop.mend()
  await shop.pass(60)
  await shop.failTogether('front', 'db')
  t.match((await shop.sessions())[1], { fingerprint, count: 2 })
})

await t.test('two instances start one session', async (t) => {
  const shop = await openWatched(t)
  await shop.open()
  await shop.open()
  for (let times = 1; times <= 3; times++) {
    await shop.fail('front', 'db')
    await shop.pass(31)
    const all = await shop.sessions()
    t.equal(all.length, times)
    t.match(all.at(-1), { outcome: 'triggered', count: times, checks: 'db front' })
    await over(shop)
  }
})

await t.test('a cooldown for each check', async (t) => {
  const shop = await openWatched(t)
  await shop.failTogether('front')
  await shop.finish()
  await shop.mend()
  await shop.pass(600)
  await shop.fail('front')
  await shop.pass(60)
  t.match(await shop.waits(), [/^front: its cooldown lasts until \S+Z$/])
  await shop.failTogether('db')
  t.match(
    await shop.sessions(),
    [{ checks: 'front' }, { checks: 'db' }],
    'the other one waits not',
  )
  await shop.finish()
  await shop.pass(3_600)
  t.match(await shop.sessions(), [{}, { checks: 'db' }, { checks: 'front' }], 'it still fails')
  await shop.finish()
  await shop.mend()
  await shop.pass(60)
  shop.settings.cooldown = 0
  await shop.failTogether('front')
  t.equal((await shop.sessions()).length, 4, 'a shorter cooldown counts at once')
})

await t.test('what is refused waits, and starts once', async (t) => {
  const shop = await openWatched(t)
  await shop.failTogether('front')

  await t.test('while a session runs', async (t) => {
    await shop.fail('db')
    await shop.pass(60)
    t.same(await shop.waits(), ['db: a session runs'])
    t.equal((await shop.sessions()).length, 1)
    await shop.finish()
    await shop.pass(5)
    t.match((await shop.sessions())[1], { checks: 'db' })
    await over(shop)
  })

  const day = /^front: the budget of the day of \$0\.5 .* is spent: \$/
  for (const [obstacle, begin, waits, end] of [
    [
      'investigations are paused',
      () => shop.pause(true),
      [/^front: investigations are paused since \S+ by operator$/],
      () => shop.pause(false),
    ],
    [
      'the budget of the day is spent',
      async () => {
        shop.settings.budget = 0.5
        await shop.query('update ops.sessions set cost_usd = 0.6 where id = 1')
        await shop.query(
          `insert into ops.brief_costs select generate_series(-1, 1) + current_date, 0.6`,
        )
      },
      [day],
      () => (shop.settings.budget = undefined),
    ],
    [
      'it is muted',
      () =>
        shop.query(
          `insert into ops.mutes (service, starts_at, ends_at, reason, author)
           values ('shop', now() - interval '1 hour', now() + interval '1 day', 'moving', 'command')`,
        ),
      [],
      () => shop.query('delete from ops.mutes'),
    ],
  ] as const) {
    await t.test(`while ${obstacle}`, async (t) => {
      const before = await shop.sessions()
      await begin()
      await shop.fail('front')
      await shop.pass(60)
      const found = await shop.waits()
      t.match(found, waits)
      t.equal(found.length, waits.length)
      t.same(await shop.sessions(), before, 'no session, and no alert is kept')
      await end()
      await shop.pass(5)
      t.match((await shop.sessions()).slice(before.length), [{ checks: 'front' }])
      await over(shop)
    })
  }
})

await t.test('a check that is well again, or removed, before its session starts', async (t) => {
  const shop = await openWatched(t)
  await shop.fail('front', 'db')
  await shop.pass(20)
  await shop.mend()
  await shop.query(`update ops.checks set removed_at = now() where name = 'db'`)
  await shop.pass(600)
  t.same(await shop.sessions(), [])
})

await t.test('a session that ends with the server is started again', async (t) => {
  const shop = await openWatched(t)
  await shop.failTogether('front')
  await shop.close()
  t.match(await shop.sessions(), [{ status: 'stopped', outcome: 'triggered', checks: '' }])
  await shop.open()
  await shop.pass(5)
  t.match((await shop.sessions())[1], { status: 'running', checks: 'front', count: 2 })
  await shop.finish()
})

await t.test('the tier is the highest of the checks, as far as it may go', async (t) => {
  const shop = await openWatched(t, { front: 1, db: 3 })
  await shop.failTogether('front', 'db')
  t.match(await shop.sessions(), [{ tier: 3 }])
  await over(shop)
  shop.settings.maxTier = 2
  await shop.failTogether('front', 'db')
  t.match((await shop.sessions())[1], { tier: 2 })
  await shop.finish()
})

await t.test('many that fail together', async (t) => {
  const names = Array.from({ length: 60 }, (_, at) => `page ${at} ${'x'.repeat(150)}`)
  const shop = await openWatched(t, Object.fromEntries(names.map((name) => [name, 1])))
  await shop.failTogether(...names)
  t.match(await shop.sessions(), [{ fingerprint: /^check:sha256:[0-9a-f]{64}$/ }])
  const [row] = await shop.query(
    `select title, length(payload) as length, length(prompt_text) as prompt
       from ops.alert_texts, ops.sessions`,
  )
  t.match(row?.['title'], '60 checks fail: shop/page ')
  t.ok(Number(row?.['length']) < 65_536 && Number(row?.['prompt']) < 9_000, JSON.stringify(row))
  await shop.finish()
})

await t.test('what pages, alerts and the session itself say of it', async (t) => {
  const closed = { type: 'tcp', host: '127.0.0.1', port: 1, retries: 0, every: '10s' }
  const checks = [
    { ...closed, name: 'front' },
    { ...closed, name: 'quiet', investigate: false },
    { type: 'memory', name: 'memory' },
  ]
  const services = [
    { name: 'shop', investigate: 2, checks },
    { name: 'blog', checks: [{ ...closed, name: 'page' }] },
  ]
  const { ops, model } = await startModelOps(t, {
    OPS_INVENTORY: await inventoryFile(t, { services }),
  })
  const { api, page, query } = ops

  type Listed = { id: number; name: string; state: string }
  const listed = () => listOf<Listed>(ops, 'checks')
  const pageOf = async (name: string) =>
    page(`/checks/${(await listed()).find((check) => check.name === name)?.id}`)
  /** As if the failures had been told a while ago. */
  const letPass = () => query(`update ops.checks set told_at = told_at - interval '1 minute'`)

  const failing = async () => (await listed()).filter(({ state }) => state === 'fail')
  await until(async () => (await failing()).length === 3, 'the failures')

  await t.test('what is marked waits, and pages say why', async (t) => {
    await api('PUT', '/pause', { investigations: true })
    const starts = 'A failure starts a session at tier 2'
    const waits = /It waits: investigations are paused since \S+ by operator\./
    for (const text of [starts, waits]) t.match(await pageOf('front'), text)
    t.notMatch(await pageOf('quiet'), 'starts a session', 'one that says otherwise')
    t.notMatch(await pageOf('page'), 'starts a session', 'one of another service')
    t.notMatch(await pageOf('memory'), 'It waits')
    const line = /1 failing check waits for a\s+session: investigations are paused[^]*shop: front/
    t.match(await page('/'), line)
    await letPass()
    await api('PUT', '/pause', { investigations: false })
  })

  await t.test('its session is told what is known, as data', async (t) => {
    const session = await until(async () => {
      const [one] = await sessionsOf(ops, '?limit=1')
      return one?.trigger === 'alert' && one
    }, 'the session')
    t.match(await ended(ops, session.id), { tier: 2, status: 'completed' })
    const asked = model.asked.at(-1)?.prompt ?? ''
    const [, inside = ''] = /^ALERT-[0-9a-f]{32}\n([^]*)\nALERT-[0-9a-f]{32}$/m.exec(asked) ?? []
    t.equal(inside, session.prompt_text)
    const refused = 'connection refused\n'
    const plain = `${inside}\n`.replaceAll(/\S+Z/g, 'TIME').replaceAll(/\d+ ms/g, 'N ms')
    for (const told of [
      '1 check is told as failing:\n- shop/front: connection refused (since TIME)\n',
      '\n- TIME operator: ops: pause investigations\n',
      `\n- TIME check shop/quiet became fail: ${refused}`,
      /\nshop\/front: tcp, every 10s\nUp: 1 d 0\.00 % of \d+(?:s|m|h), 7 d not watched, /,
      `\nLast results:\n- TIME fail (N ms): ${refused}`,
      `\nIts states:\n- fail from TIME to now: ${refused}`,
    ]) {
      t.match(plain, told)
    }

    t.match(await page('/alerts'), /shop\/front fails: connection refused[^]*gatehouse/)
    const alerts = await listOf<ShownAlert>(ops, 'alerts')
    const alert = alerts.find(({ title }) => title.startsWith('shop/front fails'))
    const labels = { alertname: 'front', check: 'front', service: 'shop' }
    t.match(alert, { labels }, 'a silence can name it')
    const [check] = await query("select since from ops.checks where name = 'front'")
    const since = check?.['since'] as Date
    t.equal(alert?.firing_since, since.toISOString())
    t.match(await pageOf('front'), `the last one, <a href="/sessions/${session.id}">`)
    t.notMatch(await pageOf('front'), 'It waits')
    t.notMatch(await page('/'), /waits for a\s+session/)
  })
})
