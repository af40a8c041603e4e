#!/usr/bin/env node
import type { ServiceName } from './commands/configuration.ts'
import type { ConfiguredTools } from './commands/command.ts'
import { runCommandLine } from './commands/command-line.ts'
import { createOutput, FAILED } from './commands/output.ts'
import { createLog, JOURNAL_PREFIX, messageOf } from './kernel/log.ts'
import { isJournal } from './kernel/processes/self.ts'

const output = createOutput({
  stdout: (text) => process.stdout.write(text),
  stderr: (text) => process.stderr.write(text),
  terminal: process.stdout.isTTY,
})

// A log line that can't be written, as on a full disk, is lost; the program goes on.
process.stderr.on('error', () => undefined)
const prefix = isJournal(process.stderr.fd) ? JOURNAL_PREFIX : undefined
const log = createLog(
  (text) => process.stderr.write(text),
  () => new Date(),
  prefix,
)
process.on('exit', () => log.flush())

// The reader may close the pipe early, as `head` does: no stack trace.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') output.err(`gatehouse: no more can be printed: ${messageOf(error)}`)
  process.exit(FAILED)
})

async function serveUntilStopped(
  services: readonly ServiceName[],
  { config, version }: ConfiguredTools,
): Promise<number> {
  process.on('uncaughtException', (error) => {
    log.error('uncaught exception', { error: messageOf(error), stack: error.stack })
    log.flush()
    process.exit(FAILED)
  })
  const { serve } = await import('./commands/serve.ts')
  const code = await serve({
    config,
    services,
    version,
    log,
    stopSignal,
    onReloadSignal: (reload) => process.on('SIGHUP', reload),
    ready: output.out,
  })
  // postgres.js retries connections even after its client was closed.
  process.exit(code)
}

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
  process.exitCode = await runCommandLine(process.argv.slice(2), {
    environment: process.env,
    input: process.stdin,
    output,
    log,
    serve: serveUntilStopped,
    stopSignal,
    errorPrefix: prefix?.error ?? '',
  })
}

// No top-level await: in the executable this is a CommonJS module (deploy/build.ts).
process.exitCode = FAILED
void run()
