import { once } from 'node:events'
import { connect } from 'node:net'
import * as Type from '../../../../kernel/schema.ts'
import { codeOf } from '../../../../kernel/log.ts'
import { runCommand } from '../../../../kernel/processes/run.ts'
import { redactLine } from '../../redact.ts'
import {
  addressOf,
  defineCheck,
  failed,
  Host,
  passed,
  Port,
  unknown,
  type CheckContext,
  type Finding,
} from './check.ts'

const MAX_LINE = 200
/**
 * How programs say that they may open neither a raw nor a datagram socket for ICMP. EPERM: the
 * program itself has a capability that this process, such as one of the hardened unit, can't get.
 */
const DENIED = /not permitted|permission denied|are you root|\bEPERM\b/i
const REMEDY =
  'install iputils-ping, and let the group of Gatehouse send by net.ipv4.ping_group_range; ' +
  'or give the check a port'

/**
 * A host answers an ICMP echo. Node has no sockets for it, so the program `ping` sends it; where
 * there are no means, a connection to a port tells whether the host is there.
 */
export const pingCheck = defineCheck('ping', {
  takes: { host: Host, port: Type.Optional(Port) },
  level: 'critical',
  nameOf: ({ host }) => `ping ${host}`,
  peerOf: ({ host }) => host,
  async run({ host: given, port }, context) {
    const host = addressOf(given)
    const { code, output, problem, missing } = await ping(host, context)
    const obstacle = obstacleOf({ code, output, problem, missing })
    if (obstacle !== undefined) {
      if (port !== undefined) return knock(host, port, context.signal)
      return unknown(`${obstacle}; ${REMEDY}`)
    }
    if (problem !== null) return failed(problem)
    if (code === 0) return answered(output)
    if (code === 1) return failed('no answer to the ping')
    const [last = ''] = output.trim().split('\n').slice(-1)
    return failed(redactLine(last, MAX_LINE, context.redact) || `ping ended with ${code}`)
  },
})

type Pinged = Pick<
  Awaited<ReturnType<typeof runCommand>>,
  'code' | 'output' | 'problem' | 'missing'
>

/** Sends one packet. The program of iputils and that of BusyBox take these options. */
function ping(host: string, context: CheckContext): Promise<Pinged> {
  const seconds = String(Math.ceil(context.timeoutMs / 1_000))
  const argv = ['ping', '-n', '-c', '1', '-W', seconds, host]
  // Its words are read below.
  return runCommand(argv, { ...context, env: { LC_ALL: 'C' } })
}

/** Why no packet could be sent; undefined if one was sent. */
function obstacleOf({ code, output, problem, missing }: Pinged): string | undefined {
  if (missing !== null) return `ping can't be run: ${problem}`
  if (code === 0 || !DENIED.test(`${output}\n${problem}`)) return undefined
  return 'ping may not send ICMP here'
}

function answered(output: string): Finding {
  const [, digits] = /time[=<]([\d.]+) ?ms/.exec(output) ?? []
  if (digits === undefined) return passed('answers the ping')
  return { ...passed(`answers the ping in ${digits} ms`), ms: Number(digits) }
}

/** A refused connection is an answer of the host, too. */
async function knock(host: string, port: number, signal: AbortSignal): Promise<Finding> {
  const socket = connect({ host, port })
  try {
    await once(socket, 'connect', { signal })
    return passed(`takes connections on port ${port}; ping can't be used here`)
  } catch (error) {
    if (codeOf(error) !== 'ECONNREFUSED') throw error
    return passed(`refuses connections on port ${port}, so it is there; ping can't be used here`)
  } finally {
    socket.destroy()
  }
}
