import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  copyFileSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { Worker } from 'node:worker_threads'
import { build } from 'esbuild'
import { compileEngine, TEMPLATE, WORKER, type WorkerTask } from '../db/embedded/engine.ts'
import { packTree } from '../db/embedded/template.ts'
import { assetFile } from '../kernel/assets.ts'
import { staticImports } from './static-imports.ts'

/**
 * `npm run build [-- FILE]`: makes the single executable, `dist/gatehouse` when no file is named. It
 * is this Node with the program's sources as one bundle and, as assets, all files that the program
 * reads when it runs from its sources.
 */
const ROOT = join(import.meta.dirname, '..')
const FOLDERS = ['sql', 'html/assets']
const REQUIRE = `import { createRequire } from 'node:module'
const require = createRequire('file:///')`
const FILES = [
  'package.json',
  'htmx/htmx.min.js',
  'pglite/pglite.wasm',
  'pglite/pglite.data',
  'swagger-ui/swagger-ui.css',
  'swagger-ui/swagger-ui-bundle.js',
]

const target = resolve(process.argv[2] ?? join(ROOT, 'dist', 'gatehouse'))
mkdirSync(dirname(target), { recursive: true })
// Beside the target, so that the finished file is put in place by a rename: the old one may be running.
const work = mkdtempSync(join(dirname(target), '.build-'))
process.on('exit', () => rmSync(work, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))

const main = await bundle('server.ts', 'main.mjs')
const worker = await bundle('db/embedded/worker.ts', WORKER)
const template = await makeTemplate()
const output = assemble(main, { [WORKER]: worker, [TEMPLATE]: template })
// One that does not even start must not take the place of one that does.
execFileSync(output, ['version'])
renameSync(output, target)
say(target, size(target))

/** One module of all that `entry` imports; names stay, so that a stack trace can be read. */
async function bundle(entry: string, name: string): Promise<string> {
  const outfile = join(work, name)
  await build({
    absWorkingDir: ROOT,
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node26',
    // Packages in the older module format ask for Node's own modules by this function.
    banner: { js: REQUIRE },
    plugins: [staticImports],
    logLevel: 'warning',
  })
  say(entry, `bundled, ${size(outfile)}`)
  return outfile
}

/** A fresh cluster in one file, which saves the first start the time of initdb. */
async function makeTemplate(): Promise<string> {
  const cluster = join(work, 'cluster')
  mkdirSync(cluster)
  const task: WorkerTask = { mode: 'create', cluster, wasm: await compileEngine() }
  const url = new URL('./repeatable-worker.ts', import.meta.url)
  // Rejects when the worker throws.
  await once(new Worker(url, { workerData: task }), 'exit')
  const packed = join(work, TEMPLATE)
  writeFileSync(packed, packTree(cluster))
  say('empty database', `packed, ${size(packed)}`)
  return packed
}

/** Puts the bundle and the assets into a copy of this Node. */
function assemble(main: string, made: Readonly<Record<string, string>>): string {
  const inFolders = FOLDERS.flatMap((folder) =>
    globSync(`${folder}/**/*`, { cwd: ROOT, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length + 1)),
  )
  const names = [...FILES, ...inFolders].sort()
  const built = join(work, 'gatehouse')
  const configuration = {
    // A bare name: the path goes into the executable, and this folder has another name each time.
    main: basename(main),
    mainFormat: 'module',
    executable: copyNode(),
    output: built,
    disableExperimentalSEAWarning: true,
    useCodeCache: true,
    assets: { ...Object.fromEntries(names.map((name) => [name, assetFile(name)])), ...made },
  }
  const file = join(work, 'sea.json')
  writeFileSync(file, JSON.stringify(configuration))
  // The seed makes the code cache the same each time; another hash seed would make it useless.
  execFileSync(process.execPath, ['--random-seed=1', '--build-sea', file], {
    cwd: work,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  chmodSync(built, 0o755)
  return built
}

/** A copy of this Node, without its symbols where `strip` is installed: they are a fifth of it. */
function copyNode(): string {
  const copy = join(work, 'node')
  copyFileSync(process.execPath, copy)
  const before = size(copy)
  const { error, status, stderr } = spawnSync('strip', [copy], { encoding: 'utf8' })
  if (status === 0) say(`node ${process.version}`, `${before}, ${size(copy)} without symbols`)
  else say(`node ${process.version}`, `${before}, symbols stay: ${error?.message ?? stderr.trim()}`)
  return copy
}

function size(file: string): string {
  return `${(statSync(file).size / 1e6).toFixed(1)} MB`
}

function say(what: string, how: string): void {
  process.stdout.write(`${what}: ${how}\n`)
}
