import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { readAlert, readPayload } from '../../services/ops/alerts/alerts/payload.ts'
import { CHAT_KEY, startBriefs } from '../helpers/alerts.ts'
import { postgres } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { startOps } from '../helpers/ops.ts'
import { freePort, temporaryFolder, type Owner } from '../helpers/owner.ts'
import { recordChild } from '../helpers/program.ts'
import { until } from '../helpers/until.ts'
import { lacks, longParts } from '../runner/system-parts.ts'

function read(body: string) {
  return readAlert(readPayload(Buffer.from(body)), (text) => text)
}

const noAlertmanager = lacks(longParts.alertmanager)
t.test('a real Alertmanager tells of a group', { skip: noAlertmanager }, async (t) => {
  const briefs = await startBriefs(t)
  const env = { OPS_CHAT_API_KEY: CHAT_KEY, ...briefs.env, ...(await postgres.env(t)) }
  const ops = await startOps(t, postgres, env)
  const alertmanager = await startAlertmanager(t, ops.base)
  const on = (
    host: string,
  ): { labels: { alertname: string; host: string }; annotations: object } => ({
    labels: { alertname: 'DiskFull', host },
    annotations: { summary: `The disk of ${host} is full` },
  })
  const over = (host: string) => ({ ...on(host), endsAt: new Date().toISOString() })
  /** The texts of the alert, as they came, once the newest one has this status. */
  const texts = (statuses: readonly string[]) =>
    until(
      async () => {
        const rows = await postgres.query(
          env,
          `select t.payload, a.fingerprint, a.source from ops.alerts a
           join ops.alert_texts t on t.alert_id = a.id order by t.first_seen`,
        )
        const alerts = rows.map(({ payload }) => read(String(payload)))
        const newest = alerts.at(-1)?.members.map(({ status }) => status) ?? []
        t.ok(rows.every(({ source }) => source === 'alertmanager'))
        t.ok(new Set(rows.map(({ fingerprint }) => fingerprint)).size <= 1, 'one alert')
        return newest.toSorted().join() === statuses.join() && alerts
      },
      `the group to be ${statuses.join(' and ')}`,
    )

  await alertmanager.post([on('db-1'), on('db-2')])
  await texts(['firing', 'firing'])
  await alertmanager.post([over('db-2')])
  t.equal((await texts(['firing', 'resolved'])).at(-1)?.status, 'firing')
  await alertmanager.post([over('db-1')])
  const all = await texts(['resolved'])
  t.match(all.at(-1), { status: 'resolved', labels: { alertname: 'DiskFull', host: 'db-1' } })
})

/** An alert as Prometheus posts it: one with an `endsAt` in the past is resolved. */
type PostedAlert = {
  labels: Record<string, string>
  annotations: object
  endsAt?: string
}

/** A running Alertmanager. */
type Alertmanager = { post(alerts: readonly PostedAlert[]): Promise<void> }

/** Starts Alertmanager, which tells the webhook of this ops service of each change of a group. */
async function startAlertmanager(t: Owner, ops: string): Promise<Alertmanager> {
  const folder = await temporaryFolder(t, 'alertmanager')
  const [port, log, config] = [
    await freePort(),
    join(folder, 'alertmanager.log'),
    join(folder, 'alertmanager.yml'),
  ]
  const receiver = {
    name: 'gatehouse',
    webhook_configs: [
      {
        url: `${ops}/api/v1/webhook`,
        send_resolved: true,
        http_config: { authorization: { credentials: CHAT_KEY } },
      },
    ],
  }
  const times = { group_wait: '100ms', group_interval: '200ms', repeat_interval: '4h' }
  const route = { receiver: receiver.name, group_by: ['alertname'], ...times }
  // JSON is YAML.
  writeFileSync(config, JSON.stringify({ route, receivers: [receiver] }))

  const output = openSync(log, 'a')
  const child = spawn(
    longParts.alertmanager.find() ?? '',
    [
      `--config.file=${config}`,
      `--storage.path=${folder}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--cluster.listen-address=',
    ],
    { stdio: ['ignore', output, output] },
  )
  closeSync(output)
  const ended = once(child, 'exit')
  recordChild(child)
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const base = `http://127.0.0.1:${port}`
  const isReady = async () => {
    if (child.exitCode !== null) throw new Error(readFileSync(log, 'utf8').slice(-500))
    return (await request(`${base}/-/ready`).catch(() => undefined))?.status === 200
  }
  await until(isReady, 'Alertmanager to answer')
  return {
    async post(alerts) {
      const headers = { 'content-type': 'application/json' }
      const body = JSON.stringify(alerts)
      const { status, text } = await request(`${base}/api/v2/alerts`, {
        method: 'POST',
        headers,
        body,
      })
      if (status !== 200) throw new Error(`Alertmanager answered ${status}: ${text}`)
    },
  }
}
