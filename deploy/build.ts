import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { constants, zstdCompressSync } from 'node:zlib'
import { build, type BuildOptions, type Plugin } from 'esbuild'
import { TEMPLATE, WORKER } from '../db/embedded/engine.ts'
import { clusterFolder, packTree } from '../db/embedded/cluster.ts'
import { assetFile } from '../kernel/assets.ts'
import { WATCHDOG_WORKER } from '../kernel/processes/watchdog.ts'
import { buildDeb } from './deb.ts'
import { buildExecutable, sizeOf } from './executable.ts'
import { stageImage } from './image.ts'
import { ownAssets, ROOT } from './manifest.ts'
import { packForNpm } from './npm.ts'

/*
 * `npm run build [-- [--deb] [--image] [--npm] [FILE]]`: makes the single executable,
 * `dist/gatehouse` when no file is named. It consists of this Node, the program's sources as one
 * bundle, and as assets all files that the program reads. The flags make packages beside it: for
 * Debian, for containers, for npm.
 */
/** What the program reads of packages. */
const PACKAGE_FILES = [
  'htmx/htmx.min.js',
  'pglite/pglite.wasm',
  'pglite/pglite.data',
  'pglite/pg_trgm.tar.gz',
  'swagger-ui/swagger-ui.css',
  'swagger-ui/swagger-ui-bundle.js',
]

/**
 * CommonJS starts a tenth faster: an ES module loads everything that Node's own modules export,
 * even what Node loads late. `import.meta`, which it lacks, serves only to find the sources.
 */
const COMMONJS: BuildOptions = {
  format: 'cjs',
  logOverride: { 'empty-import-meta': 'silent' },
}
/** An ES module; packages that are CommonJS need `require` for Node's own modules. */
const ES_MODULE: BuildOptions = {
  format: 'esm',
  banner: {
    js: `import { createRequire } from 'node:module'
const require = createRequire('file:///')`,
  },
}

/** The files that load commands and services when they are called for. */
const LATE_LOADERS = ['commands/commands.ts', 'commands/house/program.ts']
const LATE_IMPORT = /\bawait import\((['"]\.{1,2}\/[^'"]+['"])\)/g

/**
 * Loads commands and services at the start. A module that is loaded late is compiled at each start,
 * because the code cache of the executable holds only what runs at once. What they load late
 * themselves, such as the client of a broker, stays so: it takes memory.
 */
const earlyImports: Plugin = {
  name: 'early-imports',
  setup({ onLoad }) {
    const sources = new Map(LATE_LOADERS.map((name) => [join(ROOT, name), importedEarly(name)]))
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const contents = sources.get(path)
      return contents === undefined ? undefined : { contents, loader: 'ts' }
    })
  },
}

/** The text of a source file, with imports in place of its late ones. */
function importedEarly(name: string) {
  const names: string[] = []
  const source = readFileSync(join(ROOT, name), 'utf8').replaceAll(
    LATE_IMPORT,
    (_, imported: string) => `loaded$${names.push(imported) - 1}`,
  )
  if (names.length === 0) throw new Error(`${name} loads nothing late`)
  const imports = names.map((imported, at) => `import * as loaded$${at} from ${imported}\n`)
  return `${source}\n${imports.join('')}`
}

const { values: packages, positionals } = parseArgs({
  options: {
    deb: { type: 'boolean' },
    image: { type: 'boolean' },
    npm: { type: 'boolean' },
  },
  allowPositionals: true,
})
const target = resolve(positionals[0] ?? join(ROOT, 'dist', 'gatehouse'))
mkdirSync(dirname(target), { recursive: true })
// Beside the target: a rename puts the finished file in place, and the old one may be running.
const work = mkdtempSync(join(dirname(target), '.build-'))
process.on('exit', () => rmSync(work, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))

const main = await bundle('server.ts', 'main.cjs', COMMONJS)
const worker = await bundle('db/embedded/worker.ts', WORKER, ES_MODULE)
const watchdog = await bundle('kernel/processes/watchdog-worker.ts', WATCHDOG_WORKER, ES_MODULE)
const template = makeTemplate()
const output = assemble(main, {
  [WORKER]: worker,
  [WATCHDOG_WORKER]: watchdog,
  [TEMPLATE]: template,
})
// An executable that does not start must not replace one that does.
execFileSync(output, ['version'])
renameSync(output, target)
say(target, sizeOf(target))
if (packages.deb) sayFile(buildDeb(target, dirname(target)))
if (packages.image)
  say(stageImage(target, join(dirname(target), 'image')), 'for the Containerfile')
if (packages.npm) sayFile(packForNpm(dirname(target)))

/** One module of all that `entry` imports; names stay, so that a stack trace can be read. */
async function bundle(entry: string, name: string, as: BuildOptions) {
  const outfile = join(work, name)
  await build({
    absWorkingDir: ROOT,
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node26',
    plugins: [earlyImports],
    logLevel: 'warning',
    ...as,
  })
  say(entry, `bundled, ${sizeOf(outfile)}`)
  return outfile
}

/** A migrated database in one file, which saves the first start initdb and the migrations. */
function makeTemplate() {
  const directory = join(work, 'data')
  execFileSync(process.execPath, ['deploy/template.ts', directory], {
    cwd: ROOT,
    // By this variable, because threads and child processes get it too.
    env: {
      ...process.env,
      NODE_OPTIONS: `--import=${join(import.meta.dirname, 'same-clock.ts')}`,
    },
    stdio: 'inherit',
  })
  const packed = join(work, TEMPLATE)
  writeFileSync(packed, packTree(clusterFolder(directory)))
  say('migrated database', `packed, ${sizeOf(packed)}`)
  return packed
}

/** Puts the bundle and the assets into a copy of this Node. */
function assemble(main: string, made: Readonly<Record<string, string>>) {
  const names = [...PACKAGE_FILES, ...ownAssets()].sort()
  const files = names.map((name) => [name, assetFile(name)] as const)
  const { output: built, node } = buildExecutable({
    folder: work,
    main: basename(main),
    name: 'gatehouse',
    assets: compressed({ ...Object.fromEntries(files), ...made }),
  })
  say(`node ${process.version}`, node)
  return built
}

/** Compressed copies: of the engine's 15 MB a third is left. */
function compressed(files: Readonly<Record<string, string>>): Record<string, string> {
  const params = { [constants.ZSTD_c_compressionLevel]: 19 }
  const copies = Object.entries(files).map(([name, file], at): [string, string] => {
    const copy = join(work, `${at}.zst`)
    writeFileSync(copy, zstdCompressSync(readFileSync(file), { params }))
    return [name, copy]
  })
  return Object.fromEntries(copies)
}

function sayFile(file: string) {
  say(file, sizeOf(file))
}

function say(what: string, how: string) {
  process.stdout.write(`${what}: ${how}\n`)
}
