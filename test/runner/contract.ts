import { writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { request } from '../helpers/http.ts'
import { listen } from '../helpers/listen.ts'
import { type Owner, temporaryFolder } from '../helpers/owner.ts'
import type { Exchange } from './exchanges.ts'
import { startPrism, violationsOf } from './prism.ts'

/** Says which exchange a request at the playback is. */
const NUMBER = 'x-exchange'
/** Belong to the connection that is gone. */
const HOP_BY_HOP = 'connection keep-alive transfer-encoding content-length date host expect'.split(
  ' ',
)
/** Enough to keep prism busy. */
const AT_ONCE = 8
const TAKES_BODY = ['POST', 'PUT']

/**
 * Sends calls that were really made through prism, which gets the answers that were really given, and
 * says in a line each what the document does not have: of an answer anything, of a call what was not
 * refused. So prism validates a whole test run without standing between the tests and the server.
 */
export async function contractFaults(t: Owner, document: string, exchanges: readonly Exchange[]) {
  const file = join(await temporaryFolder(t, 'contract'), 'openapi.yaml')
  writeFileSync(file, document)
  const prism = await startPrism(t, file, await playback(t, exchanges))
  const faults = new Set<string>()
  const queue = exchanges.entries()
  async function work() {
    for (const [at, exchange] of queue) {
      for (const fault of await faultsOf(prism.base, exchange, at)) faults.add(fault)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  return [...faults]
}

async function faultsOf(base: string, exchange: Exchange, at: number) {
  const { method, target, headers, body, status } = exchange
  const refused = status >= 400
  // Prism dies of such a path.
  if (!isDecodable(target)) return refused ? [] : [told(exchange, 'its path is none')]
  // It never answers where it can't read a body; what was refused may be anything, and GET has none.
  const bytes = refused || !TAKES_BODY.includes(method) ? '' : body
  const passed = await request(base + target, {
    method,
    headers: { ...without(headers), ...scheme(headers), [NUMBER]: String(at) },
    ...(bytes !== '' && { body: Buffer.from(bytes, 'base64') }),
    secretShown: true,
  })
  if (passed.headers[NUMBER] === undefined) return [told(exchange, `prism said ${passed.text}`)]
  return violationsOf(passed.headers['sl-violations'])
    .filter(({ location }) => location[0] === 'response' || !refused)
    .map(({ location, code, message }) =>
      told(exchange, `${location.join('.')} (${code}): ${message}`),
    )
}

function told({ method, target, status }: Exchange, what: string) {
  return `${method} ${target.slice(0, 80)} → ${status}: ${what}`
}

/** The name of the scheme has no case (RFC 9110 section 11.1), but prism knows only one. */
function scheme({ authorization }: Exchange['headers']) {
  if (typeof authorization !== 'string') return {}
  return { authorization: authorization.replace(/^bearer\b/i, 'Bearer') }
}

function isDecodable(target: string) {
  try {
    decodeURIComponent(target)
    return true
  } catch {
    return false
  }
}

/** A server that answers each numbered request as it was answered. */
async function playback(t: Owner, exchanges: readonly Exchange[]) {
  const server = createServer((incoming, response) => {
    const number = String(incoming.headers[NUMBER])
    const exchange = exchanges[Number(number)]
    incoming.resume()
    incoming.once('end', () => {
      const headers = without(exchange?.answerHeaders ?? {})
      response.writeHead(exchange?.status ?? 500, { ...headers, [NUMBER]: number })
      response.end(Buffer.from(exchange?.answer ?? '', 'base64'))
    })
  })
  return `http://127.0.0.1:${await listen(t, server)}`
}

function without(headers: Exchange['headers'] | IncomingHttpHeaders) {
  const kept: Record<string, string | string[]> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || HOP_BY_HOP.includes(name.toLowerCase())) continue
    kept[name] = typeof value === 'string' ? value : [...value]
  }
  return kept
}
