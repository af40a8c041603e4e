import {
  type Alert,
  type AlertInProgress,
  alertQueries as q,
} from '../../../../db/ops/alerts/alerts.ts'
import type { RandomBytes } from '../../../../kernel/tokens.ts'
import { withoutReasoning } from '../../agent/quirks/reasoning.ts'
import type { Redaction } from '../../redact.ts'
import { completeChat, type Endpoint } from '../../agent/runners/model-chat.ts'
import type { Usage } from '../../agent/runners/model-reply.ts'
import { costOf, type Price } from '../../agent/runners/budget.ts'
import { fenced } from '../../agent/sessions/prompt.ts'
import type { Database } from '../../../../db/client.ts'
import { messageOf, type Log } from '../../../../kernel/log.ts'
import { pause, type Clock } from '../../../../kernel/time.ts'

/** How briefs are written, as configured now. */
export interface SynthesisConfig {
  /** Undefined without a model. */
  endpoint: Endpoint | undefined
  model: string
  /** Price of the model; undefined if unknown. */
  price: Price | undefined
  /** US dollars a day, in UTC; undefined for no limit. */
  dayBudget: number | undefined
  /** The operator's own prompt. */
  systemPrompt: string | undefined
  /** Whether an alert without a brief starts a session all the same. */
  fallback: boolean
}

/** Why there is no brief: `problem` for the sender, `detail` for the operator. */
export interface NoBrief {
  kind: 'failed'
  problem: string
  detail: string
}

/** A brief, with what people must know of it; or why no brief was written. */
type Synthesis = { cost: number } & (
  | NoBrief
  | { kind: 'written'; prompt: string; problem: string | undefined }
)

/**
 * From a delivery to its brief, waiting for other alerts included. A second is left to start the
 * session and to store the result: the sender gets its answer within 10 s.
 */
export const BRIEF_MS = 9_000
const MAX_ATTEMPTS = 2
const MAX_BRIEF = 4_000
/**
 * Characters of an alert in a prompt. The beginning says what is wrong, and a local model that has
 * just been loaded reads no more in the time.
 */
const MAX_PAYLOAD = 8_000
/** An endpoint that has no room even for this is asked no further. */
const MIN_PAYLOAD = 500

const SYSTEM_PROMPT = `You write briefs for an operations agent that looks into an alert.
Given what a monitoring tool sent, write 2 to 4 sentences that name the affected system,
the apparent problem and what to check first.
Keep names, numbers and times as they were sent, and add nothing that was not sent.
Output plain text only: no headings, no lists, no markup, no preamble.`

/** Asks the model for a brief of a payload. It gets no tools. */
export async function synthesize(
  payload: string,
  { endpoint, model, price, systemPrompt = SYSTEM_PROMPT }: SynthesisConfig,
  { random, redact }: BriefOptions,
  { signal, left }: Deadline,
): Promise<Synthesis> {
  let cost = 0
  function failed(problem: string, detail = problem): Synthesis {
    return { kind: 'failed', problem, detail, cost }
  }
  if (endpoint === undefined) {
    return failed('OPS_MODEL_URL is not set, so there is no model that could read the alert')
  }
  const charge = (usage: Usage): void => {
    if (price !== undefined) cost += costOf(price, usage)
  }
  const options = { signal, left, redact, attempts: MAX_ATTEMPTS, charge }
  const { reply, read } = await askForRoom(payload, (part) => {
    const messages = [
      { role: 'system', content: systemPrompt },
      { role: 'user', content: task(part, payload.length, random) },
    ] as const
    return completeChat(endpoint, { model, messages }, options)
  })
  if ('problem' in reply) {
    if (signal.aborted) {
      return failed(`the model endpoint gave no brief within ${BRIEF_MS / 1_000} s`)
    }
    const { problem, againInMs } = reply
    // The endpoint's message may quote a part of the key: the sender does not get it.
    if (againInMs === undefined) return failed('the model endpoint failed', problem)
    const again = `may be asked again in ${Math.ceil(againInMs / 1_000)} s`
    return failed(`the model endpoint is busy, and ${again}`, problem)
  }
  const brief = withoutReasoning(reply.text).replaceAll('\0', '')
  if (brief === '') return failed('the model endpoint gave no text')
  const weakness = weaknessOf(brief, reply.finish === 'length')
  if (weakness !== undefined) {
    const problem = `the brief was ${weakness}: the session got the alert itself`
    return { kind: 'written', prompt: beginningOf(payload), problem, cost }
  }
  const isWhole = read.length === payload.length
  const problem = isWhole ? undefined : `the brief is of ${partOf(read, payload.length)}`
  const prompt = brief.length <= MAX_BRIEF ? brief : `${brief.slice(0, MAX_BRIEF).toWellFormed()}…`
  return { kind: 'written', prompt, problem, cost }
}

/** Asks with the beginning of a payload, halved as long as the endpoint says that it is too long. */
async function askForRoom(
  payload: string,
  ask: (part: string) => ReturnType<typeof completeChat>,
): Promise<{ reply: Awaited<ReturnType<typeof ask>>; read: string }> {
  let read = payload.slice(0, MAX_PAYLOAD)
  for (;;) {
    const reply = await ask(read)
    const isTooLong = 'problem' in reply && reply.meaning === 'too long'
    if (!isTooLong || read.length < 2 * MIN_PAYLOAD) return { reply, read }
    read = read.slice(0, read.length / 2)
  }
}

/** What is read of the payload, fenced as data, and then the instruction. */
function task(read: string, length: number, random: RandomBytes): string {
  const sent = 'what a monitoring tool sent'
  const what = read.length === length ? sent : `${sent}, cut off: ${partOf(read, length)}`
  const data = fenced('ALERT', what, read.toWellFormed(), random)
  return `${data}\nWrite the brief for this alert now.`
}

/** How much of an alert is there. */
function partOf({ length }: string, whole: number): string {
  return `the first ${length.toLocaleString('en')} of ${whole.toLocaleString('en')} characters`
}

/** How a refusal begins. */
const REFUSALS = [
  /^(?:(?:i am|i'm) (?:very )?sorry|sorry|i apologi[sz]e)\b/i,
  /^i (?:can ?not|can't|won't|will not|am not able|am unable)\b|^i'm (?:not able|unable)\b/i,
  /^unfortunately,? i\b|^as an? (?:ai|language model|assistant)\b/i,
]
/** Text that ends with such a word goes on. */
const UNFINISHED = /(?:[,:;(-]|\b(?:a|an|and|are|at|by|for|has|in|is|of|on|or|the|to|was|with))$/i
const MARKUP = /^(?:[<{]|```)|<tool_call|\[TOOL_CALLS\]/i

/** Why a brief is of no use to a session; undefined for one that is. */
function weaknessOf(brief: string, isCut: boolean): string | undefined {
  const plain = brief.replaceAll('’', "'")
  if (REFUSALS.some((words) => words.test(plain))) return 'a refusal'
  const isFragment = isCut || !/\s/.test(brief) || UNFINISHED.test(brief) || MARKUP.test(brief)
  return isFragment ? 'a fragment' : undefined
}

/** An alert for a prompt; what is cut of it is said. */
export function beginningOf(payload: string): string {
  const read = payload.slice(0, MAX_PAYLOAD).toWellFormed()
  if (read.length === payload.length) return payload
  return `${read}…\n(Cut: these are ${partOf(read, payload.length)}.)`
}

/**
 * The prompt of a session that an operator starts for an alert. It needs no model to write a
 * brief.
 */
export function investigationPrompt(alert: Alert, random: RandomBytes): string {
  const { title, source, payload } = alert
  const data = `${title}\n\n${beginningOf(payload)}`
  const sender = source ?? 'a monitoring tool'
  return `Look into an alert that ${sender} sent: is it true now, what is affected,
what causes it, and what should people do?

${fenced('ALERT', 'its title, and then what was sent', data, random)}`
}

/** What briefs are written with. */
export interface BriefOptions {
  db: Database
  clock: Clock
  log: Log
  /** This process, as sessions and alerts name their holder. */
  reader: Pick<AlertInProgress, 'holder' | 'machine'>
  random: RandomBytes
  redact: Redaction
}

/** When work under the lock, or waiting for the lock, is given up. */
export interface Deadline {
  signal: AbortSignal
  /** Milliseconds until then. */
  left: () => number
}

/** How often to try for a lock that another instance holds. */
const RETRY_MS = 250

/**
 * Only one brief is written at a time, over all instances on a database. Calls within this process
 * queue up. The lock among instances is in the database, and expires at its deadline if the
 * process dies.
 */
export function openBriefLock({ db, log, reader }: BriefOptions) {
  let last: Promise<unknown> = Promise.resolve()

  async function take({ signal, left }: Deadline) {
    while (!signal.aborted) {
      const taken = await q.takeBriefLock(db, { ...reader, ms: left() })
      if (taken !== undefined) return true
      await pause(RETRY_MS, signal)
    }
    return false
  }

  async function free() {
    try {
      await q.freeBriefLock(db, reader)
    } catch (error) {
      log.warn('lock for briefs not released', { error: messageOf(error) })
    }
  }

  /**
   * Runs work under the lock, in the order of the calls. Undefined if the deadline passes first.
   */
  return <T>(deadline: Deadline, work: () => Promise<T>) => {
    const mine = last.then(async () => {
      if (await take(deadline)) return work().finally(free)
      return undefined
    })
    last = mine.catch(() => undefined)
    return mine
  }
}
