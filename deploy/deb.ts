import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  chmodSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { constants, gzipSync } from 'node:zlib'
import { readManifest, ROOT, sourceDate, thirdPartyNotices } from './manifest.ts'
import { DEBIAN_NAMES, type Architecture } from './node-binary.ts'

/** The oldest versions whose symbols this Node uses; the unit needs systemd's systemd-notify. */
const DEPENDS = 'libatomic1, libc6 (>= 2.28), libgcc-s1, libstdc++6 (>= 7), systemd'
const UNITS = [
  'gatehouse.service',
  'gatehouse.socket',
  'gatehouse-links.socket',
  'gatehouse-ops.socket',
]
/** What the documentation names, which the package brings along. */
const EXAMPLES = [
  'Caddyfile',
  'gatehouse.env',
  'nginx.conf',
  'nginx-two-instances.conf',
  'ops-host-access.conf',
  'cluster/*',
  'monitoring/*',
]
const SETTINGS = '/etc/gatehouse/gatehouse.env'
const DOCUMENTS = '/usr/share/doc/gatehouse'

/** Makes the Debian package with an executable for a kind of machine, in `folder`; gives its path. */
export function buildDeb(executable: string, folder: string, kind: Architecture): string {
  const architecture = DEBIAN_NAMES[kind]
  const { version } = readManifest()
  const date = sourceDate()
  const stage = mkdtempSync(join(folder, '.deb-'))
  try {
    placeFiles(stage, executable)
    placeControl(stage, control(version, architecture, stage))
    setDates(stage, date)
    const file = join(folder, `gatehouse_${version}_${architecture}.deb`)
    // One thread: the number of threads changes the bytes.
    const compression = ['-Zxz', '-z1', '--threads-max=1']
    execFileSync('dpkg-deb', ['--root-owner-group', ...compression, '--build', stage, file], {
      env: { ...process.env, SOURCE_DATE_EPOCH: String(date) },
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    return file
  } finally {
    rmSync(stage, { recursive: true })
  }
}

/** Everything that the package puts in place. */
function placeFiles(stage: string, executable: string): void {
  const put = (path: string, content: string | Buffer) => writeIn(stage, path, content, 0o644)
  copyIn(stage, '/usr/bin/gatehouse', executable)
  for (const unit of UNITS) {
    const text = readDeploy(unit).replaceAll('/usr/local/bin/gatehouse', '/usr/bin/gatehouse')
    put(`/usr/lib/systemd/system/${unit}`, text)
  }
  put('/usr/lib/sysusers.d/gatehouse.conf', readDeploy('deb/gatehouse.sysusers'))
  put('/usr/lib/tmpfiles.d/gatehouse.conf', readDeploy('deb/gatehouse.tmpfiles'))
  put(SETTINGS, readDeploy('gatehouse.env'))
  put('/usr/share/man/man1/gatehouse.1.gz', zipped(printed('help', '--man')))
  put('/usr/share/man/man5/gatehouse.conf.5.gz', zipped(printed('help', '--man-settings')))
  put('/usr/share/bash-completion/completions/gatehouse', printed('completion', 'bash'))
  put('/usr/share/zsh/vendor-completions/_gatehouse', printed('completion', 'zsh'))
  put('/usr/share/fish/vendor_completions.d/gatehouse.fish', printed('completion', 'fish'))
  put('/usr/share/lintian/overrides/gatehouse', readDeploy('deb/lintian-overrides'))
  put(`${DOCUMENTS}/copyright`, readDeploy('deb/copyright'))
  put(`${DOCUMENTS}/third-party-notices.gz`, zipped(thirdPartyNotices()))
  put(`${DOCUMENTS}/changelog.gz`, zipped(changelog()))
  put(`${DOCUMENTS}/NEWS.md.gz`, zipped(readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8')))
  for (const example of globSync(EXAMPLES, { cwd: import.meta.dirname })) {
    put(`${DOCUMENTS}/examples/${example}`, readDeploy(example))
  }
}

function placeControl(stage: string, text: string): void {
  const files = filesOf(stage)
  const sums = files.map((file) => {
    const sum = createHash('md5')
      .update(readFileSync(join(stage, file)))
      .digest('hex')
    return `${sum}  ${file}\n`
  })
  writeIn(stage, 'DEBIAN/control', text, 0o644)
  writeIn(stage, 'DEBIAN/conffiles', `${SETTINGS}\n`, 0o644)
  writeIn(stage, 'DEBIAN/md5sums', sums.join(''), 0o644)
  for (const script of ['postinst', 'prerm', 'postrm']) {
    writeIn(stage, `DEBIAN/${script}`, readDeploy(`deb/${script}`), 0o755)
  }
}

function control(version: string, architecture: string, stage: string): string {
  const bytes = filesOf(stage).reduce((sum, file) => sum + statSync(join(stage, file)).size, 0)
  const fields = {
    Package: 'gatehouse',
    Version: version,
    Architecture: architecture,
    Maintainer: maintainer(),
    'Installed-Size': Math.ceil(bytes / 1_024),
    Depends: DEPENDS,
    Section: 'net',
    Priority: 'optional',
    Description: [
      'webhooks, go/links and an operations agent in one program',
      ' Gatehouse receives webhooks, keeps and forwards them; it resolves short links',
      ' (go/name); and it watches services, with an agent that looks into alerts.',
      ' Everything is in one PostgreSQL database, which it brings along.',
    ].join('\n'),
  }
  return Object.entries(fields)
    .map(([name, value]) => `${name}: ${value}\n`)
    .join('')
}

/** Who makes the package, by the variables of Debian's own tools. */
function maintainer(): string {
  const { DEBFULLNAME: name = 'Gatehouse', DEBEMAIL: mail = 'gatehouse@gatehouse.invalid' } =
    process.env
  return `${name} <${mail}>`
}

/** In Debian's form; what changed for users is in the CHANGELOG.md that is installed beside it. */
function changelog(): string {
  const date = new Date(sourceDate() * 1_000).toUTCString().replace('GMT', '+0000')
  const { version } = readManifest()
  return [
    `gatehouse (${version}) stable; urgency=medium\n`,
    `  * See ${DOCUMENTS}/NEWS.md.gz.\n`,
    ` -- ${maintainer()}  ${date}\n`,
  ].join('\n')
}

/** What a command of these sources prints. */
function printed(...args: readonly string[]): string {
  const options = { encoding: 'utf8', cwd: ROOT } as const
  return execFileSync(process.execPath, ['gatehouse.js', ...args], options)
}

function readDeploy(name: string): string {
  return readFileSync(join(import.meta.dirname, name), 'utf8')
}

function zipped(text: string): Buffer {
  return gzipSync(text, { level: constants.Z_BEST_COMPRESSION })
}

function writeIn(stage: string, path: string, content: string | Buffer, mode: number): void {
  const place = join(stage, path)
  mkdirSync(dirname(place), { recursive: true })
  writeFileSync(place, content)
  chmodSync(place, mode)
}

function copyIn(stage: string, path: string, from: string): void {
  const place = join(stage, path)
  mkdirSync(dirname(place), { recursive: true })
  copyFileSync(from, place)
  chmodSync(place, 0o755)
}

/** The files of a folder, relative to it and sorted. */
function filesOf(stage: string): readonly string[] {
  const entries = globSync('**/*', { cwd: stage, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(stage.length + 1))
    .sort()
}

/** The date of all entries, and modes of folders that don't depend on the builder's mask. */
function setDates(stage: string, date: number): void {
  for (const name of ['.', ...globSync('**/*', { cwd: stage })]) {
    const path = join(stage, name)
    if (statSync(path).isDirectory()) chmodSync(path, 0o755)
    utimesSync(path, date, date)
  }
}
