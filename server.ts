#!/usr/bin/env node
import { randomBytes } from 'node:crypto'
import { text } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { DONE, FAILED, UsageError, WRONG_USAGE, type Output } from './commands/command.ts'
import { isJournal } from './commands/journal.ts'
import { SERVICES, type ServiceName } from './commands/service-names.ts'
import { assetText } from './kernel/assets.ts'
import { ignoredText, notesOf, openConfig } from './kernel/config.ts'
import { escapeControls } from './kernel/escape-controls.ts'
import { createLog, JOURNAL_PREFIX, messageOf } from './kernel/log.ts'
import { flagOf, Variables, type VariableName } from './kernel/variables.ts'
import { configuredSecrets } from './services/hooks/signing-secrets.ts'

/** The commands that are none on the open database. The file of each is loaded when it is called. */
const OTHERS: ReadonlySet<string> = new Set(['serve', 'send-sample', 'backup', 'restore', 'db'])

const output: Output = {
  out: (line) => process.stdout.write(`${printable(line)}\n`),
  err: (line) => process.stderr.write(`${printable(line)}\n`),
  data: (line) => process.stdout.write(`${process.stdout.isTTY ? printable(line) : line}\n`),
}

/** Text of one or several lines. */
function printable(text: string): string {
  return text.split('\n').map(escapeControls).join('\n')
}

// What can't be logged, as on a full disk, is lost and ends nothing.
process.stderr.on('error', () => undefined)
const prefix = isJournal(process.stderr.fd) ? JOURNAL_PREFIX : undefined
const log = createLog(
  (text) => process.stderr.write(text),
  () => new Date(),
  prefix,
)

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
function warnOfUnknown(names: readonly string[], command: string): void {
  // `check` has it among its findings.
  if (names.length === 0 || command === 'check') return
  if (command === 'serve') log.warn('unknown variables ignored', { names: names.join(', ') })
  else output.err(`gatehouse: ${ignoredText(names)}`)
}

async function main(argv: readonly string[]): Promise<number> {
  const { flags, envFile, rest } = splitArguments(argv)
  const isService = SERVICES.some((service) => service === rest[0])
  const [command = 'serve', ...args] = isService ? ['serve', ...rest] : rest
  if (command === 'help' || command === '--help' || command === '-h') {
    output.out((await import('./commands/help.ts')).helpText())
    return DONE
  }
  const version = (JSON.parse(assetText('package.json')) as { version: string }).version
  if (command === 'version' || command === '--version') {
    output.out(version)
    return DONE
  }
  // It runs where there may be no configuration of a server.
  if (command === 'forward') {
    const { runForward } = await import('./commands/forward.ts')
    return runForward(args, { random: randomBytes }, output)
  }
  const onDatabase = OTHERS.has(command) ? undefined : await import('./commands/on-database.ts')
  if (onDatabase?.isDatabaseCommand(command) === false) throw unknown('command', command)
  const services = command === 'serve' ? readServices(args) : []

  const config = openConfig({
    flags,
    environment: process.env,
    envFile,
    collects: command === 'check',
    ...(command === 'serve' && {
      onReload: (problem) =>
        problem === undefined
          ? log.info('configuration re-read')
          : log.warn('configuration not re-read; the former one stays', { problem }),
    }),
  })
  warnOfUnknown(config.unknownNames, command)
  const secrets = configuredSecrets(config, randomBytes)
  const readInput = (): Promise<string> => text(process.stdin)
  const now = (): Date => new Date()
  if (command === 'backup') {
    const { runBackup } = await import('./commands/backup.ts')
    return runBackup(args, { config, version, now, log }, output)
  }
  if (command === 'restore') {
    const { runRestore } = await import('./commands/restore.ts')
    return runRestore(args, { config, log }, output)
  }
  if (command === 'db') {
    const { runDb } = await import('./commands/db.ts')
    return runDb(args, { config, log, readInput }, output)
  }
  if (command === 'send-sample') {
    const { sendSample } = await import('./commands/send-sample.ts')
    const { post } = await import('./kernel/outbound.ts')
    const tools = { config, secrets, random: randomBytes, now, post, readInput }
    return sendSample(args, tools, output)
  }
  if (onDatabase !== undefined) {
    const { withSecretFromInput } = await import('./commands/provider-arguments.ts')
    const full = await withSecretFromInput(rest, readInput)
    return onDatabase.runWithDatabase(full, { config, secrets, log }, output)
  }
  const { serve } = await import('./commands/serve.ts')
  const code = await serve({ config, services, secrets, version, log, ready: output.out })
  // postgres.js opens a connection that waited for its next try even when its client has been closed.
  process.exit(code)
}

process.on('exit', () => log.flush())

// Who reads the output may have had enough of it, such as `head`: no reason for a stack trace.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') output.err(`gatehouse: no more can be printed: ${messageOf(error)}`)
  process.exit(FAILED)
})

// No await out here: in the executable this is a CommonJS module (deploy/build.ts).
process.exitCode = FAILED
void run(process.argv.slice(2))

async function run(args: readonly string[]): Promise<void> {
  try {
    process.exitCode = await main(args)
  } catch (error) {
    log.flush()
    output.err(`${prefix?.error ?? ''}gatehouse: ${messageOf(error)}`)
    if (error instanceof UsageError) output.err('See: gatehouse help')
    process.exitCode = error instanceof UsageError ? WRONG_USAGE : FAILED
  }
}
