import type { Database } from '../../db/client.ts'
import { addEndpoint, removeEndpoint, touchEndpoint } from '../../db/hooks/endpoints.ts'
import type { EndpointKey } from '../../db/hooks/rows.ts'
import { bearerToken } from '../../kernel/tokens.ts'
import { messageOf, type Log } from '../../kernel/log.ts'
import { hashToken, type RandomBytes } from '../../kernel/tokens.ts'
import type { Registry } from './registry.ts'
import { makeToken } from './tokens.ts'

/** What an operator asks for when making an endpoint of the tool protocol. */
export interface NewEndpoint {
  readonly name: string
  /** Whether programs may have events sent out again. */
  readonly may_replay: boolean
}

/** An endpoint that was made; `token` is shown this one time. */
export interface MadeEndpoint {
  readonly name: string
  readonly token: string
}

/** Why an endpoint was not made or revoked, with one line for the operator. */
export interface EndpointRefusal {
  readonly code: 'invalid_name' | 'taken' | 'not_found'
  readonly message: string
}

const NAME = /^[a-z0-9][a-z0-9_-]{0,63}$/

/** Makes an endpoint with a fresh token; only the token's hash is stored. */
export async function createEndpoint(
  db: Database,
  random: RandomBytes,
  { name, may_replay }: NewEndpoint,
): Promise<MadeEndpoint | EndpointRefusal> {
  if (!NAME.test(name)) {
    return {
      code: 'invalid_name',
      message: 'The name must be 1 to 64 of a-z, 0-9, _ and -, and start with a letter or digit.',
    }
  }
  const token = makeToken(random)
  if (await addEndpoint(db, { name, token_hash: hashToken(token), may_replay }))
    return { name, token }
  const message = `There is an endpoint "${name}" already; choose another name or revoke it first.`
  return { code: 'taken', message }
}

/** Revokes an endpoint: its token stops to work at once, and the name is free again. */
export async function revokeEndpoint(
  db: Database,
  name: string,
): Promise<EndpointRefusal | undefined> {
  if (await removeEndpoint(db, name)) return undefined
  const message = `There is no endpoint "${name}"; see the list of endpoints.`
  return { code: 'not_found', message }
}

/**
 * The endpoint that a request may use: `unauthorized` without a token that is known here,
 * `forbidden` with the token of another endpoint, whether the one asked for exists or not. Tokens
 * are found by their hash: its bytes tell nothing about a token, so the look-up's time may vary.
 */
export function authorize(
  registry: Registry,
  name: string,
  authorization: string | undefined,
): EndpointKey | 'unauthorized' | 'forbidden' {
  const token = bearerToken({ authorization })
  const endpoint = token === undefined ? undefined : registry.endpointOf(hashToken(token))
  if (endpoint === undefined) return 'unauthorized'
  return endpoint.name === name ? endpoint : 'forbidden'
}

const NOTED_MS = 60_000

/** Notes uses of endpoints, each at most once a minute, without making a request wait for it. */
export function createUseNotes(db: Database, log: Log): (name: string, at: Date) => void {
  const noted = new Map<string, number>()
  return (name, at) => {
    if (at.getTime() - (noted.get(name) ?? 0) < NOTED_MS) return
    noted.set(name, at.getTime())
    touchEndpoint(db, name, at).catch((error: unknown) =>
      log.warn('use of an endpoint not noted', { error: messageOf(error) }),
    )
  }
}

/** Where a client finds an endpoint. */
export function endpointUrl(baseUrl: string, name: string): string {
  return `${baseUrl}/mcp/${name}`
}

/** Configuration to paste into a client that reads `mcpServers`, as most do. */
export function clientConfiguration(url: string, name: string, token: string): string {
  const headers = { Authorization: `Bearer ${token}` }
  const mcpServers = { [`gatehouse-${name}`]: { type: 'http', url, headers } }
  return JSON.stringify({ mcpServers }, null, 2)
}
