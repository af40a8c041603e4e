import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Backend } from './backends.ts'
import { request, type RequestOptions } from './http.ts'
import { startModel, type Model } from './model.ts'
import type { Session } from './ops.ts'
import type { Owner } from './owner.ts'
import { ROOT, type Env } from './program.ts'
import { secret } from './secrets.ts'

/** The key of the webhook; it may turn up nowhere. */
export const CHAT_KEY = secret('chat-api-key')

/** Starts a model that writes briefs; sessions are the probe's. */
export async function startBriefs(t: Owner): Promise<Model> {
  const model = await startModel(t, ['The brief.'])
  return { ...model, env: { ...model.env, OPS_RUNNER: 'probe' } }
}

/** What the webhook answers. */
export type Receipt = { session_id: number | null; status: string } & Readonly<
  Partial<Record<'message' | 'detail' | 'error', string> & { tier: number }>
>

/** Delivers an alert; with the right key unless `headers` have another `authorization`. */
export async function deliverAlert(
  base: string,
  body: string | Uint8Array | readonly (string | Uint8Array)[],
  headers: RequestOptions['headers'] = {},
) {
  const response = await request(`${base}/api/v1/webhook`, {
    method: 'POST',
    headers: { authorization: `Bearer ${CHAT_KEY}`, ...headers },
    body,
    timeoutMs: 30_000,
  })
  return { ...response, json: response.json<Receipt>() }
}

/** An alert as a real sender delivered it. */
export function sample(name: string) {
  return readFileSync(join(ROOT, 'test', 'fixtures', 'alerts', name), 'utf8')
}

/** An alert as the API shows it. */
export type ShownAlert = Readonly<
  Record<'id' | 'count' | 'firings', number> &
    Record<'title' | 'state' | 'firing_since' | 'outcome', string> &
    Record<'service' | 'resolved_at' | 'problem' | 'due_at', string | null> & {
      labels: Readonly<Record<string, string>>
      session_id: number | null
      sessions?: readonly Pick<Session, 'id' | 'status'>[]
    }
>

/** The body of an answer that a setting of alerts or a silence decided on. */
export function keptAs(detail: string | RegExp) {
  const message = 'the alert is kept, and nothing was started'
  return { session_id: null, status: 'acknowledged', message, detail }
}

/** An alert of Alertmanager, which has a state. */
export function alertmanager(name: string, status = 'firing', labels: object = {}) {
  const commonLabels = { alertname: name, ...labels }
  const alert = { status, labels: commonLabels, annotations: {}, fingerprint: name }
  return JSON.stringify({ version: '4', groupKey: name, status, commonLabels, alerts: [alert] })
}

/**
 * As if this time had passed for alerts, silences and sessions that have ended; then wakes what waits
 * for it.
 */
export async function timePasses(backend: Backend, env: Env, seconds: number) {
  const past = (column: string) => `${column} = ${column} - interval '${seconds} s'`
  for (const statement of [
    `update ops.alerts set ${past('due_at')}, ${past('waiting_since')}`,
    `update ops.silences set ${past('starts_at')}, ${past('ends_at')}`,
    `update ops.sessions set ${past('started_at')}, ${past('ended_at')} where status <> 'running'`,
    `select pg_notify('ops_sessions', '')`,
  ]) {
    await backend.query(env, statement)
  }
}
