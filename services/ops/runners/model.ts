import { oneLine } from '../../../kernel/log.ts'
import { callTool, toolsOf } from '../tools/toolbox.ts'
import { readBriefing, MAX_SUMMARY, taskOf, type AgentOptions, systemPrompt } from './briefing.ts'
import { createSpending, type PriceSource, type Spending } from './budget.ts'
import {
  completeChat,
  type ChatResult,
  type Endpoint,
  type FunctionTool,
  type Message,
} from './model-chat.ts'
import { promptTokens, usageOf, type Reply, type ToolCall } from './model-stream.ts'
import { failedOutcome, tierModel, type Job, type Outcome, type Runner } from './runner.ts'

/** What the model runner works with; settings are read anew for each session. */
export interface ModelOptions extends AgentOptions {
  /** Undefined without `OPS_MODEL_URL`. */
  readonly endpoint: () => Endpoint | undefined
  readonly prices: PriceSource
}

/** A conversation that goes on. */
interface Talk {
  readonly options: ModelOptions
  readonly job: Job
  readonly endpoint: Endpoint
  readonly spending: Spending
  readonly tools: readonly FunctionTool[]
  readonly messages: Message[]
  turns: number
}

/** How a conversation ended: with a summary, or by a problem; neither when the session was ended. */
interface TalkEnd {
  readonly summary: string | null
  readonly problem: string | null
}

/** Answers without text and tool call that are put up with. */
const EMPTY_ANSWERS = 2
const ENDED: TalkEnd = { summary: null, problem: null }

/**
 * The runner with a model (decisions.md section 5, Runners): our own loop over an OpenAI-compatible
 * endpoint, which calls the tools of the session's tier until the model answers without one.
 */
export function createModelRunner(options: ModelOptions): Runner {
  return { name: 'model', modelOf: tierModel, run: (job) => converse(options, job) }
}

async function converse(options: ModelOptions, job: Job): Promise<Outcome> {
  const { redact, prices } = options
  const { session } = job
  const endpoint = options.endpoint()
  if (endpoint === undefined) {
    return failedOutcome('OPS_MODEL_URL is not set')
  }
  const [price, { about, budgets, spent }] = await Promise.all([
    prices.of(session.model),
    readBriefing(options, job),
  ])
  const talk: Talk = {
    ...{ options, job, endpoint, turns: 0, tools: functionTools(session.tier) },
    spending: createSpending(price, budgets, spent),
    messages: [
      { role: 'system', content: redact(systemPrompt(about)) },
      { role: 'user', content: redact(taskOf(about)) },
    ],
  }
  const end = await talkToEnd(talk)
  if (price === undefined && (budgets.session ?? budgets.day) !== undefined) {
    const line = `No price of ${session.model} in OPS_PRICES: no budget in dollars counts it.\n`
    job.output.write('system', line)
  }
  return outcome(end, talk.spending.cost(), talk.turns)
}

async function talkToEnd(talk: Talk): Promise<TalkEnd> {
  const { options, job, messages, spending } = talk
  const maxTurns = options.maxTurns()
  let empty = 0
  for (;;) {
    const spent = spending.problem()
    if (spent !== undefined) return { summary: null, problem: spent }
    if (talk.turns >= maxTurns) {
      const problem = `the limit of ${maxTurns} turns (OPS_MAX_TURNS) is reached`
      return { summary: null, problem }
    }
    const result = await ask(talk)
    if (result.kind === 'aborted') return ENDED
    if (result.kind === 'failed') return { summary: null, problem: result.problem }
    const { text, toolCalls } = result.reply
    talk.turns++
    if (toolCalls.length === 0 && text.trim() !== '') {
      return { summary: options.redact(text.trim()).slice(0, MAX_SUMMARY), problem: null }
    }
    if (toolCalls.length === 0 && ++empty > EMPTY_ANSWERS) {
      return { summary: null, problem: 'the model gave neither a text nor a tool call' }
    }
    messages.push(spoken(result.reply))
    if (toolCalls.length === 0) {
      const content = 'Your answer was empty. Call a tool, or write the summary.'
      messages.push({ role: 'user', content })
    }
    for (const call of toolCalls) {
      if (job.signal.aborted) return ENDED
      messages.push({ role: 'tool', tool_call_id: call.id, content: await use(talk, call) })
    }
    if (job.signal.aborted) return ENDED
    await job.output.drained()
  }
}

/** One turn of the model; what it says goes to the output as it comes. */
async function ask({
  options,
  job,
  endpoint,
  spending,
  tools,
  messages,
}: Talk): Promise<ChatResult> {
  const { output, signal, noteActivity, session } = job
  const expected = promptTokens(messages)
  const charge = (reply: Reply): void => spending.add(usageOf(reply, expected))
  const result = await completeChat(
    endpoint,
    { model: session.model, messages, tools },
    {
      signal,
      redact: options.redact,
      text: (piece) => output.write('text', piece),
      activity: noteActivity,
      lost: charge,
      retry(problem, waitMs) {
        output.endLine()
        const line = `The model endpoint ${problem}; once more in ${waitMs / 1_000} s`
        output.write('error', `${line}\n`)
      },
    },
  )
  output.endLine()
  if (result.kind !== 'reply') return result
  charge(result.reply)
  const { usage } = result.reply
  if (usage !== undefined && expected > 2_000 && usage.prompt < expected / 2) {
    // Some endpoints drop the front of a prompt that is too long for their window, and don't say so.
    const counted = `counted ${usage.prompt} tokens of a prompt of about ${expected}`
    output.write('system', `The endpoint ${counted}: its context window may be too small.\n`)
  }
  return result
}

/** Does what the model asks for, and gives what it is told of it. */
async function use({ options, job }: Talk, call: ToolCall): Promise<string> {
  const { output, noteActivity } = job
  output.write('tool', `${call.name} ${oneLine(call.arguments)}\n`)
  const args = parseArguments(call.arguments)
  const beat = options.clock.every(10_000, noteActivity)
  try {
    const { ok, text } =
      'problem' in args
        ? { ok: false, text: args.problem }
        : await callTool(call.name, args.value, { ...options, job })
    const answer = ok ? text : `Error: ${text}`
    output.write(ok ? 'result' : 'error', `${answer}\n`)
    return answer
  } finally {
    beat()
  }
}

function parseArguments(text: string): { readonly value: unknown } | { readonly problem: string } {
  try {
    return { value: JSON.parse(text.trim() === '' ? '{}' : text) }
  } catch {
    return { problem: 'The arguments are no JSON. Write one JSON object.' }
  }
}

function spoken({ text, toolCalls }: Reply): Message {
  const tool_calls = toolCalls.map(({ id, name, arguments: args }) => {
    // Some endpoints refuse a conversation in which arguments are no JSON, though their model wrote it.
    const good = 'value' in parseArguments(args)
    const written = good && args.trim() !== '' ? args : '{}'
    return { id, type: 'function' as const, function: { name, arguments: written } }
  })
  return { role: 'assistant', content: text, ...(tool_calls.length > 0 && { tool_calls }) }
}

function functionTools(tier: number): readonly FunctionTool[] {
  return toolsOf(tier).map(({ name, description, schema }) => ({
    type: 'function',
    function: { name, description, parameters: schema },
  }))
}

function outcome(
  { summary, problem }: TalkEnd,
  cost: number | null,
  turns: number | null,
): Outcome {
  const status = problem === null ? 'completed' : 'failed'
  return { status, summary, problem, cost_usd: cost, num_turns: turns, exit_code: null }
}
