import { globSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { checkContracts } from './runner/api-contracts.ts'
import { LONG_RUN, ROOT, SHORT_LIVES, endOrphans } from './helpers/program.ts'
import { findLeaks, leakMessage } from './runner/leaks.ts'
import {
  deploymentParts,
  ensureSystemParts,
  longParts,
  systemParts,
} from './runner/system-parts.ts'
import { runFiles } from './runner/pool.ts'
import type { FileResult } from './runner/pool.ts'
import { reachedIn } from './runner/reached.ts'
import { totalsLine } from './runner/report.ts'
import type { Totals } from './runner/report.ts'
import { withSharedParts } from './runner/shared-parts.ts'

// `npm test`: node test/run.ts [--long] [--jobs N] [--reached FILE] [FILES]. Starts what the tests share, runs them, looks for
// secrets in all that the product said, and ends with the line `N passed, N failed`. docs/testing.md has more.
// The whole run has no limit of time: machines differ. Each file has its own.

const FILE_SECONDS = { short: 1_800, long: 3 * 3_600 }
const SLOWEST_SHOWN = 10
/** These have the longest files: started first, none of them runs alone at the end. */
const SLOW_FOLDERS = ['test/faults/', 'test/db/', 'test/cli/', 'test/browser/']

const { values, positionals } = parseArgs({
  options: {
    long: { type: 'boolean', default: false },
    jobs: { type: 'string' },
    // Where to write which routes with which status, and which commands with which exit code, the run has reached.
    reached: { type: 'string' },
  },
  allowPositionals: true,
})
const jobs = Number(values.jobs ?? availableParallelism() + 2)
const stop = new AbortController()

process.exitCode = await main()

async function main(): Promise<number> {
  const missing = ensureSystemParts(systemParts)
  if (missing !== undefined) return sayFailure(missing)
  const optional = { ...deploymentParts, ...(values.long && longParts) }
  const skipped = ensureSystemParts(Object.values(optional))
  if (skipped !== undefined) say(`# some tests are skipped: ${skipped}`)
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => stop.abort(signal))
  }
  process.env[values.long ? LONG_RUN : SHORT_LIVES] = '1'
  const files = positionals.length === 0 ? suiteFiles() : positionals
  const browser = files.some((file) => /browser|layout/.test(file))
  try {
    const totals = await withSharedParts({ browser }, async (folder) => {
      const counted = await runSuite(files)
      if (!stop.signal.aborted) counted.failed += await brokenContracts(folder)
      endOrphans(folder)
      if (values.reached !== undefined) {
        writeFileSync(values.reached, `${reachedIn(folder).join('\n')}\n`)
      }
      for (const leak of findLeaks(folder)) {
        say(leakMessage(leak))
        counted.failed += 1
      }
      return counted
    })
    if (stop.signal.aborted) {
      say(`ended early by ${stop.signal.reason}`)
      totals.failed = Math.max(1, totals.failed)
    }
    say(totalsLine(totals))
    return totals.failed === 0 && totals.passed > 0 ? 0 : 1
  } catch (error) {
    return sayFailure(error instanceof Error ? error.message : String(error))
  }
}

/** The long suite has the API's own tests too: all calls of a run are compared with the documents. */
function suiteFiles(): readonly string[] {
  const patterns = values.long
    ? ['test/{long,faults,links,ops}/**/*.test.ts', 'test/hooks/{api,guards,replay-jobs}.test.ts']
    : ['test/**/*.test.ts']
  const found = globSync(patterns, { cwd: ROOT }).sort()
  const files = found.filter((file) => values.long || !file.startsWith('test/long/'))
  const isSlow = (file: string): boolean => SLOW_FOLDERS.some((folder) => file.startsWith(folder))
  return [...files.filter(isSlow), ...files.filter((file) => !isSlow(file))]
}

async function runSuite(files: readonly string[]): Promise<Totals> {
  const started = performance.now()
  const fileSeconds = values.long ? FILE_SECONDS.long : FILE_SECONDS.short
  const results = await runFiles(files, { jobs, fileSeconds, signal: stop.signal }, sayFile)
  saySlowest(results, performance.now() - started)
  const totals: Totals = { passed: 0, failed: 0, skipped: 0 }
  for (const result of results) {
    totals.passed += result.passed
    totals.failed += result.failed
    totals.skipped += result.skipped
  }
  return totals
}

/** Says where answers of the whole run are not as the APIs' documents have them; gives how many. */
async function brokenContracts(folder: string): Promise<number> {
  let broken = 0
  const run = { isLong: values.long, isWhole: !values.long && positionals.length === 0 }
  for (const { service, calls, faults } of await checkContracts(folder, run)) {
    for (const fault of faults) say(`${service}: not as its OpenAPI document has it: ${fault}`)
    if (faults.length === 0)
      say(`# ok ${service}: ${calls} calls are as its OpenAPI document has them`)
    broken += faults.length
  }
  return broken
}

function sayFile(file: FileResult): void {
  const verdict = file.failed > 0 ? 'not ok' : 'ok'
  for (const failure of file.failures) say(failure)
  // Who names files wants their figures, too.
  const isShown = file.failed > 0 || positionals.length > 0
  if (isShown && file.stderr !== '') say(file.stderr.trimEnd())
  const times = `${seconds(file.milliseconds)}, CPU ${file.cpuSeconds.toFixed(1)} s`
  say(`# ${verdict} ${file.name}: ${totalsLine(file)} (${times})`)
}

/** Files run side by side, so their times add up to more than the run took. */
function saySlowest(results: readonly FileResult[], tookMs: number): void {
  const slowest = results
    .toSorted((a, b) => b.milliseconds - a.milliseconds)
    .slice(0, SLOWEST_SHOWN)
  say(`# ${results.length} files took ${seconds(tookMs)}; the slowest:`)
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
