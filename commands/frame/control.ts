import { once } from 'node:events'
import { chmodSync, rmSync } from 'node:fs'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { finished } from 'node:stream/promises'
import { Fault } from '../../kernel/fault.ts'
import { http } from '../../kernel/http/node-http.ts'
import { messageOf, type Log } from '../../kernel/log.ts'
import { drained } from '../../kernel/http/respond.ts'
import { UsageError, type CommandTable, type DatabaseTools } from './command.ts'
import { DONE, FAILED, WRONG_USAGE, type Output } from './output.ts'
import { parseCommand, readCall } from './parse.ts'

/**
 * The request is one line of JSON, the arguments of the command, and then its input. The reply is
 * lines of JSON: one for each line that the command prints, and its exit code as the last.
 */
export type Message = readonly ['out' | 'err' | 'data', string] | { code: number }

/** Runs a command; the caller sends `input` after it. */
export type RunCommand = (
  argv: readonly string[],
  output: Output,
  input: AsyncIterable<Uint8Array>,
) => Promise<number>

/** For the arguments alone: the input may have any size and is never held whole. */
const MAX_ARGUMENTS = 1024 * 1024

/** The socket by which other commands reach the server that has the embedded database. */
export function controlPath(dataDirectory: string): string {
  return join(dataDirectory, 'control.sock')
}

/**
 * Runs commands for other processes of the same user. The caller must hold the lock of the
 * directory.
 */
export async function openControl(path: string, run: RunCommand, log: Log): Promise<Server> {
  const server = http.createServer(async (incoming, response) => {
    const code = await answer(incoming, run, outputTo(response), log)
    response.write(`${JSON.stringify({ code } satisfies Message)}\n`)
    // A caller that is still sending would take the end of the reply for a failure.
    await finished(incoming.resume()).catch(() => undefined)
    response.end()
  })
  // A large file may take longer than any limit; only this user can connect.
  server.requestTimeout = 0
  // The caller holds the lock, so an existing socket is left from a server that has died.
  rmSync(path, { force: true })
  await once(server.listen(path), 'listening')
  chmodSync(path, 0o600)
  // Without a listener an error of `accept`, as for want of files, would end the program.
  server.on('error', (error) =>
    log.error('connection not accepted', { service: 'control', error: messageOf(error) }),
  )
  return server
}

/** Runs a command in this process, for another one. */
export async function runInServer(
  argv: readonly string[],
  table: CommandTable,
  tools: DatabaseTools,
): Promise<number> {
  const parsed = parseCommand(await table.of(argv[0] ?? ''), argv)
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

function outputTo(response: ServerResponse): Output {
  function print(message: Message) {
    response.write(`${JSON.stringify(message)}\n`)
  }
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

async function answer(
  incoming: IncomingMessage,
  run: RunCommand,
  output: Output,
  log: Log,
): Promise<number> {
  try {
    const { words, input } = await readRequest(incoming)
    return await run(words, output, input)
  } catch (error) {
    const problem = messageOf(error)
    output.err(`gatehouse: ${problem}`)
    if (error instanceof UsageError) return WRONG_USAGE
    // A fault means that what the caller asked for is not possible: no reason for a line in the
    // log.
    if (!(error instanceof Fault)) log.warn('control command failed', { error: problem })
    return FAILED
  }
}

/** The command's words, and what comes after them. */
async function readRequest(incoming: IncomingMessage) {
  let head = Buffer.alloc(0)
  for await (const chunk of piecesOf(incoming)) {
    head = Buffer.concat([head, chunk])
    if (head.includes('\n') || head.length > MAX_ARGUMENTS) break
  }
  const [line = ''] = head.toString().split('\n', 1)
  if (Buffer.byteLength(line) > MAX_ARGUMENTS) throw new UsageError('The command is too long')
  const argv: unknown = JSON.parse(line)
  if (!Array.isArray(argv)) throw new UsageError('The command must be a list of words')
  async function* rest(): AsyncGenerator<Uint8Array> {
    yield head.subarray(Buffer.byteLength(line) + 1)
    yield* piecesOf(incoming)
  }
  return { words: argv.map(String), input: rest() }
}

/** The chunks of a request. Leaving the loop early does not destroy the request. */
function piecesOf(incoming: IncomingMessage): AsyncIterable<Buffer> {
  return incoming.iterator({ destroyOnReturn: false })
}
