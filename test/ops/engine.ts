import { createServer } from 'node:http'
import { join } from 'node:path'
import { listen } from '../helpers/listen.ts'
import { temporaryFolder, type Owner } from '../helpers/owner.ts'

/** A log as bytes in base64: always the same, or by what is asked. */
type EngineLog = string | ((query: URLSearchParams) => string)

/** What an engine says of its containers, by their names. */
export type Engine = {
  version: string
  list: readonly object[]
  unhealthy: readonly object[]
  containers: Readonly<Record<string, object>>
  logs: Readonly<Record<string, EngineLog>>
}

/** A container as Docker's API has it in its document. */
export function docker(name: string, state: object, more: object = {}) {
  const Config = { Tty: false, Env: ['TOKEN=hidden'] }
  return { Id: name, Name: `/${name}`, State: state, RestartCount: 0, Config, ...more }
}

/** The log of a container without a terminal: frames of standard output. */
export function framed(...texts: readonly string[]) {
  const frames = texts.map((text) => {
    const header = Buffer.from([1, 0, 0, 0, 0, 0, 0, 0])
    header.writeUInt32BE(Buffer.byteLength(text), 4)
    return Buffer.concat([header, Buffer.from(text)])
  })
  return Buffer.concat(frames).toString('base64')
}

/** Answers as the engine does, at a socket of its own; gives it, and the requests that came. */
export async function startEngine(t: Owner, engine: Engine, refused?: number) {
  const requests: string[] = []
  const server = createServer(({ method = '', url = '' }, response) => {
    requests.push(`${method} ${url}`)
    response.setHeader('Api-Version', engine.version)
    const { pathname, searchParams } = new URL(url, 'http://engine')
    const path = pathname.replace(`/v${engine.version}`, '')
    const [, , name = '', what] = path.split('/')
    const found = (value: unknown) => {
      if (value === undefined) response.statusCode = 404
      response.end(JSON.stringify(value ?? { message: `No such container: ${name}` }))
    }
    if (path === '/_ping') return void response.end('OK')
    if (refused !== undefined) return void response.writeHead(refused).end()
    if (path === pathname) return void response.writeHead(400).end('a path without a version')
    if (path !== '/containers/json' && what === 'logs') {
      const { [name]: log = '' } = engine.logs
      const text = typeof log === 'string' ? log : log(searchParams)
      return void response.end(Buffer.from(text, 'base64'))
    }
    if (path !== '/containers/json') return found(engine.containers[name])
    found(searchParams.get('filters') === null ? engine.list : engine.unhealthy)
  })
  const socket = join(await temporaryFolder(t, 'engine'), 'engine.sock')
  await listen(t, server, { path: socket })
  return { socket, requests }
}
