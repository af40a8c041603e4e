import { Fault } from '../../kernel/fault.ts'
import type { Access } from '../../kernel/http/endpoint.ts'
import { bearsKey } from '../../kernel/tokens.ts'
import type { OpsApp } from './kit.ts'

/**
 * Who bears OPS_CHAT_API_KEY. It is looked up at each request: without a key nobody may call. Each
 * API has its own words for both refusals.
 */
export function keyHolder(
  notConfigured: Fault,
  wrongKey: Pick<Fault, 'code' | 'message'>,
): Access<OpsApp, undefined> {
  const headers = { 'www-authenticate': 'Bearer' }
  const unauthorized = new Fault(401, wrongKey.code, wrongKey.message, { headers })
  return {
    guard: 'open',
    needsToken: true,
    identify({ chatKey }, context) {
      const key = chatKey()
      if (key === undefined) throw notConfigured
      if (!bearsKey(context.headers, key)) throw unauthorized
      context.actor = { kind: 'token', name: 'OPS_CHAT_API_KEY' }
      return undefined
    },
  }
}
