import type { Command, Flags } from './command.ts'
import { flagOf, variableOf, VARIABLE_NAMES } from './configuration.ts'
import { isValue } from './parse.ts'

const CONFIGURATION =
  'Settings (flag over environment file over environment over default; ' +
  '--env-file FILE or GATEHOUSE_ENV_FILE names the file, which is re-read when it changes):'
const WIDTH = 96
/** Of the lists, which people look for on the smallest terminal. */
const TERMINAL = 80
/** A longer left column has its text below itself. */
const MAX_LEFT = 34

/** How a command is called, with all of its arguments and flags; a flag and its value are one part. */
export function usageParts({ name, args = {}, flags = {}, passes }: Command): readonly string[] {
  const words = Object.values(args).map(({ shown }) => shown)
  const optional = Object.entries(flags).map((named) => `[${shownFlag(named)}]`)
  if (passes !== undefined) optional.push(`[${passes.shown}]`)
  return ['gatehouse', name, ...words, ...optional]
}

/** Help on a command, with what each argument and flag means; of several, a line each. */
export function usageText(rows: readonly Command[]): string {
  const [first] = rows
  return rows.length === 1 && first !== undefined ? usageOf(first) : listText(rows)
}

/** Each command with its arguments and what it does, and how to ask for more. */
export function listText(rows: readonly Command[]): string {
  const calls = rows.map((row) => {
    const words = Object.values(row.args ?? {}).map(({ shown }) => shown)
    return [[row.name, ...words].join(' '), row.summary] as const
  })
  return [...columns(calls, TERMINAL), '', 'gatehouse help COMMAND says more of one'].join('\n')
}

function usageOf(row: Command) {
  const lines = columns(partsOf(row), WIDTH).map((line) => `  ${line}`)
  return [...filled(usageParts(row), WIDTH, '    '), `  ${row.summary}`, ...lines].join('\n')
}

/** Two columns, the second of which goes on below itself. */
function columns(rows: readonly (readonly [string, string])[], width: number): readonly string[] {
  const longest = Math.max(0, ...rows.map(([left]) => left.length))
  const indent = Math.min(longest, MAX_LEFT) + 2
  return rows.flatMap(([left, text]) => {
    const lines = filled(text.split(' '), width - indent)
    const isOver = left.length > MAX_LEFT
    const first = isOver ? [left] : [`${left.padEnd(indent)}${lines[0] ?? ''}`]
    const rest = lines.slice(isOver ? 0 : 1).map((line) => ' '.repeat(indent) + line)
    return [...first, ...rest]
  })
}

/** What stands above the list of settings, in lines of the terminal's width. */
export function configurationLines(): readonly string[] {
  return filled(CONFIGURATION.split(' '), WIDTH, '    ')
}

/** Words in lines of a width; the lines after the first are indented. */
function filled(words: readonly string[], width: number, indent = ''): readonly string[] {
  const lines: string[] = []
  for (const word of words) {
    const line = lines.at(-1)
    if (line === undefined) lines.push(word)
    else if (line.length + word.length >= width) lines.push(indent + word)
    else lines[lines.length - 1] = `${line} ${word}`
  }
  return lines
}

/** Arguments and flags of a command, each with its meaning. */
export function partsOf({ args = {}, flags = {}, passes }: Command) {
  const parts = Object.values(args).map(({ shown, summary }) => [shown, summary] as const)
  for (const named of Object.entries(flags)) {
    const [, { summary }] = named
    parts.push([shownFlag(named), summary])
  }
  if (passes !== undefined) parts.push([passes.shown, passes.summary])
  return parts
}

/** A flag with what stands for its value. */
function shownFlag([name, flag]: readonly [string, Flags[string]]) {
  return isValue(flag) ? `--${name} ${flag.shown}` : `--${name}`
}

/** Variable, flag, default and accepted form of every variable. */
export function settings() {
  return VARIABLE_NAMES.map((name) => {
    const { form, default: fallback = '' } = variableOf(name)
    const flag = flagOf(name)
    const shown = flag === undefined ? '(no flag)' : `--${flag}`
    return [name, shown, fallback, form] as const
  })
}
