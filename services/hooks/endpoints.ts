import type { Database } from '../../db/client.ts'
import { endpointQueries as q, type EndpointKey } from '../../db/hooks/endpoints.ts'
import { Fault, forbidden, notFound } from '../../kernel/fault.ts'
import { bearerToken, hashToken, type RandomBytes } from '../../kernel/tokens.ts'
import { messageOf, type Log } from '../../kernel/log.ts'
import type { Registry } from './registry.ts'
import { makeToken } from './secrets.ts'

const NAME = /^[a-z0-9][a-z0-9_-]{0,63}$/

/**
 * Creates an endpoint of the tool protocol. Its token is returned once: only its hash is stored.
 */
export async function createEndpoint(
  db: Database,
  random: RandomBytes,
  { name, may_replay }: Pick<EndpointKey, 'name' | 'may_replay'>,
): Promise<{ readonly name: string; readonly token: string }> {
  if (!NAME.test(name)) {
    const message =
      'The name must be 1 to 64 of a-z, 0-9, _ and -, and start with a letter or digit.'
    throw new Fault(422, 'INVALID_NAME', message, { field: 'name' })
  }
  const token = makeToken(random)
  const key = { name, token_hash: hashToken(token), may_replay }
  if ((await q.addEndpoint(db, key)) !== undefined) return { name, token }
  const message = `There is an endpoint "${name}" already; choose another name or revoke it first.`
  throw new Fault(409, 'TAKEN', message, { field: 'name' })
}

/** Revokes an endpoint: its token stops working at once, and the name is free again. */
export async function revokeEndpoint(db: Database, name: string): Promise<void> {
  if ((await q.removeEndpoint(db, { name })) !== undefined) return
  throw notFound(`There is no endpoint "${name}"; see the list of endpoints.`)
}

/**
 * The endpoint that a request may use. Throws 401 without a known token, and 403 with the token of
 * another endpoint, whether this one exists or not. Tokens are found by hash: the time of a look-up
 * tells nothing about a token.
 */
export function authorize(
  registry: Registry,
  name: string,
  authorization: string | undefined,
): EndpointKey {
  const token = bearerToken({ authorization })
  const endpoint = token === undefined ? undefined : registry.endpointOf(hashToken(token))
  if (endpoint?.name === name) return endpoint
  if (endpoint !== undefined) throw forbidden('This token does not belong to this endpoint.')
  const invalid = authorization === undefined ? '' : ', error="invalid_token"'
  const headers = { 'www-authenticate': `Bearer realm="gatehouse"${invalid}` }
  const message = 'The token is missing or wrong; send it as Authorization: Bearer.'
  throw new Fault(401, 'UNAUTHORIZED', message, { headers })
}

const RECORD_MS = 60_000

/** Records when an endpoint was used, at most once a minute; requests don't wait for it. */
export function createUseRecorder(db: Database, log: Log): (name: string, at: Date) => void {
  const recorded = new Map<string, number>()
  return (name, at) => {
    if (at.getTime() - (recorded.get(name) ?? 0) < RECORD_MS) return
    recorded.set(name, at.getTime())
    q.touchEndpoint(db, { name, now: at }).catch((error: unknown) =>
      log.warn('use of an endpoint not noted', { error: messageOf(error) }),
    )
  }
}

/** The URL of an endpoint. */
export function endpointUrl(baseUrl: string, name: string): string {
  return `${baseUrl}/mcp/${name}`
}

/** JSON for clients that read `mcpServers`, as most do. */
export function clientConfiguration(url: string, name: string, token: string): string {
  const headers = { Authorization: `Bearer ${token}` }
  const mcpServers = { [`gatehouse-${name}`]: { type: 'http', url, headers } }
  return JSON.stringify({ mcpServers }, null, 2)
}
