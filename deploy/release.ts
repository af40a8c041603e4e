import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { sizeOf } from './executable.ts'
import { readManifest, ROOT, sourceDate } from './manifest.ts'
import { ARCHITECTURES, ownArchitecture } from './node-binary.ts'

/**
 * `npm run release [-- FOLDER]`: executables and Debian packages for each kind of machine, npm's
 * package, and the image, built twice and compared, with a list of what is inside (CycloneDX) and
 * checksums; in `dist/release` when no folder is named.
 */
const { positionals } = parseArgs({ allowPositionals: true })
const target = resolve(positionals[0] ?? join(ROOT, 'dist', 'release'))
const { version } = readManifest()
refuseOtherFiles()
rmSync(target, { recursive: true, force: true })
mkdirSync(target, { recursive: true })
const work = mkdtempSync(join(target, '.release-'))
/** The process group of the build that runs; it has the programs that the build starts, too. */
let building: number | undefined
process.on('exit', () => {
  if (building !== undefined) process.kill(-building, 'SIGKILL')
  // What was killed may still close its files.
  rmSync(work, { recursive: true, force: true, maxRetries: 10 })
})
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))

const own = ownArchitecture()
const other = ARCHITECTURES.filter((kind) => kind !== own)
const first = await buildIn('first')
const second = await buildIn('second')
refuseDifferences(first, second)
for (const name of filesOf(first)) renameSync(join(first, name), join(target, fileName(name)))
writeFileSync(join(target, `gatehouse-${version}.cdx.json`), billOfMaterials())
writeFileSync(join(target, 'SHA256SUMS'), checksums(target))
for (const name of filesOf(target)) say(`${name}: ${sizeOf(join(target, name))}`)
for (const kind of other) say(`for ${kind}: built, not started on this machine`)
if (!filesOf(target).some((name) => name.endsWith('.tar'))) {
  say('no image: podman is not installed')
}
say(`${target}: built twice with the same bytes`)

/** The folder is replaced: one that holds anything but a release must not be lost. */
function refuseOtherFiles(): void {
  const there = existsSync(target) ? readdirSync(target) : []
  const other = there.find((name) => !/^(?:gatehouse[-_].*|SHA256SUMS|\.release-.*)$/.test(name))
  if (other === undefined) return
  throw new Error(`${target} has ${other}, which is no part of a release: name another folder`)
}

/** Builds everything into a folder of its own; gives its path. */
async function buildIn(name: string): Promise<string> {
  const folder = join(work, name)
  mkdirSync(folder)
  const kinds = [own, ...other].flatMap((kind) => ['--arch', kind])
  const flags = ['--deb', '--npm', '--image', ...kinds]
  const build = ['--disable-warning=ExperimentalWarning', 'deploy/build.ts', ...flags]
  const child = spawn(process.execPath, [...build, join(folder, 'gatehouse')], {
    cwd: ROOT,
    stdio: ['ignore', 'ignore', 'inherit'],
    detached: true,
  })
  building = child.pid
  const [code] = await once(child, 'exit')
  building = undefined
  if (code !== 0) throw new Error(`the ${name} build has failed`)
  return folder
}

/** People check a release by building it themselves: what differs from run to run breaks that. */
function refuseDifferences(one: string, other: string): void {
  const [expected, found] = [checksums(one), checksums(other)]
  if (expected === found) return
  throw new Error(`two builds differ, expected the same bytes:\n${expected}\n${found}`)
}

/** In the form that `sha256sum --check` reads. */
function checksums(folder: string): string {
  return filesOf(folder)
    .map((name) => {
      const sum = createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex')
      return `${sum}  ${name}\n`
    })
    .join('')
}

/** The files of a folder, without its folders. */
function filesOf(folder: string): readonly string[] {
  const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile())
  return files.map(({ name }) => name).sort()
}

/** An executable's name says for which machines it is. */
function fileName(name: string): string {
  if (name === 'gatehouse') return `gatehouse-${version}-linux-${own}`
  const [, kind] = /^gatehouse-(x64|arm64)$/.exec(name) ?? []
  return kind === undefined ? name : `gatehouse-${version}-linux-${kind}`
}

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

interface Component {
  'bom-ref': string
  properties: readonly { name: string }[]
}

/**
 * The packages of the lock file that are installed to run Gatehouse, without what differs from run
 * to run or from folder to folder. npm's own `--omit dev` also leaves out what both need, as `ws`.
 */
function billOfMaterials(): string {
  const args = ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only']
  const options = { cwd: ROOT, encoding: 'utf8', maxBuffer: 64e6 } as const
  const { serialNumber: _random, ...bill } = JSON.parse(execFileSync('npm', args, options))
  bill.metadata.component.name = readManifest().name
  bill.metadata.timestamp = new Date(sourceDate() * 1_000).toISOString()
  bill.components = bill.components.filter(isInstalled)
  const refs = [bill.metadata.component, ...bill.components].map((part) => part['bom-ref'])
  bill.dependencies = bill.dependencies
    .filter(({ ref }: { ref: string }) => refs.includes(ref))
    .map(({ ref, dependsOn }: { ref: string; dependsOn: readonly string[] }) => {
      return { ref, dependsOn: dependsOn.filter((other) => refs.includes(other)) }
    })
  return `${JSON.stringify(bill, undefined, 2)}\n`
}

function isInstalled({ properties }: Component): boolean {
  return !properties.some(({ name }) => name === 'cdx:npm:package:development')
}
