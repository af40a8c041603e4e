import type { Command, Flags } from './command.ts'
import { flagOf, variableOf, VARIABLE_NAMES } from './configuration.ts'
import { isValue } from './parse.ts'

export const CONFIGURATION =
  'Configuration (flag over environment file over environment over default; ' +
  '--env-file FILE or GATEHOUSE_ENV_FILE names the file, which is re-read when it changes):'
const WIDTH = 96

/** How a command is called, with all of its arguments and flags. */
export function usageLine({ name, args = {}, flags = {}, passes }: Command) {
  const words = Object.values(args).map(({ shown }) => shown)
  const optional = Object.entries(flags).map((named) => `[${shownFlag(named)}]`)
  if (passes !== undefined) optional.push(`[${passes.shown}]`)
  return ['gatehouse', name, ...words, ...optional].join(' ')
}

/** Help on some commands: usage, and what each argument and flag means. */
export function usageText(rows: readonly Command[]): string {
  return rows.map(usageOf).join('\n\n')
}

function usageOf(row: Command) {
  const parts = partsOf(row)
  const width = Math.max(0, ...parts.map(([part]) => part.length))
  const lines = parts.map(([part, summary]) => `  ${part.padEnd(width)}  ${summary}`)
  return [...wrapped(usageLine(row)), `  ${row.summary}`, ...lines].join('\n')
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

/** A text in lines of the terminal's width; the lines after the first are indented. */
export function wrapped(text: string): readonly string[] {
  const lines: string[] = []
  // A flag and its value stay together.
  for (const word of text.match(/\[[^\]]*\]|\S+/g) ?? []) {
    const line = lines.at(-1)
    if (line !== undefined && line.length + word.length < WIDTH) {
      lines[lines.length - 1] = `${line} ${word}`
    } else lines.push(lines.length === 0 ? word : `    ${word}`)
  }
  return lines
}
