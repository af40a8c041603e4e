import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../helpers/owner.ts'
import type { Owner } from '../helpers/owner.ts'
import { until } from '../helpers/until.ts'

/** Prints each message as a line; file descriptors are closed, which is what a barrier waits for. */
const RECEIVE = `
import os, socket, sys
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind(sys.argv[1])
while True:
    data, passed, _, _ = receiver.recvmsg(4096, socket.CMSG_SPACE(64))
    for _, _, numbers in passed:
        for at in range(0, len(numbers), 4):
            os.close(int.from_bytes(numbers[at:at + 4], sys.byteorder))
    print(data.decode().replace('\\n', ' '), flush=True)
`

/** A datagram socket in systemd's place. */
export type NotifyReceiver = {
  readonly path: string
  /** The messages so far, without the barriers between them. */
  messages(): readonly string[]
}

/** Listens on a socket of its own until the test ends. */
export async function startNotifyReceiver(t: Owner): Promise<NotifyReceiver> {
  const path = join(await temporaryFolder(t, 'notify'), 'socket')
  const child = spawn('python3', ['-c', RECEIVE, path], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  let received = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (received += text))
  await until(() => existsSync(path), 'the receiver of notifications to listen')
  const messages = (): readonly string[] =>
    received.split('\n').filter((line) => line !== '' && line !== 'BARRIER=1')
  return { path, messages }
}
