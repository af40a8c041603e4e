import Type from 'typebox'
import { sessionQueries as q, Session, type FoundSession } from '../../../db/ops/sessions.ts'
import { nullable } from '../../../db/rows.ts'
import { badRequest, notFound } from '../../../kernel/fault.ts'
import type { Operation } from '../../../kernel/openapi.ts'
import { jsonReply } from '../../../kernel/http/reply.ts'
import { fitsPrompt, MAX_PROMPT, PROMPT_RULE } from '../../../services/ops/sessions/prompt.ts'
import { sessionRuns } from '../faults.ts'
import type { OpsApp } from '../endpoint.ts'
import { bodyOf, idOf, IdParam, listQuery, opsOperation, readList } from './operation.ts'

const USUAL = 50

/** ops.md section 2, detail of a session. */
export const SessionDetail = Type.Object({
  ...Session.properties,
  parent_session: Type.Optional(nullable(Session)),
  child_sessions: Type.Array(Session),
  chain_cost: Type.Number({ description: 'Of the whole escalation chain, in US dollars' }),
})

/** `/sessions` (ops.md section 4). */
export function sessionOperations({ ops }: OpsApp): readonly Operation[] {
  const { db, sessions } = ops
  const tag = 'Sessions'
  return [
    opsOperation({
      ...{ method: 'GET', path: '/api/v1/sessions', id: 'listSessions', tag },
      summary: 'List sessions, newest first.',
      query: Type.Object(listQuery(USUAL)),
      replies: {
        200: { description: 'Sessions', schema: Type.Object({ sessions: Type.Array(Session) }) },
      },
      refusals: [400],
      async answer(context) {
        const asked = readList(context, USUAL)
        if ('status' in asked) return asked
        return jsonReply({ sessions: await q.listSessions(db, asked) })
      },
    }),
    opsOperation({
      ...{ method: 'GET', path: '/api/v1/sessions/:id', id: 'getSession', tag },
      summary: 'Get a session with its escalation chain.',
      params: { id: IdParam },
      replies: { 200: { description: 'The session', schema: SessionDetail } },
      refusals: [400, 404],
      async answer(context) {
        const id = idOf(context)
        if (id === undefined) return badRequest('the session id must be an integer')
        const found = await q.findSession(db, { id })
        if (found === undefined) return notFound('session not found')
        const { summary: _summary, marker: _marker, chain_cost, ...session } = found
        const parent = found.parent_session_id
        const [above, child_sessions] = await Promise.all([
          parent === null ? undefined : q.findSession(db, { id: parent }),
          q.listChildren(db, { id, limit: 100 }),
        ])
        const parent_session = above === undefined ? null : plainSession(above)
        return jsonReply({ ...session, parent_session, child_sessions, chain_cost })
      },
    }),
    opsOperation({
      ...{ method: 'POST', path: '/api/v1/sessions/trigger', id: 'triggerSession', tag },
      summary: 'Start a session at tier 1.',
      body: Type.Object(
        { prompt: Type.String({ minLength: 1, maxLength: MAX_PROMPT }) },
        { examples: [{ prompt: 'The shop has been slow since noon: find out why.' }] },
      ),
      replies: { 201: { description: 'The session, which runs now', schema: Session } },
      refusals: [400, 409, 413, 415],
      async answer(context) {
        const body = await bodyOf(context)
        if ('status' in body) return body
        const { prompt } = body.value
        if (typeof prompt !== 'string' || prompt.trim() === '') {
          return badRequest('prompt is required and must be a string that is not blank')
        }
        if (!fitsPrompt(prompt)) return badRequest(`prompt must have ${PROMPT_RULE}`)
        const session = await sessions.start({ tier: 1, trigger: 'api', prompt })
        return session === undefined ? sessionRuns() : jsonReply(session, 201)
      },
    }),
  ]
}

/** A session without what only its page shows. */
function plainSession(found: FoundSession): Session {
  const { summary: _summary, marker: _marker, chain_cost: _cost, ...session } = found
  return session
}
