import { execFileSync } from 'node:child_process'
import {
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { dirname, join } from 'node:path'
import { ownAssets, readManifest, ROOT } from './manifest.ts'

const PROGRAM = [
  'server.ts',
  'gatehouse.js',
  '{commands,db,html,kernel,routes,services}/**/*.{ts,js}',
]
const FOR_PEOPLE = ['README.md', 'CHANGELOG.md', 'LICENSE']
/** The package that brings a reporter, which runs where it is installed. */
const EXPLORER = 'swagger-ui-dist'
const EXPLORER_FILES = ['index.js', 'swagger-ui.css', 'swagger-ui-bundle.js', 'LICENSE', 'NOTICE']
/** A relative path of another of our files, as an import or a worker has it. */
const OWN_PATH = /(?<=['"]\.{1,2}\/[^'"\n]*)\.ts(?=['"])/g

/** Makes the package for npm, whose command is `npx gatehouse`; gives the path of its tarball. */
export function packForNpm(folder: string): string {
  const stage = mkdtempSync(join(folder, '.npm-'))
  try {
    placeProgram(stage)
    for (const name of [...FOR_PEOPLE, ...ownAssets()]) cpSync(join(ROOT, name), join(stage, name))
    placeExplorer(stage)
    writeFileSync(join(stage, 'package.json'), manifest())
    const options = { cwd: ROOT, encoding: 'utf8' } as const
    const args = ['pack', '--silent', '--pack-destination', folder, stage]
    return join(folder, execFileSync('npm', args, options).trim())
  } finally {
    rmSync(stage, { recursive: true })
  }
}

/** JavaScript: Node takes no types from files in node_modules. Lines and columns stay. */
function placeProgram(stage: string): void {
  for (const name of globSync(PROGRAM, { cwd: ROOT })) {
    if (name.startsWith('html/assets/')) continue
    const source = readFileSync(join(ROOT, name), 'utf8')
    const script = name.endsWith('.ts') ? stripTypeScriptTypes(source) : source
    const place = join(stage, name.replace(/\.ts$/, '.js'))
    mkdirSync(dirname(place), { recursive: true })
    writeFileSync(place, script.replaceAll(OWN_PATH, '.js'))
  }
}

/** The two files of the explorer that are used, so that nothing runs at an installation. */
function placeExplorer(stage: string): void {
  const from = join(ROOT, 'node_modules', EXPLORER)
  const to = join(stage, 'node_modules', EXPLORER)
  mkdirSync(to, { recursive: true })
  for (const name of EXPLORER_FILES) cpSync(join(from, name), join(to, name))
  const { name, version, license, main } = JSON.parse(
    readFileSync(join(from, 'package.json'), 'utf8'),
  )
  writeFileSync(join(to, 'package.json'), json({ name, version, license, main }))
}

/** What an installation needs; the scripts and tools of development stay here. */
function manifest(): string {
  const { name, version, description, license, bin, type, dependencies, ...rest } = readManifest()
  const { optionalDependencies, engines } = rest
  const shared = { name, version, description, license, bin, type, engines }
  return json({ ...shared, dependencies, optionalDependencies, bundleDependencies: [EXPLORER] })
}

function json(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`
}
