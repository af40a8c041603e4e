import * as Type from '../../../kernel/schema.ts'
import type { Database } from '../../../db/client.ts'
import { sessionQueries as q, type Session } from '../../../db/ops/agent/sessions.ts'
import { badRequest } from '../../../kernel/fault.ts'
import { firstMismatch, fits } from '../../../kernel/validate.ts'
import { fitsPrompt, PROMPT_RULE } from './sessions/prompt.ts'
import type { LineStream } from './sessions/stream.ts'

const Part = Type.Object({ type: Type.Literal('text'), text: Type.String() })
const Content = Type.Union([Type.String(), Type.Array(Part)])

/** The members of a chat completion request that are read; others are ignored. */
export const ChatRequest = Type.Object({
  model: Type.String({ description: 'gatehouse, or tier1 to tier3: the tier to start at' }),
  messages: Type.Array(
    Type.Object({
      role: Type.Enum(['system', 'developer', 'user', 'assistant', 'tool']),
      content: Type.Optional(Type.Union([Content, Type.Null()])),
    }),
    { minItems: 1 },
  ),
  stream: Type.Optional(Type.Union([Type.Boolean(), Type.Null()])),
})
export type ChatRequest = Type.Static<typeof ChatRequest>

/** Model names, and the tier at which each of them starts. */
export function chatModels(maxTier: number): ReadonlyMap<string, number> {
  const models = new Map([['gatehouse', 1]])
  for (let tier = 1; tier <= maxTier; tier++) models.set(`tier${tier}`, tier)
  return models
}

export function readChat(body: unknown): ChatRequest {
  if (fits(ChatRequest, body)) return body
  throw badRequest(firstMismatch(ChatRequest, body, 'the body'))
}

/** The prompt of a session: the last message of the user, and then the conversation before it. */
export function promptOf({ messages }: ChatRequest): string {
  const written = messages.map(({ role, content }) => ({ role, text: textOf(content).trim() }))
  const asked = written.findLast(({ role }) => role === 'user')
  if (asked === undefined || asked.text === '') {
    throw badRequest('messages must have one of role user that is not blank')
  }
  const before = written.slice(0, written.lastIndexOf(asked)).filter(({ text }) => text !== '')
  const conversation = before.map(({ role, text }) => `${role}: ${text}`).join('\n\n')
  const context = before.length === 0 ? '' : `\n\nSaid before:\n\n${conversation}`
  const prompt = asked.text + context
  if (!fitsPrompt(prompt)) throw badRequest(`messages must in all have ${PROMPT_RULE}`)
  return prompt
}

/**
 * The output of a session, piece by piece, and then that of the sessions that it escalates to. If
 * one of them did not end well, its last piece says so. Ends early if the client is gone.
 */
export async function* answerOf(
  db: Database,
  stream: Pick<LineStream, 'pages'>,
  first: number,
  gone: AbortSignal,
): AsyncGenerator<string> {
  for (let id: number | undefined = first; id !== undefined;) {
    let hasOutput = false
    for await (const { items } of stream.pages(id, gone)) {
      for (const { kind, text } of items) {
        if (kind !== 'text' && kind !== 'error') continue
        hasOutput = true
        yield `${text}\n`
      }
    }
    if (gone.aborted) return
    yield* endOf(db, id, hasOutput)
    const children: readonly Session[] = await q.listChildren(db, { id, limit: 1 })
    id = children[0]?.id
  }
}

/** The summary of a session without output, and how it ended unless that was well. */
async function* endOf(db: Database, id: number, hasOutput: boolean): AsyncGenerator<string> {
  const session = await q.findSession(db, { id })
  if (session === undefined) return
  const { status, summary } = session
  const isWell = status === 'completed' || status === 'escalated'
  if (!hasOutput && summary !== null) yield `${summary}\n`
  const isSilent = !hasOutput && summary === null
  if (!isWell || isSilent) yield `Session ${id} ${status.replace('_', ' ')}.\n`
}

function textOf(content: ChatRequest['messages'][number]['content']): string {
  if (content === undefined || content === null) return ''
  return typeof content === 'string' ? content : content.map(({ text }) => text).join('\n')
}
