import { oneLine } from '../../../../kernel/log.ts'
import { noteBegun } from '../../../../kernel/processes/watchdog.ts'
import { createLiveText } from '../quirks/live-text.ts'
import { redactLine } from '../../redact.ts'
import { refused, type Tool, type ToolResult } from '../tools/tool.ts'
import { callTool, toolsOf } from '../tools/toolbox.ts'
import {
  readBriefing,
  storedSummary,
  taskOf,
  type AgentOptions,
  systemPrompt,
} from './briefing.ts'
import { describeShortage } from './allowance.ts'
import { createSpending, type PriceSource } from './budget.ts'
import { completeChat, type ChatFailure, type Endpoint, type Untaken } from './model-chat.ts'
import {
  assistantMessage,
  dropOldest,
  readAnswer,
  type Answer,
  type MeantCall,
} from './model-messages.ts'
import { promptTokens, type Message, type Reply } from './model-reply.ts'
import { createProgress, judge, noteCalls } from './reminders.ts'
import {
  failedOutcome,
  NO_OUTCOME,
  tierModel,
  turnText,
  type Job,
  type Outcome,
  type Runner,
} from './runner.ts'

export interface ModelOptions extends AgentOptions {
  /** Undefined without `OPS_MODEL_URL`. */
  endpoint: () => Endpoint | undefined
  prices: PriceSource
  /** Milliseconds for which a model that is being loaded is waited for. */
  loadingMs: () => number
}

/** Characters of arguments that are quoted. */
const MAX_QUOTED = 200

/** A conversation with a model. */
type Conversation = Awaited<ReturnType<typeof openConversation>>

/**
 * The runner with a model (decisions.md section 5, Runners): our own loop over an
 * OpenAI-compatible endpoint, which calls the tools of the session's tier until the model answers
 * without one.
 */
export function createModelRunner(options: ModelOptions): Runner {
  const callers: ProtocolCallers = new Set()
  return { modelOf: tierModel, run: (job) => runModel(options, job, callers) }
}

/**
 * Endpoints, each with its model, that have called a tool by the protocol: what their models write
 * as text is text.
 */
type ProtocolCallers = Set<string>

async function runModel(
  options: ModelOptions,
  job: Job,
  callers: ProtocolCallers,
): Promise<Outcome> {
  const endpoint = options.endpoint()
  if (endpoint === undefined) return failedOutcome('OPS_MODEL_URL is not set')
  const conversation = await openConversation(options, job, endpoint, callers)
  const end = await runConversation(conversation)
  const { price, budgets, spending, turns: num_turns, toolCalls: tool_calls } = conversation
  if (price === undefined && (budgets.session ?? budgets.day) !== undefined) {
    const what = `No price of ${job.session.model} in OPS_PRICES`
    job.output.write('system', `${what}: no budget in dollars counts it.\n`)
  }
  return { ...end, cost_usd: spending.cost(), num_turns, tool_calls }
}

async function openConversation(
  options: ModelOptions,
  job: Job,
  endpoint: Endpoint,
  callers: ProtocolCallers,
) {
  const { redact, prices, inventory, random } = options
  const { tier, model, trigger } = job.session
  const [price, briefing, { services }] = await Promise.all([
    prices.of(model),
    readBriefing(options, job),
    inventory.current(),
  ])
  const note = `NOTE-${random(4).toString('hex')}:`
  const messages: Message[] = [
    { role: 'system', content: redact(systemPrompt(briefing, random, note)) },
    { role: 'user', content: redact(taskOf(briefing, random)) },
  ]
  const { budgets, allowance } = briefing
  const tools = functionTools(toolsOf(tier))
  const toolsInWords = functionTools(toolsOf(tier).filter(({ effect }) => effect === 'reads'))
  const offered = toolsOf(tier).map(({ name }) => name)
  const spending = createSpending(price, briefing)
  // A scheduled session is there for the checks.
  const wantsCheck = trigger === 'scheduled' && services.some(({ checks }) => checks.length > 0)
  const progress = createProgress(wantsCheck)
  const fence = random(16)
  return {
    options,
    job,
    endpoint,
    price,
    budgets,
    spending,
    offered,
    messages,
    progress,
    allowance,
    note,
    tools,
    toolsInWords,
    callers,
    caller: `${endpoint.url} ${model}`,
    turns: 0,
    toolCalls: 0,
    callNumber: 0,
    liveText: createLiveText((line) => job.output.write('text', `${line}\n`)),
    untaken: new Set() as Untaken,
    fence: () => fence,
  }
}

/** What came of the conversation, without what it cost. */
async function runConversation(conversation: Conversation): Promise<Outcome> {
  const { job, spending, offered, callers, caller } = conversation
  const maxTurns = conversation.allowance.turns
  for (;;) {
    // What ended the session is recorded; this text is not.
    if (job.signal.aborted) return failedOutcome('the session was ended')
    const spent = spending.problem()
    if (spent !== undefined) return failedOutcome(spent)
    if (conversation.turns >= maxTurns) {
      return failedOutcome(`the limit of ${maxTurns} turns (OPS_MAX_TURNS) is reached`)
    }
    const before = { tokens: spending.tokens(), cost: spending.cost() }
    const reply = await ask(conversation)
    if ('problem' in reply) return failedOutcome(reply.problem)
    conversation.turns++
    noteBegun(`turn of session ${job.session.id}`)
    if (reply.toolCalls.length > 0) callers.add(caller)
    const answer = readAnswer(reply, offered, !callers.has(caller))
    const end = await takeTurn(conversation, answer)
    writeTurn(conversation, before)
    if (end !== undefined) return end
    await job.output.drained()
  }
}

/** Does what the model means by its answer; gives the outcome if it was the last one. */
async function takeTurn(conversation: Conversation, answer: Answer): Promise<Outcome | undefined> {
  const { options, job, messages, offered, progress, liveText } = conversation
  // Of a call that can't be understood, people see what the model wrote.
  liveText.end(answer.isBroken ? answer.said : answer.text)
  messages.push(assistantMessage(answer))
  if (answer.calls.length > 0) {
    messages.push(...withShortage(conversation, await runTools(conversation, answer.calls)))
    return undefined
  }
  const next = judge(answer, progress, offered)
  if ('problem' in next) return failedOutcome(next.problem)
  if ('summary' in next) {
    return { ...NO_OUTCOME, summary: storedSummary(options.redact(next.summary)) }
  }
  messages.push({ role: 'user', content: next.reminder })
  job.output.write('system', `The model is told: ${next.reminder}\n`)
  return undefined
}

/**
 * Adds what is left to the last result of a tool, once it is little. Some endpoints refuse a
 * message of its own behind results.
 */
function withShortage(
  { allowance, turns, spending, note }: Conversation,
  results: readonly Message[],
): readonly Message[] {
  const left = {
    turns: allowance.turns - turns,
    dollars: allowance.dollars - (spending.cost() ?? 0),
  }
  const shortage = describeShortage(left, allowance)
  const last = results.at(-1)
  if (shortage === undefined || last === undefined) return results
  return [...results.slice(0, -1), { ...last, content: `${last.content}\n\n${note} ${shortage}` }]
}

/** Ends a turn in the output. `before` is what the session had spent when it began. */
function writeTurn(
  { job, turns, spending }: Conversation,
  before: { tokens: number; cost: number | null },
): void {
  const cost = spending.cost()
  const spent = {
    tokens: spending.tokens() - before.tokens,
    cost: cost === null ? null : cost - (before.cost ?? 0),
  }
  job.output.write('turn', `${turnText(turns, spent)}\n`)
}

/** Runs the tools that the model calls; gives their results for it. */
async function runTools(
  conversation: Conversation,
  calls: readonly MeantCall[],
): Promise<readonly Message[]> {
  const { job, offered, progress } = conversation
  const results: Message[] = []
  const answered = new Set<string>()
  for (const call of calls) {
    if (job.signal.aborted) break
    const { ok, text } = await runTool(conversation, call)
    if (ok) answered.add(call.name)
    results.push({ role: 'tool', tool_call_id: call.id, content: text })
  }
  const known = calls.map(({ name }) => name).filter((name) => offered.includes(name))
  conversation.toolCalls += known.length
  noteCalls(progress, { used: new Set(known), answered })
  return results
}

/**
 * Asks the model. As long as the conversation is too long for it, old tool results are dropped.
 */
async function ask(conversation: Conversation): Promise<Reply | ChatFailure> {
  const { job, messages } = conversation
  for (;;) {
    const reply = await askOnce(conversation)
    if (!('problem' in reply) || reply.meaning !== 'too long') return reply
    if (!dropOldest(messages)) return reply
    job.output.write('system', 'Too long for the model: the oldest tool results are dropped.\n')
  }
}

/** Asks the model once. Its text goes to the output as it comes. */
async function askOnce(conversation: Conversation): Promise<Reply | ChatFailure> {
  const { options, job, endpoint, spending, messages, untaken, fence } = conversation
  const { tools, toolsInWords, liveText } = conversation
  const { output, signal, noteActivity, noteCost, session } = job
  const request = { model: session.model, messages, tools, toolsInWords, random: fence }
  const reply = await completeChat(endpoint, request, {
    signal,
    untaken,
    redact: options.redact,
    loadingMs: options.loadingMs(),
    charge(usage) {
      spending.add(usage)
      noteCost(spending.cost())
    },
    activity: noteActivity,
    text: liveText.add,
    refuses(part, problem) {
      if (part !== 'tools') return
      const { log } = options
      log.warn('model is asked without tools', { session: session.id, problem })
      const without = 'those that read are described in words'
      output.write('system', `The endpoint takes no tools: ${without}.\n`)
    },
    retry(line) {
      liveText.cut()
      output.write('error', `${line}\n`)
    },
  })
  if ('problem' in reply) {
    liveText.cut()
    return reply
  }
  if (reply.isCut) {
    output.write('system', `The answer is longer than 64 KB: the rest of it was not read.\n`)
  }
  const expected = promptTokens(messages)
  const { usage } = reply
  if (usage !== undefined && expected > 2_000 && usage.prompt < expected / 2) {
    // Some endpoints silently drop the beginning of a prompt that is too long for their context.
    const counted = `counted ${usage.prompt} tokens of a prompt of about ${expected}`
    output.write('system', `The endpoint ${counted}: its context window may be too small.\n`)
  }
  return reply
}

/** Runs a tool, and returns its result for the model. */
async function runTool(
  conversation: Conversation,
  { name, written, args, origin }: MeantCall,
): Promise<ToolResult> {
  const { options, job } = conversation
  const { output, noteActivity } = job
  const number = ++conversation.callNumber
  output.write('tool', `${name} ${oneLine(written)}\n`, number)
  const stopActivity = options.clock.every(10_000, noteActivity)
  try {
    const { ok, text } =
      args === undefined
        ? refused(notJson(redactLine(written, MAX_QUOTED, options.redact)))
        : await callTool(name, args, { ...options, job }, origin)
    const told = ok ? text : `Error: ${text}`
    output.write(ok ? 'result' : 'error', `${told}\n`, number)
    return { ok, text: told }
  } finally {
    stopActivity()
  }
}

function notJson(sent: string): string {
  const form = 'write one JSON object, such as {"name": "value"}'
  return `The arguments are not JSON: ${form}; you sent ${sent}`
}

function functionTools(tools: readonly Tool[]): readonly object[] {
  return tools.map(({ name, description, schema }) => ({
    type: 'function',
    function: { name, description, parameters: schema },
  }))
}
