import * as Type from '../../../../kernel/schema.ts'
import { codeOf } from '../../../../kernel/log.ts'
import { parseJson } from '../../../../kernel/json.ts'
import { failed, unknown, type Finding } from './check.ts'
import { exchange, type CheckAnswer } from './exchange.ts'

/** A name or an id, as it stands in a path of the API. */
export const ContainerName = Type.String({
  pattern: '^[A-Za-z0-9][A-Za-z0-9_.-]{0,250}$',
  description: 'the name or the id of a container',
})

/** Where Docker and Podman listen. */
const SOCKETS = ['/var/run/docker.sock', '/run/podman/podman.sock']
const OBSTACLES: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  EACCES: 'permission denied',
}
const REMEDY = 'name a socket that Gatehouse may use (docs/checks.md, Containers)'

/**
 * Docker's API, which Podman speaks, too. Only GET is ever sent: who may send more is root on this
 * host.
 */
export interface ContainerApi {
  get(path: string, maxBytes: number): Promise<CheckAnswer>
}

/** The API behind the socket, or behind the first one that is there; else what is in the way. */
export async function openContainerApi(
  socket: string | undefined,
  signal: AbortSignal,
): Promise<ContainerApi | Finding> {
  const obstacles: string[] = []
  for (const socketPath of socket === undefined ? SOCKETS : [socket]) {
    try {
      return await apiAt(socketPath, signal)
    } catch (error) {
      const obstacle = OBSTACLES[codeOf(error) ?? '']
      if (obstacle === undefined) throw error
      obstacles.push(`${socketPath}: ${obstacle}`)
    }
  }
  return unknown(`${obstacles.join(', ')}; ${REMEDY}`)
}

/** Paths without a version are deprecated, and no single version is known to every server. */
async function apiAt(socketPath: string, signal: AbortSignal): Promise<ContainerApi> {
  const get = (path: string, maxBytes: number): Promise<CheckAnswer> =>
    exchange({ socketPath, path, signal, answerBytes: () => maxBytes })
  const { headers } = await get('/_ping', 0)
  const [version] = /^\d{1,3}\.\d{1,3}$/.exec(String(headers['api-version'])) ?? []
  const prefix = version === undefined ? '' : `/v${version}`
  return { get: (path, maxBytes) => get(`${prefix}${path}`, maxBytes) }
}

/** Reads the JSON of an answer. Another answer is a finding. */
export function jsonOf(path: string, { status, body }: CheckAnswer): { json: unknown } | Finding {
  const json = status === 200 ? parseJson(body.toString('utf8')) : undefined
  if (json !== undefined) return { json }
  const what = status === 200 ? 'without JSON that can be read' : `with ${status}`
  const answered = `GET ${path} was answered ${what}`
  return status >= 500 ? failed(answered) : unknown(`${answered}; ${REMEDY}`)
}

/**
 * The text of a log that is not from a terminal. It comes in frames of both pipes: eight bytes,
 * whose last four are the size, and as many bytes of output. The last frame may be cut.
 */
export function textOfFrames(bytes: Buffer): string {
  const parts: Buffer[] = []
  for (let at = 0; at + 8 <= bytes.length;) {
    const size = bytes.readUInt32BE(at + 4)
    parts.push(bytes.subarray(at + 8, at + 8 + size))
    at += 8 + size
  }
  return Buffer.concat(parts).toString('utf8')
}
