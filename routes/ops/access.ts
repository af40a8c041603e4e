import { forbidden, type Fault } from '../../kernel/fault.ts'
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

const OF_SESSION = forbidden(
  'A program that a session or an operation has started may not decide: a person must.',
)
const GONE = forbidden('The program that asks is gone, so it can not be seen who it was.')

/** Everybody that the listener's guard lets in, but no process of a session. */
export const outsideSessions: Access<unknown, undefined> = {
  guard: 'guarded',
  needsToken: false,
  identify(_app, context) {
    const process = context.peerProcess()
    if (process === 'marked') throw OF_SESSION
    // A session's process could send its request and end before it is looked for.
    if (process === 'gone') throw GONE
    return undefined
  },
}
