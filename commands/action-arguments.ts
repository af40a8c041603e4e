import { parseArgs, type ParseArgsConfig } from 'node:util'
import { UsageError } from './output.ts'

/** The flags that a command knows, as `parseArgs` of Node has them. */
type Options = Readonly<NonNullable<ParseArgsConfig['options']>>

/** The flags that were given. */
type Flags<O extends Options> = {
  readonly [Name in keyof O]?: O[Name]['type'] extends 'string' ? string : boolean
}

/** What a command with actions was asked to do. */
export interface Parsed<O extends Options> {
  readonly action: string
  readonly name: string
  readonly words: readonly string[]
  readonly flags: Flags<O>
}

/** A command with actions of its own, such as `provider add NAME`. */
export interface ActionCommand<O extends Options> {
  readonly command: string
  readonly flags: O
  /** Which flags each action takes. */
  readonly takes: Readonly<Record<string, readonly (keyof O)[]>>
  /** The words after an action, where they are not the usual ones: none for `list`, else NAME. */
  readonly words?: Readonly<Record<string, readonly string[]>>
}

/** Reads action, words and flags; throws `UsageError` for those that don't go together. `name` is the first word. */
export function parseAction<const O extends Options>(
  args: readonly string[],
  { command, flags: options, takes, words: named = {} }: ActionCommand<O>,
): Parsed<O> {
  const { positionals, flags: given } = readFlags(args, options)
  const [action = '', ...words] = positionals
  if (action === '') throw new UsageError('Missing action')
  const taken = Object.hasOwn(takes, action) ? takes[action] : undefined
  if (taken === undefined) throw new UsageError(`Unknown action "${action}"`)
  const extra = Object.keys(given).find((flag) => !taken.includes(flag))
  if (extra !== undefined) throw new UsageError(`"${command} ${action}" takes no --${extra}`)
  const expected = named[action] ?? (action === 'list' ? [] : ['NAME'])
  if (words.length > expected.length) throw new UsageError('Too many arguments')
  const missing = expected.find((_, at) => (words[at] ?? '') === '')
  if (missing !== undefined) throw new UsageError(`Missing ${missing}`)
  return { action, name: words[0] ?? '', words, flags: given }
}

/** Splits arguments into words and flags; throws `UsageError` for a flag that is unknown or lacks its value. */
export function readFlags<const O extends Options>(
  args: readonly string[],
  options: O,
): { readonly positionals: readonly string[]; readonly flags: Flags<O> } {
  try {
    const { positionals, values } = parseArgs({ args: [...args], options, allowPositionals: true })
    // Each option has its declared type: `parseArgs` holds that, which the compiler can't see for any O.
    return { positionals, flags: values as Flags<O> }
  } catch (error) {
    // TypeError: an unknown flag, one with a value that takes none, or one without its value.
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}
