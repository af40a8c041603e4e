import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { runInNewContext } from 'node:vm'
import { t } from 'tap'
import {
  readAlert,
  readPayload,
  type ReadAlert,
} from '../../../services/ops/alerts/alerts/payload.ts'
import { DELIVERIES, DISK_SPACE, TOPIC } from '../../fixtures/alert-deliveries.ts'
import { CHAT_KEY, deliverAlert, sample } from '../../helpers/alerts.ts'
import { postgres } from '../../helpers/backends.ts'
import { runCli } from '../../helpers/cli.ts'
import { request } from '../../helpers/http.ts'
import { ended, inventoryFile, listOf, startOps } from '../../helpers/ops.ts'
import { ROOT } from '../../helpers/program.ts'
import { secretKey } from '../../helpers/senders.ts'
import { startServer } from '../../helpers/server.ts'
import { until } from '../../helpers/until.ts'

const SECRET = 'a secret of the configuration'

function read(body: string) {
  const redact = (text: string) => text.replaceAll(SECRET, '«redacted»')
  return readAlert(readPayload(Buffer.from(body)), redact)
}

/** What of an alert a test compares: times as text, members by status, fingerprint and title. */
function shapeOf(alert: ReadAlert) {
  const { status, source, fingerprint, title, service, labels, members, startsAt, endsAt } = alert
  return {
    status,
    source,
    fingerprint,
    title,
    service,
    labels,
    times: [startsAt?.toISOString() ?? null, endsAt?.toISOString() ?? null],
    members: members.map(({ status, fingerprint, title }) => [status, fingerprint, title]),
  }
}

const manual = readFileSync(join(ROOT, 'docs/alerts.md'), 'utf8')

/** The template of a sender in the manual, with its placeholders filled in. */
function fillIn(source: string, values: Readonly<Record<string, string>>) {
  const [, template = ''] =
    new RegExp(`^ *(\\{"source": "${source}"[^}]*\\}?[^}]*\\})`, 'm').exec(manual) ?? []
  // The longest names first: `$NAME` is the beginning of `$NAME_JSON`.
  const names = Object.keys(values).toSorted((a, b) => b.length - a.length)
  return names.reduce((text, name) => text.replaceAll(name, () => values[name] ?? ''), template)
}

/** What each sender puts in place of its placeholders, firing and then resolved. */
const TEMPLATES = {
  gatus: {
    values: {
      '[ENDPOINT_GROUP]': 'core',
      '[ENDPOINT_NAME]': 'shop',
      '[ENDPOINT_URL]': 'https://shop.test/',
      '[ALERT_DESCRIPTION]': 'no answer',
      '[RESULT_ERRORS]': String.raw`Get \"https://shop.test/\": EOF`,
    },
    status: { '[ALERT_TRIGGERED_OR_RESOLVED]': ['TRIGGERED', 'RESOLVED'] },
    expected: {
      fingerprint: 'gatus:core/shop',
      title: 'shop: no answer',
      service: 'shop',
      labels: {
        alertname: 'shop',
        service: 'shop',
        instance: 'https://shop.test/',
        group: 'core',
      },
    },
  },
  healthchecks: {
    values: {
      $SLUG: 'backup',
      $NAME_JSON: '"Backup \\"db\\""',
      $TAGS: 'db eu',
      $EXITSTATUS: '1',
    },
    status: { $STATUS: ['down', 'up'] },
    expected: {
      fingerprint: 'healthchecks:backup',
      title: 'Backup "db"',
      service: 'backup',
      labels: { alertname: 'Backup "db"', service: 'backup', tags: 'db eu', exit_status: '1' },
    },
  },
  datadog: {
    values: {
      $ALERT_ID: '1234',
      $ALERT_SCOPE: 'host:db-1',
      $ALERT_PRIORITY: 'P1',
      $TAGS: 'env:eu',
      $EVENT_TITLE: '[Monitor] CPU',
      $HOSTNAME: 'db-1',
      $TEXT_ONLY_MSG: 'x',
      $LINK: 'y',
    },
    status: { $ALERT_TRANSITION: ['Re-Triggered', 'Recovered'] },
    expected: {
      fingerprint: 'datadog:1234:host:db-1',
      title: '[Monitor] CPU',
      service: null,
      labels: {
        alertname: '[Monitor] CPU',
        instance: 'db-1',
        severity: 'P1',
        monitor: '1234',
        scope: 'host:db-1',
        tags: 'env:eu',
      },
    },
  },
} as const

t.test('each sender’s deliveries in one shape', async (t) => {
  for (const [sender, files] of DELIVERIES) {
    for (const [file, expected] of Object.entries(files)) {
      const whole = { times: [null, null], members: [], ...sender, ...expected }
      t.same(shapeOf(read(sample(`${file}.json`))), whole, file)
    }
  }
})

t.test('the templates of the manual', async (t) => {
  for (const [source, { values, status, expected }] of Object.entries(TEMPLATES)) {
    for (const [at, what] of (['firing', 'resolved'] as const).entries()) {
      const words = Object.entries(status).map(([name, said]) => [name, said[at]] as const)
      const body = fillIn(source, { ...values, ...Object.fromEntries(words) })
      t.doesNotThrow(() => JSON.parse(body), `${source} sends JSON: ${body}`)
      const whole = { source, status: what, times: [null, null], members: [], ...expected }
      t.same(shapeOf(read(body)), whole, `${source}, ${what}`)
    }
  }
})

t.test('the script of the manual for Zabbix posts what Zabbix was seen to post', async (t) => {
  const [script = ''] = /^var given[^]*?^return 'OK';$/m.exec(manual) ?? []
  const message = 'Problem started at 03:20:11 on 2026.11.21\nProblem name: Disk space is low'
  const given = {
    url: 'http://ops.test/',
    key: 'KEY',
    trigger: '16048',
    value: '1',
    name: DISK_SPACE,
    host: 'db-1',
    severity: 'High',
    tags: 'class:os, scope:capacity',
    message,
  }
  const run = (status: number): readonly [unknown, readonly string[]] => {
    const sent: string[] = []
    const HttpRequest = function () {
      return {
        addHeader: (header: string) => sent.push(header),
        post: (url: string, body: string) => sent.push(url, body),
        getStatus: () => status,
      }
    }
    const value = JSON.stringify(given)
    const code = `(function () { try { ${script} } catch (error) { return error } })()`
    return [runInNewContext(code, { value, HttpRequest }), sent]
  }
  const headers = ['Content-Type: application/json', 'Authorization: Bearer KEY']
  t.same(run(202), ['OK', [...headers, given.url, sample('zabbix-firing.json').trim()]])
  t.match(run(401)[0], 'Gatehouse answered 401: ', 'Zabbix shows a refusal')
})

t.test('bodies of other senders', async (t) => {
  const statusOf = (body: unknown) => read(JSON.stringify(body)).status
  const ends = 'resolved,Warn Recovered, OK ,up,closed,normal,CLEAR,REMOVED,SUCCESS'
  for (const end of [...ends.split(','), 'ALERT_DEGRADED_RECOVERY']) {
    t.equal(statusOf({ title: 'backup', status: end }), 'resolved', end)
    t.equal(statusOf({ state: end }), 'resolved', `${end} as state`)
  }
  for (const other of ['firing', 'not ok', 'unresolved', 'down', '', 200, null, ['ok']]) {
    t.equal(statusOf({ title: 'backup', status: other }), 'firing', JSON.stringify(other))
  }
  t.equal(read('{"status":"down","state":"ok"}').status, 'firing', 'the status decides')
  const pingdom = '{"check_id":12345,"check_name":"Shop","current_state":"UP"}'
  const shop = { status: 'resolved', title: 'Shop', fingerprint: 'check:12345:Shop' }
  t.match(read(pingdom), shop)
  const cake = 'URL=https%3A%2F%2Fshop.test&Name=Shop&StatusCode=200&Status=Up'
  t.match(read(cake), { ...shop, fingerprint: 'check:Shop:https://shop.test' })
  t.equal(read(cake.replace('Status=Up', 'Status=Down')).status, 'firing')
  const expiry = (days: number) => {
    const msg = `[Shop][https://shop.test] server certificate shop.test will be expired in ${days} days`
    return read(JSON.stringify({ heartbeat: null, monitor: null, msg })).fingerprint
  }
  t.equal(expiry(14), expiry(13), 'a countdown is one alert')
  t.equal(read('resolved').status, 'firing', 'a text says nothing')
  t.equal(read('["resolved"]').status, 'firing')

  const body = {
    source: 'db-1',
    title: 'backup',
    service: 'db',
    labels: { team: 'a', n: 7, on: true },
    starts_at: '2026-11-26 03:00:00',
    ends_at: '2026-11-26T04:00:00+01:00',
    status: 'ok',
  }
  const { fingerprint, ...rest } = shapeOf(read(JSON.stringify(body)))
  t.match(fingerprint, 'sha256:')
  t.same(rest, {
    status: 'resolved',
    source: null,
    title: 'backup',
    service: 'db',
    members: [],
    labels: { alertname: 'backup', service: 'db', team: 'a', n: '7', on: 'true' },
    times: ['2026-11-26T03:00:00.000Z', '2026-11-26T03:00:00.000Z'],
  })
  for (const time of ['0001-01-01T00:00:00Z', '2026-13-01T00:00:00Z', '+275760-01-01', 7, null]) {
    t.equal(read(JSON.stringify({ starts_at: time })).startsAt, null, JSON.stringify(time))
  }
})

t.test('groups', async (t) => {
  const alert = (status: string, n = 1) => ({
    status,
    fingerprint: `f${n}`,
    labels: { n },
  })
  const group = (alerts: unknown, rest: object = {}) =>
    read(JSON.stringify({ groupKey: 'g', alerts, ...rest }))
  const many = Array.from({ length: 200 }, (_, at) => alert('resolved', at))
  t.equal(group(many).members.length, 50)
  t.equal(group(many).status, 'resolved')
  t.equal(group([...many, alert('firing')]).status, 'firing', 'the last one is looked at, too')
  t.equal(group(many, { status: 'firing' }).status, 'firing', 'the group was cut by its sender')
  t.match(shapeOf(group(['resolved', null, 7])), { status: 'firing', fingerprint: 'g' })
  const [first, second] = group([{ labels: { a: 1 } }, { labels: { a: 2 } }]).members
  t.match(first?.fingerprint, 'sha256:')
  t.not(first?.fingerprint, second?.fingerprint, 'without fingerprints the labels tell them apart')
})

t.test('Amazon: envelopes', async (t) => {
  const envelope = (Message: unknown, rest: object = {}): ReadAlert =>
    read(JSON.stringify({ Type: 'Notification', TopicArn: TOPIC, Message, ...rest }))
  const inner = JSON.parse(JSON.parse(sample('cloudwatch-firing.json')).Message)
  t.same(
    shapeOf(read(JSON.stringify(inner))),
    shapeOf(read(sample('cloudwatch-firing.json'))),
    'raw message delivery',
  )
  const [one, two] = ['a', 'b'].map((id) => envelope('The backup failed', { MessageId: id }))
  t.match(one, { title: 'The backup failed', source: null })
  t.equal(one?.fingerprint, two?.fingerprint, 'a text is told by the message, not by its envelope')
  t.match(envelope(sample('uptime-kuma-up.json')), { source: 'uptime-kuma', status: 'resolved' })
  for (const Type of ['constructor', '__proto__', 'hasOwnProperty', 7]) {
    t.match(envelope('x', { Type }), { source: null, status: 'firing' }, String(Type))
  }
})

t.test('what is read is bounded and has no secrets', async (t) => {
  const names = Array.from({ length: 300 }, (_, at) => [`label-${at}`, 'é'.repeat(300)])
  const wide = { labels: { ...Object.fromEntries(names), severity: 'high' }, title: 'wide' }
  const { labels } = read(JSON.stringify(wide))
  t.equal(Object.keys(labels).length, 64)
  t.match(labels, { alertname: 'wide', severity: 'high' }, 'the usual ones are among them')
  t.equal(Buffer.byteLength(labels['label-0'] ?? ''), 256 - 1, 'cut, and never within a character')
  t.match(labels['label-0'], 'é…')

  const hidden = { fingerprint: SECRET, title: SECRET, labels: { [SECRET]: 1, password: SECRET } }
  const member = { status: 'firing', ...hidden, annotations: { summary: SECRET } }
  for (const body of [hidden, { ...hidden, groupKey: SECRET, alerts: [member] }]) {
    t.notMatch(JSON.stringify(read(JSON.stringify(body))), SECRET)
  }
  const proto = '{"labels":{"__proto__":"x","a":{"b":1},"c":["d"],"":"e","f":""},"title":"t"}'
  t.same(Object.entries(read(proto).labels), [
    ['alertname', 't'],
    ['__proto__', 'x'],
  ])

  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
  for (const name of ['labels', 'status', 'alerts', 'commonLabels', 'data', 'Message']) {
    const body = `{"title":"deep","heartbeat":1,"${name}":${deep}}`
    t.match(read(body), { title: 'deep', status: 'firing' }, name)
  }
})

/** A group of Alertmanager without common labels, with an alert for each of these states. */
function groupOf(given: readonly (readonly [status: string, host: string, startsAt: string])[]) {
  const alerts = given.map(([status, host, startsAt]) => ({
    status,
    startsAt,
    fingerprint: host,
    labels: { alertname: 'DiskFull', host, service: 'db' },
  }))
  const status = alerts.some((alert) => alert.status === 'firing') ? 'firing' : 'resolved'
  return JSON.stringify({
    groupKey: '{}:{late}',
    status,
    groupLabels: { team: 'storage' },
    alerts,
  })
}

t.test('a group without common labels, and what comes late or twice', async (t) => {
  const [first, second] = ['2026-11-26T01:00:00Z', '2026-11-26T02:00:00Z']
  const mixed = groupOf([
    ['firing', 'db-1', first],
    ['firing', 'db-2', second],
    ['resolved', 'web-1', first],
  ])
  t.match(read(mixed), { labels: { alertname: 'DiskFull', service: 'db', team: 'storage' } })
  t.notOk('host' in read(mixed).labels)

  const ops = await startOps(t, postgres, { OPS_CHAT_API_KEY: CHAT_KEY })
  await ended(ops)
  const silence = (match: object) =>
    ops.api<{ id: number }>('POST', '/silences', {
      match,
      reason: 'x',
      ends_at: new Date(Date.now() + 3_600_000).toISOString(),
    })
  const deliver = async (body: string) => {
    const { status, json } = await deliverAlert(ops.base, body)
    return [status, json.detail]
  }
  await silence({ host: 'db-2' })
  t.match(await deliver(mixed), [502], 'one of two is silenced')
  const { json: both } = await silence({ host: 'db-*' })
  t.match(await deliver(mixed), [202, new RegExp(`by silence ${both.id}$`)])

  const alert = async () => (await listOf(ops, 'alerts'))[0]
  const overAt = (startsAt: string, endsAt: string) =>
    JSON.stringify({
      groupKey: '{}:{late}',
      status: 'resolved',
      alerts: [{ status: 'resolved', startsAt, endsAt, labels: { host: 'db-1' } }],
    })
  const late = 'older than what is known: it changes nothing'
  const before = await alert()
  t.match(before, { state: 'firing', firing_since: '2026-11-26T01:00:00.000Z' })
  t.same(await deliver(overAt('2026-11-25T01:00:00Z', '2026-11-25T02:00:00Z')), [202, late])
  t.same(await alert(), before)
  await ops.api('DELETE', `/silences/${both.id}`)
  t.same(await deliver(overAt(first, '2026-11-26T03:00:00Z')), [202, 'resolved: nothing starts'])
  const over = await alert()
  t.match(over, { state: 'resolved', resolved_at: '2026-11-26T03:00:00.000Z', firings: 1 })
  t.same(await deliver(mixed), [202, late], 'a repeat of the firing that has ended')
  t.same(await alert(), over)
  await deliver(groupOf([['firing', 'db-1', '2026-11-26T04:00:00Z']]))
  t.match(await alert(), { state: 'firing', firings: 2 })
})

t.test('all are taken, and each end is a delivery of its alert', async (t) => {
  const env = {
    OPS_CHAT_API_KEY: CHAT_KEY,
    OPS_RUNNER: 'probe',
    ...(await postgres.env(t)),
    GATEHOUSE_SECRET_KEY: secretKey(),
    HOOKS_REPLAY_TARGETS: '127.0.0.1',
    OPS_INVENTORY: await inventoryFile(t, { services: [] }),
  }
  const { hooks, ops } = await startServer(t, { services: ['hooks', 'ops'], env })
  for (const file of DELIVERIES.flatMap(([, files]) => Object.keys(files))) {
    const { status } = await deliverAlert(ops, sample(`${file}.json`))
    t.ok([202, 502].includes(status), `${file}: ${status}`)
  }
  const alerts = 'select fingerprint, source, count from ops.alerts order by id'
  const rows = DELIVERIES.map(([{ fingerprint, source }, files]) => {
    return { fingerprint, source, count: Object.keys(files).length }
  })
  t.same(await postgres.query(env, alerts), rows)

  await t.test('Amazon SNS, which has no bearer token, by way of hooks', async (t) => {
    const added = await runCli(['provider', 'add', 'alarms', '--enable'], {
      env,
      secretShown: true,
    })
    const token = added.stdout.trim()
    const to = ['ops', `${ops}/api/v1/webhook`, '--provider', 'generic:alarms']
    t.match(await runCli(['destination', 'add', ...to], { env }), { code: 0 })
    const set = ['destination', 'set', 'ops', '--authorization', '-']
    t.match(await runCli(set, { env, input: `Bearer ${CHAT_KEY}` }), { code: 0 })
    const stored = await request(`${hooks}/webhooks/generic/alarms?token=${token}`, {
      method: 'POST',
      headers: { 'content-type': 'text/plain; charset=UTF-8' },
      body: sample('cloudwatch-resolved.json'),
    })
    t.equal(stored.status, 202)
    await until(async () => {
      const kept = await postgres.query(env, alerts)
      return kept.some(({ source, count }) => source === 'cloudwatch' && count === 3)
    }, 'the alarm to come')
  })
})
