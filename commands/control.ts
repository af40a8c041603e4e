import { chmodSync, rmSync } from 'node:fs'
import {
  createServer,
  request,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { finished, pipeline } from 'node:stream/promises'
import { Fault } from '../kernel/fault.ts'
import { codeOf, messageOf, type Log } from '../kernel/log.ts'
import { drained } from '../kernel/http/respond.ts'
import { UsageError } from './command.ts'
import { FAILED, WRONG_USAGE, type Output } from './output.ts'

/**
 * The request is one line of JSON, the arguments of the command, and then its input. The reply is
 * lines of JSON: one for each line that the command prints, and its exit code as the last.
 */
type Message = readonly ['out' | 'err' | 'data', string] | { readonly code: number }

/** Runs a command; the caller sends `input` after it. */
type RunCommand = (
  argv: readonly string[],
  output: Output,
  input: AsyncIterable<Uint8Array>,
) => Promise<number>

/** For the arguments alone: the input may have any size and is never held whole. */
const MAX_ARGUMENTS = 1024 * 1024

/**
 * Errors when no server listens; EINVAL: the path is too long for a socket, for a server as well.
 */
const NO_SERVER: ReadonlySet<string | undefined> = new Set(['ENOENT', 'ECONNREFUSED', 'EINVAL'])

/** The socket by which other commands reach the server that has the embedded database. */
export function controlPath(dataDirectory: string): string {
  return join(dataDirectory, 'control.sock')
}

/**
 * Runs commands for other processes of the same user. The caller must hold the lock of the
 * directory.
 */
export async function openControl(path: string, run: RunCommand, log: Log): Promise<Server> {
  const server = createServer((incoming, response) => {
    const output = outputTo(response)
    const chunks: AsyncIterator<Buffer> = incoming.iterator({ destroyOnReturn: false })
    answer(chunks, run, output, log)
      .then(async (code) => {
        response.write(`${JSON.stringify({ code } satisfies Message)}\n`)
        // A caller that is still sending would take the end of the reply for a failure.
        await discard(chunks, incoming).catch(() => undefined)
        response.end()
      })
      .catch((error: unknown) => response.destroy(error instanceof Error ? error : undefined))
  })
  // A large file may take longer than any limit; only this user can connect.
  server.requestTimeout = 0
  // The caller holds the lock, so an existing socket is left from a server that has died.
  rmSync(path, { force: true })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, resolve)
  })
  chmodSync(path, 0o600)
  return server
}

/**
 * Lets the running server run a command. Without a server it gives undefined and leaves `input`
 * unread.
 */
export function runRemotely(
  path: string,
  argv: readonly string[],
  output: Output,
  input: Readable,
): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const options = { socketPath: path, method: 'POST', path: '/', agent: false }
    const outgoing = request(options, (response) => {
      // The command has ended: the rest of the input is not needed.
      const answered = readAnswer(response, output).finally(() => outgoing.destroy())
      answered.then(resolve, reject)
    })
    outgoing.on('error', (error) => {
      if (NO_SERVER.has(codeOf(error))) resolve(undefined)
      else reject(error)
    })
    outgoing.once('socket', (socket) =>
      socket.once('connect', () => {
        outgoing.write(`${JSON.stringify(argv)}\n`)
        pipeline(input, outgoing).catch(reject)
      }),
    )
  })
}

async function readAnswer(response: IncomingMessage, output: Output): Promise<number> {
  let rest = ''
  for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>) {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const message: Message = JSON.parse(line)
      if ('code' in message) return message.code
      const [stream, text] = message
      output[stream](text)
    }
  }
  throw new Error('the server stopped before the command had ended')
}

function outputTo(response: ServerResponse): Output {
  const print = (message: Message): void => void response.write(`${JSON.stringify(message)}\n`)
  return {
    out: (line) => print(['out', line]),
    err: (line) => print(['err', line]),
    data: (line) => print(['data', line]),
    async drained() {
      if (response.destroyed) throw new Error('the caller is gone')
      await drained(response)
    },
  }
}

/** Reads the rest of the input and drops it. */
async function discard(chunks: AsyncIterator<Buffer>, incoming: IncomingMessage): Promise<void> {
  await chunks.return?.()
  await finished(incoming.resume())
}

async function answer(
  chunks: AsyncIterator<Buffer>,
  run: RunCommand,
  output: Output,
  log: Log,
): Promise<number> {
  try {
    const { words, input } = await readRequest(chunks)
    return await run(words, output, input)
  } catch (error) {
    output.err(`gatehouse: ${messageOf(error)}`)
    if (error instanceof UsageError) return WRONG_USAGE
    // What the caller asked for is not possible: no reason for a line in the log.
    if (error instanceof Fault) return FAILED
    log.warn('control command failed', { error: messageOf(error) })
    return FAILED
  }
}

/** The command's words, and what comes after them. */
async function readRequest(
  chunks: AsyncIterator<Buffer>,
): Promise<{ readonly words: readonly string[]; readonly input: AsyncIterable<Uint8Array> }> {
  let head = Buffer.alloc(0)
  let end = -1
  while (end < 0) {
    const { value, done } = await chunks.next()
    if (done !== true) head = Buffer.concat([head, value])
    end = done === true ? head.length : head.indexOf(0x0a)
    if ((end < 0 ? head.length : end) > MAX_ARGUMENTS) {
      throw new UsageError('The command is too long')
    }
  }
  const argv: unknown = JSON.parse(head.toString('utf8', 0, end))
  if (!Array.isArray(argv)) throw new UsageError('The command must be a list of words')
  async function* rest(): AsyncGenerator<Uint8Array> {
    yield head.subarray(end + 1)
    yield* { [Symbol.asyncIterator]: () => chunks }
  }
  return { words: argv.map(String), input: rest() }
}
