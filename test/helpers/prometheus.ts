import { execFileSync, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onPath } from '../runner/system-parts.ts'
import { freePort, temporaryFolder } from './owner.ts'
import type { Owner } from './owner.ts'
import { recordProcess, runFolder } from './program.ts'
import { until } from './until.ts'

/** A sample of a series, in the notation of OpenMetrics, and its time in seconds. */
export type Sample = readonly [series: string, value: number, seconds: number]

/** Starts a Prometheus that holds these samples, series after series, and collects none. */
export async function startPrometheus(
  t: Owner,
  samples: readonly Sample[],
): Promise<{ readonly url: string }> {
  const folder = await temporaryFolder(t, 'prometheus')
  const [settings, source, data] = ['settings.yml', 'samples', 'data'].map((name) =>
    join(folder, name),
  )
  writeFileSync(settings ?? '', 'global: {}\n')
  const lines = samples.map(([series, value, seconds]) => `${series} ${value} ${seconds}\n`)
  writeFileSync(source ?? '', `${lines.join('')}# EOF\n`)
  const promtool = onPath('promtool') ?? ''
  execFileSync(promtool, ['tsdb', 'create-blocks-from', 'openmetrics', `${source}`, `${data}`])
  const address = `127.0.0.1:${await freePort()}`
  const flags = [`--config.file=${settings}`, `--storage.tsdb.path=${data}`]
  const program = spawn(
    onPath('prometheus') ?? '',
    [...flags, `--web.listen-address=${address}`, '--storage.tsdb.retention.time=10y'],
    { stdio: 'ignore' },
  )
  recordProcess(runFolder(), program.pid ?? 0)
  t.teardown(() => void program.kill('SIGKILL'))
  const url = `http://${address}`
  await until(async () => (await fetch(`${url}/-/ready`)).ok, 'a Prometheus that is ready')
  return { url }
}
