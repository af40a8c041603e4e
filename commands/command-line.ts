import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { resolve } from 'node:path'
import { hasCluster } from '../db/embedded/cluster.ts'
import { migrate } from '../db/migrate.ts'
import { openDatabase } from '../db/open.ts'
import { refuseUnfitServer } from '../db/server.ts'
import { openConfig, type Reload } from '../kernel/config.ts'
import { assetText } from '../kernel/assets.ts'
import { messageOf, type Log } from '../kernel/log.ts'
import { configuredSecrets } from '../services/hooks/receive/schemes/configured-secrets.ts'
import { keyDifference, SAME_KEY } from '../services/secret-key.ts'
import {
  CONFIG_FLAGS,
  ignoredText,
  isServiceName,
  OTHER_NAMES,
  VARIABLES,
} from './frame/configuration.ts'
import {
  UsageError,
  type ConfiguredTools,
  type PlainTools,
  type Surroundings,
} from './frame/command.ts'
import { commandTable } from './commands.ts'
import { controlPath } from './frame/control.ts'
import { runRemotely } from './frame/control-client.ts'
import { ensureKey } from './house/secret-key.ts'
import { DONE, FAILED, WRONG_USAGE } from './frame/output.ts'
import {
  parseCommand,
  readCall,
  readFlagsFromFiles,
  tokensOf,
  toArguments,
  type ParsedCommand,
} from './frame/parse.ts'
import { usageText } from './frame/usage.ts'

/** Runs a command line to its end and gives the exit code: 0, 1, or 2 for a wrong command line. */
export async function runCommandLine(
  argv: readonly string[],
  surroundings: Surroundings,
): Promise<number> {
  const { log, output, errorPrefix } = surroundings
  const code = await run(argv, surroundings).catch((error: unknown) => {
    log.flush()
    output.err(`${errorPrefix}gatehouse: ${messageOf(error)}`)
    return error instanceof UsageError ? WRONG_USAGE : FAILED
  })
  if (code === WRONG_USAGE) output.err(`See: gatehouse ${await helpOn(argv)}`)
  return code ?? DONE
}

/** The words that call the help on what a wrong command line has begun. */
async function helpOn(argv: readonly string[]): Promise<string> {
  const words = argv.filter((word) => !word.startsWith('-'))
  const [first = '', ...others] = words
  if (isServiceName(first)) return others.every(isServiceName) ? 'serve --help' : `help ${first}`
  if (first === 'help' || !commandTable.has(first)) return 'help'
  const rows = await commandTable.of(first)
  const found = rows.find(
    ({ name }) => name === first || others.includes(name.split(' ')[1] ?? ''),
  )
  return found === undefined ? `help ${first}` : `${found.name} --help`
}

async function run(argv: readonly string[], surroundings: Surroundings) {
  const { environment, input, output, log } = surroundings
  const { flags, rest } = splitArguments(argv)
  const words = withCommand(rest)
  const rows = await commandTable.of(words[0] ?? '')
  const found = parseCommand(rows, words)
  if ('help' in found) {
    output.out(usageText(found.help))
    return undefined
  }
  const parsed = await readFlagsFromFiles(found, () => text(input))
  const { command } = parsed
  const { version }: { version: string } = JSON.parse(assetText('package.json'))
  const plain: PlainTools = {
    ...surroundings,
    version,
    random: randomBytes,
    now: () => new Date(),
    table: commandTable,
  }
  const call = readCall(parsed)
  command.check?.(call, plain.now())
  // Such a command runs where there may be no configuration of a server.
  if (command.needs === 'nothing') return command.run(call, plain)

  const config = openConfig(VARIABLES, {
    flags,
    environment,
    otherNames: OTHER_NAMES,
    collects: command.needs === 'any configuration',
    ...(command.needs === 'live configuration' && { onReload: reportReload(log) }),
  })
  warnOfUnknownNames(config.unknownNames, command.needs, surroundings)
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
  if (first === undefined) return ['serve']
  if (!isServiceName(first)) return rest
  // After a flag that nobody knows, the next word may be its value: the flag is what is wrong.
  const wrong = rest.find((word) => word.startsWith('-') || !isServiceName(word))
  if (wrong === undefined || wrong.startsWith('-')) return ['serve', ...rest]
  // `gatehouse links list` is what somebody types who looks for a command.
  throw new UsageError(`"${first}" alone runs that service, and takes no "${wrong}"`)
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
    const path = controlPath(dataDirectory)
    const code = await runRemotely(path, toArguments(parsed), output, input)
    if (code !== undefined) return code
  }
  const isNew = url === undefined && !hasCluster(dataDirectory)
  await using database = await openDatabase({ url, dataDirectory }, log)
  if (isNew) output.err(`gatehouse: ${newDatabaseText(dataDirectory)}`)
  const { db } = database
  if (url !== undefined) await refuseUnfitServer(db)
  const secrets = configuredSecrets(config, random)
  if (parsed.command.name !== 'migrate') {
    await migrate(db)
    ensureKey(config, random)
    const difference = secrets.box() && (await keyDifference(db, secrets.box()))
    if (difference !== undefined) output.err(`gatehouse: ${difference}: ${SAME_KEY}`)
  }
  const actor = { kind: 'command' } as const
  const tools = { db, actor, config, secrets, output, log, random, now, input }
  return await parsed.command.run(readCall(parsed), tools)
}

/** Somebody who meant the database of a service hears that this is not it. */
function newDatabaseText(dataDirectory: string) {
  const folder = resolve(dataDirectory)
  return `made a new, empty database in ${folder}; to use another, set GATEHOUSE_DATA_DIR or DATABASE_URL`
}

/** Splits the command line into the flags of the configuration and everything else, in order. */
function splitArguments(argv: readonly string[]) {
  const flags: Record<string, string> = {}
  const rest: string[] = []
  for (const token of tokensOf(argv, [...CONFIG_FLAGS.keys()])) {
    if (token.kind === 'positional') rest.push(token.value)
    if (token.kind === 'option-terminator') rest.push('--')
    if (token.kind !== 'option') continue
    const name = CONFIG_FLAGS.get(token.name)
    const { value } = token
    if (name === undefined) {
      rest.push(value === undefined ? token.rawName : `${token.rawName}=${value}`)
    } else if (value === undefined) {
      throw new UsageError(`--${token.name} needs a value`)
    } else flags[name] = value
  }
  return { flags, rest }
}

/** Logs what came of reading the configuration again. */
export function reportReload(log: Log) {
  return (outcome: Reload) => {
    if ('problem' in outcome) {
      const { problem } = outcome
      return log.warn('configuration not re-read; the former one stays', { problem })
    }
    const [applied, waiting] = [outcome.applied.join(' '), outcome.waiting.join(' ')]
    log.info('configuration re-read', { applied, waits_for_restart: waiting })
  }
}

/** Kubernetes and Docker set variables such as `HOOKS_PORT`: they must not stop a start. */
function warnOfUnknownNames(
  names: readonly string[],
  needs: string,
  { log, output }: Surroundings,
): void {
  // `check` has it among its findings.
  if (names.length === 0 || needs === 'any configuration') return
  if (needs === 'live configuration') {
    log.warn('unknown variables ignored', { names: names.join(', ') })
  } else output.err(`gatehouse: ${ignoredText(names)}`)
}
