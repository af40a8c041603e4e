import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { t } from 'tap'
import { WebSocket } from 'ws'
import { identity, linksServer } from '../helpers/links.ts'
import { opsServer } from '../helpers/ops.ts'
import { temporaryFolder, type Owner } from '../helpers/owner.ts'
import { until } from '../helpers/until.ts'
import { lacks, longParts } from '../runner/system-parts.ts'
import { fillAdmin, fillOps, fillOrdinary, startSites } from '../browser/sites.ts'

// The pages load in Firefox without an error in script and without a file that is missing, by WebDriver BiDi: all
// other browser tests are of Chromium.

const PAGES = {
  hooks: ['/', '/log', '/log/1', '/providers', '/providers/new', '/destinations', '/settings'],
  links: ['/-/', '/-/all', '/-/new', '/-/admin/users'],
  ops: ['/', '/checks', '/alerts', '/config'],
} as const

type Message = {
  id?: number
  method?: string
  params?: Params
  result?: Params
  error?: string
  message?: string
}
type Params = Record<string, unknown>

/** A headless Firefox on a fresh profile; it ends with the test. */
async function startFirefox(t: Owner) {
  const profile = await temporaryFolder(t, 'firefox')
  const flags = ['--headless', '--no-remote', '--profile', profile, '--remote-debugging-port', '0']
  const program = spawn(longParts.firefox.find() ?? '', flags, {
    env: { ...process.env, HOME: profile },
  })
  t.teardown(async () => {
    const exited = once(program, 'exit')
    program.kill('SIGKILL')
    await exited
  })
  let said = ''
  program.stderr.setEncoding('utf8').on('data', (text: string) => (said += text))
  const listening = () => /listening on (ws:\S+)/.exec(said)?.[1]
  const address = await until(listening, 'Firefox to listen', 120_000)
  const socket = new WebSocket(`${address}/session`)
  await once(socket, 'open')
  t.teardown(() => socket.terminate())

  const waiting = new Map<number, PromiseWithResolvers<Params>>()
  const events: Message[] = []
  socket.on('message', (data: Buffer) => {
    const message = JSON.parse(data.toString()) as Message
    if (message.id === undefined) events.push(message)
    else if (message.error === undefined) waiting.get(message.id)?.resolve(message.result ?? {})
    else waiting.get(message.id)?.reject(new Error(`${message.error}: ${message.message}`))
  })
  let last = 0
  /** Sends a command and gives its result. */
  const command = (method: string, params: Params = {}) => {
    const id = ++last
    const answer = Promise.withResolvers<Params>()
    waiting.set(id, answer)
    socket.send(JSON.stringify({ id, method, params }))
    return answer.promise
  }
  return { command, events }
}

/** What an event says that went wrong; undefined for one that says nothing of the kind. */
function problemIn({ method, params = {} }: Message) {
  if (method === 'log.entryAdded') {
    const { level, text } = params
    return level === 'error' ? String(text) : undefined
  }
  const { request, response, errorText } = params as {
    request?: { url: string }
    response?: { status: number }
    errorText?: string
  }
  // A page that is left ends its streams.
  if (method === 'network.fetchError' && errorText !== 'NS_BINDING_ABORTED') {
    return `${request?.url}: ${errorText}`
  }
  const { status = 0 } = response ?? {}
  return status >= 400 ? `${request?.url} answered ${status}` : undefined
}

await t.test('pages in Firefox', { skip: lacks(longParts.firefox) }, async (t) => {
  const { server, env } = await startSites(t)
  await fillOrdinary(server.hooks)
  const { email } = await fillAdmin(linksServer(server, env))
  await fillOps(opsServer(server, env))
  const { command, events } = await startFirefox(t)
  await command('session.new', { capabilities: {} })
  await command('session.subscribe', {
    events: ['log.entryAdded', 'network.responseCompleted', 'network.fetchError'],
  })
  const { context } = await command('browsingContext.create', { type: 'tab' })
  const headers = Object.entries(identity(email)).map(([name, value]) => {
    return { name, value: { type: 'string', value } }
  })
  await command('network.setExtraHeaders', { headers, contexts: [context] })
  for (const [service, paths] of Object.entries(PAGES)) {
    for (const path of paths) {
      const base = server[service as keyof typeof PAGES]
      events.length = 0
      await command('browsingContext.navigate', { context, url: base + path, wait: 'complete' })
      const { result } = await command('script.evaluate', {
        expression: `document.querySelector('main h1')?.textContent ?? ''`,
        target: { context },
        awaitPromise: false,
      })
      const { value } = result as { value: string }
      t.notMatch(value, /^$|Error|Not Found/, `${service} ${path}: its heading`)
      t.same(
        events.map(problemIn).filter((problem) => problem !== undefined),
        [],
        `${service} ${path}`,
      )
    }
  }
  await command('script.evaluate', {
    expression: `setTimeout(() => { throw new Error('thrown by the test') }, 0)`,
    target: { context },
    awaitPromise: false,
  })
  const isSeen = () => events.some((event) => /thrown by/.test(problemIn(event) ?? ''))
  await until(isSeen, 'an error to be seen')
})
