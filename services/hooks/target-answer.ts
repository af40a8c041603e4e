import type { OutboundResult } from '../../kernel/net/outbound.ts'

/** What a target answered to an event; without an answer the status is null and `detail` says why. */
export interface TargetAnswer {
  readonly status: number | null
  readonly ms: number
  readonly detail: string | null
}

export function targetAnswer(result: OutboundResult): TargetAnswer {
  const { ms } = result
  if (result.kind !== 'answered') return { status: null, ms, detail: result.reason }
  const { status } = result
  const redirect = status >= 300 && status < 400
  return { status, ms, detail: redirect ? 'redirects are not followed' : null }
}

export function isSuccess(status: number | null): boolean {
  return status !== null && status >= 200 && status < 300
}
