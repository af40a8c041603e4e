import { parseArgs, type ParseArgsConfig } from 'node:util'
import { UsageError } from './command.ts'

/** The flags that a command knows, as `parseArgs` of Node has them. */
type Options = Readonly<NonNullable<ParseArgsConfig['options']>>

/** The flags that were given. */
type Flags<O extends Options> = {
  readonly [Name in keyof O]?: O[Name]['type'] extends 'string' ? string : boolean
}

/** A command with actions of its own, such as `provider add NAME`. */
export interface ActionCommand<O extends Options> {
  readonly command: string
  readonly flags: O
  /** Which flags each action takes. All but `list` take a name. */
  readonly takes: Readonly<Record<string, readonly (keyof O)[]>>
}

/** Reads action, name (empty for `list`) and flags; throws `UsageError` for those that don't go together. */
export function parseAction<const O extends Options>(
  args: readonly string[],
  { command, flags: options, takes }: ActionCommand<O>,
): { readonly action: string; readonly name: string; readonly flags: Flags<O> } {
  const { positionals, values } = split(args, options)
  const [action = '', name = '', ...rest] = positionals
  if (action === '') throw new UsageError('Missing action')
  const taken = Object.hasOwn(takes, action) ? takes[action] : undefined
  if (taken === undefined) throw new UsageError(`Unknown action "${action}"`)
  const extra = Object.keys(values).find((flag) => !taken.includes(flag))
  if (extra !== undefined) throw new UsageError(`"${command} ${action}" takes no --${extra}`)
  if (rest.length > 0 || (action === 'list' && name !== ''))
    throw new UsageError('Too many arguments')
  if (action !== 'list' && name === '') throw new UsageError('Missing NAME')
  // Each option has its declared type: `parseArgs` holds that, which the compiler can't see for any O.
  return { action, name, flags: values as Flags<O> }
}

function split(
  args: readonly string[],
  options: Options,
): { readonly positionals: readonly string[]; readonly values: Readonly<Record<string, unknown>> } {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true })
  } catch (error) {
    // TypeError: an unknown flag, one with a value that takes none, or one without its value.
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}
