import { memberAt } from '../../../../kernel/json.ts'
import { causeOf, messageOf } from '../../../../kernel/log.ts'
import { jsonOf, openContainerApi } from '../../watch/checks/container-api.ts'
import { readContainerLog } from '../../watch/checks/container-log.ts'
import type { ServiceLog } from '../../watch/inventory/reads.ts'
import { linesReply, SEARCHED_BYTES, SEARCHED_LINES } from './lines.ts'
import { refused, type ToolContext, type ToolResult } from './tool.ts'

const INSPECT_BYTES = 1024 * 1024
const CONTAINER_TIMEOUT_MS = 20_000
export const DEFAULT_LINES = 100

/** Which lines of a log are wanted. */
export interface Wanted {
  lines?: number
  minutes?: number
  contains?: string
}

/** The newest lines of the log of a container. */
export async function readContainer(
  { socket }: ServiceLog,
  container: string,
  { lines = DEFAULT_LINES, minutes, contains }: Wanted,
  { clock, redact, job }: ToolContext,
): Promise<ToolResult> {
  const signal = AbortSignal.any([job.signal, AbortSignal.timeout(CONTAINER_TIMEOUT_MS)])
  const since =
    minutes === undefined ? undefined : Math.floor(clock.now().getTime() / 1_000) - minutes * 60
  try {
    const api = await openContainerApi(socket, signal)
    if ('state' in api) return refused(api.message)
    const path = `/containers/${encodeURIComponent(container)}/json`
    const answer = await api.get(path, INSPECT_BYTES)
    if (answer.status === 404) return refused('There is no such container.')
    const read = jsonOf(path, answer)
    if ('state' in read) return refused(read.message)
    const isTerminal = memberAt(read.json, 'Config.Tty') === true
    const request = { since, timestamps: true, isTerminal, maxBytes: SEARCHED_BYTES }
    const first = contains === undefined ? lines : SEARCHED_LINES
    for (let tail = first; ; tail = Math.ceil(tail / 8)) {
      const log = await readContainerLog(api, container, { ...request, lines: tail }, redact)
      if ('status' in log) return refused(`Its log can't be read: the answer was ${log.status}.`)
      // What was cut off is the newest: it is there when fewer lines are asked for.
      if (log.isCut && tail > 1) continue
      const isCut = log.isCut || tail < first
      return linesReply({ lines: log.lines, contains, most: lines, isCut })
    }
  } catch (error) {
    return refused(`No answer: ${messageOf(causeOf(error))}`)
  }
}
