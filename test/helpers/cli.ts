import { appendFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { setFlagsFromString } from 'node:v8'
import type { Test } from 'tap'
import { runCommandLine } from '../../commands/command-line.ts'
import { createOutput } from '../../commands/frame/output.ts'
import { createLog } from '../../kernel/log.ts'
import { temporaryFolder, type Owner } from './owner.ts'
import { ENGINE_FLAGS, exitOf, runFolder, spawnProgram, type Env } from './program.ts'
import { transcript } from './secrets.ts'
import { overSocket } from './shared-postgres.ts'

/** The words of a command line; a text has a space between them. */
export type Words = string | readonly string[]

/** How to run a command. */
export type CliOptions = {
  env?: Env
  /** Standard input; empty when absent. */
  input?: string | Uint8Array
  /** Its stdout shows a secret by design: keep it out of the transcript. */
  secretShown?: boolean
}

/** How to run a command as a process: `program` stands for `node server.ts`, and it has 60 s when no limit is given. */
export type CliProcessOptions = CliOptions & { program?: readonly string[]; limitMs?: number }

/** What a command left behind; `code` is null when a signal ended it. */
export type CliResult = { code: number | null; stdout: string; stderr: string }

/** What a command that runs in this process reads and prints (bytes of a payload, too), and what asks it to stop. */
type Surface = {
  stdin?: Readable
  stdout(text: string | Buffer): unknown
  stderr(text: string): unknown
  stop?: Promise<string>
}

/** Where help on the command is that was meant. */
const SEE = /^See: gatehouse (help( [a-z-]+)?|[a-z -]+ --help)$/
/** Control characters and those that turn the text's direction. */
const OBEYED = /[^\P{C}\n]/u

/** How the names of the files end that keep which commands have run, for the list of what a run has reached. */
export const COMMANDS_SUFFIX = '.commands'

/** Keeps that a command has ended: its first words, and its exit code. */
export function recordCommand(args: readonly string[], code: number | null) {
  const words = args.slice(0, 2).filter((arg) => /^(?:--)?[a-z-]+$/.test(arg))
  const file = join(runFolder(), `${process.pid}${COMMANDS_SUFFIX}`)
  appendFileSync(file, `${words.join(' ')} ${code}\n`)
}

/**
 * Runs a command to its end in this process; `serve` is stopped once it is ready. What a
 * test needs of a process (signals, umask, a terminal, the streams themselves) has `runCliProcess`.
 */
export async function runCli(
  words: Words,
  { env = {}, input = '', secretShown = false }: CliOptions = {},
) {
  let [stdout, stderr] = ['', '']
  const ready = Promise.withResolvers<string>()
  const code = await runHere(words, env, {
    stdin: Readable.from(input.length === 0 ? [] : [Buffer.from(input)]),
    stdout(text) {
      stdout += text.toString()
      if (/^gatehouse \S+ ready /.test(text.toString())) ready.resolve('the test')
    },
    stderr: (text) => (stderr += text),
    stop: ready.promise,
  })
  transcript('log', secretShown ? stderr : stdout + stderr, 'cli')
  return { code, stdout, stderr }
}

/** Runs a command that must succeed. */
export async function runOk(words: Words, options?: CliOptions): Promise<CliResult> {
  const ended = await runCli(words, options)
  if (ended.code === 0) return ended
  throw new Error(`${wordsOf(words).join(' ')} ended with ${ended.code}: ${ended.stderr}`)
}

/** Runs a command in this process, which prints as it goes on, and gives its exit code. */
export async function runHere(
  words: Words,
  env: Env,
  { stdin = Readable.from([]), stdout, stderr, stop = new Promise(() => undefined) }: Surface,
): Promise<number> {
  const args = wordsOf(words)
  if (env['NODE_OPTIONS'] !== undefined) throw new Error('NODE_OPTIONS needs runCliProcess')
  if (env['DATABASE_URL'] === undefined) {
    for (const flag of ENGINE_FLAGS) setFlagsFromString(flag)
  }
  const log = createLog(stderr, () => new Date())
  const code = await runCommandLine(args, {
    environment: { PATH: process.env['PATH'], HOME: runFolder(), ...overSocket(env) },
    input: stdin,
    output: createOutput({ stdout, stderr, terminal: false }),
    log,
    stopSignal: () => stop,
    errorPrefix: '',
  })
  log.flush()
  recordCommand(args, code)
  return code
}

/** A command in this process that goes on until `stop`, which does what SIGTERM does; it ends with the test. */
export function openCli(t: Owner, words: Words, env: Env = {}, stdin = Readable.from([])) {
  let [stdout, stderr] = ['', '']
  const asked = Promise.withResolvers<string>()
  const ended = runHere(words, env, {
    stdin,
    stdout(text) {
      transcript('log', text, 'cli')
      stdout += text.toString()
    },
    stderr(text) {
      transcript('log', text, 'cli')
      stderr += text
    },
    stop: asked.promise,
  })
  let isOver = false
  const note = () => void (isOver = true)
  ended.then(note, note)
  const stop = () => {
    // What has ended hears no signal.
    if (!isOver) asked.resolve('SIGTERM')
    return ended
  }
  t.teardown(stop)
  return { stdout: () => stdout, stderr: () => stderr, stop, ended }
}

function wordsOf(words: Words) {
  return typeof words === 'string' ? words.split(' ') : words
}

/**
 * A command that is refused: its words, alone or with what else it is given; its exit code; its lines on stderr.
 * A string is the whole text behind `gatehouse: `, a RegExp matches a line. Most have one line.
 */
export type RefusedCommand = readonly [
  call: Words | (CliOptions & { args: Words }),
  code: 1 | 2,
  ...lines: readonly [string | RegExp, ...RegExp[]],
]

/** Rows of refused command lines that begin with the same words. */
export function refusedRows(
  start: string,
  code: 1 | 2,
  rows: readonly (readonly [words: string, ...lines: readonly [string | RegExp, ...RegExp[]]])[],
): readonly RefusedCommand[] {
  return rows.map(([words, ...lines]) => [`${start} ${words}`.trim(), code, ...lines])
}

/**
 * Runs each command and expects its refusal: the exit code, nothing on stdout, one line that says why (with code 2
 * another one that leads to the help), and at the end the state of before. Without a target they run on a data
 * directory that is not there, and not made either.
 */
export async function refuseCommands(
  t: Test,
  target: { env: Env; state: () => Promise<unknown> } | undefined,
  rows: readonly RefusedCommand[],
) {
  const directory = join(await temporaryFolder(t), 'none')
  const { env, state } = target ?? {
    env: { GATEHOUSE_DATA_DIR: directory },
    state: async () => existsSync(directory),
  }
  const before = await state()
  for (const [call, code, line, ...hints] of rows) {
    const { args, ...options } = typeof call === 'object' && 'args' in call ? call : { args: call }
    const result = await runCli(args, { ...options, env: { ...env, ...options.env } })
    const text = typeof line === 'string' ? `gatehouse: ${line}` : line
    const lines = [text, ...hints, ...(code === 2 ? [SEE] : []), '']
    const name = `${code}: ${String(line)}`
    t.same({ code: result.code, stdout: result.stdout }, { code, stdout: '' }, name)
    // A server's log goes there as well.
    const said = result.stderr.split('\n').filter((text) => !text.startsWith('{'))
    t.match(said, lines, name)
    t.equal(said.length, lines.length, `${name}, and no other line`)
    t.match(result.stderr, /^gatehouse: /m, name)
    t.notMatch(result.stderr, OBEYED, `${name}: nothing that a terminal obeys`)
  }
  t.same(await state(), before, 'nothing has changed')
}

/** Runs `node server.ts ARGS…` to its end, `limitMs` at most. */
export async function runCliProcess(
  words: Words,
  options: CliProcessOptions = {},
): Promise<CliResult> {
  const { limitMs = 60_000 } = options
  const args = wordsOf(words)
  const child = spawnProgram(args, options.env ?? {}, options.program)
  const exited = exitOf(child)
  let [stdout, stderr, late] = ['', '', false]
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  // A command that does not read its input may be gone before it is written.
  child.stdin.on('error', () => undefined)
  child.stdin.end(options.input ?? '')
  const timer = setTimeout(() => {
    late = true
    child.kill('SIGKILL')
  }, limitMs)
  const { code } = await exited.finally(() => clearTimeout(timer))
  recordCommand(args, code)
  transcript('log', options.secretShown === true ? stderr : stdout + stderr, 'cli')
  if (late) throw new Error(`'${args[0]}' did not end within ${limitMs} ms; it said: ${stderr}`)
  return { code, stdout, stderr }
}

/** What `gatehouse check` found. */
export type Check = {
  code: number | null
  findings: readonly { level: string; what: string; detail: string }[]
  /** `LEVEL DETAIL` of each line about one thing. */
  about(what: string): readonly string[]
}

/** Addresses that are always free: what else listens on this machine is none of a test's business. */
export const FREE = {
  HOOKS_ADDR: '127.0.0.1:0',
  LINKS_ADDR: '127.0.0.1:0',
  OPS_ADDR: '127.0.0.1:0',
}

/** Runs `gatehouse check --json`. Throws when it prints anything else than findings. */
export async function check(env: Env, args: readonly string[] = []): Promise<Check> {
  const ended = await runCli(['check', ...args, '--json'], { env: { ...FREE, ...env } })
  if (ended.stderr !== '') throw new Error(`check said on stderr: ${ended.stderr}`)
  const findings: Check['findings'] = JSON.parse(ended.stdout)
  const about = (what: string) =>
    findings.filter((one) => one.what === what).map(({ level, detail }) => `${level} ${detail}`)
  return { code: ended.code, findings, about }
}

/** Brings a database up to date by the product's own command, as preparation: throws when it fails. */
export async function migrate(env: Env) {
  await runOk('migrate', { env })
}
