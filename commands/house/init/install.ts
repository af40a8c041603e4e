import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { asset, assetFile, assetNames, inExecutable } from '../../../kernel/assets.ts'
import { SERVICES, variableOf, VARIABLE_NAMES } from '../../frame/configuration.ts'
import { readSettings, writeSettings, writeText, type Settings } from './env-file.ts'

const UNIT = '/usr/local/lib/systemd/system/gatehouse.service'
/** The unit of the Debian package. One in /usr/local would win over it, also after an upgrade. */
const PACKAGED_UNIT = '/usr/lib/systemd/system/gatehouse.service'
/** The settings as they are installed, all commented out. */
export const EXAMPLE = 'deploy/gatehouse.env'

type Environment = Readonly<Record<string, string | undefined>>

export type UnitPlaces = ReturnType<typeof unitPlaces>

/** Where the unit has its settings and its secrets. `root` is a folder, for a package or a test. */
export function unitPlaces(root = '') {
  return {
    settings: join(root, '/etc/gatehouse/gatehouse.env'),
    credentials: join(root, '/etc/gatehouse/credentials'),
    state: join(root, '/var/lib/gatehouse'),
  }
}

/** What the unit sets itself. */
export function environmentOfUnit({ credentials, state }: UnitPlaces) {
  const addresses = SERVICES.map((name) => [`${name.toUpperCase()}_ADDR`, `fd:${name}`] as const)
  return {
    ...Object.fromEntries(addresses),
    CREDENTIALS_DIRECTORY: credentials,
    STATE_DIRECTORY: state,
  }
}

/** What can be offered to who runs this: its unit. Undefined if nothing can be. */
export function unitQuestion() {
  if (process.getuid?.() !== 0 || !existsSync('/run/systemd/system')) return undefined
  if (existsSync(PACKAGED_UNIT)) return 'Write the settings of the systemd unit?'
  const hasProgram = inExecutable || existsSync(assetFile('dist/gatehouse'))
  return hasProgram && !existsSync(UNIT) ? 'Install the systemd unit?' : undefined
}

function isSecret(name: string) {
  return VARIABLE_NAMES.some((known) => known === name && variableOf(known).secret === true)
}

/** The settings and the secrets that the unit has already. */
export function readUnitSettings(root?: string): Settings {
  const { settings, credentials } = unitPlaces(root)
  const files = VARIABLE_NAMES.filter(isSecret).map((name) => {
    return [name, join(credentials, name.toLowerCase())] as const
  })
  const secrets = files
    .filter(([, file]) => existsSync(file))
    .map(([name, file]) => [name, readFileSync(file, 'utf8').replace(/\r?\n$/, '')] as const)
    .filter(([, text]) => text !== '')
  return { ...readSettings(settings), ...Object.fromEntries(secrets) }
}

/**
 * Writes the settings where the unit reads them. Its user exists only while it runs, and reads
 * the file itself, so everybody may read it. Secrets are files that root alone may read.
 */
export function writeUnitSettings(settings: Settings, root?: string): void {
  const places = unitPlaces(root)
  mkdirSync(places.credentials, { recursive: true, mode: 0o700 })
  const entries = Object.entries(settings)
  for (const [name, text] of entries.filter(([known]) => isSecret(known))) {
    writeText(join(places.credentials, name.toLowerCase()), text, 0o600)
  }
  const open = Object.fromEntries(entries.filter(([name]) => !isSecret(name)))
  writeSettings(places.settings, open, 0o644)
}

/** Runs deploy/install.sh, unless a package has brought the unit; gives the lines that it says. */
export function installUnit(environment: Environment): readonly string[] {
  const packaged = join(environment['DESTDIR'] ?? '', PACKAGED_UNIT)
  if (existsSync(packaged)) return [`unchanged  ${PACKAGED_UNIT}, of the Debian package`]
  const unpacked = inExecutable ? unpackScripts() : undefined
  try {
    const script = unpacked ?? assetFile('deploy/install.sh')
    const args = unpacked === undefined ? [script] : [script, process.execPath]
    const { error, status, stdout, stderr } = spawnSync('sh', args, {
      encoding: 'utf8',
      env: environment,
    })
    if (status !== 0) {
      throw new Error(`the unit was not installed: ${error?.message ?? stderr.trim()}`)
    }
    // What is next, `init` says itself.
    return stdout
      .trimEnd()
      .split('\n')
      .filter((line) => !line.startsWith('Next: '))
  } finally {
    if (unpacked !== undefined) rmSync(dirname(unpacked), { recursive: true })
  }
}

/** The executable has the files of `deploy/` inside; gives the path of the script. */
function unpackScripts() {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-init-'))
  for (const name of assetNames('deploy')) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), asset(`deploy/${name}`))
  }
  return join(folder, 'install.sh')
}
