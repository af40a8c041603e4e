import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { migrate } from '../db/migrate.ts'
import { openDatabase } from '../db/open.ts'
import { refuseUnfitServer } from '../db/server.ts'
import { assetText } from '../kernel/assets.ts'
import { messageOf, type Log } from '../kernel/log.ts'
import { configuredSecrets } from '../services/hooks/secrets.ts'
import {
  SERVICES,
  flagOf,
  ignoredText,
  openConfiguration,
  VARIABLE_NAMES,
  type ConfigSource,
  type VariableName,
} from './configuration.ts'
import {
  UsageError,
  type ConfiguredTools,
  type DatabaseTools,
  type PlainTools,
  type Surroundings,
} from './command.ts'
import { allCommands, commandsOf } from './commands.ts'
import { controlPath, runRemotely } from './control.ts'
import { usageText } from './help.ts'
import { DONE, FAILED, WRONG_USAGE } from './output.ts'
import {
  parseCommand,
  readCall,
  readFlagsFromInput,
  toArguments,
  type ParsedCommand,
} from './parse.ts'

/** Runs a command line to its end and gives the exit code: 0, 1, or 2 for a wrong command line. */
export async function runCommandLine(
  argv: readonly string[],
  surroundings: Surroundings,
): Promise<number> {
  try {
    return (await run(argv, surroundings)) ?? DONE
  } catch (error) {
    const { log, output, errorPrefix } = surroundings
    log.flush()
    output.err(`${errorPrefix}gatehouse: ${messageOf(error)}`)
    if (!(error instanceof UsageError)) return FAILED
    output.err('See: gatehouse help')
    return WRONG_USAGE
  }
}

async function run(
  argv: readonly string[],
  surroundings: Surroundings,
): Promise<number | undefined> {
  const { input, output } = surroundings
  const { flags, envFile, rest } = splitArguments(argv)
  const words = withCommand(rest)
  const rows = await commandsOf(words[0] ?? '')
  const found = parseCommand(rows, words)
  if ('help' in found) {
    output.out(usageText(found.help))
    return undefined
  }
  const parsed = await readFlagsFromInput(found, () => text(input))
  const { command } = parsed
  const plain: PlainTools = {
    ...surroundings,
    version: (JSON.parse(assetText('package.json')) as { version: string }).version,
    random: randomBytes,
    now: () => new Date(),
    loadCommands: allCommands,
  }
  const call = readCall(parsed)
  command.check?.(call, plain.now())
  // Such a command runs where there may be no configuration of a server.
  if (command.needs === 'nothing') return command.run(call, plain)

  const config = openConfiguration({
    flags,
    environment: surroundings.environment,
    envFile,
    collects: command.needs === 'any configuration',
    ...(command.needs === 'live configuration' && { onReload: reportReload(surroundings.log) }),
  })
  warnOfUnknownNames(config, command.needs, surroundings)
  const tools = { ...plain, config }
  if (command.needs !== 'database') return command.run(call, tools)
  const opened = (await command.openInput?.(call, input)) ?? Readable.from([])
  return runWithDatabase(parsed, tools, opened)
}

/** Without a command the services run. */
function withCommand(rest: readonly string[]): readonly string[] {
  const [first] = rest
  if (first === '--help' || first === '-h') return ['help', ...rest.slice(1)]
  if (first === '--version') return ['version', ...rest.slice(1)]
  if (first === undefined || SERVICES.some((service) => service === first))
    return ['serve', ...rest]
  return rest
}

/**
 * Runs a command on the database: by the server that has the embedded database when one runs, else
 * in this process, on the database migrated first.
 */
async function runWithDatabase(
  parsed: ParsedCommand,
  { config, output, log, random, now }: ConfiguredTools,
  input: Readable,
): Promise<number | undefined> {
  const { DATABASE_URL: url, GATEHOUSE_DATA_DIR: dataDirectory } = config.current
  if (url === undefined) {
    const code = await runRemotely(controlPath(dataDirectory), toArguments(parsed), output, input)
    if (code !== undefined) return code
  }
  const { db, close } = await openDatabase({ url, dataDirectory }, log)
  try {
    if (url !== undefined) await refuseUnfitServer(db)
    if (parsed.command.name !== 'migrate') await migrate(db)
    const secrets = configuredSecrets(config, random)
    const tools = { db, config, secrets, output, log, random, now, input }
    return await parsed.command.run(readCall(parsed), tools)
  } finally {
    await close()
  }
}

/** Runs a command in the server, for another process. */
export async function runInServer(argv: readonly string[], tools: DatabaseTools): Promise<number> {
  const parsed = parseCommand(await commandsOf(argv[0] ?? ''), argv)
  if ('help' in parsed) throw new UsageError('The server gives no help')
  const { command } = parsed
  if (command.runInServer !== undefined) return command.runInServer(tools)
  if (command.needs !== 'database') {
    throw new UsageError(`"${command.name}" does not run in the server`)
  }
  const call = readCall(parsed)
  command.check?.(call, tools.now())
  return (await command.run(call, tools)) ?? DONE
}

/** Flags that set a variable. */
function configFlags(): ReadonlyMap<string, VariableName> {
  return new Map(
    VARIABLE_NAMES.flatMap((name) => {
      const flag = flagOf(name)
      return flag === undefined ? [] : [[flag, name] as const]
    }),
  )
}

/** Splits the command line into the flags of the configuration and everything else, in order. */
function splitArguments(argv: readonly string[]): {
  readonly flags: Readonly<Record<string, string>>
  readonly envFile: string | undefined
  readonly rest: readonly string[]
} {
  const known = configFlags()
  const options = Object.fromEntries(
    [...known.keys(), 'env-file'].map((flag) => [flag, { type: 'string' as const }]),
  )
  const { tokens } = parseArgs({
    args: [...argv],
    options,
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  const flags: Record<string, string> = {}
  let envFile: string | undefined
  const rest: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') rest.push(token.value)
    if (token.kind === 'option-terminator') rest.push('--')
    if (token.kind !== 'option') continue
    const name = known.get(token.name)
    if (name === undefined && token.name !== 'env-file') {
      rest.push(token.value === undefined ? token.rawName : `${token.rawName}=${token.value}`)
    } else if (token.value === undefined) throw new UsageError(`--${token.name} needs a value`)
    else if (name === undefined) envFile = token.value
    else flags[name] = token.value
  }
  return { flags, envFile, rest }
}

function reportReload(log: Log): (problem: string | undefined) => void {
  return (problem) =>
    problem === undefined
      ? log.info('configuration re-read')
      : log.warn('configuration not re-read; the former one stays', { problem })
}

/** Kubernetes and Docker set variables such as `HOOKS_PORT`: they must not stop a start. */
function warnOfUnknownNames(
  { unknownNames: names }: ConfigSource,
  needs: string,
  { log, output }: Surroundings,
): void {
  // `check` has it among its findings.
  if (names.length === 0 || needs === 'any configuration') return
  if (needs === 'live configuration') {
    log.warn('unknown variables ignored', { names: names.join(', ') })
  } else output.err(`gatehouse: ${ignoredText(names)}`)
}
