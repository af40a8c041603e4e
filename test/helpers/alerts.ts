import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ApiResponse } from './api.ts'
import { request } from './http.ts'
import type { RequestOptions } from './http.ts'
import { startModel } from './model.ts'
import type { Model } from './model.ts'
import type { Owner } from './owner.ts'
import { ROOT } from './program.ts'
import { secret } from './secrets.ts'

/** The key of the webhook; it may turn up nowhere. */
export const CHAT_KEY = secret('chat-api-key')

/** Starts a model that writes briefs; sessions are the probe's. */
export async function startBriefs(t: Owner): Promise<Model> {
  const model = await startModel(t, ['The brief.'])
  return { ...model, env: { ...model.env, OPS_RUNNER: 'probe' } }
}

/** What the webhook answers. */
export type Receipt = {
  readonly session_id: number | null
  readonly status: string
  readonly tier?: number
  readonly message?: string
  readonly error?: string
}

/** Delivers an alert; with the right key unless `headers` have another `authorization`. */
export async function deliverAlert(
  base: string,
  body: string | Uint8Array | readonly (string | Uint8Array)[],
  headers: RequestOptions['headers'] = {},
): Promise<ApiResponse<Receipt>> {
  const response = await request(`${base}/api/v1/webhook`, {
    method: 'POST',
    headers: { authorization: `Bearer ${CHAT_KEY}`, ...headers },
    body,
    timeoutMs: 30_000,
  })
  return { ...response, json: response.json<Receipt>() }
}

/** An alert as a real sender delivered it. */
export function sample(name: string): string {
  return readFileSync(join(ROOT, 'test', 'fixtures', 'alerts', name), 'utf8')
}
