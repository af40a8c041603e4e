import type { Alert } from '../../../db/ops/rows.ts'
import type { RandomBytes } from '../../../kernel/token-hash.ts'
import { fenced } from '../sessions/prompt.ts'

/** More would only cost time: what is wrong stands at the beginning. */
const PAYLOAD_LONGEST = 8_000

/**
 * The prompt of a session that an operator wants for an alert, with or without a model that could write
 * a brief.
 */
export function investigationPrompt(
  { title, source, payload }: Alert,
  random: RandomBytes,
): string {
  const cut = payload.length > PAYLOAD_LONGEST
  const data = cut ? `${payload.slice(0, PAYLOAD_LONGEST)}…`.toWellFormed() : payload
  return `Look into an alert that ${source ?? 'a monitoring tool'} sent. Name the affected system, find what is wrong with it and say what should be done.

${fenced('ALERT', 'its title, and then what was sent', `${title}\n\n${data}`, random)}`
}
