/**
 * Counts of a run in tests. A test is a sub-test (`t.test`) without sub-tests of its own; a file
 * without any is one. An assertion beside sub-tests counts only when it fails. SKIP and TODO count as
 * skipped.
 */
export type Totals = { passed: number; failed: number; skipped: number }

/** A finished test file; `output` is all that it reported, in TAP. */
export type FileReport = Totals & { name: string; output: string; milliseconds: number }

/** Reads tap's report line by line. */
export type ReportReader = {
  line(text: string): void
  /** The totals; what never reached its end counts as failed and is handed out. */
  end(): Totals
}

type Frame = Totals & { name: string; indent: number; children: number; broken: number }
type Verdict = 'passed' | 'failed' | 'skipped'

const POINT = /^( *)(not )?ok\b(.*)$/
const DIRECTIVE = /(?:^|[^\\])# (?:SKIP|TODO)\b/i
const SUBTEST = /^( *)# Subtest: (.*)$/
const TIME = /# time=([\d.]+)ms/
const NOISE = /^(TAP version|1\.\.\d|# No coverage|# \{ total|# time=|\s*$)/

/** Reads the TAP of `tap --reporter=tap` and hands out each file when it ends. */
export function createReportReader(
  onFile: (file: FileReport) => void,
  onStray: (line: string) => void,
): ReportReader {
  const totals: Totals = { passed: 0, failed: 0, skipped: 0 }
  const frames: Frame[] = []
  let output: string[] = []
  let diagnostics: string | undefined
  let afterPoint: string | undefined

  function line(text: string): void {
    const top = frames.at(-1)
    if (top === undefined && diagnostics === undefined && NOISE.test(text)) return
    output.push(text)
    if (diagnostics !== undefined) {
      // The diagnostics of a failure may quote TAP: only their last line counts.
      if (text === diagnostics) diagnostics = undefined
    } else if (text === `${afterPoint}---`) {
      diagnostics = `${afterPoint}...`
    } else {
      afterPoint = undefined
      readLine(text)
    }
    if (frames.length === 0 && diagnostics === undefined) flushStray()
  }

  function readLine(text: string): void {
    const [, indent, name] = SUBTEST.exec(text) ?? []
    if (indent !== undefined && name !== undefined) {
      frames.push(newFrame(name, indent.length + 4))
      return
    }
    const point = POINT.exec(text)
    if (point === null) return
    const [, before = '', not, rest = ''] = point
    const verdict = DIRECTIVE.test(rest) ? 'skipped' : not === undefined ? 'passed' : 'failed'
    afterPoint = `${before}  `
    readPoint(before.length, verdict, Number(TIME.exec(text)?.[1] ?? 0))
  }

  function readPoint(indent: number, verdict: Verdict, milliseconds: number): void {
    // A sub-test that was cut off has no end of its own.
    while ((frames.at(-1)?.indent ?? 0) > indent + 4) close('failed', 0)
    const top = frames.at(-1)
    if (top === undefined) {
      if (verdict !== 'passed') totals[verdict] += 1
    } else if (top.indent === indent + 4) {
      close(verdict, milliseconds)
    } else if (top.indent === indent) {
      if (verdict === 'failed') top.broken += 1
      if (verdict === 'skipped') top.skipped += 1
    }
  }

  function close(verdict: Verdict, milliseconds: number): void {
    const frame = frames.pop()
    if (frame === undefined) return
    const isTest = frame.children === 0 && !(verdict === 'passed' && frame.skipped > 0)
    if (isTest) frame[verdict] += 1
    else frame.failed += frame.broken
    // A group that fails by itself (a plan that was not kept, a time-out) must not get lost.
    if (verdict === 'failed' && frame.failed === 0) frame.failed += 1
    const parent = frames.at(-1)
    add(parent ?? totals, frame)
    if (parent !== undefined) {
      parent.children += 1
      return
    }
    const { name, passed, failed, skipped } = frame
    onFile({ name, passed, failed, skipped, milliseconds, output: output.join('\n') })
    output = []
  }

  function flushStray(): void {
    for (const text of output) onStray(text)
    output = []
  }

  function end(): Totals {
    while (frames.length > 0) close('failed', 0)
    flushStray()
    return totals
  }

  return { line, end }
}

/** The line that ends a run: `3 passed, 0 failed`, and skipped ones when there are any. */
export function totalsLine({ passed, failed, skipped }: Totals): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`
}

function newFrame(name: string, indent: number): Frame {
  return { name, indent, children: 0, broken: 0, passed: 0, failed: 0, skipped: 0 }
}

function add(to: Totals, from: Totals): void {
  to.passed += from.passed
  to.failed += from.failed
  to.skipped += from.skipped
}
