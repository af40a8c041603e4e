import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createClient } from '@redis/client'
import { onPath } from '../runner/system-parts.ts'
import { apiOf } from './api.ts'
import type { Backend } from './backends.ts'
import { request } from './http.ts'
import { type Owner, freePort, temporaryFolder } from './owner.ts'
import { type Env, recordChild } from './program.ts'
import { secret } from './secrets.ts'
import { startServer } from './server.ts'
import { until } from './until.ts'

/** Starts a Redis and a hooks service that reads its streams, on a fresh database. */
export async function startQueue(t: Owner, backend: Backend, channels: string) {
  const redis = await startRedis(t)
  const env = { ...(await backend.env(t)), ...queueEnv(redis, channels) }
  const server = await startServer(t, { services: ['hooks'], env })
  return { redis, server, base: server.hooks, env }
}

/** Variables by which the service reads streams of a Redis. */
export function queueEnv(redis: Redis, channels: string): Env {
  return { HOOKS_QUEUE_URL: redis.url, HOOKS_QUEUE_CHANNELS: channels }
}

/** Adds an entry of these fields; gives its id. */
export async function add(redis: Redis, stream: string, ...fields: readonly (string | Buffer)[]) {
  return String(await redis.send('XADD', stream, '*', ...fields))
}

/** Adds so many entries with the payloads `{"n":1}` and on; gives their ids. */
export async function addMany(redis: Redis, stream: string, count: number) {
  const numbers = Array.from({ length: count }, (_, at) => at + 1)
  return Promise.all(numbers.map((n) => add(redis, stream, 'payload', `{"n":${n}}`)))
}

/** What Redis says of the consumer group: given out but not acknowledged, and not given out yet. */
export async function groupOf(
  redis: Redis,
  stream: string,
): Promise<{ pending: number; lag: number }> {
  const groups = (await redis.send('XINFO', 'GROUPS', stream)) as readonly (readonly unknown[])[]
  const group = groups.find((pairs) => pairs[1] === 'gatehouse') ?? []
  const value = (name: string) => Number(group[group.indexOf(name) + 1])
  return { pending: value('pending'), lag: value('lag') }
}

/** Waits until so many streams are read: one that was just turned off may still be given an entry. */
export function untilRead(redis: Redis, streams: number) {
  return until(async () => {
    const clients = String(await redis.send('CLIENT', 'LIST'))
    return clients.split('cmd=xreadgroup').length - 1 === streams
  }, `${streams} streams to be read`)
}

/** Waits until every entry of a stream was given out and acknowledged. */
export async function settled(redis: Redis, stream: string, timeoutMs?: number) {
  await until(
    async () => {
      const { pending, lag } = await groupOf(redis, stream)
      return pending === 0 && lag === 0
    },
    `all entries of ${stream} to be acknowledged`,
    timeoutMs,
  )
}

/** The newest events of a stream: ids, newest first. */
export async function eventsOf(base: string, stream: string, limit = 200) {
  const provider = encodeURIComponent(`queue:${stream}`)
  type Page = { events: readonly { id: number }[] }
  const path = `/events?limit=${limit}&provider=${provider}`
  return (await apiOf(base)<Page>('GET', path)).json.events.map(({ id }) => id)
}

/** Waits until a stream has exactly so many events; gives their ids, newest first. */
export async function eventsWhen(base: string, stream: string, count: number, timeoutMs?: number) {
  const what = `${count} events of ${stream}`
  return until(
    async () => {
      const ids = await eventsOf(base, stream, Math.min(count + 1, 200))
      return ids.length === count && ids
    },
    what,
    timeoutMs,
  )
}

/** The health probe's answer. */
export async function healthOf(base: string): Promise<Record<string, string>> {
  const answer = await request(`${base}/healthz`)
  return { ...answer.json<Record<string, string>>(), http: String(answer.status) }
}

/** A value of a Redis reply. */
type Reply = string | number | null | readonly Reply[]

/** A Redis of our own, which a test may stop, crash, freeze and start. */
export type Redis = Awaited<ReturnType<typeof startRedis>>

/** Starts redis-server on a free port of 127.0.0.1 with a password; it ends with the test. */
export async function startRedis(t: Owner) {
  const folder = await temporaryFolder(t, 'redis')
  const port = await freePort()
  const password = secret('redis-password')
  const url = `redis://:${password}@127.0.0.1:${port}`
  const log = join(folder, 'redis.log')
  let child: ChildProcess | undefined
  let client: Client | undefined
  let connecting: Promise<unknown> | undefined

  /** Starts a stopped one on the same port and files. */
  async function start() {
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
    recordChild(child)
    try {
      await until(() => send('PING'), 'Redis to answer')
    } catch (error) {
      throw new Error(`Redis did not start: ${readFileSync(log, 'utf8').slice(-500)}`, {
        cause: error,
      })
    }
  }

  /** One connection for all, so that commands arrive in the order in which they are sent. */
  async function connected() {
    if (client?.isOpen !== true) {
      client = connectionTo(url)
      connecting = client.connect()
    }
    await connecting
    return client
  }

  /** Runs one command on a connection of the test; bytes of a reply are read as UTF-8. */
  async function send(...command: readonly (string | Buffer)[]): Promise<Reply> {
    return (await connected()).sendCommand([...command])
  }

  /** SIGTERM saves and ends; SIGKILL is the crash: what was answered before it is kept (appendfsync). */
  async function stop(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM') {
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
    /** Address with the password. */
    url,
    send,
    stop,
    start,
    /** Neither answers nor closes, as a host that is gone. */
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
