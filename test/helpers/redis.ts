import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createClient } from '@redis/client'
import { recordProcess } from './orphans.ts'
import { temporaryFolder } from './owner.ts'
import type { Owner } from './owner.ts'
import { freePort } from './free-port.ts'
import { runFolder } from './run-folder.ts'
import { secret } from './secrets.ts'
import { onPath } from './system-parts.ts'
import { until } from './until.ts'

/** A value of a Redis reply. */
export type Reply = string | number | null | readonly Reply[]

/** A Redis of our own, which a test may stop, crash, freeze and start. */
export type Redis = {
  /** Address with the password. */
  readonly url: string
  /** Runs one command on a connection of the test; bytes of a reply are read as UTF-8. */
  send(...command: readonly (string | Buffer)[]): Promise<Reply>
  /** SIGTERM saves and ends; SIGKILL is the crash: what was answered before it is kept (appendfsync). */
  stop(signal?: 'SIGTERM' | 'SIGKILL'): Promise<void>
  /** Starts a stopped one on the same port and files. */
  start(): Promise<void>
  /** Neither answers nor closes, as a host that is gone. */
  freeze(): void
  thaw(): void
}

/** Starts redis-server on a free port of 127.0.0.1 with a password; it ends with the test. */
export async function startRedis(t: Owner): Promise<Redis> {
  const folder = await temporaryFolder(t, 'redis')
  const port = await freePort()
  const password = secret('redis-password')
  const url = `redis://:${password}@127.0.0.1:${port}`
  const log = join(folder, 'redis.log')
  let child: ChildProcess | undefined
  let client: Client | undefined
  let connecting: Promise<unknown> | undefined

  async function start(): Promise<void> {
    const program = onPath('redis-server')
    if (program === undefined) {
      throw new Error('Redis is missing: install it, on Debian apt-get install redis-server')
    }
    const place = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder]
    const durable = ['--save', '', '--appendonly', 'yes', '--appendfsync', 'always']
    const output = openSync(log, 'a')
    const options = [...place, ...durable, '--requirepass', password]
    child = spawn(program, options, { stdio: ['ignore', output, output] })
    closeSync(output)
    if (child.pid !== undefined) recordProcess(runFolder(), child.pid)
    try {
      await until(() => send('PING'), 'Redis to answer')
    } catch (error) {
      throw new Error(`Redis did not start: ${readFileSync(log, 'utf8').slice(-500)}`, {
        cause: error,
      })
    }
  }

  /** One connection for all, so that commands arrive in the order in which they are sent. */
  async function connected(): Promise<Client> {
    if (client?.isOpen !== true) {
      client = connectionTo(url)
      connecting = client.connect()
    }
    await connecting
    return client
  }

  async function send(...command: readonly (string | Buffer)[]): Promise<Reply> {
    return (await connected()).sendCommand([...command])
  }

  async function stop(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    client?.destroy()
    client = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = Promise.withResolvers<void>()
    child.once('exit', () => ended.resolve())
    child.kill('SIGCONT')
    child.kill(signal)
    await ended.promise
  }

  t.teardown(() => stop('SIGKILL'))
  await start()
  return {
    url,
    send,
    stop,
    start,
    freeze: () => void child?.kill('SIGSTOP'),
    thaw: () => void child?.kill('SIGCONT'),
  }
}

type Client = ReturnType<typeof connectionTo>

function connectionTo(url: string) {
  return createClient({
    url,
    RESP: 2,
    socket: { reconnectStrategy: false },
    maintNotifications: 'disabled',
  }).on('error', () => undefined)
}
