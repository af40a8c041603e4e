import { lookup } from 'node:dns/promises'
import { accessSync, constants, statSync } from 'node:fs'
import { request } from 'node:http'
import { createServer, type Server, type ListenOptions } from 'node:net'
import { dirname } from 'node:path'
import { text } from 'node:stream/consumers'
import { parseObject, stringOf } from '../../kernel/json.ts'
import { codeOf, messageOf } from '../../kernel/log.ts'
import { isDeadSocket, isLocal, listenOptions, type Address } from '../../kernel/net/addresses.ts'
import { placeOf, type ServiceName, type ConfigSource } from '../configuration.ts'
import { beyondLoopback } from '../listeners.ts'
import { fail, ok, type Finding } from '../output.ts'

/** The kernel's limit for the path of a socket, in bytes. */
const MAX_PATH = 107

/** Whether each service can listen on its address. All stay bound until all are checked. */
export async function addressFindings(
  config: ConfigSource,
  services: readonly ServiceName[],
): Promise<readonly Finding[]> {
  const known = services.filter((service) => isKnown(config, placeOf(service, config).variable))
  const held: Server[] = []
  try {
    const findings: Finding[] = []
    for (const service of known) {
      const others = known.slice(0, known.indexOf(service))
      findings.push(await addressFinding(config, service, others, held))
    }
    return findings
  } finally {
    for (const server of held) server.close()
  }
}

function isKnown({ problems }: ConfigSource, name: string): boolean {
  return !problems.some(({ variables }) => variables.some((one) => one === name))
}

async function addressFinding(
  config: ConfigSource,
  service: ServiceName,
  others: readonly ServiceName[],
  held: Server[],
): Promise<Finding> {
  const { variable: what, address } = placeOf(service, config)
  const text = config.origins.get(what)?.text ?? ''
  const places = others.map((other) => placeOf(other, config))
  const twin = places.find((other) => isSame(address, other.address))?.variable
  if (twin !== undefined)
    return fail(what, `${text} is also ${twin}: give each service an address of its own`)
  if (address.kind === 'fd') return passedFinding(config, what, address.name)
  if (address.kind === 'unix') return socketFinding(what, address.path)
  try {
    const { address: resolved } = await lookup(address.host)
    const guarded = config.current.GATEHOUSE_TRUSTED_PROXIES !== undefined
    const unsure = !isKnown(config, 'GATEHOUSE_TRUSTED_PROXIES')
    if (!guarded && !unsure && !isLocal({ address: resolved }))
      return fail(what, beyondLoopback(service).message.replace(`${what} is`, `${text} is`))
    held.push(await listen(address))
    return ok(what, address.port === 0 ? `${text}, any free port` : `${text} is free`)
  } catch (error) {
    if (codeOf(error) !== 'EADDRINUSE') return fail(what, bindProblem(text, error))
    return takenFinding(what, text, await holderOf(listenOptions(address, [])))
  }
}

function isSame(one: Address, other: Address): boolean {
  if (one.kind === 'tcp' && one.port === 0) return false
  return JSON.stringify(one) === JSON.stringify(other)
}

/** systemd passes its sockets only to the service, not to ExecStartPre. */
function passedFinding(config: ConfigSource, what: string, name: string): Finding {
  const { inheritedSockets: passed } = config
  if (passed.includes(name)) return ok(what, `fd:${name} was passed`)
  if (passed.length === 0)
    return ok(what, `fd:${name}, which systemd passes to the service only: seen when it starts`)
  return fail(
    what,
    `no socket named "${name}" was passed, but ${passed.join(', ')}: set FileDescriptorName=${name} in the socket unit`,
  )
}

async function socketFinding(what: string, path: string): Promise<Finding> {
  const text = `unix:${path}`
  if (Buffer.byteLength(path) > MAX_PATH)
    return fail(what, `${text} is longer than ${MAX_PATH} bytes: choose a shorter path`)
  try {
    accessSync(dirname(path), constants.W_OK | constants.X_OK)
  } catch (error) {
    return fail(
      what,
      `${text} can't be made (${messageOf(error)}): make its folder, writable for this user`,
    )
  }
  const there = statSync(path, { throwIfNoEntry: false })
  if (there === undefined) return ok(what, `${text} is free`)
  if (!there.isSocket())
    return fail(what, `${path} is no socket: remove it, or choose another path`)
  if (await isDeadSocket(path)) return ok(what, `${text} is free (a server left it)`)
  return takenFinding(what, text, await holderOf({ path }))
}

function listen(address: Address): Promise<Server> {
  // A client that connects meanwhile would keep it open.
  const server = createServer((socket) => socket.destroy())
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(listenOptions(address, []), () => resolve(server))
  })
}

/** Why no server can listen on the address. */
function bindProblem(text: string, error: unknown): string {
  const code = codeOf(error)
  if (code === 'EACCES')
    return `${text} is not allowed: take a port from 1024, or have systemd listen (fd:NAME)`
  if (code === 'EADDRNOTAVAIL')
    return `this host has no address ${text}: see ip address, or listen on 127.0.0.1`
  return `${text} can't be listened on: ${messageOf(error)}`
}

function takenFinding(what: string, text: string, holder: string | undefined): Finding {
  if (holder !== undefined) return ok(what, `${text} is held by a running ${holder}`)
  return fail(
    what,
    `${text} is held by another program (ss -ltnp): stop that or choose another; when it is systemd's socket unit, set fd:NAME`,
  )
}

const ANSWER_MS = 1_000

/**
 * The Gatehouse that listens on an address, with its version if known; undefined for other
 * programs.
 */
async function holderOf(where: ListenOptions): Promise<string | undefined> {
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
          // Without its database Gatehouse replies with an error and no version.
          (body) =>
            resolve(
              ours
                ? `gatehouse ${stringOf(parseObject(body)?.['version']) ?? ''}`.trim()
                : undefined,
            ),
          () => resolve(undefined),
        )
      },
    )
    outgoing.on('error', () => resolve(undefined))
    outgoing.end()
  })
}

/** The address by which a listener on all addresses is reached. */
function reachable(host = ''): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  return host === '::' ? '::1' : host
}
