import type { Session } from '../../../db/ops/sessions.ts'
import type { RandomBytes } from '../../../kernel/token-hash.ts'
import { cutAt } from '../cut.ts'
import { fenced } from '../fence.ts'

/** The next tier of a session that escalates. */
export interface Escalation {
  readonly reason: string
  readonly findings: string
  /** What the next tier is asked: what this one was, and at its end what it has found. */
  readonly prompt: string
}

/** Of what an escalation adds to a prompt, that many bytes are what was found, so many are all of it. */
const FOUND_BYTES = 24 * 1024
export const ESCALATION_BYTES = FOUND_BYTES + 1024

/** An escalation of a session, with the prompt of the next tier. */
export function escalationOf(
  { id, tier, prompt_text }: Pick<Session, 'id' | 'tier' | 'prompt_text'>,
  reason: string,
  findings: string,
  random: RandomBytes,
): Escalation {
  const asked = prompt_text ?? 'a scheduled check of everything'
  const found = cutAt(`${reason}\n\n${findings}`, FOUND_BYTES)
  // What a lower tier has read may speak through what it tells: this one may do more.
  const told = fenced('FINDINGS', 'why, and what it found', found, random)
  const prompt = `${asked}\n\nEscalated from session ${id} (tier ${tier}). ${told}`
  return { reason, findings, prompt }
}
