import type { AssistantCaller } from '../../db/ops/assistants/assistants.ts'
import { Fault, forbidden } from '../../kernel/fault.ts'
import type { Access } from '../../kernel/http/declaration.ts'
import { bearerToken, bearsKey } from '../../kernel/tokens.ts'
import type { Offer } from '../../services/ops/agent/tools/offers.ts'
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

/** The agent of a session that runs in this process, by the token that it was given. */
export const sessionAgent: Access<OpsApp, Offer> = {
  guard: 'open',
  needsToken: true,
  identify({ offers }, context) {
    const offer = offers.find(bearerToken(context.headers) ?? '')
    if (offer === undefined) throw new Fault(401, 'UNAUTHORIZED', NO_SESSION, { headers: BEARER })
    offer.use.hasCome = true
    return offer
  },
}

/** A person's own assistant, by its token, which is looked up at each request. */
export const assistant: Access<OpsApp, AssistantCaller> = {
  guard: 'strict',
  needsToken: true,
  async identify({ assistants }, context) {
    const found = await assistants.find(bearerToken(context.headers) ?? '')
    if (found === undefined) {
      throw new Fault(401, 'UNAUTHORIZED', NO_ASSISTANT, { headers: BEARER })
    }
    context.actor = { kind: 'token', name: found.name }
    return found
  },
}

const NO_ASSISTANT = 'no assistant has this token: send Authorization: Bearer TOKEN'
const NO_SESSION = 'no session that runs here has this token'
const BEARER = { 'www-authenticate': 'Bearer' }

const OF_SESSION = forbidden(
  'A program that a session or an operation has started may not do this: a person must.',
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
