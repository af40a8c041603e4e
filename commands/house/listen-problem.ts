import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { ListenOptions } from 'node:net'
import { text } from 'node:stream/consumers'
import { http } from '../../kernel/http/node-http.ts'
import { parseObject, stringOf } from '../../kernel/json.ts'
import { codeOf, messageOf } from '../../kernel/log.ts'

/** Why no server can listen on the address. */
export function bindProblem(text: string, error: unknown) {
  const code = codeOf(error)
  if (code === 'EACCES')
    return `${text} is not allowed: take a port from 1024, or have systemd listen (fd:NAME)`
  if (code === 'EADDRNOTAVAIL')
    return `this host has no address ${text}: see ip address, or listen on 127.0.0.1`
  return `${text} can't be listened on: ${messageOf(error)}`
}

/** Why a service can't listen on its address, and what to do; `flag` is that of its variable. */
export async function listenProblem(
  { variable, flag, address }: { variable: string; flag: string; address: string },
  place: ListenOptions,
  error: unknown,
): Promise<string> {
  if (codeOf(error) !== 'EADDRINUSE') return `${variable}: ${bindProblem(address, error)}`
  const holder = await holderOf(place)
  const other = `set ${variable} (--${flag}) to another address`
  return holder === undefined
    ? `${variable}: another program listens on ${address} (ss -ltnp names it): stop it, or ${other}`
    : `${variable}: a running ${holder} listens on ${address}: stop it, or ${other}`
}

const ANSWER_MS = 1_000

/**
 * The Gatehouse that listens on an address, with its version if known; undefined for other
 * programs.
 */
export async function holderOf({ host, port, path: socketPath }: ListenOptions) {
  const outgoing = http.request({
    // All addresses, such as 0.0.0.0, lead to this host.
    host,
    port,
    socketPath,
    path: '/healthz',
    headers: { host: 'localhost', connection: 'close' },
    agent: false,
    signal: AbortSignal.timeout(ANSWER_MS),
  })
  try {
    const [response] = (await once(outgoing.end(), 'response')) as [IncomingMessage]
    const requestId = String(response.headers['x-request-id'])
    if (!/^\w{1,6}-\w+$/.test(requestId)) return undefined
    // Without its database Gatehouse replies with an error and no version.
    const version = stringOf(parseObject(await text(response))?.['version']) ?? ''
    return `gatehouse ${version}`.trim()
  } catch {
    return undefined
  } finally {
    outgoing.on('error', () => undefined).destroy()
  }
}
