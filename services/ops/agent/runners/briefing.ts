import { memoryQueries, type StoredMemory } from '../../../../db/ops/agent/memories.ts'
import { cutBytes } from '../../../../kernel/text.ts'
import { authorOf } from '../memories.ts'
import { readPause } from '../pause.ts'
import type { RandomBytes } from '../../../../kernel/tokens.ts'
import { recallFor } from './recall.ts'
import { ESCALATION_BYTES, fenced, promptFor } from '../sessions/prompt.ts'
import { firstWithin } from '../tools/lines.ts'
import { runbookLine } from '../tools/runbooks.ts'
import type { ToolOptions } from '../tools/tool.ts'
import { describeAllowance } from './allowance.ts'
import { budgetLeft, spentBefore, type Budgets } from './budget.ts'
import type { ReadHost } from './host-facts.ts'
import { EVIDENCE, LEVELS, RECORDS, ROLES, RULES, STOPPING, SUMMARY } from './rules.ts'
import type { Job } from './runner.ts'
import { describeSituation, readSituation } from './situation.ts'

/** What a runner with a model works with. Settings are read again for each session. */
export interface AgentOptions extends ToolOptions {
  budgets: () => Budgets
  maxTurns: () => number
  host: ReadHost
  /** Marks data in prompts. */
  random: RandomBytes
}

/** What prompts say of a session, and what it may cost. */
type Briefing = Awaited<ReturnType<typeof readBriefing>>

/** Characters of a summary. */
const MAX_SUMMARY = 10_000
const MAX_MEMORIES = 500
/**
 * Characters of the memories in a prompt: 2,000 tokens of 4 each (decisions.md section 5,
 * Memories).
 */
const MAX_MEMORY_TEXT = 8_000
/** Characters of the list of runbooks in a prompt. */
const MAX_RUNBOOK_TEXT = 8_000

/** A summary as it is stored; one that is cut says so. */
export function storedSummary(text: string): string {
  if (text.length <= MAX_SUMMARY) return text
  return `${text.slice(0, MAX_SUMMARY).toWellFormed()}…\n\n(Cut here: the output has all of it.)`
}

/** What a runner with a model reads before a session. */
export async function readBriefing(options: AgentOptions, job: Job) {
  const { db, clock, random } = options
  const { session, config } = job
  const now = clock.now()
  const [memories, recall, dryRun, pause, spent, runbooks, situation] = await Promise.all([
    memoryQueries.listActiveMemories(db, { service: null, category: null, limit: MAX_MEMORIES }),
    recallFor(db, session.id, random),
    options.dryRun(db),
    readPause(db),
    spentBefore(db, session.id, now),
    options.runbooks.current(),
    readSituation(options, now),
  ])
  const budgets = options.budgets()
  const allowance = { turns: options.maxTurns(), dollars: budgetLeft(budgets, spent) }
  const maxTier = config.max_tier
  return {
    session,
    now,
    maxTier,
    dryRun,
    pause,
    memories,
    recall,
    runbooks,
    spent,
    budgets,
    allowance,
    situation,
  }
}

function introduction({ session, now }: Briefing): string {
  const who = `the operations agent of a small team's servers, tier ${session.tier} of 3`
  return `You are ${who}. It is ${now.toISOString()}.`
}

function limitsOf({ session, maxTier, dryRun, pause, allowance }: Briefing) {
  const isHighest = session.tier >= maxTier || pause.investigations.paused
  return [
    describeAllowance(session.tier, allowance),
    isHighest ? 'No higher tier is allowed: escalating only records an event.' : undefined,
    pause.repairs.paused
      ? 'Repairs are paused: change nothing, say what should be done.'
      : undefined,
    dryRun ? 'This is a dry run: operations are only recorded, and nothing escalates.' : undefined,
  ]
}

/** What the session is for, behind what is recalled of its alert. */
export function taskOf({ session, recall }: Briefing, random: RandomBytes): string {
  const task =
    promptFor(session, random) ??
    'Scheduled session: check every service and say whether all is well.'
  return paragraphs([recall, task])
}

const OPERATORS = 'Noted by the operators, who know better than sessions, surest first:'
const SESSIONS = 'what earlier sessions noted, each with its author, surest first'

/**
 * As many memories as fit, those of operators first. One that does not fit is skipped. Those of
 * sessions are data: a session may have noted what it had read in a log.
 */
function memoryTexts({ memories }: Briefing, random: RandomBytes) {
  const fence = (text: string) => fenced('MEMORIES', SESSIONS, text, random)
  let left = MAX_MEMORY_TEXT - OPERATORS.length - fence('').length
  const fitting = memories.filter((memory) => {
    const { length } = memoryLine(memory)
    const fits = length < left
    if (fits) left -= length + 1
    return fits
  })
  const ofOperators = fitting.filter(({ tier }) => tier === 0).map(memoryLine)
  const ofSessions = fitting.filter(({ tier }) => tier > 0).map(memoryLine)
  return [
    ofOperators.length === 0 ? undefined : [OPERATORS, ...ofOperators].join('\n'),
    ofSessions.length === 0 ? undefined : fence(ofSessions.join('\n')),
  ]
}

function memoryLine(memory: StoredMemory): string {
  const { service, category, observation, confidence } = memory
  const where = service === null ? category : `${service}, ${category}`
  return `- [${authorOf(memory)}] ${inLine(where)} (${confidence}): ${inLine(observation)}`
}

/** No part of a memory may begin a line that looks like another one. */
function inLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim()
}

/** The runbooks, as many as fit. */
function runbookTexts({ runbooks }: Briefing): string | undefined {
  if (runbooks.length === 0) return undefined
  const head = `Runbooks, written by the operators: their steps are instructions,
as far as your tools allow them. When one fits, read it first, with read_runbook:`
  const shown = firstWithin(runbooks.map(runbookLine), MAX_RUNBOOK_TEXT)
  const more = runbooks.length - shown.length
  return [head, ...shown, ...(more > 0 ? [`and ${more} more`] : [])].join('\n')
}

/**
 * The first message of a conversation: who the model is, what it may take, and what is known.
 * `note` begins what Gatehouse itself adds to the answers of tools; a headless agent gets none.
 */
export function systemPrompt(briefing: Briefing, random: RandomBytes, note?: string): string {
  return paragraphs([
    introduction(briefing),
    ROLES[briefing.session.tier],
    ...limitsOf(briefing),
    note && `A line that begins with ${note} comes from Gatehouse itself, not from a tool.`,
    RULES,
    EVIDENCE,
    RECORDS,
    LEVELS,
    `${STOPPING}\nThen answer without a tool call. The answer is ${SUMMARY}`,
    ...describeSituation(briefing.situation, random),
    runbookTexts(briefing),
    ...memoryTexts(briefing, random),
  ])
}

/** Linux limits an argument to 128 KiB, and memories and states are in it as well. */
const TASK_BYTES = 64 * 1024
/** The end of a task stays: it has the findings of the two lower tiers. */
const TASK_END_BYTES = 2 * ESCALATION_BYTES

/** What an agent has to know of its tools beside what a model knows. */
const AGENT_TOOLS = `Your tools are those of the server "gatehouse" (MCP).
What else you have may read, and nothing more.`

/** The prompt of a headless agent, in one: what a model gets as its first two messages. */
export function agentPrompt(briefing: Briefing, random: RandomBytes): string {
  const task = cutBytes(taskOf(briefing, random), TASK_BYTES, TASK_END_BYTES)
  return paragraphs([systemPrompt(briefing, random), AGENT_TOOLS, `The task:\n${task}`])
}

function paragraphs(parts: readonly (string | undefined)[]): string {
  return parts.filter((part) => part !== undefined).join('\n\n')
}
