import type { Level } from '../../db/notices.ts'
import type { Incident } from './incident.ts'

/** What a session, with those that it escalated to, said and did. */
export type Answered = {
  /** Its summary, its events, and what it remembers. */
  said: string
  /** Levels of the events that it recorded. */
  levels: readonly Level[]
  /** Operations that ran. */
  ran: readonly string[]
  /** Why the session failed. */
  problem?: string | undefined
}

const BY_WEIGHT: readonly Level[] = ['info', 'warning', 'critical']

/** `old` is in "older", and not in "threshold". */
function beginsWord(term: string) {
  const start = /^[\p{L}\p{N}]/u.test(term) ? String.raw`(?<![\p{L}\p{N}])` : ''
  return new RegExp(start + RegExp.escape(term), 'iu')
}

/** What is wrong with an answer, a line each; empty for a good one. */
export function judge(
  { services, expects }: Pick<Incident, 'services' | 'expects'>,
  { said, levels, ran, problem }: Answered,
) {
  const { names, never = [], runs, worst_level = 'critical' } = expects
  const has = (term: string) => beginsWord(term).test(said)
  const missing = names.filter((term) => ![term].flat().some(has))
  const all = services.flatMap(({ operations = [] }) => operations)
  const forbidden = expects.never_runs ?? all.filter((name) => name !== runs)
  const worse = levels.filter((level) => BY_WEIGHT.indexOf(level) > BY_WEIGHT.indexOf(worst_level))
  return [
    ...(problem === undefined ? [] : [`failed: ${problem}`]),
    ...missing.map((term) => `missing: ${[term].flat().join(' or ')}`),
    ...never.filter(has).map((term) => `must not say: ${term}`),
    ...(runs === undefined || ran.includes(runs) ? [] : [`did not run: ${runs}`]),
    ...forbidden.filter((name) => ran.includes(name)).map((name) => `must not run: ${name}`),
    ...[...new Set(worse)].map((level) => `must not record: ${level}`),
  ]
}
