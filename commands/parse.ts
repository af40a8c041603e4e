import { parseArgs, type ParseArgsConfig } from 'node:util'
import {
  UsageError,
  type Arguments,
  type Call,
  type Command,
  type Flags,
  type Switch,
  type Value,
} from './command.ts'

/** A command and the texts that it was called with. */
export interface ParsedCommand {
  readonly command: Command
  readonly args: readonly string[]
  readonly flags: Readonly<Record<string, string | true>>
}

/** Finds the command among rows of the same first word; 'help' when help on them was asked for. */
export function parseCommand(
  rows: readonly Command[],
  [word = '', ...rest]: readonly string[],
): ParsedCommand | { readonly help: readonly Command[] } {
  const { tokens } = parseArgs({
    args: [...rest],
    options: optionsOf(rows),
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  const words = tokens.flatMap((token) => (token.kind === 'positional' ? [token.value] : []))
  const options = tokens.filter((token) => token.kind === 'option')
  const wantsHelp = options.some(({ name }) => name === 'help')

  const hasActions = rows.some(({ name }) => name !== word)
  const action = hasActions ? words.shift() : undefined
  const command = rows.find(({ name }) => name === [word, action].join(' ').trim())
  if (command === undefined) {
    if (wantsHelp) return { help: rows }
    const actions = rows.map(({ name }) => name.slice(word.length + 1)).join(', ')
    if (action === undefined) throw new UsageError(`Missing action: one of ${actions}`)
    throw new UsageError(`Unknown action "${action}", expected one of ${actions}`)
  }
  if (wantsHelp) return { help: [command] }

  const flags: Record<string, string | true> = {}
  for (const option of options) flags[option.name] = flagText(command, option)
  refuseWrongCount(command.args ?? {}, words)
  return { command, args: words, flags }
}

/** The values of the arguments and flags; throws `UsageError` for one that is not accepted. */
export function readCall({ command, args, flags }: ParsedCommand): Call {
  const texts = [...args]
  const values = Object.entries(command.args ?? {}).map(([name, value]) => {
    const read = (text: string): unknown => readText(name.toUpperCase(), value, text)
    return [name, 'repeated' in value ? texts.splice(0).map(read) : read(texts.shift() ?? '')]
  })
  const given = Object.entries(command.flags ?? {}).map(([name, flag]) => {
    const text = flags[name]
    if (!isValue(flag)) return [name, text === true]
    return [name, typeof text === 'string' ? readText(`--${name}`, flag, text) : undefined]
  })
  return { args: Object.fromEntries(values), flags: Object.fromEntries(given) }
}

/** The text of standard input in place of `-`, for the flags that take it. */
export async function readFlagsFromInput(
  parsed: ParsedCommand,
  readInput: () => Promise<string>,
): Promise<ParsedCommand> {
  const flags = { ...parsed.flags }
  for (const [name, flag] of Object.entries(parsed.command.flags ?? {})) {
    if (isValue(flag) && flag.fromInput && flags[name] === '-') {
      flags[name] = (await readInput()).trim()
    }
  }
  return { ...parsed, flags }
}

/** A command line that means the same. */
export function toArguments({ command, args, flags }: ParsedCommand): readonly string[] {
  const given = Object.entries(flags).map(([name, text]) =>
    text === true ? `--${name}` : `--${name}=${text}`,
  )
  return [...command.name.split(' '), ...given, '--', ...args]
}

export function isValue(flag: Switch): flag is Value<unknown> {
  return 'read' in flag
}

function optionsOf(rows: readonly Command[]): NonNullable<ParseArgsConfig['options']> {
  const flags: readonly (readonly [string, Switch])[] = rows.flatMap((row) =>
    Object.entries<Flags[string]>(row.flags ?? {}),
  )
  const options = flags.map(
    ([name, flag]) => [name, { type: isValue(flag) ? 'string' : 'boolean' }] as const,
  )
  return { ...Object.fromEntries(options), help: { type: 'boolean', short: 'h' } }
}

/** What was given for a flag. */
function flagText(
  command: Command,
  option: {
    readonly name: string
    readonly rawName: string
    readonly value?: string | undefined
    readonly inlineValue?: boolean | undefined
  },
): string | true {
  const flag = Object.entries(command.flags ?? {}).find(([name]) => name === option.name)?.[1]
  if (flag === undefined) throw new UsageError(`"${command.name}" takes no ${option.rawName}`)
  const { value, inlineValue } = option
  if (!isValue(flag)) {
    if (value !== undefined) throw new UsageError(`${option.rawName} takes no value`)
    return true
  }
  // parseArgs takes the next word for the value, even if it is another flag.
  if (value === undefined || (inlineValue === false && /^-./.test(value))) {
    throw new UsageError(`${option.rawName} needs a value: ${flag.summary}`)
  }
  return value
}

function refuseWrongCount(expected: Arguments, words: readonly string[]): void {
  const required = Object.entries(expected).filter(([, value]) => !('repeated' in value))
  const missing = required.find((_, at) => (words[at] ?? '') === '')
  if (missing !== undefined) {
    const [name, { summary }] = missing
    throw new UsageError(`Missing ${name.toUpperCase()}: ${summary}`)
  }
  const hasRepeated = required.length < Object.keys(expected).length
  if (!hasRepeated && words.length > required.length) throw new UsageError('Too many arguments')
}

function readText(what: string, { form, read }: Value<unknown>, text: string): unknown {
  try {
    return read(text)
  } catch {
    // The form says it all; the reason is worded for variables.
    throw new UsageError(`${what} must be ${form}`)
  }
}
