import type { IncomingMessage, RequestOptions } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { http } from '../../kernel/http/node-http.ts'
import type { Static, TSchema } from '../../kernel/schema.ts'
import { Fault } from '../../kernel/fault.ts'
import { codeOf } from '../../kernel/log.ts'
import { parseJson, parseObject, stringOf } from '../../kernel/json.ts'
import { readStart } from '../../kernel/net/read-start.ts'
import { trimEnd } from '../../kernel/text.ts'
import { fits } from '../../kernel/validate.ts'
import { cleanText } from '../../services/hooks/receive/deliveries/fields.ts'
import { anyText } from '../../kernel/variables.ts'
import { secretFlag, UsageError, urlFlag } from './command.ts'
import { listeningUrl, placeOf, type ConfigSource } from './configuration.ts'

const FROM_FORM = 'the server, unix:/path for its socket, the one at HOOKS_ADDR unless given'
export const FROM = urlFlag('URL', FROM_FORM, anyText(FROM_FORM))

/** The flags of a command that calls the API of a running hooks service. */
export const CLIENT_FLAGS = {
  from: FROM,
  token: secretFlag('the token of an endpoint, where the server asks for one'),
}

/** The longest silence of the server; a stream brings something every 15 s. */
const SILENCE_MS = 60_000
/** Bytes of an answer, unless its call says another. */
const MAX_ANSWER = 16 * 1024 * 1024
/** Bytes of a refusal that are read. */
const MAX_REFUSAL = 4_096

interface Asked {
  method?: 'GET' | 'POST' | 'DELETE'
  body?: unknown
  headers?: Readonly<Record<string, string>>
  signal?: AbortSignal
  /** The most that `json` reads. */
  maxBytes?: number
}

/** The API of a running hooks service. */
export type ApiClient = ReturnType<typeof apiClient>

/** What names the server and the token of a call. */
interface ClientFlags {
  from: string | undefined
  token: string | undefined
}

/** Calls the API. Every refusal is thrown, as a Fault of its status. */
export function apiClient(flags: ClientFlags, config: ConfigSource) {
  const from = serverOf(flags.from, config)
  const usual = flags.token === undefined ? {} : { authorization: `Bearer ${flags.token}` }

  /** Opens the answer of a call that is not refused. */
  async function open(path: string, asked: Asked = {}): Promise<IncomingMessage> {
    const { method = 'GET', body, headers, signal } = asked
    const sent = body === undefined ? undefined : JSON.stringify(body)
    const options: RequestOptions = {
      method,
      agent: false,
      timeout: SILENCE_MS,
      headers: {
        ...usual,
        ...headers,
        ...(sent !== undefined && { 'content-type': 'application/json' }),
      },
      ...(signal && { signal }),
    }
    const response = await send(from, path, options, sent)
    const { statusCode: status = 0 } = response
    if (status === 200) return response
    throw await refusalOf(status, response)
  }

  return {
    open,
    /** The value of an answer, which must fit the schema: another program may answer there. */
    async json<S extends TSchema>(schema: S, path: string, asked?: Asked): Promise<Static<S>> {
      const bytes = await readAtMost(await open(path, asked), asked?.maxBytes ?? MAX_ANSWER)
      const value = parseJson(bytes.toString('utf8'))
      if (fits(schema, value)) return value
      throw new Error(`what answers at ${from.href} is not the hooks service of Gatehouse`)
    },
  }
}

/** The whole of an answer; another program may send without end. */
async function readAtMost(response: AsyncIterable<Buffer>, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of response) {
    size += chunk.length
    if (size > limit) throw new Error(`the answer is over ${limit >> 20} MiB`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** The server that `--from` names, else the one that this configuration is for. */
export function serverOf(from: string | undefined, config: ConfigSource): URL {
  if (from !== undefined) return readFrom(from)
  const { address } = placeOf('hooks', config)
  if (address.kind === 'unix') return readFrom(`unix:${address.path}`)
  const url = listeningUrl('hooks', config)
  if (url === undefined) throw new Error('HOOKS_ADDR names no address to call; give --from')
  return new URL(url)
}

/** Checks the flag `--from` before anything is opened. */
export function checkFrom({ flags: { from } }: { flags: Pick<ClientFlags, 'from'> }): void {
  if (from !== undefined) readFrom(from)
}

/** The server's address. Of a socket's path only what a URL leaves unchanged and `ws` accepts. */
function readFrom(text: string): URL {
  const from = URL.canParse(text) ? new URL(text) : undefined
  if (from !== undefined && /^https?:$/.test(from.protocol)) return from
  if (from?.protocol !== 'unix:') {
    throw new UsageError('--from must be an http:// or https:// URL, or unix:/path')
  }
  const isPlain = /^unix:\/[^/:][^:]*$/.test(text)
  if (!isPlain || `unix:${from.pathname}` !== text) {
    throw new UsageError('--from unix:/path takes no spaces, colons or special characters')
  }
  return from
}

function send(from: URL, path: string, options: RequestOptions, body: string | undefined) {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const outgoing = requestTo(from, path, options)
  outgoing.on('response', resolve)
  outgoing.on('error', (error) => reject(unreachable(from, error)))
  outgoing.on('timeout', () => {
    outgoing.destroy(new Error(`the server was silent for ${SILENCE_MS / 1_000} s`))
  })
  outgoing.end(body)
  return promise
}

/** Errors of a connection that was not made: nothing listens there, or there is no such host. */
const NOT_CONNECTED = /^(ECONNREFUSED|ENOENT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH)$/

function unreachable({ href }: URL, error: Error): Error {
  const [code] = [error, ...causesOf(error)].flatMap((one) => codeOf(one) ?? [])
  if (!NOT_CONNECTED.test(code ?? '')) return error
  const ways = 'start it with gatehouse serve, or name a running one by --from'
  const text = `no server answers at ${href.replace(/\/$/, '')} (${code}): ${ways}`
  return new Error(text, { cause: error })
}

/** A name with several addresses has an error for each. */
function causesOf(error: Error): readonly unknown[] {
  return error instanceof AggregateError ? error.errors : []
}

function requestTo(from: URL, path: string, options: RequestOptions) {
  if (from.protocol === 'unix:') {
    return http.request({ ...options, socketPath: from.pathname, path })
  }
  const base = new URL(from)
  base.search = ''
  base.hash = ''
  const request = from.protocol === 'https:' ? httpsRequest : http.request
  return request(new URL(trimEnd(base.href, /\//) + path), options)
}

async function refusalOf(status: number, response: IncomingMessage): Promise<Fault> {
  const start = await new Promise<Buffer>((done) => readStart(response, MAX_REFUSAL, done))
  const detail = cleanText(stringOf(parseObject(start.toString('utf8'))?.['detail']) ?? '')
  const text = detail ?? (status < 400 ? 'a page to sign in is in front of it; see --token' : '')
  return new Fault(status, 'REFUSED', `the server answers ${status}: ${text}`.replace(/: $/, ''))
}
