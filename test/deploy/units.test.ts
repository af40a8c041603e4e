import { spawnSync } from 'node:child_process'
import {
  appendFileSync,
  copyFileSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import {
  variableOf,
  VARIABLE_NAMES,
  type VariableName,
} from '../../commands/frame/configuration.ts'
import { postgres } from '../helpers/backends.ts'
import { FREE, refuseCommands, runCli, runOk } from '../helpers/cli.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { ROOT } from '../helpers/program.ts'
import { SERVICES } from '../helpers/server.ts'
import { deploymentParts, lacks } from '../runner/system-parts.ts'
import { allIn } from '../helpers/http.ts'

const UNITS = [
  'gatehouse.service',
  'gatehouse.socket',
  'gatehouse-links.socket',
  'gatehouse-ops.socket',
]
const DROP_IN = 'ops-host-access.conf'
const skip = lacks(deploymentParts.systemd)
const service = read('gatehouse.service')

function read(name: string) {
  return readFileSync(join(ROOT, 'deploy', name), 'utf8')
}

/** The values of a setting of a unit, in their order. */
function settings(text: string, name: string) {
  return allIn(text, new RegExp(`^${name}=(.*)$`, 'gm'))
}

/** What `systemd-analyze` says, stdout and stderr as one text, and its status. */
function analyze(...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync('systemd-analyze', args, { encoding: 'utf8' })
  return { status, output: stdout + stderr }
}

t.test('systemd has nothing to say about the units', { skip }, async (t) => {
  const folder = await temporaryFolder(t, 'units')
  // Beside each other as systemd has them, starting a program that is there.
  const units = UNITS.map((name) => {
    const path = join(folder, name)
    writeFileSync(path, read(name).replaceAll('=/usr/local/bin/gatehouse', '=/bin/true'))
    return path
  })
  t.same(analyze('verify', '--man=no', ...units), { status: 0, output: '' })
  const [unit = ''] = units
  mkdirSync(`${unit}.d`)
  const dropIn = join(`${unit}.d`, DROP_IN)
  copyFileSync(join(ROOT, 'deploy', DROP_IN), dropIn)
  t.same(analyze('verify', '--man=no', ...units), { status: 0, output: '' }, 'with the drop-in')
  appendFileSync(dropIn, 'NoSuchSetting=1\n')
  t.match(analyze('verify', '--man=no', ...units).output, /NoSuchSetting/, 'it would be said')
})

t.test('exposure is small, and what it may take of the host is bounded', { skip }, async (t) => {
  const unit = join(ROOT, 'deploy', 'gatehouse.service')
  // Tenths: 1.5 at most.
  const looked = analyze('security', '--offline=true', '--threshold=15', unit)
  t.equal(looked.status, 0, looked.output)
  t.same(settings(service, 'MemoryMax'), ['3G'])
  t.same(settings(service, 'TasksMax'), ['512'])
  t.match(settings(service, 'ExecStart'), [/ serve$/])
  t.match(settings(service, 'ExecStartPre').join('\n'), / check$/m)
})

t.test('every secret is a credential, and none has to be there', async (t) => {
  const secrets = VARIABLE_NAMES.filter((name) => variableOf(name).secret === true)
  const ids = secrets.map((name) => name.toLowerCase()).sort()
  const files = ids.map((id) => `${id}:/etc/gatehouse/credentials/${id}`)
  t.same(settings(service, 'LoadCredential'), files)
  // The fallback that makes a missing file no failure; its newline is no part of the value.
  const fallbacks = ids.map((id) => `${id}:\\n`)
  t.same(settings(service, 'SetCredential'), fallbacks)
  for (const id of ids.filter((id) => !id.endsWith('_previous'))) {
    t.match(read('gatehouse.env'), new RegExp(`^# ${id} `, 'm'), `${id} is told of`)
  }
})

t.test('a credential that is an empty line counts as none', async (t) => {
  const folder = await temporaryFolder(t, 'credentials')
  for (const name of ['database_url', 'gatehouse_secret_key']) {
    writeFileSync(join(folder, name), '\n', { mode: 0o400 })
  }
  const env = { CREDENTIALS_DIRECTORY: folder, GATEHOUSE_DATA_DIR: await temporaryFolder(t) }
  const found = await runCli('check', { env: { ...env, ...FREE } })
  t.match(found, { code: 0, stdout: '\nok    database: embedded, not created yet' })

  const looped = join(folder, 'hooks_chat_secret')
  symlinkSync(looped, looped)
  const target = { env, state: async () => readdirSync(env.GATEHOUSE_DATA_DIR) }
  await refuseCommands(t, target, [
    ['provider list', 1, `The credential ${looped} can't be read (ELOOP`],
  ])
})

t.test('each service has a socket of its name', async (t) => {
  for (const [at, name] of UNITS.slice(1).entries()) {
    const text = read(name)
    t.same(settings(text, 'FileDescriptorName'), [SERVICES[at]])
    t.same(settings(text, 'ListenStream'), [`127.0.0.1:${8080 + at}`])
    t.same(settings(text, 'Service'), ['gatehouse.service'], name)
    t.same(settings(text, 'Accept'), [], name)
  }
  t.same(settings(service, 'Sockets'), [UNITS.slice(1).join(' ')])
  t.match(
    settings(service, 'Environment')[0],
    'HOOKS_ADDR=fd:hooks LINKS_ADDR=fd:links OPS_ADDR=fd:ops',
  )
})

t.test('the example of settings is one', async (t) => {
  const example = read('gatehouse.env')
  const lines = [...example.matchAll(/^#([A-Z0-9_]+)=(.*)$/gm)]
  t.ok(lines.length > 20)
  const folder = await temporaryFolder(t, 'settings')
  // Files that an example names would have to be there.
  const file = join(folder, 'gatehouse.env')
  writeFileSync(file, lines.map(([, name, value]) => `${name}=${value}\n`).join(''))
  const env = { ...(await postgres.env(t)), GATEHOUSE_ENV_FILE: file }
  await runOk('provider list', { env })
  // As it comes.
  writeFileSync(file, example)
  await runOk('provider list', { env })
  for (const [line, name = '', value] of lines) {
    const { default: fallback, secret } = variableOf(name as VariableName)
    t.not(secret, true, `${name} is no secret`)
    if (fallback !== undefined && !/_(MODEL)$/.test(name)) t.equal(value, fallback, line)
  }
})
