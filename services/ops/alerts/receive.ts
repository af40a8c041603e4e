import type { Database } from '../../../db/client.ts'
import { noteAlert, saveAlert } from '../../../db/ops/alerts.ts'
import { isRunning } from '../../../db/ops/sessions.ts'
import type { Log } from '../../../kernel/log.ts'
import type { RandomBytes } from '../../../kernel/token-hash.ts'
import type { Redaction } from '../redact.ts'
import type { Sessions } from '../sessions/sessions.ts'
import { identify } from './fingerprint.ts'
import { readPayload } from './payload.ts'
import { synthesize, type SynthesisConfig } from './synthesis.ts'

/** What the alert webhook works with; the key and the model are looked up for every delivery. */
export interface AlertsOptions {
  readonly db: Database
  readonly log: Log
  readonly redact: Redaction
  readonly sessions: Pick<Sessions, 'start'>
  readonly random: RandomBytes
  readonly synthesis: () => SynthesisConfig
}

/** What came of a delivery that was kept. */
export type AlertOutcome =
  | { readonly kind: 'triggered'; readonly session: number; readonly tier: number }
  /** A session runs: it was kept, and nothing more comes of it. */
  | { readonly kind: 'acknowledged' }
  | { readonly kind: 'failed'; readonly problem: string }

/** Whether a body is empty or has nothing but white space. */
export function isBlank(bytes: Uint8Array): boolean {
  return new TextDecoder().decode(bytes).trim() === ''
}

/**
 * Keeps a delivery and starts a session of its brief, unless one runs (decisions.md section 5, Webhook).
 * What an earlier delivery of the same alert came to makes no difference.
 */
export async function receiveAlert(
  options: AlertsOptions,
  bytes: Uint8Array,
  at: Date,
): Promise<AlertOutcome> {
  const { db, log, redact, sessions, random } = options
  const payload = readPayload(bytes)
  // A sender may repeat its key in the body; neither the list nor the model is to know it.
  const text = redact(payload.text)
  const save = (outcome: 'received' | 'acknowledged'): Promise<number> =>
    saveAlert(db, { ...identify(payload, redact), payload: text, outcome, at })

  if (await isRunning(db)) {
    await save('acknowledged')
    return { kind: 'acknowledged' }
  }
  const id = await save('received')
  const synthesis = await synthesize(text, options.synthesis(), { random, redact })
  if ('problem' in synthesis) {
    const { problem, detail } = synthesis
    log.warn('alert not synthesized', { alert: id, problem: detail })
    await noteAlert(db, id, 'failed', { problem: detail })
    return { kind: 'failed', problem }
  }
  const { brief } = synthesis
  const session = await sessions.start({ tier: payload.tier, trigger: 'alert', prompt: brief })
  if (session === undefined) {
    await noteAlert(db, id, 'acknowledged')
    return { kind: 'acknowledged' }
  }
  await noteAlert(db, id, 'triggered', { session: session.id })
  return { kind: 'triggered', session: session.id, tier: session.tier }
}
