import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { ENGINE_FLAGS, ROOT } from '../helpers/program.ts'

/** Addresses of documentation (RFC 5737) that a network of a test's own has beside loopback. */
export const [HERE, STRANGER] = ['203.0.113.1', '203.0.113.2']

const SET_UP = `ip link set lo up && ip address add ${HERE}/32 dev lo && ip address add ${STRANGER}/32 dev lo && exec "$@"`

/** `program` of a server in a network namespace of its own: no packet to or from it leaves the kernel. */
export const IN_OWN_NETWORK: readonly string[] = [
  'unshare',
  '--net',
  'sh',
  '-c',
  SET_UP,
  'sh',
  process.execPath,
  ...ENGINE_FLAGS,
  'server.ts',
]

/** For `skip`: why there can be no such network here; false when there can. */
export function lacksOwnNetwork() {
  const able = spawnSync('unshare', ['--net', 'sh', '-c', SET_UP, 'sh', 'true']).status === 0
  return !able && 'a network namespace takes root and the program ip'
}

/** What `network-client.ts` does. */
export type NetworkCall = {
  host: string
  port: number
  /** The client's address. */
  from: string
  /** Bytes that it writes on each connection. */
  text: string
  /** So many connections are reset behind the bytes; without it one waits for its answer. */
  resets?: number
  /** So many connections are opened before, and stay open without a request until the answer. */
  idle?: number
}

/** Has a client call from within the network of a server; gives what was answered. */
export async function callInside(pid: number, call: NetworkCall): Promise<string> {
  const client = join(ROOT, 'test', 'deploy', 'network-client.ts')
  const enter = ['--net', '--target', `${pid}`, process.execPath, client, JSON.stringify(call)]
  const child = spawn('nsenter', enter, { stdio: ['ignore', 'pipe', 'inherit'] })
  let answer = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (answer += text))
  const [code]: (number | null)[] = await once(child, 'close')
  if (code !== 0) throw new Error(`the client in the server's network ended with ${code}`)
  return answer
}
