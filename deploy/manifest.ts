import { globSync, readFileSync, readdirSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

/** What packages take from package.json. */
interface Manifest {
  name: string
  version: string
  description: string
  license: string
  type: string
  engines: Readonly<Record<string, string>>
  bin: Readonly<Record<string, string>>
  dependencies: Readonly<Record<string, string>>
  optionalDependencies: Readonly<Record<string, string>>
}

export const ROOT = join(import.meta.dirname, '..')

const ASSETS = [
  'package.json',
  'sql/**/*',
  'html/assets/**/*',
  // What is shown at /-/docs/.
  'docs/*.md',
  'docs/decisions/*.md',
  'docs/pictures/*',
  // What `gatehouse init` shows and installs.
  'deploy/{Caddyfile,*.Caddyfile,*.conf,*.env,*.service,*.sh,*.socket,*.yml}',
  'deploy/{cluster,monitoring}/*',
]

/** The files that the program reads, by their paths in the repository. */
export function ownAssets(): readonly string[] {
  const entries = globSync(ASSETS, { cwd: ROOT, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  return files.map((file) => relative(ROOT, join(file.parentPath, file.name))).sort()
}

export function readManifest(): Manifest {
  return JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
}

/**
 * The seconds since 1970 that packages carry as their date: SOURCE_DATE_EPOCH, else a fixed one, so
 * that the same sources give the same bytes.
 */
export function sourceDate(): number {
  const given = process.env['SOURCE_DATE_EPOCH']
  if (given === undefined) return Date.UTC(2026, 0, 1) / 1_000
  if (!/^\d{1,10}$/.test(given)) {
    throw new Error('SOURCE_DATE_EPOCH is wrong, expected seconds since 1970')
  }
  return Number(given)
}

/** The licences of what the executable holds beside Gatehouse itself. */
export function thirdPartyNotices(): string {
  const node = { name: 'Node.js', version: process.version, license: 'MIT', text: nodeLicence() }
  const packages = Object.keys(readManifest().dependencies).map(licenceOf)
  const notices = [node, ...packages].map(({ name, version, license, text }) =>
    `${name} ${version}: ${license}\n\n${text}`.trimEnd(),
  )
  return `${notices.join(`\n\n${'-'.repeat(78)}\n\n`)}\n`
}

/** Beside the Node that builds, where its package or archive has it. */
function nodeLicence(): string {
  return licenceText(dirname(dirname(process.execPath)))
}

function licenceOf(name: string) {
  const folder = join(ROOT, 'node_modules', name)
  const { version, license }: { version: string; license: string } = JSON.parse(
    readFileSync(join(folder, 'package.json'), 'utf8'),
  )
  return { name, version, license, text: licenceText(folder) }
}

/** Empty where the package names its licence only in its package.json. */
function licenceText(folder: string): string {
  const file = readdirSync(folder).find((name) => /^(un)?licen[cs]e(\.|$)/i.test(name))
  return file === undefined ? '' : readFileSync(join(folder, file), 'utf8')
}
