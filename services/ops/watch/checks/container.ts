import * as Type from '../../../../kernel/schema.ts'
import {
  memberAt,
  numberOf,
  objectsOf,
  stringOf,
  type JsonObject,
} from '../../../../kernel/json.ts'
import { messageOf } from '../../../../kernel/log.ts'
import { redactLine, type Redaction } from '../../redact.ts'
import { defineCheck, failed, passed, Path, type CheckContext, type Finding } from './check.ts'
import { ContainerName, jsonOf, openContainerApi, type ContainerApi } from './container-api.ts'
import { readContainerLog } from './container-log.ts'

const DEFAULT_LOG_LINES = 3
const LIST_BYTES = 4 * 1024 * 1024
const INSPECT_BYTES = 1024 * 1024
const LOG_BYTES = 64 * 1024
/** Characters of a line of a log, and of what a health check said. */
const MAX_LINE = 200
/** How many containers are named in a message. */
const MAX_NAMED = 10
/** A container in a restart loop is running most of the time; Podman has no other state for it. */
const JUST_MS = 10_000

/** A container runs and is healthy; without a name, none is unhealthy, restarting or failed. */
export const containerCheck = defineCheck('container', {
  takes: {
    container: Type.Optional(ContainerName),
    socket: Type.Optional(Path),
    /** Lines of its log in the message. */
    log_lines: Type.Optional(Type.Integer({ minimum: 0, maximum: 20 })),
  },
  level: 'critical',
  nameOf: ({ container }) => (container === undefined ? 'containers' : `container ${container}`),
  peerOf: ({ socket = 'container socket' }) => socket,
  async run({ container, socket, log_lines = DEFAULT_LOG_LINES }, context) {
    const api = await openContainerApi(socket, context.signal)
    if ('state' in api) return api
    if (container !== undefined) return checkContainer(api, container, log_lines, context)
    const found = await findBad(api)
    if ('state' in found) return found
    const [first, ...others] = found.bad
    if (first === undefined) return passed(`none of ${found.total} has failed`)
    if (others.length === 0) {
      const { state, message } = await checkContainer(api, first.id, log_lines, context)
      return failed(`${first.name} ${state === 'fail' ? message : first.what}`)
    }
    const named = found.bad.slice(0, MAX_NAMED).map(({ name, what }) => `${name} ${what}`)
    const more = found.bad.length - named.length
    return failed([...named, ...(more > 0 ? [`and ${more} more`] : [])].join(', '))
  },
})

/** A container that is not well, and what it does, to be read after its name. */
interface BadContainer {
  id: string
  name: string
  what: string
}

async function findBad(
  api: ContainerApi,
): Promise<{ bad: readonly BadContainer[]; total: number } | Finding> {
  const list = await listOf(api, '/containers/json?all=1')
  if ('state' in list) return list
  // The list itself says nothing about health before the versions 1.52 of Docker's API.
  const filter = encodeURIComponent(JSON.stringify({ health: ['unhealthy'] }))
  const unhealthy = await listOf(api, `/containers/json?all=1&filters=${filter}`)
  if ('state' in unhealthy) return unhealthy
  const ids = new Set(unhealthy.all.map(({ Id }) => Id))
  const bad = list.all.flatMap((container) => {
    const what = badStateOf(container, ids.has(container['Id']))
    const id = stringOf(container['Id']) ?? ''
    const name = stringOf(memberAt(container, 'Names.0'))?.replace(/^\//, '') ?? id.slice(0, 12)
    return what === undefined ? [] : [{ id, name, what }]
  })
  return { bad, total: list.all.length }
}

async function listOf(
  api: ContainerApi,
  path: string,
): Promise<{ all: readonly JsonObject[] } | Finding> {
  const read = jsonOf(path, await api.get(path, LIST_BYTES))
  return 'state' in read ? read : { all: objectsOf(read.json) }
}

/** Of a container in the list, whose exit code is in a text such as `Exited (3) 2 hours ago`. */
function badStateOf(container: JsonObject, isUnhealthy: boolean): string | undefined {
  const state = stringOf(container['State']) ?? ''
  const [, code] = /^Exited \((\d+)\)/.exec(stringOf(container['Status']) ?? '') ?? []
  if (isUnhealthy) return 'is unhealthy'
  if (state === 'restarting' || state === 'dead') return `is ${state}`
  return code === undefined || code === '0' ? undefined : `has exited with ${code}`
}

async function checkContainer(
  api: ContainerApi,
  name: string,
  logLines: number,
  { redact }: CheckContext,
): Promise<Finding> {
  const path = `/containers/${encodeURIComponent(name)}/json`
  const answer = await api.get(path, INSPECT_BYTES)
  if (answer.status === 404) return failed('there is no such container')
  const read = jsonOf(path, answer)
  if ('state' in read) return read
  const { json } = read
  const { isGood, message } = conditionOf(json, redact)
  if (isGood) return passed(message)
  const isTerminal = memberAt(json, 'Config.Tty') === true
  const log = await logOf(api, name, { lines: logLines, isTerminal, redact })
  return failed(log === '' ? message : `${message}; its log ends with: ${log}`)
}

/** What a container does, by its details. */
function conditionOf(json: unknown, redact: Redaction): { isGood: boolean; message: string } {
  const textAt = (path: string): string => stringOf(memberAt(json, path)) ?? ''
  const status = textAt('State.Status')
  const health = textAt('State.Health.Status')
  const restarts = numberOf(memberAt(json, 'RestartCount')) ?? 0
  const bad = (message: string): { isGood: boolean; message: string } => {
    return { isGood: false, message }
  }
  if (status !== 'running') return bad(describeStop(json, status, redact))
  if (health === 'unhealthy') {
    const checks = objectsOf(memberAt(json, 'State.Health.Log'))
    const last = redactLine(stringOf(checks.at(-1)?.['Output']) ?? '', MAX_LINE, redact)
    return bad(last === '' ? 'is unhealthy' : `is unhealthy: ${last}`)
  }
  const age = Date.now() - Date.parse(textAt('State.StartedAt'))
  if (restarts > 0 && age < JUST_MS) {
    const seconds = Math.max(0, Math.round(age / 1_000))
    return bad(`has just restarted, ${seconds} s ago; restarts so far: ${restarts}`)
  }
  const known = health === '' || health === 'none' ? '' : `, its health is ${health}`
  return { isGood: true, message: `is running${known}` }
}

function describeStop(json: unknown, status: string, redact: Redaction): string {
  const code = numberOf(memberAt(json, 'State.ExitCode')) ?? 'an unknown code'
  const error = redactLine(stringOf(memberAt(json, 'State.Error')) ?? '', MAX_LINE, redact)
  const isKilled = memberAt(json, 'State.OOMKilled') === true
  const why = [isKilled && 'it was out of memory', error].filter(Boolean).join(', ')
  const because = why === '' ? '' : `: ${why}`
  if (status === 'restarting') return `is restarting after it has ended with ${code}${because}`
  // Podman says stopped of some that Docker calls exited.
  if (status === 'exited' || status === 'stopped') return `has exited with ${code}${because}`
  if (status === 'created' || status === 'configured') return `was never started${because}`
  return `is ${redactLine(status, MAX_LINE, redact) || 'in an unknown state'}${because}`
}

/** The last lines of a log in one; drivers of logs that can't be read say so. */
async function logOf(
  api: ContainerApi,
  name: string,
  { lines, isTerminal, redact }: { lines: number; isTerminal: boolean; redact: Redaction },
): Promise<string> {
  if (lines === 0) return ''
  let log
  try {
    log = await readContainerLog(api, name, { lines, isTerminal, maxBytes: LOG_BYTES }, redact)
  } catch (error) {
    return `(it can't be read: ${messageOf(error)})`
  }
  if ('status' in log) return `(it can't be read: GET was answered with ${log.status})`
  if (log.isCut && log.lines.length === 0) return '(a line that is too long)'
  return log.lines
    .map((line) => line.slice(0, MAX_LINE))
    .join(' | ')
    .toWellFormed()
}
