import { listActiveMemories } from '../../../db/ops/memories.ts'
import type { Memory } from '../../../db/ops/rows.ts'
import type { Session } from '../../../db/ops/sessions.ts'
import { authorOf } from '../memories.ts'
import type { ToolOptions } from '../tools/tool.ts'
import { spentBefore, type Budgets, type Spent } from './budget.ts'
import type { Job } from './runner.ts'

/** What a runner with a model of any kind works with; settings are read anew for each session. */
export interface AgentOptions extends ToolOptions {
  readonly budgets: () => Budgets
  readonly maxTurns: () => number
}

/** What prompts say of a session. */
export interface About {
  readonly session: Pick<Session, 'tier' | 'prompt_text'>
  readonly now: Date
  readonly maxTier: number
  readonly dryRun: boolean
  readonly memories: readonly Memory[]
}

/** What is read before a session with a model begins. */
export interface Briefing {
  readonly about: About
  readonly budgets: Budgets
  readonly spent: Spent
}

/** Characters of a summary that are kept. */
export const SUMMARY_LONGEST = 10_000
const MEMORIES = 500
/** Characters of the memories in a prompt: 2,000 tokens of 4 each (decisions.md section 5, Memories). */
const MEMORIES_LONGEST = 8_000

export async function readBriefing(options: AgentOptions, job: Job): Promise<Briefing> {
  const { db, clock } = options
  const { session, config } = job
  const now = clock.now()
  const [memories, dryRun, spent] = await Promise.all([
    listActiveMemories(db, { service: null, category: null }, MEMORIES),
    options.dryRun(db),
    spentBefore(db, session.id, now),
  ])
  const about = { session, now, maxTier: config.max_tier, dryRun, memories }
  return { about, budgets: options.budgets(), spent }
}

/** How every prompt begins: who the agent is. */
export function introduction({ session, now }: About): string {
  return `You are the operations agent of a small team's servers, tier ${session.tier} of 3. It is ${now.toISOString()}.`
}

/** What the agent must not count on; `dry` says what a dry run means to it. */
export function limitsOf({ session, maxTier, dryRun }: About, dry: string): readonly string[] {
  const isHighest = session.tier >= maxTier
  return [
    ...(isHighest ? ['No higher tier is allowed: escalating only records an event.'] : []),
    ...(dryRun ? [`This is a dry run: ${dry}`] : []),
  ]
}

/** What the session is for. */
export function taskOf({ session }: About): string {
  return (
    session.prompt_text ?? 'Scheduled session: check every service and tell whether all is well.'
  )
}

/** As many memories as fit, what operators wrote before all others; one that does not fit is left out. */
export function memoryText({ memories }: About): string {
  const head =
    'Remembered, each with its author: operators first, who know better, then sessions, surest first:'
  let left = MEMORIES_LONGEST - head.length
  const lines: string[] = []
  for (const memory of memories) {
    const { service, category, observation, confidence } = memory
    const where = service === null ? category : `${service}, ${category}`
    const line = `- [${authorOf(memory)}] ${inLine(where)} (${confidence}): ${inLine(observation)}`
    if (line.length + 1 > left) continue
    left -= line.length + 1
    lines.push(line)
  }
  return lines.length === 0 ? '' : [head, ...lines].join('\n')
}

/** An agent writes all parts of a memory: none may begin a line that looks like ours. */
function inLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim()
}
