import type { Fault } from '../../kernel/fault.ts'
import type { Access } from '../../kernel/http/endpoint.ts'
import { bearsKey } from '../../kernel/tokens.ts'
import type { OpsApp } from './kit.ts'

/** Who bears OPS_CHAT_API_KEY, looked up at each request. Each API has its own words. */
export function keyHolder(
  refusals: Readonly<Record<'notConfigured' | 'wrongKey', Fault>>,
): Access<OpsApp, undefined> {
  return {
    guard: 'open',
    needsToken: true,
    identify({ chatKey }, context) {
      const key = chatKey()
      if (key === undefined) throw refusals.notConfigured
      if (!bearsKey(context.headers, key)) throw refusals.wrongKey
      context.actor = { kind: 'token', name: 'OPS_CHAT_API_KEY' }
      return undefined
    },
  }
}
