import { type Alert, type AlertInProgress, alertQueries as q } from '../../../db/ops/alerts.ts'
import type { RandomBytes } from '../../../kernel/tokens.ts'
import type { Redaction } from '../redact.ts'
import {
  completeChat,
  type Endpoint,
  promptTokens,
  usageOf,
  type Reply,
} from '../runners/model-chat.ts'
import { costOf, type Price } from '../runners/budget.ts'
import { fenced } from '../sessions/prompt.ts'
import { setTimeout as pause } from 'node:timers/promises'
import type { Database } from '../../../db/client.ts'
import { messageOf, type Log } from '../../../kernel/log.ts'
import type { Clock } from '../../../kernel/time.ts'

/** How briefs are written, as configured now. */
export interface SynthesisConfig {
  /** Undefined without a model. */
  readonly endpoint: Endpoint | undefined
  readonly model: string
  /** Price of the model; undefined if unknown. */
  readonly price: Price | undefined
  /** US dollars a day, in UTC; undefined for no limit. */
  readonly dayBudget: number | undefined
  /** The operator's own prompt. */
  readonly systemPrompt: string | undefined
}

/** A brief, or why there is none: `problem` for the sender, `detail` for the operator. */
type Synthesis = { readonly cost: number } & (
  | { readonly brief: string }
  | { readonly problem: string; readonly detail: string }
)

/** From a delivery to the start of its session, waiting for other alerts included. */
export const BRIEF_MS = 10_000
const MAX_ATTEMPTS = 2
const MAX_BRIEF = 4_000
/** The beginning says what is wrong; the rest would only cost time. */
const MAX_PAYLOAD = 60_000
/** In the prompt of a session, which has more in it. */
const MAX_PROMPT_PAYLOAD = 8_000

const SYSTEM_PROMPT = `You write briefs for an operations agent that is about to look into an alert.
Given what a monitoring tool sent, write 2 to 4 sentences that name the affected system, the apparent problem and what to check first.
Output plain text only: no headings, no lists, no markup, no preamble.`

/** Asks the model for a brief of a payload. It gets no tools. */
export async function synthesize(
  payload: string,
  { endpoint, model, price, systemPrompt = SYSTEM_PROMPT }: SynthesisConfig,
  { random, redact }: { readonly random: RandomBytes; readonly redact: Redaction },
  /** When writing is given up, and how many milliseconds are left until then. */
  { signal, left }: { readonly signal: AbortSignal; readonly left: () => number },
): Promise<Synthesis> {
  let cost = 0
  function failed(problem: string, detail = problem): Synthesis {
    return { problem, detail, cost }
  }
  if (endpoint === undefined) {
    return failed('OPS_MODEL_URL is not set, so there is no model that could read the alert')
  }
  const messages = [
    { role: 'system', content: systemPrompt },
    { role: 'user', content: task(payload, random) },
  ] as const
  const charge = (reply: Reply): void => {
    if (price !== undefined) cost += costOf(price, usageOf(reply, promptTokens(messages)))
  }
  const ignored = { text: () => undefined, activity: () => undefined }
  const options = { signal, left, redact, attempts: MAX_ATTEMPTS, lost: charge, ...ignored }
  const result = await completeChat(endpoint, { model, messages }, options)
  if (result.kind === 'aborted') {
    return failed(`the model endpoint gave no brief within ${BRIEF_MS / 1_000} s`)
  }
  if (result.kind === 'failed') {
    const { problem, againInMs } = result
    const busy = `the model endpoint is busy, and may be asked again in ${Math.ceil((againInMs ?? 0) / 1_000)} s`
    // The endpoint's message may quote a part of the key: the sender does not get it.
    return failed(againInMs === undefined ? 'the model endpoint failed' : busy, problem)
  }
  charge(result.reply)
  const brief = briefIn(result.reply.text)
  return brief === '' ? failed('the model endpoint gave no text') : { brief, cost }
}

/** The payload, fenced as data, and then the instruction. */
function task(payload: string, random: RandomBytes): string {
  const isCut = payload.length > MAX_PAYLOAD
  const data = isCut ? payload.slice(0, MAX_PAYLOAD).toWellFormed() : payload
  const what = `what a monitoring tool sent${isCut ? ', cut off at its end' : ''}`
  return `${fenced('ALERT', what, data, random)}\nWrite the brief for this alert now.`
}

/** The reply without the model's reasoning. */
function briefIn(text: string): string {
  const said = text.replace(/^\s*<think>[\s\S]*?<\/think>/, '').replaceAll('\0', '')
  return said.trim().slice(0, MAX_BRIEF).toWellFormed()
}

/**
 * The prompt of a session that an operator starts for an alert. It needs no model to write a brief.
 */
export function investigationPrompt(
  { title, source, payload }: Alert,
  random: RandomBytes,
): string {
  const isCut = payload.length > MAX_PROMPT_PAYLOAD
  const data = isCut ? `${payload.slice(0, MAX_PROMPT_PAYLOAD)}…`.toWellFormed() : payload
  return `Look into an alert that ${source ?? 'a monitoring tool'} sent. Name the affected system, find what is wrong with it and say what should be done.

${fenced('ALERT', 'its title, and then what was sent', `${title}\n\n${data}`, random)}`
}

export interface BriefLockOptions {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  /** This process, as sessions and alerts name their holder. */
  readonly reader: Pick<AlertInProgress, 'holder' | 'machine'>
}

/** When work under the lock, or waiting for the lock, is given up. */
export interface Deadline {
  readonly signal: AbortSignal
  readonly at: Date
}

/** How often to try for a lock that another instance holds. */
const RETRY_MS = 250

/**
 * Only one brief is written at a time, over all instances on a database. Calls within this process
 * queue up. The lock among instances is in the database, and expires at its deadline if the process
 * dies.
 */
export function openBriefLock({ db, clock, log, reader }: BriefLockOptions) {
  let last: Promise<void> = Promise.resolve()

  async function take({ signal, at: until }: Deadline): Promise<boolean> {
    while (!signal.aborted) {
      const taken = await q.takeBriefLock(db, { ...reader, now: clock.now(), until })
      if (taken !== undefined) return true
      // An aborted pause rejects, and then the loop ends.
      await pause(RETRY_MS, undefined, { signal }).catch(() => undefined)
    }
    return false
  }

  async function free(): Promise<void> {
    try {
      await q.freeBriefLock(db, reader)
    } catch (error) {
      log.warn('lock for briefs not released', { error: messageOf(error) })
    }
  }

  /**
   * Runs work under the lock, in the order of the calls. Undefined if the deadline passes first.
   */
  return async <T>(deadline: Deadline, work: () => Promise<T>): Promise<T | undefined> => {
    const previous = last
    const { promise, resolve: leaveQueue } = Promise.withResolvers<void>()
    last = promise
    try {
      await previous
      if (!(await take(deadline))) return undefined
      try {
        return await work()
      } finally {
        await free()
      }
    } finally {
      leaveQueue()
    }
  }
}
