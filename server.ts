#!/usr/bin/env node
import { createOutput, FAILED } from './commands/output.ts'
import { runCommandLine } from './commands/command-line.ts'
import { isJournal } from './commands/systemd.ts'
import type { ProgramOptions } from './commands/program.ts'
import { stopSignal } from './commands/serve.ts'
import { createLog, JOURNAL_PREFIX, messageOf } from './kernel/log.ts'

const output = createOutput({
  stdout: (text) => process.stdout.write(text),
  stderr: (text) => process.stderr.write(text),
  terminal: process.stdout.isTTY,
})

// What can't be logged, as on a full disk, is lost and ends nothing.
process.stderr.on('error', () => undefined)
const prefix = isJournal(process.stderr.fd) ? JOURNAL_PREFIX : undefined
const log = createLog(
  (text) => process.stderr.write(text),
  () => new Date(),
  prefix,
)
process.on('exit', () => log.flush())

// Who reads the output may have had enough of it, such as `head`: no reason for a stack trace.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') output.err(`gatehouse: no more can be printed: ${messageOf(error)}`)
  process.exit(FAILED)
})

async function serve(options: ProgramOptions): Promise<number> {
  const code = await (await import('./commands/serve.ts')).serve({ ...options, ready: output.out })
  // postgres.js opens a connection that waited for its next try even when its client has been closed.
  process.exit(code)
}

async function run(): Promise<void> {
  process.exitCode = await runCommandLine(process.argv.slice(2), {
    environment: process.env,
    input: process.stdin,
    output,
    log,
    serve,
    stopSignal,
    errorPrefix: prefix?.error ?? '',
  })
}

// No await out here: in the executable this is a CommonJS module (deploy/build.ts).
process.exitCode = FAILED
void run()
