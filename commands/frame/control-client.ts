import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { http } from '../../kernel/http/node-http.ts'
import { codeOf } from '../../kernel/log.ts'
import type { Message } from './control.ts'
import type { Output } from './output.ts'

/**
 * Errors when no server listens; EINVAL: the path is too long for a socket, for a server as well.
 */
const NO_SERVER = ['ENOENT', 'ECONNREFUSED', 'EINVAL']

/**
 * Lets the running server run a command. Without a server it gives undefined and leaves `input`
 * unread.
 */
export async function runRemotely(
  path: string,
  argv: readonly string[],
  output: Output,
  input: Readable,
): Promise<number | undefined> {
  const socket = connect(path)
  try {
    await once(socket, 'connect')
  } catch (error) {
    if (NO_SERVER.includes(codeOf(error) ?? '')) return undefined
    throw error
  }
  const outgoing = http.request({
    createConnection: () => socket,
    method: 'POST',
    path: '/',
  })
  outgoing.on('error', () => undefined)
  outgoing.write(`${JSON.stringify(argv)}\n`)
  const answered = once(outgoing, 'response').then(([response]) => {
    return readAnswer(response, output)
  })
  const sent = pipeline(input, outgoing).then(() => answered)
  // The command may end before its input: the rest of that is not needed.
  return Promise.race([answered, sent]).finally(() => outgoing.destroy())
}

async function readAnswer(response: IncomingMessage, output: Output) {
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
