import type { Answer } from './model-messages.ts'

/** What an answer without a tool call lacks to be a summary. */
type Lack =
  /** A call of a tool was meant, and can't be understood. */
  | 'broken'
  | 'cut'
  | 'empty'
  /** The model writes about something that it has not checked. */
  | 'unchecked'

/** What a session has done so far. */
export interface Progress {
  /** Names of the tools that it called. */
  used: Set<string>
  /** Those that have answered: a check that was refused was not run. */
  answered: Set<string>
  /** Whether it is there to run checks. */
  wantsCheck: boolean
  /** The beginning of a summary that the next answer goes on with. */
  begun: string
  /** How often it was reminded. */
  reminded: Map<Lack, number>
}

/** What comes after an answer without a tool call. */
type Next = { reminder: string } | { problem: string } | { summary: string }

/** How often a model is reminded. */
const MOST: Readonly<Record<Lack, number>> = { broken: 1, cut: 3, empty: 2, unchecked: 1 }

export function createProgress(wantsCheck: boolean): Progress {
  return { used: new Set(), answered: new Set(), wantsCheck, begun: '', reminded: new Map() }
}

/** Notes that tools were called: what was lacking before is forgotten. */
export function noteCalls(
  progress: Progress,
  { used, answered }: Pick<Progress, 'used' | 'answered'>,
): void {
  for (const name of used) progress.used.add(name)
  for (const name of answered) progress.answered.add(name)
  progress.begun = ''
  for (const lack of ['broken', 'cut', 'empty'] as const) progress.reminded.delete(lack)
}

/** Judges an answer without a tool call: the model is reminded of what it lacks, a few times. */
export function judge(answer: Answer, progress: Progress, offered: readonly string[]): Next {
  const { reminded } = progress
  const lack = lackOf(answer, progress)
  const before = lack === undefined ? 0 : (reminded.get(lack) ?? 0)
  const whole = `${progress.begun} ${answer.text}`.trim()
  if (lack === undefined)
    return { summary: [noteOf(progress), whole].filter(Boolean).join('\n\n') }
  if (before >= MOST[lack]) return { problem: PROBLEMS[lack] ?? '' }
  reminded.set(lack, before + 1)
  progress.begun = lack === 'cut' ? whole : ''
  return { reminder: reminderText(lack, progress, offered) }
}

function lackOf({ isBroken, isCut, text }: Answer, progress: Progress): Lack | undefined {
  const mayRemind = (lack: Lack) => (progress.reminded.get(lack) ?? 0) < MOST[lack]
  if (isBroken) return 'broken'
  if (isCut && mayRemind('cut')) return 'cut'
  if (progress.begun + text === '') return 'empty'
  return !hasLooked(progress) && mayRemind('unchecked') ? 'unchecked' : undefined
}

function hasLooked({ used, answered, wantsCheck }: Progress): boolean {
  return wantsCheck ? answered.has('run_check') : used.size > 0
}

/** What people must know of a summary; undefined for one of a session that has looked. */
function noteOf(progress: Progress): string | undefined {
  if (progress.used.size === 0) return 'No tool was used: nothing of this was checked.'
  return hasLooked(progress) ? undefined : 'No check was run.'
}

const PROBLEMS: Readonly<Partial<Record<Lack, string>>> = {
  broken: 'the model wrote tool calls that can not be understood',
  empty: 'the model gave neither a text nor a tool call',
}

function reminderText(lack: Lack, { used }: Progress, offered: readonly string[]): string {
  if (lack === 'broken') {
    return (
      'The tool call in your answer can not be understood. Call one tool by its exact name, ' +
      `with one JSON object of arguments. The tools are: ${offered.join(', ')}. ` +
      'If you need none, write the summary in plain text, without any markup.'
    )
  }
  if (lack === 'cut') {
    return 'Your answer was cut off because it was too long. Go on where it ended, in few words.'
  }
  if (lack === 'empty') return 'Your answer was empty. Call a tool, or write the summary.'
  const missing = used.size === 0 ? 'called no tool' : 'run no check'
  return (
    `You have ${missing}, so nothing was checked. Call the tools that the task needs now. ` +
    'If it needs none, write your summary once more.'
  )
}
