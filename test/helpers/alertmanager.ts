import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { deploymentParts } from '../runner/system-parts.ts'
import { CHAT_KEY } from './alerts.ts'
import { request } from './http.ts'
import type { Owner } from './owner.ts'
import { freePort, temporaryFolder } from './owner.ts'
import { recordProcess, runFolder } from './program.ts'
import { until } from './until.ts'

/** An alert as Prometheus posts it: one with an `endsAt` in the past is resolved. */
export type PostedAlert = {
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: object
  readonly endsAt?: string
}

/** A running Alertmanager. */
export type Alertmanager = { post(alerts: readonly PostedAlert[]): Promise<void> }

/** Starts Alertmanager, which tells the webhook of this ops service of each change of a group. */
export async function startAlertmanager(t: Owner, ops: string): Promise<Alertmanager> {
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
    deploymentParts.alertmanager.find() ?? '',
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
  if (child.pid !== undefined) recordProcess(runFolder(), child.pid)
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const base = `http://127.0.0.1:${port}`
  const isReady = async (): Promise<boolean> => {
    if (child.exitCode !== null) throw new Error(readFileSync(log, 'utf8').slice(-500))
    return (await request(`${base}/-/ready`).catch(() => undefined))?.status === 200
  }
  await until(isReady, 'Alertmanager to answer')
  return {
    async post(alerts) {
      const headers = { 'content-type': 'application/json' }
      const body = JSON.stringify(alerts)
      const { status, text } = await request(`${base}/api/v2/alerts`, {
        ...{ method: 'POST', headers, body },
      })
      if (status !== 200) throw new Error(`Alertmanager answered ${status}: ${text}`)
    },
  }
}
