import { spawnSync } from 'node:child_process'
import { appendFileSync, copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { HOSTS } from './cluster-hosts.ts'
import { longParts, lacks } from '../runner/system-parts.ts'

// The story runs in a network of its own, where the hosts of deploy/cluster are addresses of loopback and one of
// them can be cut off, and with an account for each of them. This file prints the story's TAP.

/** With processes of its own: they all end with the story, and PostgreSQL's have a parent that collects them. */
const NAMESPACES = ['--net', '--mount', '--pid', '--fork', '--mount-proc', '--kill-child']
const ENTER = 'mount --bind "$1" /etc/passwd && ip link set lo up && shift && "$@"; exit $?'

const missing = lacks(longParts.patroni) || lacksNetwork()
if (missing === false) {
  process.exitCode = runStory()
} else {
  process.stdout.write(`TAP version 14\nok 1 - the story of the cluster # SKIP ${missing}\n1..1\n`)
}

function runStory() {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-accounts-'))
  const accounts = join(folder, 'passwd')
  copyFileSync('/etc/passwd', accounts)
  for (const { name, uid } of HOSTS) {
    appendFileSync(accounts, `${name}:x:${uid}:${uid}::/nonexistent:/usr/sbin/nologin\n`)
  }
  const story = join(import.meta.dirname, 'cluster-story.ts')
  const node = [process.execPath, ...process.execArgv, story]
  const { status } = spawnSync(
    'unshare',
    [...NAMESPACES, 'sh', '-c', ENTER, 'sh', accounts, ...node],
    { stdio: 'inherit' },
  )
  rmSync(folder, { recursive: true })
  return status ?? 1
}

function lacksNetwork() {
  const able = spawnSync('unshare', [...NAMESPACES, 'iptables', '-L', '-n']).status === 0
  return !able && 'namespaces for the network and mounts take root and the program iptables'
}
