import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { COMMANDS_SUFFIX } from '../helpers/cli.ts'

/** A logged request, as far as it is read here. */
type Logged = {
  request_id: string
  service: string
  method?: string
  route: string
  status: number
}

const ANSWER = /^--- [A-Z]+ \d{3}$/
const ID = /^x-request-id: (.+)$/i
const CODE = /"code":"([A-Za-z_]+)"/

/**
 * What a run has reached, from what the product logged and answered: each `SERVICE METHOD ROUTE STATUS CODE`
 * (`-` where the answer has no code), and each `COMMAND EXIT-CODE`. Sorted, without repeats.
 */
export function reachedIn(folder: string) {
  const names = readdirSync(folder)
  const texts = (suffix: string) =>
    names
      .filter((name) => name.endsWith(suffix))
      .map((name) => readFileSync(join(folder, name), 'utf8'))
  const codes = new Map(texts('.http').flatMap(codesOf))
  const requests = texts('.log')
    .flatMap(requestsOf)
    .map(
      ({ request_id, service, method = '-', route, status }) =>
        `${service} ${method} ${route} ${status} ${codes.get(request_id) ?? '-'}`,
    )
  const commands = texts(COMMANDS_SUFFIX).flatMap((text) => text.trim().split('\n'))
  return [...new Set([...requests, ...commands])].sort()
}

function requestsOf(text: string) {
  return text
    .split('\n')
    .filter((line) => line.startsWith('{') && line.includes('"route"'))
    .flatMap((line) => {
      try {
        const logged: Logged = JSON.parse(line)
        return logged.request_id === undefined ? [] : [logged]
      } catch {
        // A killed process may leave half a line.
        return []
      }
    })
}

/** The codes of refusals by request id. */
function codesOf(text: string) {
  const found: [string, string][] = []
  let id: string | undefined
  for (const line of text.split('\n')) {
    if (ANSWER.test(line)) id = undefined
    id ??= ID.exec(line)?.[1]
    const code = CODE.exec(line)?.[1]
    if (id === undefined || code === undefined) continue
    found.push([id, code])
    id = undefined
  }
  return found
}
