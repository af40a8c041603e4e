import type { Database } from '../db/client.ts'
import { listEndpoints } from '../db/hooks/endpoints.ts'
import type { RandomBytes } from '../kernel/token-hash.ts'
import {
  clientConfiguration,
  createEndpoint,
  endpointUrl,
  revokeEndpoint,
} from '../services/hooks/endpoints.ts'
import { parseAction } from './action-arguments.ts'
import { DONE, fail, table, UsageError, type Output } from './output.ts'

export const ENDPOINT_USAGE =
  'gatehouse endpoint add NAME [--allow replay] | list [--json] | revoke NAME'

/** What the command works on. */
export interface EndpointTools {
  readonly db: Database
  readonly random: RandomBytes
  /** Where clients reach the hooks service, for the configuration that is printed, when that is known. */
  readonly baseUrl: string | undefined
}

/**
 * `gatehouse endpoint …`: where programs reach the tools. A token that it makes is the last line of
 * stdout, alone; the client configuration on stderr has a place for it.
 */
export async function runEndpoint(
  args: readonly string[],
  { db, random, baseUrl }: EndpointTools,
  output: Output,
): Promise<number> {
  const { action, name, flags } = parseEndpoint(args)
  switch (action) {
    case 'list':
      return list(db, flags.json === true, output)
    case 'add': {
      const made = await createEndpoint(db, random, { name, may_replay: flags.allow === 'replay' })
      if ('code' in made) return fail(output, made.message)
      output.err(`${name} created. Client configuration, with the token below for TOKEN:`)
      output.err(clientConfiguration(endpointUrl(baseUrl ?? 'http://HOST', name), name, 'TOKEN'))
      if (baseUrl === undefined) output.err(NO_ADDRESS)
      output.out(made.token)
      return DONE
    }
    case 'revoke': {
      const refusal = await revokeEndpoint(db, name)
      if (refusal !== undefined) return fail(output, refusal.message)
      output.err(`${name} is revoked; its token no longer works`)
      return DONE
    }
    default:
      throw new UsageError(`Unknown action "${action}"`)
  }
}

const NO_ADDRESS =
  'HOST stands for where clients reach hooks: its address names no TCP port; HOOKS_BASE_URL does'

interface Parsed {
  readonly action: string
  readonly name: string
  readonly flags: { readonly allow?: string; readonly json?: boolean }
}

const ARGUMENTS = {
  command: 'endpoint',
  flags: { allow: { type: 'string' }, json: { type: 'boolean' } },
  takes: { add: ['allow'], list: ['json'], revoke: [] },
} as const

/** Reads the arguments; throws `UsageError` for those that are wrong. */
export function parseEndpoint(args: readonly string[]): Parsed {
  const parsed = parseAction(args, ARGUMENTS)
  const { allow } = parsed.flags
  if (allow !== undefined && allow !== 'replay')
    throw new UsageError('--allow takes replay and nothing else')
  return parsed
}

async function list(db: Database, json: boolean, output: Output): Promise<number> {
  const endpoints = await listEndpoints(db)
  if (json) {
    output.out(JSON.stringify(endpoints))
    return DONE
  }
  const rows = endpoints.map(({ name, may_replay, created_at, last_used_at }) => [
    name,
    may_replay ? 'read,replay' : 'read',
    created_at.toISOString(),
    last_used_at?.toISOString() ?? 'never',
  ])
  for (const line of table(['NAME', 'MAY', 'CREATED', 'LAST USED'], rows)) output.out(line)
  return DONE
}
