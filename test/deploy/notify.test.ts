import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { postgres } from '../helpers/backends.ts'
import { runCliProcess } from '../helpers/cli.ts'
import { temporaryFolder, type Owner } from '../helpers/owner.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { until } from '../helpers/until.ts'
import { deploymentParts, lacks } from '../runner/system-parts.ts'

// Node has no unix datagram sockets, so that another language plays systemd.
const skip = lacks(deploymentParts.python, deploymentParts.systemd)
const told = (logs: readonly string[]) =>
  logs.filter((line) => line.includes('"systemd not told"'))

t.test('systemd is told of ready, alive and stopping', { skip }, async (t) => {
  const receiver = await startNotifyReceiver(t)
  const watched = { NOTIFY_SOCKET: receiver.path, WATCHDOG_USEC: '600000' }
  const server = await startServerProcess(t, { env: { ...(await postgres.env(t)), ...watched } })
  const has = (start: string) => receiver.messages().filter((line) => line.startsWith(start))
  await until(() => has('READY=1')[0], 'READY=1')
  t.same(has('READY=1'), [
    `READY=1 STATUS=hooks=${server.hooks} links=${server.links} ops=${server.ops}`,
  ])
  await until(() => has('WATCHDOG=1').length > 2, 'three signs of life')
  t.same(await server.stop(), { code: 0, signal: null })
  // A sign of life that was under way may come behind it.
  await until(() => has('STOPPING=1')[0], 'STOPPING=1')
  t.same(has('STOPPING=1'), ['STOPPING=1'])
  t.same(told(server.logs()), [])
})

t.test('who does not start is never ready', { skip }, async (t) => {
  const receiver = await startNotifyReceiver(t)
  const env = { ...(await postgres.env(t)), NOTIFY_SOCKET: receiver.path, HOOKS_ADDR: 'fd:hooks' }
  const { code, stderr } = await runCliProcess('serve hooks', { env })
  t.match({ code, stderr }, { code: 1, stderr: /No socket named "hooks" was passed/ })
  await until(() => receiver.messages().includes('STOPPING=1'), 'STOPPING=1')
  t.same(receiver.messages(), ['STOPPING=1'])
})

t.test('another process is watched: there are no signs of life', { skip }, async (t) => {
  const receiver = await startNotifyReceiver(t)
  const watched = { NOTIFY_SOCKET: receiver.path, WATCHDOG_USEC: '30000', WATCHDOG_PID: '1' }
  const env = { ...(await postgres.env(t)), ...watched }
  const server = await startServerProcess(t, { services: ['hooks'], env })
  await until(() => receiver.messages().length > 0, 'READY=1')
  await server.stop()
  await until(() => receiver.messages().at(-1) === 'STOPPING=1', 'STOPPING=1')
  t.match(receiver.messages(), [/^READY=1/, 'STOPPING=1'])
})

t.test('a systemd that can’t be told harms nobody, and is named once', { skip }, async (t) => {
  const gone = join(await temporaryFolder(t, 'empty'), 'gone')
  const env = { ...(await postgres.env(t)), NOTIFY_SOCKET: gone, WATCHDOG_USEC: '30000' }
  const server = await startServerProcess(t, { services: ['hooks'], env })
  await until(() => told(server.logs()).length > 0, 'the line in the log')
  t.equal((await fetch(`${server.hooks}/healthz`)).status, 200)
  t.same(await server.stop(), { code: 0, signal: null })
  t.equal(told(server.logs()).length, 1, 'one line')
  t.match(told(server.logs())[0], /it ended with 1: /)
})

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

/** Listens on a socket of its own until the test ends. */
async function startNotifyReceiver(t: Owner) {
  const path = join(await temporaryFolder(t, 'notify'), 'socket')
  const child = spawn('python3', ['-c', RECEIVE, path], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  let received = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (received += text))
  await until(() => existsSync(path), 'the receiver of notifications to listen')
  /** The messages so far, without the barriers between them. */
  const messages = () => received.split('\n').filter((line) => line !== '' && line !== 'BARRIER=1')
  return { path, messages }
}
