import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { t } from 'tap'
import { ANN, PROXIED } from '../helpers/audit.ts'
import { postgres } from '../helpers/backends.ts'
import { FREE, runCli, runCliProcess } from '../helpers/cli.ts'
import { rawExchange, request } from '../helpers/http.ts'
import { linksServer } from '../helpers/links.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { childrenOf } from '../helpers/process-figures.ts'
import { keepSecret, secret } from '../helpers/secrets.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { startServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'

/** A line as it is read by programs. */
type Line = Readonly<Record<string, unknown>>

/** The shell becomes the program; what it writes to stderr goes to "the journal". */
function inJournal(descriptor: string) {
  const stream = `JOURNAL_STREAM=$(stat -L -c %d:%i ${descriptor})`
  return ['sh', '-c', `${stream} exec "$0" server.ts "$@"`, process.execPath]
}

t.test('one line a request, one object a line', async (t) => {
  const env = { ...(await postgres.env(t)), ...PROXIED }
  const server = await startServer(t, { env, services: ['hooks', 'links'] })
  const token = secret('token-in-a-path')
  const forwarded = { 'X-Forwarded-For': '198.51.100.7' }
  const page = await request(`${server.hooks}/settings`, { headers: forwarded })
  await request(`${server.hooks}/settings`, { method: 'HEAD' })
  await request(`${server.hooks}/webhooks/generic/ci/${token}?token=${token}`, { method: 'POST' })
  await request(`${server.links}/nothing-here?q=${token}`, { headers: forwarded })
  await rawExchange(Number(new URL(server.hooks).port), 'NONSENSE\r\n\r\n')
  await request(`${server.hooks}/assets/nothing`)
  const logs = await until(() => {
    const found = server.logs().filter((text) => text.includes('"msg":"request"'))
    return found.length >= 6 && found
  }, 'six lines')
  await server.stop()

  for (const text of server.logs()) {
    t.match(text, /^\{"time":"\d{4}-\d\d-\d\dT[\d:]+\.\d{3}Z","level":"(info|warn|error)","msg":"/)
  }
  t.notMatch(server.logs().join('\n'), token, 'a route, never the path or the query')
  const [settings, head, delivery, link, broken, none, ...more] = logs.map((text): Line =>
    JSON.parse(text),
  )
  t.same(more, [])
  t.match(settings, {
    level: 'info',
    request_id: page.headers['x-request-id'],
    service: 'hooks',
    method: 'GET',
    route: '/settings',
    status: 200,
    ms: Number,
    bytes: page.body.length,
    client: '198.51.100.7',
    peer: '127.0.0.1',
  })
  t.match(head, { method: 'HEAD', status: 200, bytes: 0, client: '127.0.0.1' })
  t.notOk('peer' in (head ?? {}), 'the client itself')
  t.match(delivery, { route: '/webhooks/generic/:name/:token', status: 404 })
  t.match(link, { service: 'links', status: 404, client: '198.51.100.7' })
  t.match(broken, { route: '(malformed)', status: 400, client: '127.0.0.1' })
  t.match(none, { status: 404 })
})

t.test('a line has the user: whom the proxy names, or whose token it is', async (t) => {
  const env = {
    ...(await postgres.env(t)),
    ...PROXIED,
    OPS_CHAT_API_KEY: secret('chat-key'),
  }
  const made = await runCli('endpoint add agent', { env, secretShown: true })
  const token = keepSecret('agent', made.stdout.trim())
  const server = await startServer(t, { env })
  const links = linksServer(server, env)
  const ann = await links.user('ann')
  const bearer = (text: string) => ({ authorization: `Bearer ${text}` })
  /** Each request, and what its line says: the route, and the user. */
  const expected = [
    [`${server.hooks}/log`, ANN, '/log ann@example.com'],
    [`${server.hooks}/log`, { 'Remote-Email': 'token agent' }, '/log user token agent'],
    [`${server.hooks}/log`, {}, '/log undefined'],
    [`${server.hooks}/api/v1/events`, { ...ANN, ...bearer(token) }, '/api/v1/events token agent'],
    [`${server.hooks}/api/v1/events`, bearer(secret('wrong')), '/api/v1/events undefined'],

    [`${server.links}/nothing-here`, ANN, '/:slug ann@example.com'],
    [
      `${server.links}/api/v1/links`,
      bearer(ann.token),
      '/api/v1/links token test of ann@example.com',
    ],
    [`${server.ops}/v1/models`, bearer(env.OPS_CHAT_API_KEY), '/v1/models token OPS_CHAT_API_KEY'],
  ] as const
  for (const [url, headers] of expected) await request(url, { headers: { ...headers } })
  await request(`${server.hooks}/mcp/agent`, { method: 'POST', headers: bearer(token) })
  await server.stop()
  const lines = server.logs().map((text): Line => JSON.parse(text))
  const asked = lines.filter(({ msg, route }) => msg === 'request' && route !== '/healthz')
  const told = asked.map(({ route, user }) => `${route} ${user}`)
  t.same(told, [...expected.map(([, , line]) => line), '/mcp/:endpoint token agent'])
})

t.test('the journal is told of each line’s priority, which it takes off', async (t) => {
  const env = await postgres.env(t)
  const program = inJournal('/proc/$$/fd/2')
  const server = await startServerProcess(t, {
    env: { ...env, HOOKS_QUEUE_CHANNELS: 'orders' },
    services: ['hooks'],
    program,
  })
  t.same(await server.stop(), { code: 0, signal: null }, 'SIGTERM ends it in order')
  const levels = server.logs().map((text) => text.slice(0, 3) + JSON.parse(text.slice(3)).level)
  t.same([...new Set(levels)].toSorted(), ['<4>warn', '<6>info'])

  const wrong = { ...env, HOOKS_ADDR: 'nonsense' }
  const refused = await runCliProcess('serve hooks', { env: wrong, program })
  t.match(refused, { code: 1, stderr: /^<3>gatehouse: HOOKS_ADDR [^\n]+\n$/ })
})

t.test('so it is told of what a check finds before a start', async (t) => {
  const data = await temporaryFolder(t)
  const env = { ...FREE, GATEHOUSE_DATA_DIR: data, OPS_ADDR: 'nonsense', OPS_RUNNER: 'cli' }
  const unit = { env: { ...env, PATH: '/bin' }, program: inJournal('/proc/$$/fd/1') }
  const { code, stdout } = await runCliProcess('check', unit)
  t.equal(code, 1)
  for (const line of ['<3>FAIL  configuration: ', '<4>warn  runner: ', '<6>ok    data dir']) {
    t.match(stdout, line)
  }
  t.notMatch(stdout, /^[^<]/m)
})

t.test('a person at a terminal sees one line, then warnings and errors in words', async (t) => {
  const env = { ...(await postgres.env(t)), HOOKS_QUEUE_CHANNELS: 'orders' }
  const seen = join(await temporaryFolder(t), 'seen')
  const inTerminal = `exec script -qefc "exec $0 server.ts $*" ${seen}`
  const program = ['sh', '-c', inTerminal, process.execPath]
  const server = await startServerProcess(t, { env, services: ['hooks'], program, mayExit: true })
  await request(`${server.hooks}/log`)
  const lines = await until(async () => {
    const text = await readFile(seen, 'utf8')
    // A busy machine may have others.
    const lines = text.split(/\r?\n/).filter((line) => !line.includes('warn: the thread'))
    return text.includes('no queue is read: ') && lines.slice(1).filter(Boolean)
  }, 'a warning')
  // `script` does not pass on SIGTERM.
  for (const pid of childrenOf(server.pid)) process.kill(pid, 'SIGTERM')
  t.match(await server.exited, { code: 0 })
  const [warning, ready] = lines.toSorted()
  t.match(warning, /^\d{4}-\d\d-\d\dT[\d:.]+Z warn: no queue is read: [^{}]+$/)
  t.match(ready, /^gatehouse \S+ ready hooks=http:\S+$/)
  t.equal(lines.length, 2, 'no line for a request')
})
