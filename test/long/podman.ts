import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { temporaryFolder, type Owner } from '../helpers/owner.ts'
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

/** A Podman with a store of its own, which goes away with the test. `env` makes any Podman this one. */
export async function openPodman(t: Owner) {
  const folder = await temporaryFolder(t, 'podman')
  const at = (name: string) => join(folder, name)
  writeFileSync(at('runc'), RUNTIME, { mode: 0o755 })
  writeFileSync(
    at('containers.conf'),
    `[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[engine.runtimes]
runc = ["${at('runc')}"]
`,
  )
  writeFileSync(
    at('storage.conf'),
    `[storage]
driver = "vfs"
graphroot = "${at('store')}"
runroot = "${at('run')}"
`,
  )
  const env = {
    CONTAINERS_CONF: at('containers.conf'),
    CONTAINERS_STORAGE_CONF: at('storage.conf'),
  }
  const podman = async (...args: string[]) => {
    const { stdout } = await promisify(execFile)('podman', args, {
      env: { ...process.env, ...env },
    })
    return stdout
  }
  t.teardown(() => podman('rm', '--force', '--all', '--time', '1').catch(() => undefined))
  return { folder, podman, env }
}
