import { lookup } from 'node:dns/promises'
import { accessSync, constants, statSync } from 'node:fs'
import { once } from 'node:events'
import { createServer, type ListenOptions } from 'node:net'
import { dirname } from 'node:path'
import { codeOf, messageOf } from '../../../kernel/log.ts'
import { isLocal } from '../../../kernel/net/addresses.ts'
import { isDeadSocket, listenOptions, type Address } from '../../../kernel/net/listen.ts'
import {
  areKnown,
  placeOf,
  type ServiceName,
  type ConfigSource,
} from '../../frame/configuration.ts'
import { bindProblem, holderOf } from '../listen-problem.ts'
import { beyondLoopback } from '../listeners.ts'
import { fail, ok, type Finding, type Findings } from '../../frame/output.ts'

/** The kernel's limit for the path of a socket, in bytes. */
const MAX_PATH = 107

/** Whether each service can listen on its address. All stay bound until all are checked. */
export async function addressFindings(
  config: ConfigSource,
  services: readonly ServiceName[],
): Promise<Findings> {
  const known = services.filter((service) => {
    const { variable } = placeOf(service, config)
    return areKnown(config, [variable])
  })
  await using held = new AsyncDisposableStack()
  const findings: Finding[] = []
  for (const [at, service] of known.entries()) {
    findings.push(await addressFinding(config, service, known.slice(0, at), held))
  }
  return findings
}

async function addressFinding(
  config: ConfigSource,
  service: ServiceName,
  others: readonly ServiceName[],
  held: AsyncDisposableStack,
) {
  const { variable: what, address } = placeOf(service, config)
  const text = config.origins.get(what)?.text ?? ''
  const places = others.map((other) => placeOf(other, config))
  const twin = places.find((other) => isSame(address, other.address))?.variable
  if (twin !== undefined) {
    const remedy = 'give each service an address of its own'
    return fail(what, `${text} is also ${twin}: ${remedy}`)
  }
  if (address.kind === 'fd') return passedFinding(config, what, address.name)
  if (address.kind === 'unix') return socketFinding(what, address.path)
  try {
    const resolved = await lookup(address.host)
    const isOpen =
      config.current.GATEHOUSE_TRUSTED_PROXIES === undefined &&
      areKnown(config, ['GATEHOUSE_TRUSTED_PROXIES'])
    if (isOpen && !isLocal(resolved)) return fail(what, beyondLoopback(text).message)
    held.use(await listen(address))
    const state = address.port === 0 ? ', any free port' : ' is free'
    return ok(what, text + state)
  } catch (error) {
    if (codeOf(error) !== 'EADDRINUSE') return fail(what, bindProblem(text, error))
    return takenFinding(what, text, listenOptions(address, []))
  }
}

function isSame(one: Address, other: Address) {
  if (one.kind === 'tcp' && one.port === 0) return false
  return JSON.stringify(one) === JSON.stringify(other)
}

/** systemd passes its sockets only to the service, not to ExecStartPre. */
function passedFinding(config: ConfigSource, what: string, name: string) {
  const { inheritedSockets: passed } = config
  if (passed.includes(name)) return ok(what, `fd:${name} was passed`)
  if (passed.length === 0)
    return ok(what, `fd:${name}, which systemd passes to the service only: seen when it starts`)
  return fail(
    what,
    `no socket named "${name}" was passed, but ${passed.join(', ')}: ` +
      `set FileDescriptorName=${name} in the socket unit`,
  )
}

async function socketFinding(what: string, path: string) {
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
  return takenFinding(what, text, { path })
}

async function listen(address: Address) {
  // A client that connects meanwhile would keep it open.
  const server = createServer((socket) => socket.destroy())
  await once(server.listen(listenOptions(address, [])), 'listening')
  return server
}

async function takenFinding(what: string, text: string, place: ListenOptions) {
  const holder = await holderOf(place)
  const held = `${text} is held by`
  if (holder !== undefined) return ok(what, `${held} a running ${holder}`)
  return fail(
    what,
    `${held} another program (ss -ltnp): stop that or choose another; ` +
      "when it is systemd's socket unit, set fd:NAME",
  )
}
