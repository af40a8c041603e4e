import { chmodSync, rmSync } from 'node:fs'
import { createServer, request, type Server } from 'node:http'
import { join } from 'node:path'
import { messageOf, type Log } from '../kernel/log.ts'
import { FAILED, UsageError, WRONG_USAGE, type Output } from './command.ts'

/** What a command printed and how it ended, as the server that ran it tells. */
interface Result {
  readonly code: number
  readonly lines: readonly (readonly ['out' | 'err', string])[]
}

export type RunCommand = (argv: readonly string[], output: Output) => Promise<number>

/** The socket by which other commands reach the server that has the embedded database. */
export function controlPath(dataDirectory: string): string {
  return join(dataDirectory, 'control.sock')
}

/** Runs commands for other processes of the same user; only the server that holds the lock calls this. */
export async function openControl(path: string, run: RunCommand, log: Log): Promise<Server> {
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', () => {
      answer(Buffer.concat(chunks).toString('utf8'), run, log)
        .then((result) => response.end(JSON.stringify(result)))
        .catch((error: unknown) => response.destroy(error instanceof Error ? error : undefined))
    })
  })
  // We hold the directory's lock, so a socket that is there is a dead server's.
  rmSync(path, { force: true })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, resolve)
  })
  chmodSync(path, 0o600)
  return server
}

/** Has the running server run a command; undefined when no server listens on the socket. */
export function runRemotely(
  path: string,
  argv: readonly string[],
  output: Output,
): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ socketPath: path, method: 'POST', path: '/' }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const result = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Result
        for (const [stream, line] of result.lines) output[stream](line)
        resolve(result.code)
      })
    })
    outgoing.on('error', (error) => {
      const code = 'code' in error ? error.code : undefined
      if (code === 'ENOENT' || code === 'ECONNREFUSED') resolve(undefined)
      else reject(error)
    })
    outgoing.end(JSON.stringify(argv))
  })
}

async function answer(text: string, run: RunCommand, log: Log): Promise<Result> {
  const lines: ['out' | 'err', string][] = []
  const output: Output = {
    out: (line) => lines.push(['out', line]),
    err: (line) => lines.push(['err', line]),
  }
  try {
    const argv: unknown = JSON.parse(text)
    if (!Array.isArray(argv)) throw new UsageError('The command must be a list of words')
    return { code: await run(argv.map(String), output), lines }
  } catch (error) {
    output.err(`gatehouse: ${messageOf(error)}`)
    if (error instanceof UsageError) return { code: WRONG_USAGE, lines }
    log.warn('control command failed', { error: messageOf(error) })
    return { code: FAILED, lines }
  }
}
