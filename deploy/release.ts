import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
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
import { arch } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { readManifest, ROOT, sourceDate } from './manifest.ts'

/**
 * `npm run release [-- FOLDER]`: the executable, the Debian package and npm's package, built twice
 * and compared, with a list of what is inside (CycloneDX) and checksums; in `dist/release` when no
 * folder is named.
 */
const { positionals } = parseArgs({ allowPositionals: true })
const target = resolve(positionals[0] ?? join(ROOT, 'dist', 'release'))
const { version } = readManifest()
refuseOtherFiles()
rmSync(target, { recursive: true, force: true })
mkdirSync(target, { recursive: true })
const work = mkdtempSync(join(target, '.release-'))
process.on('exit', () => rmSync(work, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))

const [first, second] = [buildIn('first'), buildIn('second')]
refuseDifferences(first, second)
for (const name of readdirSync(first)) renameSync(join(first, name), join(target, fileName(name)))
writeFileSync(join(target, `gatehouse-${version}.cdx.json`), billOfMaterials())
writeFileSync(join(target, 'SHA256SUMS'), checksums(target))
process.stdout.write(`${target}: built twice with the same bytes\n`)

/** The folder is replaced: one that holds anything but a release must not be lost. */
function refuseOtherFiles(): void {
  const there = existsSync(target) ? readdirSync(target) : []
  const other = there.find((name) => !/^(?:gatehouse[-_].*|SHA256SUMS|\.release-.*)$/.test(name))
  if (other === undefined) return
  throw new Error(`${target} has ${other}, which is no part of a release: name another folder`)
}

/** Builds everything into a folder of its own. */
function buildIn(name: string): string {
  const folder = join(work, name)
  mkdirSync(folder)
  const flags = ['--disable-warning=ExperimentalWarning', 'deploy/build.ts', '--deb', '--npm']
  execFileSync(process.execPath, [...flags, join(folder, 'gatehouse')], {
    cwd: ROOT,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
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
  const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile())
  const names = files.map(({ name }) => name).sort()
  return names
    .map((name) => {
      const sum = createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex')
      return `${sum}  ${name}\n`
    })
    .join('')
}

/** The executable's name says for which machines it is. */
function fileName(name: string): string {
  return name === 'gatehouse' ? `gatehouse-${version}-linux-${arch()}` : name
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
