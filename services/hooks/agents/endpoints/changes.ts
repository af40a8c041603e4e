import * as Type from '../../../../kernel/schema.ts'
import { endpointQueries as q, type EndpointKey } from '../../../../db/hooks/agents/endpoints.ts'
import { replayQueries } from '../../../../db/hooks/send/replays.ts'
import { Fault, notFound } from '../../../../kernel/fault.ts'
import { hashToken, type RandomBytes } from '../../../../kernel/tokens.ts'
import { field, withDefault } from '../../../../kernel/validate.ts'
import { makeChange, type ChangeTools } from '../../../audit.ts'
import { makeToken } from '../../receive/schemes/keys.ts'
import { isGenericName } from '../../receive/schemes/provider-names.ts'

/** What the form of a new endpoint sends. */
export const EndpointForm = Type.Object({
  name: field(Type.String(), 'must be given'),
  allow_replay: withDefault(Type.Boolean(), false),
})

/**
 * Creates an endpoint of the tool protocol. Its token is returned once: only its hash is stored.
 */
export async function createEndpoint(
  tools: ChangeTools & { random: RandomBytes },
  { name, may_replay }: Pick<EndpointKey, 'name' | 'may_replay'>,
) {
  const field = { field: 'name' }
  if (!isGenericName(name)) {
    const message =
      'The name must be 1 to 64 of a-z, 0-9, _ and -, and start with a letter or digit.'
    throw new Fault(422, 'INVALID_NAME', message, field)
  }
  const token = makeToken(tools.random)
  const key = { name, token_hash: hashToken(token), may_replay }
  const note = { service: 'hooks', action: 'endpoint add', subject: name } as const
  await makeChange(tools, note, async (tx) => {
    if ((await q.addEndpoint(tx, key)) !== undefined) return
    const problem = `There is an endpoint "${name}" already`
    throw new Fault(409, 'TAKEN', `${problem}; choose another name or revoke it first.`, field)
  })
  return { name, token }
}

/**
 * Revokes an endpoint: its token stops working at once, with the replay jobs that it has begun, and
 * the name is free again.
 */
export async function revokeEndpoint(tools: ChangeTools, name: string): Promise<void> {
  const note = { service: 'hooks', action: 'endpoint revoke', subject: name } as const
  await makeChange(tools, note, async (tx) => {
    const removed = await q.removeEndpoint(tx, { name })
    if (removed === undefined) {
      throw notFound(`There is no endpoint "${name}"; see the list of endpoints.`)
    }
    const { token_hash } = removed
    await replayQueries.cancelReplayJobs(tx, { destination: null, token_hash })
  })
}
