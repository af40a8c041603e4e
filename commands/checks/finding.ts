import { JOURNAL_PREFIX } from '../../kernel/log.ts'
import { DONE, FAILED, type Output } from '../output.ts'
import { isJournal } from '../systemd.ts'

const STDOUT = 1

/** `warn`: Gatehouse works, and the operator should do something. `fail`: it must be corrected. */
export type Level = 'ok' | 'warn' | 'fail'

/** The result of one check: the state, or what to do about it. */
export interface Finding {
  readonly level: Level
  readonly what: string
  readonly detail: string
}

export function ok(what: string, detail: string): Finding {
  return { level: 'ok', what, detail }
}

export function warn(what: string, detail: string): Finding {
  return { level: 'warn', what, detail }
}

export function fail(what: string, detail: string): Finding {
  return { level: 'fail', what, detail }
}

const WORDS: Readonly<Record<Level, string>> = { ok: 'ok  ', warn: 'warn', fail: 'FAIL' }
/** When a unit runs it as ExecStartPre, failures are errors in the journal. */
const PREFIX: Readonly<Record<Level, string>> = {
  ok: JOURNAL_PREFIX.info,
  warn: JOURNAL_PREFIX.warn,
  fail: JOURNAL_PREFIX.error,
}

/** Prints findings, one line each; the exit code is 1 when one has failed. */
export function reportFindings(
  findings: readonly Finding[],
  json: boolean,
  output: Output,
): number {
  if (json) output.out(JSON.stringify(findings.map((one) => ({ ok: one.level === 'ok', ...one }))))
  else {
    const journal = isJournal(STDOUT)
    for (const { level, what, detail } of findings)
      output.out(`${journal ? PREFIX[level] : ''}${WORDS[level]}  ${what}: ${detail}`)
  }
  return findings.some(({ level }) => level === 'fail') ? FAILED : DONE
}
