import { Parser, type Result } from 'tap-parser'

/**
 * Counts in tests. A test is a sub-test (`t.test`) without sub-tests of its own; a file without any is one.
 * SKIP and TODO count as skipped.
 */
type Totals = { passed: number; failed: number; skipped: number }

/** What one file's TAP says. */
export type FileReport = Totals & {
  /** A block of lines for each failed assertion: its name and what differs. */
  failures: readonly string[]
  skips: readonly Skip[]
}

/** A test that was not run, and why. */
type Skip = { name: string; reason: string }

/** Reads the TAP of one test file as it comes: a part of that of its process, without a plan of its own. */
export type ReportReader = {
  write(text: string): void
  /** `hasEnded` or its process died in it. What never reached its end counts as failed. */
  end(hasEnded: boolean): FileReport
}

/** Members of a failure's diagnostics that say what is wrong; the others repeat the source. */
const TOLD = ['diff', 'message', 'reason', 'found', 'wanted', 'error', 'stack'] as const
const MAX_LINES = 60
/** The line of a test that is not within another one. */
const TEST = /^(?:not )?ok (\d+)/gm

export function createReportReader(): ReportReader {
  const totals: Totals = { passed: 0, failed: 0, skipped: 0 }
  const failures: string[] = []
  const skips: Skip[] = []
  const parser = new Parser()
  // Numbers of the file's tests among those of its process.
  const numbers: string[] = []
  watch(parser, true)

  function watch(level: Parser, isFile: boolean) {
    let children = 0
    let skipped = 0
    level.on('child', (child) => {
      children++
      watch(child, false)
    })
    level.on('assert', (result) => {
      if (isSkipped(result)) {
        skipped++
        skips.push({ name: result.fullname, reason: String(result.skip || result.todo) })
      } else if (!result.ok && !result.closingTestPoint) failures.push(failureText(result))
    })
    level.on('complete', (results) => {
      const leaf = children === 0
      // A file that reports nothing has not run.
      const ok = results.ok && !(isFile && results.count === 0)
      if (leaf && ok && skipped === 0) totals.passed += 1
      totals.skipped += skipped
      if (ok || (!leaf && !isFile)) return
      // A group fails with a test of its own, or by itself: with an assertion beside its sub-tests.
      if (leaf || totals.failed === 0) totals.failed += 1
    })
  }

  return {
    write(text) {
      for (const [, number] of text.matchAll(TEST)) numbers.push(number ?? '')
      parser.write(text)
    },
    end(hasEnded) {
      if (hasEnded && numbers.length > 0) parser.write(`${numbers[0]}..${numbers.at(-1)}\n`)
      parser.end()
      return { ...totals, failures, skips }
    },
  }
}

function isSkipped({ skip, todo }: Result) {
  return skip !== false || todo !== false
}

function failureText({ fullname, diag }: Result) {
  const told: Record<string, unknown> = diag ?? {}
  const lines = TOLD.filter((name) => told[name] !== undefined).flatMap((name) =>
    String(told[name]).trimEnd().split('\n'),
  )
  const shown = lines.slice(0, MAX_LINES).map((line) => `    ${line}`)
  return [`not ok ${fullname}`, ...shown].join('\n')
}

/** The line that ends a run: `3 passed, 0 failed`, and skipped ones when there are any. */
export function totalsLine({ passed, failed, skipped }: Totals) {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`
}
