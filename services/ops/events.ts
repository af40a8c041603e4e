import type { Level } from '../../db/ops/rows.ts'

const WARNINGS = new Set(['warning', 'warn', 'degraded'])
const CRITICALS = new Set(['critical', 'error', 'err', 'fatal', 'failed', 'failure'])

/** The level that somebody's word for it means (decisions.md section 5). */
export function levelOf(word: string): Level {
  const folded = word.trim().toLowerCase()
  if (WARNINGS.has(folded)) return 'warning'
  return CRITICALS.has(folded) ? 'critical' : 'info'
}
