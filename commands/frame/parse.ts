import { readFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { meantText } from '../../kernel/closest.ts'
import { UsageError, type Call, type Command, type Switch, type Value } from './command.ts'
import { CONFIG_FLAGS } from './configuration.ts'

/** A command and the texts that it was called with. */
export interface ParsedCommand {
  command: Command
  args: readonly string[]
  flags: Readonly<Record<string, string | true>>
  passed: readonly string[]
}

/**
 * The parts of a command line in their order; of the flags only `withValue` take the next word.
 */
export function tokensOf(args: readonly string[], withValue: readonly string[]) {
  const options = withValue.map((name) => [name, { type: 'string' }] as const)
  const { tokens } = parseArgs({
    args: [...args],
    options: {
      ...Object.fromEntries(options),
      help: { type: 'boolean', short: 'h' },
    },
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  return tokens
}

/** Finds the command among rows of the same first word; 'help' when help on them was asked for. */
export function parseCommand(
  rows: readonly Command[],
  [word = '', ...rest]: readonly string[],
): ParsedCommand | { help: readonly Command[] } {
  const tokens = tokensOf(rest, flagsWithValue(rows))
  const positionals = tokens.filter((token) => token.kind === 'positional')
  const words = positionals.map(({ value }) => value)
  const end = tokens.findIndex((token) => token.kind === 'option-terminator')
  const afterEnd = end < 0 ? 0 : tokens.length - 1 - end
  const options = tokens.filter((token) => token.kind === 'option')
  const wantsHelp = options.some(({ name }) => name === 'help')

  const hasActions = rows.some(({ name }) => name !== word)
  const action = hasActions ? words.shift() : undefined
  const found = rows.find(({ name }) => name === [word, action].join(' ').trim())
  if (found === undefined) {
    if (wantsHelp) return { help: rows }
    const actions = rows.map(({ name }) => name.slice(word.length + 1))
    const known = `one of ${actions.join(', ')}`
    if (action === undefined) throw new UsageError(`Missing action: ${known}`)
    const meant = meantText(action, actions)
    throw new UsageError(`Unknown action "${action}", expected ${known}${meant}`)
  }
  const { chosenBy } = found
  const choice = options.findLast(({ name }) => name === chosenBy?.flag)?.value
  if (wantsHelp) return { help: [withFlags(found, choice)] }
  const command = choice === undefined ? found : withFlags(found, choice)
  const called = choice === undefined ? found.name : `${found.name} --${chosenBy?.flag} ${choice}`

  const flags: Record<string, string | true> = {}
  for (const option of options) {
    const { name } = option
    flags[name] = withLine(command, name, flags[name], flagText(command, option, called))
  }
  const passed = command.passes === undefined ? [] : words.splice(words.length - afterEnd)
  refuseWrongCount(command, words)
  return { command, args: words, flags, passed }
}

/** A command with the flags that go with the value of the one that decides. */
export function withFlags(command: Command, choice: string | undefined): Command {
  const { chosenBy } = command
  return chosenBy === undefined ? command : { ...command, flags: chosenBy.flags(choice) }
}

/** The values of the arguments and flags; throws `UsageError` for one that is not accepted. */
export function readCall({ command, args, flags, passed }: ParsedCommand): Call {
  const texts = [...args]
  const values = Object.entries(command.args ?? {}).map(([name, value]) => {
    const shown = name.toUpperCase()
    if ('repeated' in value) {
      return [name, texts.splice(0).map((text) => readText(shown, value, text))]
    }
    return [name, readText(shown, value, texts.shift() ?? '')]
  })
  const given = Object.entries(command.flags ?? {}).map(([name, flag]) => {
    const text = flags[name]
    if (!isValue(flag)) return [name, text === true]
    if (typeof text !== 'string') return [name, undefined]
    return [name, readText(`--${name}`, flag, text)]
  })
  return { args: Object.fromEntries(values), flags: Object.fromEntries(given), passed }
}

/** The texts of standard input and of files in place of `-` and of their names. */
export async function readFlagsFromFiles(
  parsed: ParsedCommand,
  readInput: () => Promise<string>,
): Promise<ParsedCommand> {
  const flags = { ...parsed.flags }
  refuseSecondReader(parsed)
  for (const [name, flag] of Object.entries(parsed.command.flags ?? {})) {
    const given = flags[name]
    if (!isValue(flag) || typeof given !== 'string') continue
    if (given === '-' && flag.fromInput) flags[name] = (await readInput()).trim()
    else if (flag.fromFile) flags[name] = (await readSecretFile(name, given)).trim()
    else if (flag.hasSecret?.(given)) {
      throw new UsageError(`--${name} has a password, which others can see: give it by -`)
    }
  }
  return { ...parsed, flags }
}

/** Standard input has one text: the second flag would get an empty one. */
function refuseSecondReader({ command, flags }: ParsedCommand): void {
  const readers = Object.entries(command.flags ?? {}).filter(
    ([name, flag]) => isValue(flag) && flag.fromInput === true && flags[name] === '-',
  )
  if (readers.length < 2) return
  const names = readers.map(([name]) => `--${name}`).join(' and ')
  throw new UsageError(`${names} can't all read standard input: give - to one of them`)
}

/** The error names no file: it may be the secret itself. */
async function readSecretFile(flag: string, file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch {
    const form = '- for standard input, or a file that can be read; a secret is no argument'
    throw new UsageError(`--${flag} must be ${form}`)
  }
}

/** A command line that means the same, of a command that passes nothing on. */
export function toArguments({ command, args, flags }: ParsedCommand): readonly string[] {
  const given = Object.entries(flags).map(([name, text]) =>
    text === true ? `--${name}` : `--${name}=${text}`,
  )
  return [...command.name.split(' '), ...given, '--', ...args]
}

export function isValue(flag: Switch): flag is Value<unknown> {
  return 'read' in flag
}

/** The flags of commands that take a value. */
function flagsWithValue(rows: readonly Command[]): readonly string[] {
  const flags = rows.flatMap((row) => Object.entries(row.flags ?? {}))
  return flags.flatMap(([name, flag]) => (isValue(flag) ? [name] : []))
}

type OptionToken = Extract<ReturnType<typeof tokensOf>[number], { kind: 'option' }>

/** What was given for a flag. */
function flagText(
  { flags = {} }: Command,
  { name, rawName, value, inlineValue }: OptionToken,
  called: string,
): string | true {
  const flag = Object.hasOwn(flags, name) ? flags[name] : undefined
  if (flag === undefined) {
    const known = [...Object.keys(flags), ...CONFIG_FLAGS.keys()].map((known) => `--${known}`)
    throw new UsageError(`"${called}" takes no ${rawName}${meantText(rawName, known)}`)
  }
  if (!isValue(flag)) {
    if (value !== undefined) throw new UsageError(`${rawName} takes no value`)
    return true
  }
  // parseArgs takes the next word for the value, even if it is another flag.
  if (value === undefined || (!inlineValue && /^-./.test(value))) {
    throw new UsageError(`${rawName} needs a value: ${flag.summary}`)
  }
  return value
}

/** What a flag has after it was given once more: the last text counts, or all are lines. */
function withLine(
  { flags = {} }: Command,
  name: string,
  before: string | true | undefined,
  text: string | true,
): string | true {
  const flag = flags[name]
  const repeats = flag !== undefined && isValue(flag) && flag.repeats === true
  return repeats && before !== undefined ? `${before}\n${text}` : text
}

function refuseWrongCount(
  { name: called, args: expected = {} }: Command,
  words: readonly string[],
) {
  const required = Object.entries(expected).filter(([, value]) => !('repeated' in value))
  const missing = required.find((_, at) => (words[at] ?? '') === '')
  if (missing !== undefined) {
    const [name, { summary }] = missing
    throw new UsageError(`Missing ${name.toUpperCase()}: ${summary}`)
  }
  const takesMore = required.length < Object.keys(expected).length
  if (takesMore || words.length <= required.length) return
  const taken = required.map(([name]) => name.toUpperCase()).join(' ')
  throw new UsageError(`Too many arguments: "${called}" takes ${taken === '' ? 'none' : taken}`)
}

function readText(what: string, { form, read }: Value<unknown>, text: string): unknown {
  try {
    return read(text)
  } catch {
    // The form says it all; the reason is worded for variables.
    throw new UsageError(`${what} must be ${form}`)
  }
}
