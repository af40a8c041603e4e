import { globSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { checkContracts } from './runner/api-contracts.ts'
import { cpuSecondsSoFar } from './helpers/process-figures.ts'
import { LONG_RUN, ROOT, SHORT_LIVES, endOrphans } from './helpers/program.ts'
import { findLeaks, leakMessage } from './runner/leaks.ts'
import {
  deploymentParts,
  ensureSystemParts,
  longParts,
  systemParts,
} from './runner/system-parts.ts'
import { groupFiles, runGroups, type FileResult } from './runner/pool.ts'
import { reachedIn } from './runner/reached.ts'
import { totalsLine } from './runner/report.ts'
import { withSharedParts } from './runner/shared-parts.ts'
import { summarize } from './runner/summary.ts'

// `npm test`: node test/run.ts [--long] [--jobs N] [--reverse] [--reached FILE] [FILES]. Starts what the tests share, runs them, looks for
// secrets in all that the product said, and ends with the line `N passed, N failed`. docs/testing.md has more.
// The whole run has no limit of time: machines differ. Each file has its own.

const FILE_SECONDS = { short: 1_800, long: 3 * 3_600 }
/** How many files of a folder run in one process: its start costs as much as a file of medium size. */
const FILES_A_PROCESS = { short: 8, long: 1 }
/** Their files have a process each: they break what they run on, or set its umask. */
const ALONE = ['test/faults/', 'test/deploy/']
/** Those with the longest files, in this order: started first, none of them runs alone at the end. */
const SLOW_FOLDERS = [
  'test/faults/',
  'test/db/',
  'test/cli/',
  'test/browser/',
  'test/ops/',
  'test/hooks/',
  'test/house/',
  'test/links/',
]

const { values, positionals } = parseArgs({
  options: {
    long: { type: 'boolean', default: false },
    jobs: { type: 'string' },
    // The last file first: none may need what another one has left.
    reverse: { type: 'boolean', default: false },
    // Where to write which routes with which status, and which commands with which exit code, the run has reached.
    reached: { type: 'string' },
  },
  allowPositionals: true,
})
const jobs = Number(values.jobs ?? availableParallelism() + 4)
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
  if (values.reverse) files.reverse()
  const browser = files.some((file) => /browser|layout/.test(file))
  try {
    const started = performance.now()
    // Failures of the run itself, such as a secret in a log.
    let failures = 0
    const results = await withSharedParts({ browser }, async (folder) => {
      const ended = await runSuite(files)
      if (!stop.signal.aborted) failures += await brokenContracts(folder)
      endOrphans(folder)
      if (values.reached !== undefined) {
        writeFileSync(values.reached, `${reachedIn(folder).join('\n')}\n`)
      }
      for (const leak of findLeaks(folder)) {
        say(leakMessage(leak))
        failures += 1
      }
      return ended
    })
    const { lines, unaccepted } = summarize(results, process.env['CI'] !== undefined)
    for (const line of lines) say(line)
    const took = seconds(performance.now() - started)
    say(
      `# ${results.length} files took ${took}, CPU ${cpuSecondsSoFar().toFixed(0)} s with all parts`,
    )
    if (stop.signal.aborted) {
      say(`ended early by ${stop.signal.reason}`)
      failures += 1
    }
    const passed = sum(results.map((result) => result.passed))
    const failed = sum(results.map((result) => result.failed)) + failures + unaccepted
    const skipped = sum(results.map((result) => result.skipped)) - unaccepted
    say(totalsLine({ passed, failed, skipped }))
    return failed === 0 && passed > 0 ? 0 : 1
  } catch (error) {
    return sayFailure(error instanceof Error ? error.message : String(error))
  }
}

/** The long suite has the API's own tests too, whose calls are compared with the documents, and long forms. */
function suiteFiles() {
  const patterns = values.long
    ? [
        'test/{long,faults,links,ops}/**/*.test.ts',
        'test/hooks/{api,guards}.test.ts',
        'test/hooks/send/replay-jobs.test.ts',
        'test/db/{embedded-upkeep,migrate,sql,upgrade}.test.ts',
        'test/house/regular-expressions.test.ts',
        'test/cli/{documented-commands,instances,skill}.test.ts',
      ]
    : ['test/**/*.test.ts']
  const found = globSync(patterns, { cwd: ROOT }).sort()
  const files = found.filter((file) => values.long || !file.startsWith('test/long/'))
  const slow = SLOW_FOLDERS.flatMap((folder) => files.filter((file) => file.startsWith(folder)))
  return [...slow, ...files.filter((file) => !slow.includes(file))]
}

function runSuite(files: readonly string[]) {
  const length = values.long ? 'long' : 'short'
  const fileSeconds = FILE_SECONDS[length]
  const groups = groupFiles(files, FILES_A_PROCESS[length]).flatMap((group) =>
    ALONE.some((folder) => group[0]?.startsWith(folder)) ? group.map((file) => [file]) : [group],
  )
  return runGroups(groups, { jobs, fileSeconds, signal: stop.signal }, sayFile)
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

function sayFile(file: FileResult) {
  const verdict = file.failed > 0 ? 'not ok' : 'ok'
  for (const failure of file.failures) say(failure)
  // Who names files wants their figures, too.
  const isShown = file.failed > 0 || positionals.length > 0
  if (isShown && file.stderr !== '') say(file.stderr.trimEnd())
  const times = `${seconds(file.milliseconds)}, CPU ${file.cpuSeconds.toFixed(1)} s`
  say(`# ${verdict} ${file.name}: ${totalsLine(file)} (${times})`)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

function seconds(milliseconds: number) {
  return `${(milliseconds / 1_000).toFixed(1)} s`
}

/** For a run that could not happen: its reason is the one failure. */
function sayFailure(reason: string) {
  say(reason)
  say(totalsLine({ passed: 0, failed: 1, skipped: 0 }))
  return 1
}

function say(text: string) {
  process.stdout.write(`${text}\n`)
}
