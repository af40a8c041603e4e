#!/usr/bin/env node
import { setFlagsFromString } from 'node:v8'
import { runCommandLine } from './commands/command-line.ts'
import { instanceFields } from './commands/house/instance.ts'
import { createOutput, FAILED } from './commands/frame/output.ts'
import { createLog, JOURNAL_PREFIX, messageOf } from './kernel/log.ts'
import { isJournal, logFormOf } from './kernel/processes/self.ts'

// Half of the threads look up names. A look-up that waits for a silent name server holds its thread
// for ten seconds or more: with Node's own four, two such names would hold up all that is sent.
process.env['UV_THREADPOOL_SIZE'] ??= '32'

// In an overload V8 learns that the objects of requests live long. From then on it would make them
// old from birth, and each collection of garbage would take five times as long
// (docs/decisions/083-garbage.md).
setFlagsFromString('--no-allocation-site-pretenuring')

const output = createOutput({
  stdout: (text) => process.stdout.write(text),
  stderr: (text) => process.stderr.write(text),
  terminal: process.stdout.isTTY,
})

// A log line that can't be written, as on a full disk, is lost; the program goes on.
process.stderr.on('error', () => undefined)
const log = createLog(
  (text) => process.stderr.write(text),
  () => new Date(),
  logFormOf(process.stderr.fd, instanceFields()),
)
process.on('exit', () => log.flush())

// The reader may close the pipe early, as `head` does: no stack trace.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') output.err(`gatehouse: no more can be printed: ${messageOf(error)}`)
  process.exit(FAILED)
})

/**
 * The terminal sends Ctrl-C to npm and its child, and npm passes it on: one press, two signals.
 */
const PRESS_MS = 300

/** The first SIGTERM or SIGINT; a second one ends the process at once. */
function stopSignal(): Promise<string> {
  return new Promise((resolve) => {
    let first: { signal: string; at: number } | undefined
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        const at = performance.now()
        const repeated = first?.signal === signal && at - first.at < PRESS_MS
        if (first !== undefined && !repeated) process.exit(FAILED)
        first ??= { signal, at }
        resolve(signal)
      })
    }
  })
}

async function run(): Promise<void> {
  const code = await runCommandLine(process.argv.slice(2), {
    environment: process.env,
    input: process.stdin,
    output,
    log,
    stopSignal,
    errorPrefix: isJournal(process.stderr.fd) ? JOURNAL_PREFIX.error : '',
  })
  // The process would not end by itself: postgres.js retries connections of a closed client. What
  // was printed comes first.
  process.stdout.write('', () => process.exit(code))
}

// No top-level await: in the executable this is a CommonJS module (deploy/build.ts).
process.exitCode = FAILED
void run()
