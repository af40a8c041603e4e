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
import { packImage, stageImage } from './image.ts'
import { ownAssets, ROOT } from './manifest.ts'
import { asArchitecture, ownArchitecture, type Architecture } from './node-binary.ts'
import { packForNpm } from './npm.ts'

/*
 * `npm run build [-- [--arch NAME] [--deb] [--image] [--npm] [FILE]]`: makes the single executable,
 * `dist/gatehouse` when no file is named. It consists of this Node, the program's sources as one
 * bundle, and as assets all files that the program reads. `--arch` names the kind of machine,
 * `x64` or `arm64`. It may be given twice: the second executable is FILE-x64 or FILE-arm64. Other
 * flags make packages beside it: for Debian, for containers, for npm.
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

const { values: options, positionals } = parseArgs({
  options: {
    arch: { type: 'string', multiple: true },
    deb: { type: 'boolean' },
    image: { type: 'boolean' },
    npm: { type: 'boolean' },
  },
  allowPositionals: true,
})
const own = ownArchitecture()
const kinds = (options.arch ?? [own]).map(asArchitecture)
if (options.image && !kinds.includes(own)) {
  throw new Error(`--image takes the libraries of this machine: it needs --arch ${own}`)
}
// What is made has the same modes for every builder, and others can read it.
process.umask(0o022)
const target = resolve(positionals[0] ?? join(ROOT, 'dist', 'gatehouse'))
mkdirSync(dirname(target), { recursive: true })
// Beside the target: a rename puts the finished file in place, and the old one may be running.
const work = mkdtempSync(join(dirname(target), '.build-'))
process.on('exit', () => rmSync(work, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))

const main = await bundle('server.ts', 'main.cjs', COMMONJS)
const assets = compressed({
  ...readFiles(),
  [WORKER]: await bundle('db/embedded/worker.ts', WORKER, ES_MODULE),
  [WATCHDOG_WORKER]: await bundle(
    'kernel/processes/watchdog-worker.ts',
    WATCHDOG_WORKER,
    ES_MODULE,
  ),
  [TEMPLATE]: makeTemplate(),
})
for (const [at, kind] of kinds.entries()) {
  makeFor(kind, at === 0 ? target : `${target}-${kind}`)
}
if (options.npm) sayFile(packForNpm(dirname(target)))

/** The executable for a kind of machine, and the packages that hold it. */
function makeFor(kind: Architecture, file: string) {
  const { output, node } = buildExecutable({
    folder: work,
    main: basename(main),
    name: 'gatehouse',
    architecture: kind,
    assets,
  })
  say(`node ${process.version}`, node)
  // An executable that does not start must not replace one that does.
  if (kind === own) execFileSync(output, ['version'])
  renameSync(output, file)
  say(file, kind === own ? sizeOf(file) : `${sizeOf(file)}, for ${kind}, not started here`)
  if (options.deb) sayFile(buildDeb(file, dirname(file), kind))
  if (options.image && kind === own) {
    say(stageImage(file, join(dirname(file), 'image')), 'for the Containerfile')
    const archive = packImage(dirname(file))
    if (archive === undefined) say('no archive of the image', 'podman is not installed')
    else sayFile(archive)
  }
}

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

/** The files that the program reads, by the names that it asks for. */
function readFiles(): Readonly<Record<string, string>> {
  const names = [...PACKAGE_FILES, ...ownAssets()].sort()
  return Object.fromEntries(names.map((name) => [name, assetFile(name)]))
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
