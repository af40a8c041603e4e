import * as Type from '../../../../kernel/schema.ts'
import { assistantQueries as q, type Assistant } from '../../../../db/ops/assistants/assistants.ts'
import { badRequest, Fault, notFound } from '../../../../kernel/fault.ts'
import { hashToken, type RandomBytes } from '../../../../kernel/tokens.ts'
import { field, withDefault } from '../../../../kernel/validate.ts'
import { makeChange, type ChangeTools } from '../../../audit.ts'

const NAME = /^[a-z0-9][a-z0-9_-]{0,63}$/
/** How many there may be. */
export const MAX_ASSISTANTS = 100
const WRONG_NAME =
  'the name must be 1 to 64 of a-z, 0-9, _ and -, and start with a letter or digit'

/** What the form of a new assistant sends. */
export const AssistantForm = Type.Object({
  name: field(Type.String(), 'must be given'),
  allow_start: withDefault(Type.Boolean(), false),
})

/**
 * Lets a person's own assistant call `/mcp/ops`. Its token is returned once: only its hash is
 * stored. Throws 400 for another form of name, and 409 if the name is taken.
 */
export async function addAssistant(
  tools: ChangeTools & { random: RandomBytes },
  { name, may_start }: Pick<Assistant, 'name' | 'may_start'>,
  now: Date,
): Promise<string> {
  if (!NAME.test(name)) throw badRequest(WRONG_NAME, 'name')
  const token = tools.random(32).toString('base64url')
  const row = { name, may_start, token_hash: hashToken(token), most: MAX_ASSISTANTS, now }
  const note = { service: 'ops', action: 'assistant add', subject: name } as const
  await makeChange(tools, note, async (tx) => {
    if ((await q.addAssistant(tx, row)) !== undefined) return
    const problem = `there is an assistant "${name}" already, or there are ${MAX_ASSISTANTS}`
    throw new Fault(409, 'CONFLICT', `${problem}; choose another name or revoke one first`, {
      field: 'name',
    })
  })
  return token
}

/** Revokes the token of an assistant at once. Throws 404 for an unknown name. */
export async function revokeAssistant(tools: ChangeTools, name: string): Promise<void> {
  const note = { service: 'ops', action: 'assistant revoke', subject: name } as const
  await makeChange(tools, note, async (tx) => {
    const removed = await q.removeAssistant(tx, { name })
    if (removed === undefined) throw notFound(`there is no assistant "${name}"`)
  })
}
