import { request } from 'node:http'
import type { ListenOptions } from 'node:net'
import { text } from 'node:stream/consumers'

const ANSWER_MS = 1_000

/** Who listens on an address that is taken: a Gatehouse (its version, if it says so), or somebody else. */
export async function holderOf(where: ListenOptions): Promise<string | undefined> {
  const { host, port, path } = where
  const at = path === undefined ? { host: reachable(host), port } : { socketPath: path }
  return new Promise((resolve) => {
    const outgoing = request(
      {
        ...at,
        path: '/healthz',
        headers: { host: 'localhost', connection: 'close' },
        agent: false,
        signal: AbortSignal.timeout(ANSWER_MS),
      },
      (response) => {
        const ours = /^\w{1,6}-\w+$/.test(String(response.headers['x-request-id']))
        text(response).then(
          (body) => resolve(ours ? `gatehouse ${versionIn(body)}`.trim() : undefined),
          () => resolve(undefined),
        )
      },
    )
    outgoing.on('error', () => resolve(undefined))
    outgoing.end()
  })
}

/** An address that stands for all of the host's own is reached by the loopback. */
function reachable(host = ''): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  return host === '::' ? '::1' : host
}

function versionIn(body: string): string {
  try {
    const { version } = JSON.parse(body) as { version?: unknown }
    return typeof version === 'string' ? version : ''
  } catch {
    // A Gatehouse without its database answers with a problem.
    return ''
  }
}
