import { randomBytes } from 'node:crypto'
import { text } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { assetText } from '../kernel/assets.ts'
import { ignoredText, notesOf, openConfig } from '../kernel/config.ts'
import { messageOf } from '../kernel/log.ts'
import { flagOf, Variables, type VariableName } from '../kernel/variables.ts'
import { configuredSecrets } from '../services/hooks/secrets.ts'
import { DONE, FAILED, UsageError, WRONG_USAGE, type Surroundings } from './command.ts'
import type { ProgramOptions } from './program.ts'
import { SERVICES, type ServiceName } from './service-names.ts'

/** The commands that are none on the open database. The file of each is loaded when it is called. */
const OTHERS: ReadonlySet<string> = new Set(['serve', 'send-sample', 'backup', 'restore', 'db'])

/** What a command line runs in, with the server as one of its commands. */
export interface ServingSurroundings extends Surroundings {
  /** Runs the server until it is told to stop, and gives the exit code. */
  readonly serve: (options: ProgramOptions) => Promise<number>
}

/** Runs a command line to its end and gives the exit code: 0, 1, or 2 for a wrong command line. */
export async function runCommandLine(
  argv: readonly string[],
  surroundings: ServingSurroundings,
): Promise<number> {
  try {
    return await run(argv, surroundings)
  } catch (error) {
    const { log, output, errorPrefix } = surroundings
    log.flush()
    output.err(`${errorPrefix}gatehouse: ${messageOf(error)}`)
    if (!(error instanceof UsageError)) return FAILED
    output.err('See: gatehouse help')
    return WRONG_USAGE
  }
}

async function run(argv: readonly string[], surroundings: ServingSurroundings): Promise<number> {
  const { environment, input, output, log, stopSignal } = surroundings
  const { flags, envFile, rest } = splitArguments(argv)
  const isService = SERVICES.some((service) => service === rest[0])
  const [command = 'serve', ...args] = isService ? ['serve', ...rest] : rest
  if (command === 'help' || command === '--help' || command === '-h') {
    output.out((await import('./help.ts')).helpText())
    return DONE
  }
  const version = (JSON.parse(assetText('package.json')) as { version: string }).version
  if (command === 'version' || command === '--version') {
    output.out(version)
    return DONE
  }
  // It runs where there may be no configuration of a server.
  if (command === 'forward') {
    const { runForward } = await import('./forward.ts')
    return runForward(args, { random: randomBytes, stopSignal }, output)
  }
  const onDatabase = OTHERS.has(command) ? undefined : await import('./on-database.ts')
  if (onDatabase?.isDatabaseCommand(command) === false) throw unknown('command', command)
  const services = command === 'serve' ? readServices(args) : []

  const config = openConfig({
    flags,
    environment,
    envFile,
    collects: command === 'check',
    ...(command === 'serve' && {
      onReload: (problem) =>
        problem === undefined
          ? log.info('configuration re-read')
          : log.warn('configuration not re-read; the former one stays', { problem }),
    }),
  })
  warnOfUnknown(config.unknownNames, command, surroundings)
  const secrets = configuredSecrets(config, randomBytes)
  const readInput = (): Promise<string> => text(input)
  const now = (): Date => new Date()
  if (command === 'backup') {
    const { runBackup } = await import('./backup.ts')
    return runBackup(args, { config, version, now, log, stopSignal }, output)
  }
  if (command === 'restore') {
    const { runRestore } = await import('./restore.ts')
    return runRestore(args, { config, log }, output)
  }
  if (command === 'db') {
    const { runDb } = await import('./db.ts')
    return runDb(args, { config, log, readInput }, output)
  }
  if (command === 'send-sample') {
    const { sendSample } = await import('./send-sample.ts')
    const { post } = await import('../kernel/net/outbound.ts')
    const tools = { config, secrets, random: randomBytes, now, post, readInput }
    return sendSample(args, tools, output)
  }
  if (onDatabase !== undefined) {
    const { withSecretFromInput } = await import('./provider-arguments.ts')
    const full = await withSecretFromInput(rest, readInput)
    const context = { config, secrets, log }
    return onDatabase.runWithDatabase(full, context, { environment, input, output })
  }
  return surroundings.serve({ config, services, secrets, version, log })
}

/** Flags that set a variable, by flag; a secret has none, because other users can see arguments. */
function configFlags(): ReadonlyMap<string, VariableName> {
  const names = Object.keys(Variables.properties) as VariableName[]
  return new Map(
    names.filter((name) => notesOf(name).secret !== true).map((name) => [flagOf(name), name]),
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

/** Names a flag without its value: somebody may try to give a secret by one. */
function unknown(kind: 'command' | 'service', word: string): UsageError {
  const isFlag = word.startsWith('-')
  return new UsageError(
    `There is no ${isFlag ? 'flag' : kind} "${isFlag ? word.replace(/=.*/s, '') : word}"`,
  )
}

function readServices(args: readonly string[]): readonly ServiceName[] {
  for (const name of args) {
    if (!SERVICES.some((service) => service === name)) throw unknown('service', name)
  }
  const wanted = SERVICES.filter((service) => args.includes(service))
  return wanted.length === 0 ? SERVICES : wanted
}

/** Kubernetes and Docker inject names such as `HOOKS_PORT`: a start must not fail for them. */
function warnOfUnknown(
  names: readonly string[],
  command: string,
  { log, output }: Surroundings,
): void {
  // `check` has it among its findings.
  if (names.length === 0 || command === 'check') return
  if (command === 'serve') log.warn('unknown variables ignored', { names: names.join(', ') })
  else output.err(`gatehouse: ${ignoredText(names)}`)
}
