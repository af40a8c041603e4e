import type { RandomBytes } from '../../../kernel/token-hash.ts'
import { fenced } from '../sessions/prompt.ts'
import type { Redaction } from '../redact.ts'
import { completeChat, type Endpoint } from '../runners/model-chat.ts'
import { costOf, type Price } from '../runners/budget.ts'
import { promptTokens, usageOf, type Reply } from '../runners/model-stream.ts'

/** Where briefs are written, as configured now. */
export interface SynthesisConfig {
  /** Undefined without a model. */
  readonly endpoint: Endpoint | undefined
  readonly model: string
  /** Of the model; undefined when it is not known. */
  readonly price: Price | undefined
  /** US dollars that may be spent on a day, in UTC; undefined for no limit. */
  readonly dayBudget: number | undefined
  /** The operator's own prompt. */
  readonly systemPrompt: string | undefined
}

/** A brief, or why there is none: in words for whoever sent the alert, and for the operator. */
export type Synthesis = { readonly cost: number } & (
  | { readonly brief: string }
  | { readonly problem: string; readonly detail: string }
)

/** Until when a brief may take. */
export interface BriefLimit {
  readonly signal: AbortSignal
  /** Milliseconds until then. */
  readonly left: () => number
}

/** What a delivery is given until its session starts, with the wait for others before it. */
export const BRIEF_MS = 10_000
const ATTEMPTS = 2
const BRIEF_LONGEST = 4_000
/** More would only cost time: what is wrong stands at the beginning. */
const PAYLOAD_LONGEST = 60_000

const SYSTEM_PROMPT = `You write briefs for an operations agent that is about to look into an alert.
Given what a monitoring tool sent, write 2 to 4 sentences that name the affected system, the apparent problem and what to check first.
Output plain text only: no headings, no lists, no markup, no preamble.`

/** Has the model turn a payload into a brief, within a limit; it has no tools for that. */
export async function synthesize(
  payload: string,
  { endpoint, model, price, systemPrompt = SYSTEM_PROMPT }: SynthesisConfig,
  { random, redact }: { readonly random: RandomBytes; readonly redact: Redaction },
  { signal, left }: BriefLimit,
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
  const options = { signal, left, redact, attempts: ATTEMPTS, lost: charge, ...ignored }
  const result = await completeChat(endpoint, { model, messages }, options)
  if (result.kind === 'aborted') {
    return failed(`the model endpoint gave no brief within ${BRIEF_MS / 1_000} s`)
  }
  if (result.kind === 'failed') {
    const { problem, againInMs } = result
    const busy = `the model endpoint is busy, and may be asked again in ${Math.ceil((againInMs ?? 0) / 1_000)} s`
    // What an endpoint says of its refusal may quote a part of the key.
    return failed(againInMs === undefined ? 'the model endpoint failed' : busy, problem)
  }
  charge(result.reply)
  const brief = briefIn(result.reply.text)
  return brief === '' ? failed('the model endpoint gave no text') : { brief, cost }
}

/** What is asked of the model: the payload as data, and after it what to do with it. */
function task(payload: string, random: RandomBytes): string {
  const isCut = payload.length > PAYLOAD_LONGEST
  const data = isCut ? payload.slice(0, PAYLOAD_LONGEST).toWellFormed() : payload
  const what = `what a monitoring tool sent${isCut ? ', cut off at its end' : ''}`
  return `${fenced('ALERT', what, data, random)}\nWrite the brief for this alert now.`
}

/** The answer without what a model thought aloud. */
function briefIn(text: string): string {
  const said = text.replace(/^\s*<think>[\s\S]*?<\/think>/, '').replaceAll('\0', '')
  return said.trim().slice(0, BRIEF_LONGEST).toWellFormed()
}
