import { parseJson } from '../../../kernel/json.ts'
import { oneLine } from '../../../kernel/log.ts'
import { refused } from '../tools/tool.ts'
import { callTool, toolsOf } from '../tools/toolbox.ts'
import { readBriefing, MAX_SUMMARY, taskOf, type AgentOptions, systemPrompt } from './briefing.ts'
import { createSpending, type PriceSource, type Spending } from './budget.ts'
import {
  completeChat,
  type ChatResult,
  type Endpoint,
  type Message,
  promptTokens,
  usageOf,
  type Reply,
  type ToolCall,
} from './model-chat.ts'
import { failedOutcome, tierModel, type Job, type Outcome, type Runner } from './runner.ts'

export interface ModelOptions extends AgentOptions {
  /** Undefined without `OPS_MODEL_URL`. */
  readonly endpoint: () => Endpoint | undefined
  readonly prices: PriceSource
}

/** A conversation with a model. */
interface Conversation {
  readonly options: ModelOptions
  readonly job: Job
  readonly endpoint: Endpoint
  readonly spending: Spending
  readonly tools: readonly object[]
  readonly messages: Message[]
  turns: number
}

/** How a conversation ended: with a summary or a problem; with neither if the session was ended. */
interface ConversationEnd {
  readonly summary: string | null
  readonly problem: string | null
}

/** Replies without a text or a tool call. */
const MAX_EMPTY_REPLIES = 2
const ENDED: ConversationEnd = { summary: null, problem: null }

/**
 * The runner with a model (decisions.md section 5, Runners): our own loop over an OpenAI-compatible
 * endpoint, which calls the tools of the session's tier until the model answers without one.
 */
export function createModelRunner(options: ModelOptions): Runner {
  return { name: 'model', modelOf: tierModel, run: (job) => runModel(options, job) }
}

async function runModel(options: ModelOptions, job: Job): Promise<Outcome> {
  const { redact, prices } = options
  const { session } = job
  const endpoint = options.endpoint()
  if (endpoint === undefined) return failedOutcome('OPS_MODEL_URL is not set')
  const [price, { about, budgets, spent }] = await Promise.all([
    prices.of(session.model),
    readBriefing(options, job),
  ])
  const conversation: Conversation = {
    ...{ options, job, endpoint, turns: 0, tools: functionTools(session.tier) },
    spending: createSpending(price, budgets, spent),
    messages: [
      { role: 'system', content: redact(systemPrompt(about)) },
      { role: 'user', content: redact(taskOf(about)) },
    ],
  }
  const end = await runConversation(conversation)
  if (price === undefined && (budgets.session ?? budgets.day) !== undefined) {
    const line = `No price of ${session.model} in OPS_PRICES: no budget in dollars counts it.\n`
    job.output.write('system', line)
  }
  return {
    ...end,
    cost_usd: conversation.spending.cost(),
    num_turns: conversation.turns,
    exit_code: null,
  }
}

async function runConversation(conversation: Conversation): Promise<ConversationEnd> {
  const { options, job, messages, spending } = conversation
  const maxTurns = options.maxTurns()
  let empty = 0
  for (;;) {
    const spent = spending.problem()
    if (spent !== undefined) return failed(spent)
    if (conversation.turns >= maxTurns) {
      return failed(`the limit of ${maxTurns} turns (OPS_MAX_TURNS) is reached`)
    }
    const result = await ask(conversation)
    if (result.kind === 'aborted') return ENDED
    if (result.kind === 'failed') return failed(result.problem)
    const { text, toolCalls } = result.reply
    conversation.turns++
    if (toolCalls.length === 0 && text.trim() !== '') {
      return { summary: options.redact(text.trim()).slice(0, MAX_SUMMARY), problem: null }
    }
    if (toolCalls.length === 0 && ++empty > MAX_EMPTY_REPLIES) {
      return failed('the model gave neither a text nor a tool call')
    }
    messages.push(assistantMessage(result.reply))
    if (toolCalls.length === 0) {
      const content = 'Your answer was empty. Call a tool, or write the summary.'
      messages.push({ role: 'user', content })
    }
    for (const call of toolCalls) {
      if (job.signal.aborted) return ENDED
      const content = await runTool(conversation, call)
      messages.push({ role: 'tool', tool_call_id: call.id, content })
    }
    if (job.signal.aborted) return ENDED
    await job.output.drained()
  }
}

/** One turn of the model. Its text goes to the output as it comes. */
async function ask(conversation: Conversation): Promise<ChatResult> {
  const { options, job, endpoint, spending, tools, messages } = conversation
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
    // Some endpoints silently drop the beginning of a prompt that is too long for their context.
    const counted = `counted ${usage.prompt} tokens of a prompt of about ${expected}`
    output.write('system', `The endpoint ${counted}: its context window may be too small.\n`)
  }
  return result
}

/** Runs a tool; gives its result for the model. */
async function runTool({ options, job }: Conversation, call: ToolCall): Promise<string> {
  const { output, noteActivity } = job
  output.write('tool', `${call.name} ${oneLine(call.arguments)}\n`)
  const args = parseJson(call.arguments.trim() || '{}')
  const stopActivity = options.clock.every(10_000, noteActivity)
  try {
    const { ok, text } =
      args === undefined
        ? refused('The arguments are no JSON. Write one JSON object.')
        : await callTool(call.name, args, { ...options, job })
    const told = ok ? text : `Error: ${text}`
    output.write(ok ? 'result' : 'error', `${told}\n`)
    return told
  } finally {
    stopActivity()
  }
}

function assistantMessage({ text, toolCalls }: Reply): Message {
  const tool_calls = toolCalls.map(({ id, name, arguments: args }) => {
    // Some endpoints reject a conversation with arguments that are not JSON, even if their model
    // wrote them.
    const written = parseJson(args) === undefined ? '{}' : args
    return { id, type: 'function', function: { name, arguments: written } }
  })
  return { role: 'assistant', content: text, ...(tool_calls.length > 0 && { tool_calls }) }
}

function functionTools(tier: number): readonly object[] {
  return toolsOf(tier).map(({ name, description, schema }) => ({
    type: 'function',
    function: { name, description, parameters: schema },
  }))
}

function failed(problem: string): ConversationEnd {
  return { summary: null, problem }
}
