import { spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { checkContracts } from './helpers/api-contracts.ts'
import { SHARED_BROWSER, startChromium } from './helpers/browser.ts'
import { EMBEDDED_TEMPLATES, makeEmbeddedTemplates } from './helpers/embedded-templates.ts'
import { findLeaks, leakMessage } from './helpers/leaks.ts'
import { LONG_FAULTS } from './helpers/faults.ts'
import { endOrphans } from './helpers/orphans.ts'
import { makeServerTemplate, SHARED_POSTGRES, startPostgres } from './helpers/postgres.ts'
import { ROOT, SHORT_LIVES } from './helpers/program.ts'
import { RUN_FOLDER } from './helpers/run-folder.ts'
import { deploymentParts, ensureSystemParts, systemParts } from './helpers/system-parts.ts'
import { createReportReader, totalsLine } from './helpers/tap-report.ts'
import type { FileReport, Totals } from './helpers/tap-report.ts'

// `npm test`: node test/run.ts [--long] [FILES AND OPTIONS OF tap]. Starts what the tests share, runs
// them, looks for secrets in all that the product said, and ends with the line `N passed, N failed`.
// Without --long it runs everything outside of test/long; with it test/long, and test/faults at length.
// The whole run has no limit of time: machines differ. Each file has its own (.taprc).

const TAP = join(ROOT, 'node_modules', 'tap', 'dist', 'esm', 'run.mjs')
const TAP_CLASS = join(
  ROOT,
  'node_modules',
  '@tapjs',
  'test',
  'test-built',
  'dist',
  'esm',
  'index.js',
)
const LONG_FILE_SECONDS = 3 * 3_600
const SLOWEST_SHOWN = 10
const GRACE_MS = 3_000

let running: ChildProcess | undefined
let interrupted: string | undefined

const long = process.argv.includes('--long')
process.exitCode = await main(process.argv.slice(2).filter((arg) => arg !== '--long'))

async function main(args: readonly string[]): Promise<number> {
  const missing = ensureSystemParts(systemParts)
  if (missing !== undefined) return sayFailure(missing)
  const skipped = ensureSystemParts(Object.values(deploymentParts))
  if (skipped !== undefined) say(`# some tests are skipped: ${skipped}`)
  process.on('SIGINT', () => interrupt('SIGINT'))
  process.on('SIGTERM', () => interrupt('SIGTERM'))
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-run-'))
  process.env[RUN_FOLDER] = folder
  process.env[long ? LONG_FAULTS : SHORT_LIVES] = '1'
  // Types are stripped and code is compiled once a run, not at each of some thousand starts.
  const compiled = mkdtempSync(join(tmpdir(), 'gatehouse-compiled-'))
  process.env['NODE_COMPILE_CACHE'] = compiled
  try {
    const totals = await runWithDatabases(args, folder)
    endOrphans(folder)
    for (const leak of findLeaks(folder)) {
      say(leakMessage(leak))
      totals.failed += 1
    }
    say(totalsLine(totals))
    return totals.failed === 0 && totals.passed > 0 ? 0 : 1
  } catch (error) {
    return sayFailure(error instanceof Error ? error.message : String(error))
  } finally {
    endOrphans(folder)
    for (const made of [folder, compiled]) {
      rmSync(made, { recursive: true, force: true, maxRetries: 3 })
    }
  }
}

async function runWithDatabases(args: readonly string[], folder: string): Promise<Totals> {
  const cluster = await startPostgres()
  try {
    process.env[SHARED_POSTGRES] = cluster.url()
    await makeServerTemplate(cluster)
    process.env[EMBEDDED_TEMPLATES] = await makeEmbeddedTemplates(folder)
    buildTap()
    const totals = await runSuite(args)
    if (interrupted === undefined) totals.failed += await brokenContracts(folder)
    return totals
  } finally {
    await cluster.destroy()
  }
}

/** Says where answers of the whole run are not as the APIs' documents have them; gives how many. */
async function brokenContracts(folder: string): Promise<number> {
  let broken = 0
  for (const { service, calls, faults } of await checkContracts(folder)) {
    for (const fault of faults) say(`${service}: not as its OpenAPI document has it: ${fault}`)
    if (faults.length === 0)
      say(`ok ${service}: ${calls} calls are as its OpenAPI document has them`)
    broken += faults.length
  }
  return broken
}

/** tap keeps its plugins built in; .taprc counts only once it has rebuilt itself, 4 s after npm ci. */
function buildTap(): void {
  if (!readFileSync(TAP_CLASS, 'utf8').includes('@tapjs/typescript')) return
  const { status, stderr } = spawnSync(process.execPath, [TAP, 'build'], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  if (status !== 0)
    throw new Error(`'tap build' failed with status ${status}, expected 0: ${stderr}`)
}

/** Runs the whole suite with one Chromium for all; files that are named start their own. */
async function runSuite(args: readonly string[]): Promise<Totals> {
  if (args.some((arg) => !arg.startsWith('-'))) return runTap(args, [])
  const browser = await startChromium()
  try {
    process.env[SHARED_BROWSER] = browser.wsEndpoint()
    return await runTap(args, suiteFiles())
  } finally {
    await browser.close()
  }
}

async function runTap(args: readonly string[], files: readonly string[]): Promise<Totals> {
  const reports: FileReport[] = []
  const reader = createReportReader((file) => {
    reports.push(file)
    sayFile(file)
  }, say)
  const longer = long ? [`--timeout=${LONG_FILE_SECONDS}`] : []
  const command = [TAP, '--reporter=tap', ...longer, ...args, ...files]
  const child = spawn(process.execPath, command, {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
    // A group of its own: the test files that tap starts must end with it.
    detached: true,
  })
  running = child
  const started = Date.now()
  if (interrupted !== undefined) interrupt(interrupted)
  const ended = Promise.withResolvers<number | null>()
  child.once('error', ended.reject)
  child.once('close', (code) => ended.resolve(code))
  for await (const line of createInterface({ input: child.stdout })) reader.line(line)
  const code = await ended.promise
  running = undefined
  const totals = reader.end()
  saySlowest(reports, Date.now() - started)
  if (interrupted !== undefined) say(`ended early by ${interrupted}`)
  // Whatever tap calls a failure is one, also where no test can be named.
  if ((code !== 0 || interrupted !== undefined) && totals.failed === 0) totals.failed = 1
  return totals
}

function suiteFiles(): readonly string[] {
  const found = globSync(long ? 'test/{long,faults}/*.test.ts' : 'test/**/*.test.ts', { cwd: ROOT })
  return found.filter((file) => long || !file.startsWith('test/long/')).sort()
}

function interrupt(reason: string): void {
  interrupted = reason
  const child = running
  if (child === undefined) return
  child.kill('SIGTERM')
  setTimeout(() => endGroup(child), GRACE_MS).unref()
}

function endGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // The group is gone already.
  }
}

function sayFile(file: FileReport): void {
  if (file.failed > 0) say(file.output)
  const verdict = file.failed > 0 ? 'not ok' : 'ok'
  say(`# ${verdict} ${file.name}: ${totalsLine(file)} (${seconds(file.milliseconds)})`)
}

/** Files run side by side, so their times add up to more than the run took. */
function saySlowest(reports: readonly FileReport[], tookMs: number): void {
  const slowest = reports
    .toSorted((a, b) => b.milliseconds - a.milliseconds)
    .slice(0, SLOWEST_SHOWN)
  say(`# ${reports.length} files took ${seconds(tookMs)}; the slowest:`)
  for (const { name, milliseconds } of slowest) say(`#   ${seconds(milliseconds)} ${name}`)
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1_000).toFixed(1)} s`
}

/** For a run that could not happen: its reason is the one failure. */
function sayFailure(reason: string): number {
  say(reason)
  say(totalsLine({ passed: 0, failed: 1, skipped: 0 }))
  return 1
}

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}
