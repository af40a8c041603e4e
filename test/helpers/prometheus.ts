import { execFileSync, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onPath } from '../runner/system-parts.ts'
import { freePort, temporaryFolder, type Owner } from './owner.ts'
import { recordChild } from './program.ts'
import { until } from './until.ts'

/** A sample of a series, in the notation of OpenMetrics, and its time in seconds. */
type Sample = readonly [series: string, value: number, seconds: number]

/** Starts a Prometheus that holds these samples, series after series, and collects none. */
export async function startPrometheus(t: Owner, samples: readonly Sample[]) {
  const folder = await temporaryFolder(t, 'prometheus')
  const source = join(folder, 'samples')
  const lines = samples.map(([series, value, seconds]) => `${series} ${value} ${seconds}\n`)
  writeFileSync(source, `${lines.join('')}# EOF\n`)
  const promtool = onPath('promtool') ?? ''
  const args = ['tsdb', 'create-blocks-from', 'openmetrics', source, join(folder, 'data')]
  execFileSync(promtool, args)
  return runPrometheus(t, folder, 'global: {}\n')
}

/** Starts a Prometheus that collects from a server each second, as job `gatehouse`, and knows rules. */
export async function startScraper(t: Owner, target: URL, rules: string) {
  const settings = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [rules],
    scrape_configs: [{ job_name: 'gatehouse', static_configs: [{ targets: [target.host] }] }],
  }
  // JSON is YAML.
  return runPrometheus(t, await temporaryFolder(t, 'prometheus'), JSON.stringify(settings))
}

async function runPrometheus(t: Owner, folder: string, settings: string) {
  const file = join(folder, 'settings.yml')
  writeFileSync(file, settings)
  const address = `127.0.0.1:${await freePort()}`
  const flags = [`--config.file=${file}`, `--storage.tsdb.path=${join(folder, 'data')}`]
  const program = spawn(
    onPath('prometheus') ?? '',
    [...flags, `--web.listen-address=${address}`, '--storage.tsdb.retention.time=10y'],
    { stdio: 'ignore' },
  )
  recordChild(program)
  t.teardown(() => void program.kill('SIGKILL'))
  const url = `http://${address}`
  await until(async () => (await fetch(`${url}/-/ready`)).ok, 'a Prometheus that is ready')
  return { url }
}
