import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  appendFileSync,
  chmodSync,
  globSync,
  lstatSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { temporaryFolder, type Owner } from '../helpers/owner.ts'
import { ROOT } from '../helpers/program.ts'
import { deploymentParts, lacks } from '../runner/system-parts.ts'

const SCRIPT = join(ROOT, 'deploy', 'install.sh')
const BINARY = '/usr/local/bin/gatehouse'
const SETTINGS = '/etc/gatehouse/gatehouse.env'
const SHARE = '/usr/local/share/gatehouse'
const UNITS = '/usr/local/lib/systemd/system'
/** Paths by the mode that they have. */
const MODES: Readonly<Record<string, readonly string[]>> = {
  755: [BINARY, '/etc/gatehouse', SHARE, `${SHARE}/cluster`],
  700: ['/etc/gatehouse/credentials'],
  644: [
    SETTINGS,
    ...['.service', '.socket', '-links.socket', '-ops.socket'].map(
      (end) => `${UNITS}/gatehouse${end}`,
    ),
    ...[
      'gatehouse.env',
      'nginx.conf',
      'Caddyfile',
      'nginx-two-instances.conf',
      'ops-host-access.conf',
      'gatehouse.rules.yml',
      'gatehouse.dashboard.json',
      'cluster/etcd.env',
      'cluster/haproxy.cfg',
      'cluster/patroni.yml',
      'cluster/pgbouncer.ini',
      'cluster/sequences.sql',
    ].map((name) => `${SHARE}/${name}`),
  ],
}

/** Runs install.sh with a strict mask, as an administrator may have it. */
function install(root: string, ...args: readonly string[]) {
  const command = 'umask 077; exec sh "$@"'
  const { status, stdout, stderr } = spawnSync('sh', ['-c', command, 'sh', SCRIPT, ...args], {
    env: { PATH: process.env['PATH'] ?? '', DESTDIR: root },
    encoding: 'utf8',
  })
  return { status, stdout, lines: stdout.trim().split('\n'), stderr }
}

/** What it says of files, but for those that stay; its last line is of another kind. */
function changesIn(lines: readonly string[]) {
  return lines.slice(0, -1).filter((line) => !line.startsWith('unchanged  '))
}

/** Everything under a folder with its mode and bytes. */
function snapshot(root: string) {
  const entries = globSync('**/*', { cwd: root, withFileTypes: true }).map((entry) => {
    const path = join(entry.parentPath, entry.name)
    const bytes = entry.isFile()
      ? createHash('sha256').update(readFileSync(path)).digest('hex')
      : ''
    return [
      path.slice(root.length),
      `${(lstatSync(path).mode & 0o777).toString(8)} ${bytes}`,
    ] as const
  })
  return new Map(entries)
}

async function executable(t: Owner) {
  const path = join(await temporaryFolder(t, 'built'), 'gatehouse')
  writeFileSync(path, '#!/bin/sh\necho 1\n')
  chmodSync(path, 0o755)
  return path
}

t.test(
  'install.sh is plain sh without a flaw',
  { skip: lacks(deploymentParts.shellcheck) },
  async (t) => {
    const { status, stdout } = spawnSync('shellcheck', ['--shell=sh', SCRIPT], {
      encoding: 'utf8',
    })
    t.same({ status, stdout }, { status: 0, stdout: '' })
  },
)

t.test('it puts everything in place, and a second time nothing', async (t) => {
  const root = await temporaryFolder(t, 'root')
  const built = await executable(t)
  const first = install(root, built)
  t.match(first, { status: 0, stderr: '' })
  for (const [mode, paths] of Object.entries(MODES)) {
    for (const path of paths) {
      t.equal((lstatSync(join(root, path)).mode & 0o777).toString(8), mode, path)
      t.match(first.stdout, new RegExp(`^(installed|made) +${path}/?$`, 'm'), `${path} is named`)
    }
  }
  t.equal(first.lines.at(-1), `All is in ${root}; systemd was not told.`)
  t.equal(readFileSync(join(root, BINARY), 'utf8'), readFileSync(built, 'utf8'))

  const before = snapshot(root)
  const second = install(root, built)
  t.match(second, { status: 0, stderr: '' })
  t.same(snapshot(root), before)
  t.same(changesIn(second.lines), [])
  t.equal(second.lines.length, first.lines.length)
})

t.test('an upgrade replaces what is ours and keeps what is the operator’s', async (t) => {
  const root = await temporaryFolder(t, 'root')
  const built = await executable(t)
  t.equal(install(root, built).status, 0)
  const before = snapshot(root)
  appendFileSync(join(root, SETTINGS), 'OPS_DRY_RUN=true\n')
  appendFileSync(join(root, UNITS, 'gatehouse.service'), '# of an older version\n')
  writeFileSync(join(root, '/etc/gatehouse/credentials/ops_chat_api_key'), 'kept')
  appendFileSync(built, 'echo 2\n')
  const { status, lines } = install(root, built)
  t.equal(status, 0)
  t.same(changesIn(lines), [
    `replaced   ${BINARY}`,
    `replaced   ${UNITS}/gatehouse.service`,
    `kept       ${SETTINGS} (edited; the example is in ${SHARE})`,
  ])
  t.match(readFileSync(join(root, SETTINGS), 'utf8'), /^OPS_DRY_RUN=true$/m)
  t.match(readFileSync(join(root, BINARY), 'utf8'), /^echo 2$/m)
  rmSync(join(root, '/etc/gatehouse/credentials/ops_chat_api_key'))
  const after = new Map(snapshot(root))
  for (const path of [SETTINGS, BINARY]) after.delete(path)
  for (const [path, what] of after) t.equal(what, before.get(path), path)
})

t.test('without an executable nothing is touched', async (t) => {
  const root = await temporaryFolder(t, 'root')
  const missing = join(root, 'nowhere')
  t.match(install(root, missing), {
    status: 1,
    stderr: `install.sh: there is no ${missing}: name the executable of a release, or run npm run build first\n`,
  })
  t.match(install(root, join(ROOT, 'package.json')), { status: 1, stderr: /is no executable/ })
  t.equal(snapshot(root).size, 0)
})
