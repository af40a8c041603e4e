import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { failedOutcome, type Outcome } from '../../../services/ops/agent/runners/runner.ts'
import { startScheduler } from '../../../services/ops/agent/sessions/scheduler.ts'
import { processesWith } from '../../helpers/agents.ts'
import { postgres } from '../../helpers/backends.ts'
import { freePort, temporaryFolder } from '../../helpers/owner.ts'
import {
  ended,
  inventoryFile,
  memoriesOf,
  outputOf,
  startOps,
  startProbe,
} from '../../helpers/ops.ts'
import { startReceiver } from '../../helpers/replays.ts'
import { refuseRows, rollbacks } from '../../helpers/outages.ts'
import { openTimedSessions, type RunnerParts } from './timed-sessions.ts'
import { until } from '../../helpers/until.ts'

await t.test('the session at the start', async (t) => {
  const env = await postgres.env(t)

  await t.test('with nothing configured', async (t) => {
    // Unset: this machine and our own services are its inventory.
    const ops = await startOps(t, postgres, { ...env, OPS_INVENTORY: '' })
    const session = await ended(ops)
    t.match(session, { trigger: 'scheduled', status: 'completed', tier: 1, model: 'none' })
    const text = outputOf(env, session.id)
    t.match(text, /^\d+ checks of 2 services$/m)
    // Where the loop of checks has looked before, its answer is taken.
    t.match(text, /^ok +ops: health: answered 200 \(\d+ ms(, \d+ s ago)?\)$/m)
    t.match(text, /host: memory: .*% of the memory used/)
    const hasSystemd = existsSync('/run/systemd/system')
    t.equal(text.includes('host: units: '), hasSystemd, 'units of systemd, where it runs')
    const observation = /^health usually answers within \d+ ms$/
    const known = { service: 'ops', category: 'timing', observation, confidence: 0.7 }
    t.match(await memoriesOf(ops), [{ ...known, tier: 1, session_id: session.id }])
  })

  await t.test('a wrong inventory stops the start, in one line that says where', async (t) => {
    const none = { name: 'a', checks: [] }
    const disk = { type: 'disk', path: '/' }
    const up = { name: 'up', action_type: 'restart', argv: ['true'], verify: 'disc /' }
    const service = (more: object) => ({ services: [{ ...none, ...more }] })
    const log = (logs: object) => service({ logs: [logs] })
    const unit = 'shop.service'
    const main = { name: 'main', type: 'prometheus', url: 'http://127.0.0.1:9090' }
    const source = (more: object) => ({ services: [], sources: [{ ...main, ...more }] })
    const url = 'is wrong: /sources/0/url must be a URL without user, password, ? and #'
    const header = 'is wrong: /sources/0/headers must be names of HTTP'
    const hundred = Array.from({ length: 100 }, (_, n) => ({ ...disk, name: `${n}` }))
    const services = Array.from({ length: 191 }, (_, n) => ({ name: `${n}`, checks: hundred }))
    const either = 'is wrong: /services/0/logs/0 must have either unit or container'
    for (const [inventory, said] of [
      [{}, /is wrong: the whole must have required properties services$/],
      [service({ checks: [disk, disk] }), 'has "disk /" twice in service "a"'],
      [{ services: [none, none] }, 'has service "a" twice'],
      [{ services }, 'has 19100 checks; it may have 19000'],
      [service({ runbook: '../plain' }), 'is wrong: /services/0/runbook '],
      [
        service({ checks: [disk], operations: [up] }),
        'has no check "disc /" in service "a" to verify "up"; there are: "disk /"',
      ],
      [
        { services: [], readonly: [['df'], { argv: ['ps'], netwrok: true }] },
        'is wrong: /readonly/1/netwrok is not known',
      ],
      [
        { services: [], readonly: ['df'] },
        'wrong: /readonly/0 must be a list of words, or an object with argv and network',
      ],
      [log({ unit, container: 'shop' }), either],
      [log({ unit, socket: '/run/docker.sock' }), '/socket must not be there with unit'],
      [log({ unit: '--file=/etc/passwd' }), 'is wrong: /services/0/logs/0/unit '],
      [log({ container: '../other' }), 'is wrong: /services/0/logs/0/container '],
      [source({ url: 'http://me:pass@host' }), url],
      [source({ url: 'ftp://host' }), 'is wrong: /sources/0/url '],
      [source({ type: 'graphite' }), 'is wrong: /sources/0/type '],
      [source({ headers: { 'a b': 'c' } }), header],
      [{ services: [], sources: [main, main] }, 'has source "main" twice'],
    ] as const) {
      const OPS_INVENTORY = await inventoryFile(t, inventory)
      await t.rejects(startOps(t, postgres, { ...env, OPS_INVENTORY }), { message: said })
    }
    const missing = startOps(t, postgres, { ...env, OPS_INVENTORY: '/nothing/here.json' })
    await t.rejects(missing, { message: "Inventory /nothing/here.json can't be read: ENOENT" })
  })
})

await t.test('sessions of one probe', async (t) => {
  const ops = await startProbe(t)
  const { write, look, lookAt } = ops
  const summaryOfLast = async () => {
    const [row] = await ops.query('select summary from ops.sessions order by id desc limit 1')
    return String(row?.['summary'])
  }
  let status = 503
  const answers = await startReceiver(t, (_, response) => {
    response.writeHead(status).end('sold out')
  })
  const front = { type: 'http', name: 'front', url: answers.url, timeout_s: 30 }

  await t.test('an inventory with something wrong', async (t) => {
    write({
      services: [
        { name: 'shop', checks: [front, { ...front, name: 'text', status, contains: 'sold' }] },
        {
          name: 'host',
          checks: [
            // Every disk uses more than that, and none more than all.
            { type: 'disk', name: 'full', path: '/', max_percent: 0.0001 },
            { type: 'disk', name: 'roomy', path: '/', max_percent: 100 },
            { type: 'file_age', path: '/nothing/here', max_age_s: 1, level: 'info' },
          ],
        },
      ],
    })
    const { session, events } = await look()
    t.match(session, { status: 'completed', exit_code: 0 }, 'what it found is no failure')
    const shop = { service: 'shop', level: 'critical' }
    t.match(events, [
      { ...shop, message: 'front: answered 503, expected 200 to 399' },
      { level: 'warning', message: /^full: [\d.]+ % .* used, expected 0.0001 % at most$/ },
      { service: 'host', level: 'info', message: 'file_age /nothing/here: no such file' },
    ])
    t.equal(events.length, 3)
    const learned = await memoriesOf(ops)
    t.match(learned, [{ service: 'shop', observation: 'text usually answers within' }])
    t.equal(learned.length, 1, 'only what is well has a usual time')
    t.match(
      await summaryOfLast(),
      /^1 of 5 checks failed: shop: front: answered 503, expected 200 to 399\. 2 of 5 checks warned: host: full: [^;]+; host: file_age \/nothing\/here: no such file\.$/,
    )

    status = 204
    const news = (await look()).events.filter(({ service }) => service === 'shop')
    t.equal(news.length, 2)
    t.match(news, [
      { ...shop, level: 'info', message: 'front is good again: answered 204' },
      { ...shop, message: 'text: answered 204' },
    ])
    t.notMatch((await look()).messages.join(), 'good again', 'a recovery is told once')
  })

  await t.test('what is unknown is told once, with its end, and is no good news', async (t) => {
    const program = join(await temporaryFolder(t, 'programs'), 'program')
    const exits = (code: number) =>
      writeFileSync(program, `#!/bin/sh\nexit ${code}\n`, { mode: 0o755 })
    const command = { type: 'command', name: 'program', argv: [program], level: 'critical' }
    const reason = /not looked at: .*ENOENT; name a program in the inventory/
    const first = await lookAt([command])
    t.match(first.events, [{ level: 'warning', message: 'program is unknown: not looked at: ' }])
    t.match(await summaryOfLast(), '1 of 1 checks could not look: shop: program: not looked at')
    t.match(first.messages, [reason])
    t.same((await look()).messages, [], 'while it lasts')
    exits(0)
    t.same((await look()).messages, ['program is known again: ended with 0'])
    t.equal(
      await summaryOfLast(),
      'All 1 checks of 1 services are good. Changed: shop: program: unknown → ok.',
    )

    exits(1)
    t.match((await look()).messages, ['program: ended with 1, expected 0'])
    rmSync(program)
    t.match((await look()).messages, [reason], 'a failure that is no longer seen')
    exits(0)
    t.same((await look()).messages, ['program is good again: ended with 0'])
    const rows = await ops.query(
      `select message from notices.notices where message like 'program%' and ended_at is null`,
    )
    t.same(rows, [{ message: 'program is good again: ended with 0' }], 'the beginning is over')
  })

  await t.test('what the program of a check leaves behind ends with the session', async (t) => {
    const begun = join(await temporaryFolder(t, 'programs'), 'begun')
    const long = `sleep ${400_000 + process.pid}.5`
    const left = `setsid sh -c 'echo > ${begun}; exec ${long}' > /dev/null 2>&1 &`
    const script = `${left} while [ ! -e ${begun} ]; do sleep 0.1; done`
    await lookAt([{ type: 'command', name: 'leaves', argv: ['sh', '-c', script] }])
    t.equal(await summaryOfLast(), 'All 1 checks of 1 services are good.')
    const pids = processesWith(long)
    pids.forEach((pid) => process.kill(pid, 'SIGKILL'))
    t.same(pids, [])
  })

  await t.test('a crowd of programs: no more than 16 run at a time', async (t) => {
    const folder = await temporaryFolder(t, 'crowd')
    const count = `ls ${folder}/running | wc -l >> ${folder}/counts`
    const script = `: > ${folder}/running/$$; ${count}; sleep 0.2; rm ${folder}/running/$$`
    mkdirSync(join(folder, 'running'))
    const argv = ['sh', '-c', script]
    await lookAt(Array.from({ length: 50 }, (_, n) => ({ type: 'command', name: `c${n}`, argv })))
    t.equal(await summaryOfLast(), 'All 50 checks of 1 services are good.')
    const counts = readFileSync(join(folder, 'counts'), 'utf8').trim().split('\n').map(Number)
    t.equal(counts.length, 50)
    t.ok(Math.max(...counts) <= 16, `${Math.max(...counts)} at a time`)
  })

  await t.test('without checks nothing is called good', async (t) => {
    write({ services: [] })
    await look()
    t.equal(await summaryOfLast(), 'Nothing was checked: the inventory has no services.')
    const blog = { name: 'blog', checks: [] }
    write({ services: [blog, { name: 'shop', checks: [front] }] })
    await look()
    t.match(
      await summaryOfLast(),
      'All 1 checks of 1 services are good. Without checks, so nothing is known of them: blog.',
    )
  })

  await t.test('a recovery whose event is not stored is told by the next session', async (t) => {
    status = 503
    await lookAt([front])
    status = 204
    const isRecovery = "new.message like '%good again%'"
    const accept = await refuseRows(ops.env, 'insert on ops.events', isRecovery)
    t.match(await look(), { session: { status: 'failed' } })
    await accept()
    t.same((await look()).messages, ['front is good again: answered 204'])
  })

  await t.test(
    'a file that has become wrong changes nothing; a good one is read again',
    async (t) => {
      const wrong = { services: [{ name: 'x' }] }
      const refusals = () =>
        ops.server.logs().filter((line) => line.includes('file not re-read')).length
      await lookAt([])
      write(wrong)
      t.same((await look()).messages, [])
      const before = refusals()
      t.ok(before > 0)
      const port = await freePort()
      const dead = { type: 'tcp', name: 'dead', host: '127.0.0.1', port }
      t.match((await lookAt([dead])).messages, [/^dead: /])
      write(wrong)
      await look()
      t.ok(refusals() > before, 'the same mistake after a good version is told again')
    },
  )

  await t.test('a check has one memory of its time, which follows it', async (t) => {
    let slow = false
    const { url } = await startReceiver(t, (_, response) => {
      if (slow) setTimeout(() => response.writeHead(204).end(), 1_100)
      else response.writeHead(204).end()
    })
    const timed = { type: 'http', name: 'timed', url, timeout_s: 30 }
    async function memories() {
      await lookAt([timed])
      return (await memoriesOf(ops))
        .filter(({ observation }) => observation.startsWith('timed '))
        .toSorted((a, b) => a.id - b.id)
    }
    const [quick] = await memories()
    const quickly = /^timed usually answers within \d+ ms$/
    t.match(quick, { service: 'shop', observation: quickly })
    // One that was seen more often is not given up for a single other time.
    await ops.query('update ops.memories set confidence = 0.8')
    slow = true
    const { id = 0, observation = '' } = quick ?? {}
    t.match(await memories(), [{ id, observation, confidence: 0.7 }])
    const slowly = /^timed usually answers within \d{4,} ms$/
    const changed = await memories()
    t.match(changed, [{ id, observation: slowly, confidence: 0.7, active: true }])
    t.equal(changed.length, 1, 'no second one contradicts it')
    t.match(await memories(), [{ id, observation: slowly, confidence: 0.8 }])

    const words = { observation: 'timed is slow at night', confidence: 0.5, active: true }
    t.equal((await ops.api('PUT', `/memories/${id}`, words)).status, 200)
    slow = false
    const apart = await memories()
    t.equal(apart.length, 2)
    t.match(apart[0], { id, ...words }, 'the words of an operator stay')
    t.match(apart[1], { service: 'shop', observation: quickly })
  })
})

await t.test('a turn of the schedule is not lost', async (t) => {
  await t.test('when its session can not begin', async (t) => {
    const env = await postgres.env(t)
    const accept = await refuseRows(env, 'insert on ops.sessions', 'true')
    const ops = await startOps(t, postgres, env)
    const refused = () =>
      ops.server.logs().some((line) => line.includes('scheduled session not started'))
    await until(refused, 'a start that fails')
    await accept()
    t.match(await ended(ops), { trigger: 'scheduled', status: 'completed' })
  })

  await t.test('a schedule that has stopped is told once, and once when it goes on', async (t) => {
    const parts = Promise.withResolvers<RunnerParts>()
    const timed = await openTimedSessions(t, 'stopped schedule', (made) => {
      parts.resolve(made)
      const good: Outcome = { ...failedOutcome(''), problem: null, summary: 'Good.' }
      return { modelOf: () => 'none', run: async () => good }
    })
    const accept = await refuseRows(timed.env, 'update on ops.settings', 'true')
    const { env, config, sessions } = timed
    t.teardown(startScheduler({ ...(await parts.promise), config, sessions }))
    /** Those of which there is a notice. */
    const events = `select level, message, waits from ops.events e
       where service = 'gatehouse' and exists (select from notices.notices n where n.message = e.message)
       order by id`
    const told = (count: number) =>
      until(async () => {
        const rows = await timed.query(events)
        return rows.length >= count && rows
      }, `${count} events`)
    const refusals = await rollbacks(env)
    await until(async () => (await rollbacks(env)) > refusals + 2, 'some tries')
    t.same(await timed.query(events), [], 'not before a minute is over')
    timed.later(61)
    await told(1)
    timed.later(60)
    const later = await rollbacks(env)
    await until(async () => (await rollbacks(env)) > later + 20, 'more tries, and looks')
    await accept()
    const stopped = /^Scheduled sessions have stopped: .*refused by the test/
    const goesOn = /^Scheduled sessions start again after 2 min: .*refused by the test/
    t.match(await told(2), [
      { level: 'critical', waits: true, message: stopped },
      { level: 'info', waits: false, message: goesOn },
    ])
    const begun = `select count(*)::int as count from ops.sessions where trigger = 'scheduled'`
    t.same(await timed.query(begun), [{ count: 1 }], 'the one that was due')

    // A process that has ended meanwhile told that they have stopped.
    await timed.query(
      `insert into notices.notices (service, level, message, site, path, created_at, key)
       values ('gatehouse', 'critical', 'stopped', 'ops', '/events', now(), 'schedule')`,
    )
    t.teardown(startScheduler({ ...(await parts.promise), config, sessions }))
    timed.later(11)
    t.match((await told(3))[2], { level: 'info', message: 'Scheduled sessions start again' })
    const lasting = `select count(*)::int as count from notices.notices where key is not null and ended_at is null`
    t.same(await timed.query(lasting), [{ count: 0 }])
  })
})
