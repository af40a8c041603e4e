import type { RandomBytes } from '../../../kernel/token-hash.ts'
import { fenced } from '../fence.ts'
import type { Redaction } from '../redact.ts'
import { completeChat, type Endpoint } from '../runners/model-chat.ts'

/** Where briefs are written, as configured now. */
export interface SynthesisConfig {
  /** Undefined without a model. */
  readonly endpoint: Endpoint | undefined
  readonly model: string
  /** The operator's own prompt. */
  readonly systemPrompt: string | undefined
}

/** A brief, or why there is none: in words for whoever sent the alert, and for the operator. */
export type Synthesis =
  | { readonly brief: string }
  | { readonly problem: string; readonly detail: string }

const DEADLINE_MS = 10_000
const ATTEMPTS = 2
const BRIEF_LONGEST = 4_000
/** More would only cost time: what is wrong stands at the beginning. */
const PAYLOAD_LONGEST = 60_000

const SYSTEM_PROMPT = `You write briefs for an operations agent that is about to look into an alert.
Given what a monitoring tool sent, write 2 to 4 sentences that name the affected system, the apparent problem and what to check first.
Output plain text only: no headings, no lists, no markup, no preamble.`

/** Has the model turn a payload into a brief; it has no tools for that, and 10 s at most. */
export async function synthesize(
  payload: string,
  { endpoint, model, systemPrompt = SYSTEM_PROMPT }: SynthesisConfig,
  { random, redact }: { readonly random: RandomBytes; readonly redact: Redaction },
): Promise<Synthesis> {
  if (endpoint === undefined) {
    return failed('OPS_MODEL_URL is not set, so there is no model that could read the alert')
  }
  const messages = [
    { role: 'system', content: systemPrompt },
    { role: 'user', content: task(payload, random) },
  ] as const
  const signal = AbortSignal.timeout(DEADLINE_MS)
  const ignored = { text: () => undefined, sign: () => undefined }
  const options = { signal, redact, attempts: ATTEMPTS, ...ignored }
  const result = await completeChat(endpoint, { model, messages }, options)
  if (result.kind === 'aborted') {
    return failed(`the model endpoint gave no brief within ${DEADLINE_MS / 1_000} s`)
  }
  // What an endpoint says of its refusal may quote a part of the key.
  if (result.kind === 'failed') return failed('the model endpoint failed', result.problem)
  const brief = briefIn(result.reply.text)
  return brief === '' ? failed('the model endpoint gave no text') : { brief }
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

function failed(problem: string, detail = problem): Synthesis {
  return { problem, detail }
}
