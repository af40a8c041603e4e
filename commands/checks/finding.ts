import { JOURNAL_PREFIX } from '../../kernel/log.ts'
import { DONE, FAILED, type Output } from '../output.ts'
import { isJournal } from '../systemd.ts'

const STDOUT = 1

/** Fine; works, with something to do; or something that has to be put right. */
export type Level = 'ok' | 'warn' | 'fail'

/** One thing that was looked at: how it is, or what to do about it. */
export interface Finding {
  readonly level: Level
  readonly what: string
  readonly detail: string
}

export function fine(what: string, detail: string): Finding {
  return { level: 'ok', what, detail }
}

/** Gatehouse starts and works all the same: no reason for `check` to fail. */
export function doubt(what: string, detail: string): Finding {
  return { level: 'warn', what, detail }
}

export function wrong(what: string, detail: string): Finding {
  return { level: 'fail', what, detail }
}

const WORDS: Readonly<Record<Level, string>> = { ok: 'ok  ', warn: 'warn', fail: 'FAIL' }
/** As ExecStartPre of a unit: what is wrong stands among the journal's errors. */
const PREFIX: Readonly<Record<Level, string>> = {
  ok: JOURNAL_PREFIX.info,
  warn: JOURNAL_PREFIX.warn,
  fail: JOURNAL_PREFIX.error,
}

/** Prints findings, one line each; the exit code is 1 when something has to be put right. */
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
