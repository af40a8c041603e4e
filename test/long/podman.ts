import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { temporaryFolder } from '../helpers/owner.ts'
import type { Owner } from '../helpers/owner.ts'
import { onPath } from '../runner/system-parts.ts'

/** A runtime that sets no limits of processes: only root with all capabilities may raise them. */
const RUNTIME = `#!${process.execPath}
const { readFileSync, writeFileSync } = require('node:fs')
const { spawnSync } = require('node:child_process')
const args = process.argv.slice(2)
const at = args.indexOf('--bundle')
if (at >= 0) {
  const file = args[at + 1] + '/config.json'
  const config = JSON.parse(readFileSync(file, 'utf8'))
  delete config.process.rlimits
  writeFileSync(file, JSON.stringify(config))
}
const { status } = spawnSync('${onPath('runc')}', args, { stdio: 'inherit' })
process.exitCode = status ?? 1
`

/** A Podman with a store of its own, which goes away with the test. */
export async function openPodman(t: Owner) {
  const folder = await temporaryFolder(t, 'podman')
  const [runtime, settings] = [join(folder, 'runc'), join(folder, 'containers.conf')]
  writeFileSync(runtime, RUNTIME, { mode: 0o755 })
  writeFileSync(settings, `[engine]\nruntime = "runc"\n[engine.runtimes]\nrunc = ["${runtime}"]\n`)
  const place = ['--root', join(folder, 'store'), '--runroot', join(folder, 'run')]
  const plain = ['--storage-driver', 'vfs', '--cgroup-manager', 'cgroupfs']
  const options = [...place, ...plain, '--events-backend', 'file']
  const env = { ...process.env, CONTAINERS_CONF: settings }
  const podman = async (...args: readonly string[]) => {
    const { stdout } = await promisify(execFile)('podman', [...options, ...args], { env })
    return stdout
  }
  t.teardown(() => podman('rm', '--force', '--all', '--time', '1').catch(() => undefined))
  return { folder, podman, options, env }
}
