import { sessionQueries as q, type AlertSession } from '../../../../db/ops/agent/sessions.ts'
import type { Executor } from '../../../../db/client.ts'
import type { RandomBytes } from '../../../../kernel/tokens.ts'
import { fenced } from '../sessions/prompt.ts'

/** What is recalled of an alert: its newest sessions, and so many characters of each summary. */
export const MAX_RECALLED = 5
export const MAX_RECALLED_SUMMARY = 800
/** Characters of a line in a prompt. */
const MAX_LINE = 1_600

/**
 * What earlier sessions found and did when the alert of a session fired, for its prompt; undefined
 * for a session without an alert, and before its first one. It is data: they may quote strangers.
 */
export async function recallFor(db: Executor, session: number, random: RandomBytes) {
  const recalled = await q.findRecallOf(db, { session })
  if (recalled === undefined) return undefined
  const { id: alert, chain: before } = recalled
  const listed = { alert, before, characters: MAX_RECALLED_SUMMARY, limit: MAX_RECALLED }
  const earlier = await q.listAlertSessions(db, listed)
  const ended = earlier.filter(({ ended_at }) => ended_at !== null)
  if (ended.length === 0) return undefined
  const what = 'what earlier sessions found and did when this alert fired, the newest first'
  return fenced('EARLIER', what, ended.map(lineOf).join('\n'), random)
}

function lineOf({ id, tier, status, ended_at, summary, operations }: AlertSession): string {
  const found = summary ?? 'no summary'
  const ran = operations.length === 0 ? '' : ` It ran ${operations.join('; ')}.`
  const line = `- session ${id} (tier ${tier}, ${status}, ${ended_at?.toISOString()}): ${found}${ran}`
  return line.replaceAll(/\s+/g, ' ').slice(0, MAX_LINE).toWellFormed()
}
