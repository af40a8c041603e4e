import { setTimeout as pause } from 'node:timers/promises'
import Type from 'typebox'
import { Compile } from 'typebox/compile'
import { lazy } from '../../kernel/lazy.ts'
import type { Database } from '../../db/client.ts'
import { findSession, findStatus, listChildren, listLines } from '../../db/ops/sessions.ts'
import { fitsPrompt, PROMPT_RULE } from './sessions/prompt.ts'

const Part = Type.Object({ type: Type.Literal('text'), text: Type.String() })
const Content = Type.Union([Type.String(), Type.Array(Part)])

/** What of a chat completion request counts here; other members are ignored. */
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

const schema = lazy(() => Compile(ChatRequest))
const LOOK_MS = 250
const PAGE = 200

/** The names of models by the tier that each starts at, up to the highest one. */
export function chatModels(maxTier: number): ReadonlyMap<string, number> {
  const tiers = Array.from({ length: maxTier }, (_, at) => [`tier${at + 1}`, at + 1] as const)
  return new Map([['gatehouse', 1], ...tiers])
}

/** Reads a request; the line says what is wrong with it. */
export function readChat(body: unknown): ChatRequest | string {
  if (schema().Check(body)) return body
  const [first] = schema().Errors(body)
  const where = first?.instancePath.replace(/^\//, '').replaceAll('/', '.')
  return `${where === '' || where === undefined ? 'the body' : where} is wrong: ${first?.message}`
}

/** What a session is asked: the last message, after the conversation that led to it; or what is wrong. */
export function promptOf({ messages }: ChatRequest): { prompt: string } | { problem: string } {
  const said = messages.map(({ role, content }) => ({ role, text: textOf(content).trim() }))
  const asked = said.findLast(({ role }) => role === 'user')
  if (asked === undefined || asked.text === '') {
    return { problem: 'messages must have one of role user that is not blank' }
  }
  const before = said.slice(0, said.lastIndexOf(asked)).filter(({ text }) => text !== '')
  const conversation = before.map(({ role, text }) => `${role}: ${text}`).join('\n\n')
  const prompt =
    before.length === 0 ? asked.text : `${asked.text}\n\nSaid before:\n\n${conversation}`
  return fitsPrompt(prompt) ? { prompt } : { problem: `messages must in all have ${PROMPT_RULE}` }
}

/**
 * What a session says, piece by piece, and then what the sessions say that it escalates to. The last
 * piece says how it ended when that was not well. Ends early when nobody listens any more.
 */
export async function* sayings(
  db: Database,
  first: number,
  isHeard: () => boolean,
): AsyncGenerator<string> {
  for (let id: number | undefined = first; id !== undefined;) {
    let said = false
    for (let after = 0, ended = false; !ended && isHeard();) {
      // Before its lines are read: those of a session that has ended are all there.
      ended = (await findStatus(db, id)) !== 'running'
      for (;;) {
        const lines = await listLines(db, id, after, PAGE)
        for (const { kind, text } of lines) {
          const counts = kind === 'text' || kind === 'error'
          if (counts) yield `${text}\n`
          said ||= counts
        }
        after = lines.at(-1)?.seq ?? after
        if (lines.length < PAGE) break
      }
      if (!ended) await pause(LOOK_MS)
    }
    if (!isHeard()) return
    yield* lastWords(db, id, said)
    const [child] = await listChildren(db, id)
    id = child?.id
  }
}

/** The summary of a session that has said nothing else, and how it ended when that was not well. */
async function* lastWords(db: Database, id: number, said: boolean): AsyncGenerator<string> {
  const session = await findSession(db, id)
  if (session === undefined) return
  const { status, summary } = session
  const isWell = status === 'completed' || status === 'escalated'
  if (!said && summary !== null) yield `${summary}\n`
  const isSilent = !said && summary === null
  if (!isWell || isSilent) yield `Session ${id} ${status.replace('_', ' ')}.\n`
}

function textOf(content: ChatRequest['messages'][number]['content']): string {
  if (content === undefined || content === null) return ''
  return typeof content === 'string' ? content : content.map(({ text }) => text).join('\n')
}
