import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { http } from '../../../../kernel/http/node-http.ts'
import { parseObject } from '../../../../kernel/json.ts'
import { splitLines } from '../../../../kernel/lines.ts'
import { causeOf, messageOf } from '../../../../kernel/log.ts'
import { readText } from '../../../../kernel/text.ts'
import { pause } from '../../../../kernel/time.ts'
import type { RandomBytes } from '../../../../kernel/tokens.ts'
import { meaningOf, type Meaning } from '../quirks/endpoint-errors.ts'
import { inWords } from '../quirks/tool-text.ts'
import { redactCut, redactLine, type Redaction } from '../../redact.ts'
import {
  BadReply,
  createReply,
  errorText,
  ForeignReply,
  promptTokens,
  usageOf,
  type Message,
  type Reply,
  type Usage,
} from './model-reply.ts'

/** An OpenAI-compatible endpoint: a base URL that ends in /v1, and its key. */
export interface Endpoint {
  url: string
  key: string | undefined
}

/** What an endpoint may not take, and is then asked without. */
export type Untaken = Set<'tools' | 'stream_options'>

interface ChatRequest {
  model: string
  messages: readonly Message[]
  /** As the protocol describes functions. */
  tools?: readonly object[]
  /** Those that an endpoint without tools gets described in words. */
  toolsInWords?: readonly object[]
  /** Marks data where tools are described in words. */
  random?: RandomBytes
}

export interface ChatOptions {
  signal: AbortSignal
  /** An endpoint's error messages may quote secrets. */
  redact: Redaction
  /** What this endpoint did not take before; whatever else it refuses is added. */
  untaken?: Untaken
  /** Called when the endpoint refuses something and is asked without it from then on. */
  refuses?: (part: 'tools' | 'stream_options', problem: string) => void
  /** How often the request is tried. */
  attempts?: number
  /** Milliseconds that are left. No pause begins that would last longer. */
  left?: () => number
  /** Milliseconds for which a model that is being loaded is waited for. */
  loadingMs?: number
  /** Called with a line for people before a pause, after which the request is tried again. */
  retry?: (line: string) => void
  /**
   * Called for each reply, also for one that breaks off: what had come may have cost something.
   */
  charge: (usage: Usage) => void
  /** Called for each piece of text that comes. */
  text?: (piece: string) => void
  /** Called for every other sign of life. */
  activity?: () => void
}

/** Why there is no reply. */
export interface ChatFailure {
  problem: string
  /** The pause after which the endpoint may be asked again; undefined where that can't help. */
  againInMs?: number | undefined
  meaning?: Meaning | undefined
}

const DEFAULT_ATTEMPTS = 5
const FIRST_PAUSE_MS = 500
/** An endpoint that asks for a longer pause is asked again after this one. */
const MAX_PAUSE_MS = 60_000
const MAX_LOADING_PAUSE_MS = 5_000
/** Bytes of an error's body. */
const MAX_ERROR_BYTES = 10_000
/** Bytes of a reply: an endpoint that floods must not fill the memory. */
const MAX_REPLY_BYTES = 4 * 1024 * 1024
/** Characters of an endpoint's error message. */
const MAX_MESSAGE = 300
const FOREIGN = 'is not a model endpoint: look at OPS_MODEL_URL'

/**
 * Asks a model, streaming (decisions.md section 5, Runners). 408, 409, 429, 5xx and network errors
 * are tried again, after the pause that Retry-After asks for; any other status is final, and so is
 * an aborted signal. What the endpoint does not take is left out. Never rejects.
 */
export async function completeChat(
  endpoint: Endpoint,
  request: ChatRequest,
  options: ChatOptions,
): Promise<Reply | ChatFailure> {
  const { signal, attempts = DEFAULT_ATTEMPTS, left = () => Infinity, retry, refuses } = options
  const untaken = options.untaken ?? new Set()
  for (let attempt = 1; ;) {
    const usualPauseMs = FIRST_PAUSE_MS * 2 ** (attempt - 1)
    const body = bodyOf(request, untaken)
    const asked = { body, prompt: promptTokens(request.messages) }
    const result = await tryUntilLoaded(endpoint, asked, options, usualPauseMs)
    // Even if the signal came with its end: the reply is paid for.
    if (!('problem' in result)) return result
    const { againInMs, meaning } = result
    const problem = `the model endpoint ${result.problem}`
    if (signal.aborted || meaning === 'too long') return { problem, meaning }
    const part = refusedPart(untaken, meaning, request)
    if (part !== undefined) {
      untaken.add(part)
      refuses?.(part, problem)
      continue
    }
    if (againInMs === undefined) return { problem }
    if (attempt >= attempts) return { problem: `${problem}, ${attempts} times over` }
    const waitMs = Math.min(againInMs, MAX_PAUSE_MS)
    if (waitMs >= left()) return { problem, againInMs: waitMs }
    retry?.(`The model endpoint ${result.problem}; once more in ${waitMs / 1_000} s`)
    await pause(waitMs, signal)
    if (signal.aborted) return { problem }
    attempt++
  }
}

/** What the endpoint has refused now; undefined if that was not asked for. */
function refusedPart(untaken: Untaken, meaning: Meaning | undefined, { tools }: ChatRequest) {
  const hasTools = tools !== undefined && !untaken.has('tools')
  if (meaning === 'no tools' && hasTools) return 'tools'
  const hasOptions = !untaken.has('stream_options')
  return meaning === 'no stream_options' && hasOptions ? 'stream_options' : undefined
}

function bodyOf(
  { model, messages, tools, toolsInWords, random }: ChatRequest,
  untaken: Untaken,
): string {
  const inText = toolsInWords !== undefined && random !== undefined && untaken.has('tools')
  return JSON.stringify({
    model,
    messages: inText ? inWords(messages, toolsInWords, random) : messages,
    ...(tools !== undefined && !untaken.has('tools') && { tools }),
    stream: true,
    ...(!untaken.has('stream_options') && { stream_options: { include_usage: true } }),
  })
}

/** What an endpoint is asked: a body, and the tokens of the conversation in it. */
interface Asked {
  body: string
  prompt: number
}

/** Tries once; while the endpoint says that its model is being loaded, as long as is allowed. */
async function tryUntilLoaded(
  endpoint: Endpoint,
  asked: Asked,
  options: ChatOptions,
  usualPauseMs: number,
): Promise<Reply | ChatFailure> {
  const { signal, loadingMs = 0, retry, activity } = options
  let result = await tryOnce(endpoint, asked, options, usualPauseMs)
  let pauseMs = FIRST_PAUSE_MS
  let waited = 0
  while (isLoading(result) && loadingMs > 0 && !signal.aborted) {
    const { problem } = result
    const limit = `${loadingMs / 1_000} s (OPS_FIRST_OUTPUT_S)`
    if (waited + pauseMs > loadingMs) return { problem: `${problem}, still after ${limit}` }
    if (waited === 0) retry?.(`The model endpoint ${problem}; it is waited for, at most ${limit}`)
    activity?.()
    await pause(pauseMs, signal)
    waited += pauseMs
    pauseMs = Math.min(pauseMs * 2, MAX_LOADING_PAUSE_MS)
    result = await tryOnce(endpoint, asked, options, usualPauseMs)
  }
  return result
}

function isLoading(result: Reply | ChatFailure): result is ChatFailure {
  return 'problem' in result && result.meaning === 'loading'
}

async function tryOnce(
  { url, key }: Endpoint,
  { body, prompt }: Asked,
  options: ChatOptions,
  usualPauseMs: number,
): Promise<Reply | ChatFailure> {
  const { signal, redact, charge } = options
  try {
    const headers = {
      'content-type': 'application/json',
      accept: 'text/event-stream',
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
    }
    const response = await post(`${url}/chat/completions`, headers, body, signal)
    const { statusCode: status = 0 } = response
    if (status < 200 || status > 299) return await readFailure(response, redact, usualPauseMs)
    if (/^text\/html/i.test(response.headers['content-type'] ?? '')) {
      response.destroy()
      return { problem: `answered with a web page: it ${FOREIGN}` }
    }
    const gathered = createReply(options)
    let isWhole = false
    try {
      isWhole = await gather(response, options, gathered.take)
    } finally {
      charge(usageOf(gathered.reply, prompt))
    }
    const { finish, usage } = gathered.reply
    if (finish === null && usage === undefined && !isWhole)
      throw new BadReply('the answer broke off')
    return gathered.reply
  } catch (error) {
    return failureOf(error, redact, usualPauseMs)
  }
}

function failureOf(error: unknown, redact: Redaction, againInMs: number): ChatFailure {
  if (!(error instanceof BadReply)) {
    return { problem: `can't be reached: ${redact(messageOf(causeOf(error)))}`, againInMs }
  }
  const problem = `answered badly: ${redactLine(error.message, MAX_MESSAGE, redact)}`
  if (error instanceof ForeignReply) return { problem }
  return { problem, againInMs, meaning: meaningOf(200, error.message) }
}

/** Posts a request. `fetch` would wait for five minutes at most; redirects are not followed. */
async function post(
  url: string,
  headers: Readonly<Record<string, string>>,
  body: string,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const send = url.startsWith('https:') ? httpsRequest : http.request
  const outgoing = send(url, { method: 'POST', headers, signal, agent: false })
  // Once there is a response, what happens is an error of the response.
  outgoing.on('error', () => undefined)
  outgoing.end(body)
  const [response] = await once(outgoing, 'response')
  return response
}

/**
 * Gives every piece of a streamed reply to `take`, or the whole of one that is not streamed.
 * Whether it came to its end is known by that, or by `[DONE]`.
 */
async function gather(
  response: IncomingMessage,
  { activity }: ChatOptions,
  take: (data: string) => void,
): Promise<boolean> {
  let isDone = false
  /** Lines that are no events: a reply that is not streamed. */
  let rest = ''
  const lines = splitLines(MAX_REPLY_BYTES, (line) => {
    const data = line.startsWith('data:') ? line.slice(5).trim() : ''
    if (!/^(?:data|event|id|retry)?:/.test(line)) rest += line
    isDone ||= data === '[DONE]'
    if (!isDone && data !== '') take(data)
  })
  let size = 0
  for await (const bytes of response) {
    size += bytes.length
    if (size > MAX_REPLY_BYTES) throw new BadReply('the answer is too long')
    activity?.()
    lines.push(bytes)
    if (isDone) return true
  }
  lines.end()
  if (!rest.trim().startsWith('{')) {
    if (rest.trim().startsWith('<')) throw new ForeignReply(`it ${FOREIGN}`)
    return isDone
  }
  take(rest)
  return true
}

async function readFailure(
  response: IncomingMessage,
  redact: Redaction,
  usualPauseMs: number,
): Promise<ChatFailure> {
  const { statusCode: status = 0, headers } = response
  const { text, cut } = await readText({ body: response }, MAX_ERROR_BYTES)
  const error = parseObject(text)?.['error'] ?? redactCut(text, cut, redact)
  const said = redactLine(errorText(error), MAX_MESSAGE, redact)
  const problem = `answered ${status}${said === '' ? '' : ` (${said})`}`
  const meaning = meaningOf(status, text)
  const isFinal = ![408, 409, 429].includes(status) && status < 500
  if (isFinal) return { problem, meaning }
  return { problem, meaning, againInMs: readRetryAfter(headers['retry-after']) ?? usualPauseMs }
}

/** Seconds or a date, as milliseconds from now. */
function readRetryAfter(value: string | undefined): number | undefined {
  if (value === undefined) return undefined
  const seconds = Number(value)
  const ms = Number.isFinite(seconds) ? seconds * 1_000 : Date.parse(value) - Date.now()
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined
}
