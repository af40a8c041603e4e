import { existsSync, readFileSync } from 'node:fs'
import { chmod, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { dirname, join } from 'node:path'
import { createServer, getCACertificates, setDefaultCACertificates } from 'node:tls'
import { t, type Test } from 'tap'
import { openForward, recorded, startForward } from '../fixtures/forward-setup.ts'
import { processesWith } from '../helpers/agents.ts'
import { backends } from '../helpers/backends.ts'
import {
  SIGNED_ENV,
  addProvider,
  deliver,
  post,
  startHooks,
  type Ack,
  type Bytes,
  signatureHeaders,
} from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'
import { listen } from '../helpers/listen.ts'
import { freePort, temporaryFolder } from '../helpers/owner.ts'
import { ROOT } from '../helpers/program.ts'
import { expectStatus } from '../helpers/refusals.ts'
import { startReceiver, type Receiver } from '../helpers/replays.ts'
import { keepSecret } from '../helpers/secrets.ts'
import { startServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends
const ENDED = { code: 0, signal: null }
const FAILED = { code: 1, signal: null }
const { base } = await startHooks(t, postgres)
await addProvider(base, 'lan', { open: true })
/** Answers everything with 204. */
const calm = await startReceiver(t)

async function send(body: Bytes = '{}', type = 'note') {
  const answer = await post(base, 'generic/lan', body, { 'X-Event-Type': type })
  return answer.json<Ack>().id
}

function idsAt({ received }: Receiver) {
  return received.map(({ headers }) => Number(headers['x-gatehouse-event']))
}

/** A target that answers with these statuses, one after the other, and then with 200. */
function startTarget(t: Test, ...statuses: readonly number[]) {
  const left = [...statuses]
  return startReceiver(t, (_, response) => {
    response.writeHead(left.shift() ?? 200, { Location: '/elsewhere' }).end('answered')
  })
}

async function connected<F extends { connected(): Promise<unknown> }>(forwarder: F) {
  await forwarder.connected()
  return forwarder
}

type Lines = { lines(): readonly string[] }

function hasLines({ lines }: Lines, count: number, what: string) {
  return until(() => lines().length >= count, what)
}

/** What the lines of `--json` say. */
function readJson({ lines }: Lines) {
  return lines().map((line): Readonly<Record<string, unknown>> => JSON.parse(line))
}

function forward(t: Test, target: string, ...args: readonly string[]) {
  return openForward(t, [target, '--from', base, ...args])
}

t.test('a line an event', async (t) => {
  const token = keepSecret('target-token', 'target-token-4711')
  const target = await startTarget(t)
  const forwarder = await connected(forward(t, `${target.url}/hook?token=${token}&a=b`))
  const id = await send('{"a":"é"}')
  await hasLines(forwarder, 1, 'a line')
  t.match(forwarder.lines(), [`${id}  generic:lan  note  10 B  200  `])
  t.match(target.received, [{ method: 'POST', path: `/hook?token=${token}&a=b` }])
  const [attempt] = await recorded(base, id)
  t.match(attempt, { outcome: 'delivered', answer: /200/, kind: /forward/i })
  t.match(attempt?.target, `${target.url}/hook?token=`)
  t.same(await forwarder.stop(), ENDED)
  t.match(forwarder.said(), /^connected as ".+ 127\.0\.0\.1:\d+\/hook", after event \d+\n$/)
})

t.test('lines of JSON, and only what is wanted', async (t) => {
  const kind = ['--provider', 'generic:lan', '--event-type', 'wanted']
  const forwarder = await connected(forward(t, calm.url, '--json', ...kind))
  await send('{}', 'other')
  const id = await send('{"b":1}', 'wanted')
  await hasLines(forwarder, 1, 'a line')
  const event = { id, provider: 'generic:lan', event_type: 'wanted', payload_size: 7 }
  const told = { received_at: /^20.*Z$/, ms: Number, status: 204, attempts: 1, delivered: true }
  t.match(readJson(forwarder), [{ ...event, ...told }])
  const unknown = forward(t, calm.url, '--provider', 'stripe', '--name', 'typo')
  await until(() => unknown.said().includes('there is no provider "stripe" yet'), 'the warning')
})

t.test('a failed event is tried again before the next one', async (t) => {
  const target = await startTarget(t, 500, 302)
  const forwarder = await connected(forward(t, target.url))
  const [first, second] = [await send(), await send()]
  await hasLines(forwarder, 2, 'both events')
  t.same(idsAt(target), [first, first, first, second])
  t.match(forwarder.said(), `event ${first}: status 500; again in `)
  t.match(forwarder.said(), ': status 302 redirects are not followed; again in')
  const outcomes = (await recorded(base, first, 3)).map(({ outcome }) => outcome)
  t.same(outcomes, ['delivered', 'failed', 'failed'])
  await forwarder.stop()

  const away = await connected(forward(t, `http://127.0.0.1:${await freePort()}/`))
  const id = await send()
  await until(() => away.said().includes('ECONNREFUSED'), 'the failure to be said')
  const failed = { outcome: 'failed', detail: 'ECONNREFUSED' }
  t.match((await recorded(base, id)).at(-1), failed)
})

t.test('retries that are used up end it; the event is not lost', async (t) => {
  const target = await startTarget(t, 500, 500)
  const forwarder = await connected(forward(t, target.url, '--name', 'patient', '--retries', '1'))
  const id = await send()
  t.same(await forwarder.exited, FAILED)
  t.match(forwarder.said(), `: gave event ${id} up after 2 attempts\n`)
  t.same(forwarder.lines(), [])
  const again = forward(t, target.url, '--name', 'patient')
  await hasLines(again, 1, 'the event')
  t.same(idsAt(target), [id, id, id])
})

t.test('--skip-failed leaves it out', async (t) => {
  const target = await startTarget(t, 500, 503)
  const forwarder = await connected(
    forward(t, target.url, '--skip-failed', '--retries', '1', '--json'),
  )
  const [first, second] = [await send(), await send()]
  await hasLines(forwarder, 2, 'both events')
  t.match(readJson(forwarder), [
    { id: first, status: 503, attempts: 2, delivered: false },
    { id: second, status: 200, attempts: 1, delivered: true },
  ])
  t.match(forwarder.said(), `event ${first}: status 503; left out\n`)
})

t.test('--since counts for a new name', async (t) => {
  const target = await startTarget(t)
  const first = await send()
  const flags = ['--name', 'back', '--since', String(first)]
  const forwarder = forward(t, target.url, ...flags)
  // The line is printed before the server has stored the result. A forwarder stopped in between
  // gets the event again.
  await recorded(base, first)
  await forwarder.stop()
  const second = await send()
  const again = forward(t, target.url, ...flags)
  await hasLines(again, 1, 'the new event')
  t.same(idsAt(target), [first, second])
  t.match(again.said(), '--since counts for a new name only')
})

t.test('a signal during a delivery: it is finished and recorded', async (t) => {
  let answer = (): void => undefined
  const target = await startReceiver(t, (_, response) => {
    answer = () => response.writeHead(200).end()
  })
  const forwarder = await connected(forward(t, target.url, '--name', 'slow'))
  const [first, second] = [await send(), await send()]
  await until(() => target.received.length === 1, 'the delivery')
  const ended = forwarder.stop()
  await send('{}', 'later')
  answer()
  t.same(await ended, ENDED)
  t.match(forwarder.lines(), [`${first}  `])
  t.match(await recorded(base, first), [{ outcome: 'delivered' }])

  const again = forward(t, target.url, '--name', 'slow')
  await until(() => target.received.length === 2, 'the next event')
  t.same(idsAt(target), [first, second], 'it does not come again')
  t.same(await again.stop(), ENDED, 'a target that hangs has five seconds')
  const [hung] = await recorded(base, second)
  t.match(hung, { outcome: 'failed', detail: 'no answer within' })
})

t.test('--text and --json-member choose, also what comes later', async (t) => {
  const first = await send('{"data":{"object":{"id":"evt_1"}}}')
  const flags = ['--json', '--since', String(first)]
  const byText = forward(t, calm.url, '--text', 'evt_1', ...flags)
  const byMember = forward(t, calm.url, '--json-member', 'data.object.id=evt_1', ...flags)
  await Promise.all([byText.connected(), byMember.connected()])
  await send('{"data":{"object":{"id":"evt_2"}}}')
  const longer = await send('{"data":{"object":{"id":"evt_12"}}}')
  const last = await send('{"data":{"object":{"id":"evt_1"}},"n":2}')
  await hasLines(byText, 3, 'the events with the text')
  await hasLines(byMember, 2, 'the events with the member')
  const ids = (search: Lines) => readJson(search).map(({ id }) => id)
  t.same(ids(byText), [first, longer, last])
  t.same(ids(byMember), [first, last])
  t.match(byMember.said(), ' json=data.object.id=evt_1", after')

  const long = 'x'.repeat(400)
  const searches = [`${long}1`, `${long}2`].map((text) => forward(t, calm.url, '--text', text))
  for (const search of searches) await search.connected()
  const names = searches.map((search) => /^connected as "(.+)"/.exec(search.said())?.[1])
  t.not(names[0], names[1], 'searches that differ at their end are forwarders of their own')
})

/** Nobody else sleeps that long: by it the processes of a test are found. */
const SECONDS = 700_000 + process.pid
const long = `sleep ${SECONDS}`
const sleepers = () => processesWith(long)
// When the product has failed to.
t.teardown(() => sleepers().forEach((pid) => process.kill(pid, 'SIGKILL')))

/** The words of `forward` that run a shell script under a name; `$1` and so on are the arguments. */
function shell(name: string, script: string, ...args: readonly string[]) {
  return ['--from', base, '--name', name, '--exec', 'sh', '--', '-c', script, 'script', ...args]
}

function linesOf(file: string) {
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
}

/** Keeps what it is given, the bytes and everything else, and leaves a process behind. */
const KEEPS = `
import { spawn } from 'node:child_process'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
const [folder, ...args] = process.argv.slice(2)
const { GATEHOUSE_EVENT_ID: id, GATEHOUSE_EVENT_HEADERS: file } = process.env
const chunks = []
for await (const chunk of process.stdin) chunks.push(chunk)
writeFileSync(folder + '/' + id + '.body', Buffer.concat(chunks))
const headers = JSON.parse(readFileSync(file, 'utf8'))
const mode = (statSync(dirname(file)).mode & 0o777).toString(8)
const kept = { args, environment: process.env, headers, mode }
writeFileSync(folder + '/' + id + '.json', JSON.stringify(kept))
spawn('sleep', ['${SECONDS}'], { stdio: 'inherit' }).unref()
`

t.test('what a program is given, and that what it leaves holds nothing up', async (t) => {
  const folder = await temporaryFolder(t, 'kept')
  const script = join(folder, 'keeps.mjs')
  await writeFile(script, KEEPS)
  const args = ['two words', '$HOME `id` *', `'"`, '', '--json', '--', 'é']
  const words = ['--exec', process.execPath, '--from', base, '--', script, folder, ...args]
  const forwarder = await connected(
    startForward(t, words, { LANG: 'C.UTF-8', DEPLOY_KEY: 'not-for-programs' }),
  )
  const large = Buffer.alloc(3_000_000, 'gatehouse').fill(0, 1_000, 2_000)
  const bodies = ['', Buffer.from([0, 255, 254, 13, 10, 0x1b, 0]), large]
  for (const [at, body] of bodies.entries()) {
    const id = await send(body, "it's; a $(type)")
    await hasLines(forwarder, at + 1, 'the event')
    const bytes = readFileSync(join(folder, `${id}.body`))
    t.ok(bytes.equals(Buffer.from(body)), `${bytes.length} bytes`)
    const kept = JSON.parse(readFileSync(join(folder, `${id}.json`), 'utf8'))
    t.match(kept, { args, mode: '700' })
    t.equal(kept.args.length, args.length)
    const { PATH, HOME, LANG, GATEHOUSE_EVENT_HEADERS: file, ...rest } = kept.environment
    t.ok(PATH && HOME && LANG)
    t.same(rest, {
      GATEHOUSE_EVENT_ID: String(id),
      GATEHOUSE_EVENT_TYPE: "it's; a $(type)",
      GATEHOUSE_EVENT_PROVIDER: 'generic:lan',
    })
    t.match(Object.fromEntries(kept.headers), { 'x-event-type': "it's; a $(type)" })
    t.notOk(existsSync(dirname(file)), 'the folder is removed')
  }
  t.same(await forwarder.stop(), ENDED)
  t.equal(sleepers().length, bodies.length, 'they live on')
  for (const pid of sleepers()) process.kill(pid, 'SIGKILL')
  await until(() => sleepers().length === 0, 'their end')
})

t.test('the output of a program, and its place in the log', async (t) => {
  // It does not read its input.
  const script = 'exec 0<&-; echo "out\tof it"; printf "err \\033[31mof it" >&2'
  const forwarder = openForward(t, shell('output', script))
  const json = openForward(t, ['--json', ...shell('json', script)])
  await Promise.all([forwarder.connected(), json.connected()])
  const id = await send(Buffer.alloc(3_000_000))
  for (const one of [forwarder, json]) await hasLines(one, 1, 'its line')
  t.match(forwarder.lines(), ['  exit 0  '])
  t.match(forwarder.said(), 'out    of it\n')
  t.match(forwarder.said(), 'err \\u001b[31mof it\n')
  t.notMatch(forwarder.said(), 'again')
  const [attempt] = await recorded(base, id)
  t.match(attempt, { target: 'exec:sh', outcome: 'delivered', answer: 'exit 0 in ' })
  const { text } = await request(`${base}/log/${id}?replayed=1`)
  t.match(text, /Delivered: exit 0 in \d+ ms\./)
  const told = { status: null, exit_code: 0, attempts: 1, delivered: true }
  t.match(readJson(json), [told])
})

t.test('ways to fail', async (t) => {
  const broken = join(await temporaryFolder(t, 'broken'), 'broken')
  await writeFile(broken, '#!/nowhere/sh\n')
  await chmod(broken, 0o755)
  for (const [problem, words] of [
    [/exited with 3/, shell('exit', `${long} & exit 3`)],
    [/was ended by SIGKILL/, shell('kill', `${long} & kill -9 $$`)],
    [/took over 1 s/, ['--timeout', '1s', ...shell('late', `${long} & ${long}`)]],
    [/could not be started: .*ENOENT/, ['--from', base, '--name', 'none', '--exec', broken]],
  ] as const) {
    const forwarder = await connected(openForward(t, ['--retries', '0', ...words]))
    const id = await send()
    t.same(await forwarder.exited, FAILED)
    t.match(forwarder.said(), problem)
    t.match(await recorded(base, id), [{ outcome: 'failed', detail: problem }])
    await until(() => sleepers().length === 0, 'the end of its group')
  }
  const silent = await startReceiver(t, () => undefined)
  const hurried = await connected(forward(t, silent.url, '--timeout', '1s'))
  await send()
  await until(() => hurried.said().includes(': no answer within 1 s; again'), 'its end')
})

t.test(
  'a signal ends the group of a program after five seconds, a second one at once',
  async (t) => {
    const folder = await temporaryFolder(t, 'ends')
    const script = `echo "$GATEHOUSE_EVENT_HEADERS" >> "$1/seen"; trap '' INT TERM; ${long}; :`
    for (const code of [0, 1]) {
      const words = shell('ends', script, folder)
      // Two signals end a process.
      const own = code === 1 ? startForward(t, words) : undefined
      const forwarder = await connected(own ?? openForward(t, words))
      if (code === 0) await send()
      await until(() => linesOf(join(folder, 'seen')).length === code + 1, 'the program to run')
      // The command line of the shell has these words, too, and that of a forwarder in a process.
      await until(() => sleepers().length === 2 + code, 'it to sleep')
      if (own === undefined) void forwarder.stop()
      else for (const signal of ['SIGINT', 'SIGTERM']) process.kill(own.pid, signal)
      t.same(await forwarder.exited, { code, signal: null })
      await until(() => sleepers().length === 0, 'the end of the program')
      const [file = ''] = linesOf(join(folder, 'seen')).slice(-1)
      t.notOk(existsSync(dirname(file)), 'its headers are removed')
      if (code === 0) t.match(forwarder.said(), ': the program was stopped; again in')
    }
  },
)

t.test('--coalesce passes over all but the newest', async (t) => {
  const folder = await temporaryFolder(t, 'newest')
  const hold = join(folder, 'hold')
  const script = `
    echo "$GATEHOUSE_EVENT_ID" >> "$1/seen"
    while [ -e "$1/hold" ]; do sleep 0.05; done
    [ "$GATEHOUSE_EVENT_TYPE" != bad ]`
  const seen = () => linesOf(join(folder, 'seen')).map(Number)
  await writeFile(hold, '')
  const forwarder = await connected(
    openForward(t, ['--coalesce', ...shell('newest', script, folder)]),
  )
  const first = await send()
  await until(() => seen().length === 1, 'the first one to run')
  const [second, newest] = [await send(), await send()]
  await rm(hold)
  await hasLines(forwarder, 2, 'two events')
  t.same(seen(), [first, newest])

  const bad = await send('{}', 'bad')
  await until(() => forwarder.said().includes(`event ${bad}: `), 'the failure')
  const good = await send()
  await recorded(base, good)
  t.equal(forwarder.lines().length, 3, 'the newer one in its place')
  await forwarder.stop()
  const again = openForward(t, shell('newest', script, folder))
  const last = await send()
  await hasLines(again, 1, 'the next one')
  t.same(seen(), [first, newest, bad, good, last], 'what was passed over does not come back')
  t.notOk(seen().includes(second))
})

const CERTIFICATE = readFileSync(join(ROOT, 'test/fixtures/localhost.pem'), 'utf8')

/** A proxy with TLS that serves hooks under `/gate/hooks`. */
async function startProxy(t: Test) {
  const proxy = createServer({ key: CERTIFICATE, cert: CERTIFICATE }, (near) => {
    const far = connect(Number(new URL(base).port), '127.0.0.1')
    for (const socket of [near, far]) socket.on('error', () => undefined)
    near.once('data', (head) => {
      // Without its prefix a path is none of ours.
      far.write(
        head.toString().replace(/ (\/gate\/hooks)?/, (_, own) => (own ? ' ' : ' /nowhere')),
      )
      near.pipe(far).pipe(near)
    })
  })
  return `https://localhost:${await listen(t, proxy)}/gate/hooks/`
}

t.test('over TLS, under a path', async (t) => {
  const proxy = await startProxy(t)
  const forwarder = openForward(t, [calm.url, '--from', proxy])
  await until(() => /certificate/.test(forwarder.said()), 'the certificate to be doubted')
  // As NODE_EXTRA_CA_CERTS does it from the start.
  const usual = getCACertificates()
  t.teardown(() => setDefaultCACertificates(usual))
  setDefaultCACertificates([...usual, CERTIFICATE])
  await forwarder.connected()
  await expectStatus(202, deliver(base, 'code_host', '{"over":"tls"}'))
  await hasLines(forwarder, 1, 'the event')
})

t.test('a server that comes later, and a unix socket', async (t) => {
  const target = await startReceiver(t)
  const socketPath = join(await temporaryFolder(t, 'socket'), 'hooks.sock')
  const from = `unix:${socketPath}`
  const forwarder = openForward(t, [target.url, '--from', from, '--text', 'a:b/?'])
  await until(() => forwarder.said().includes('ENOENT'), 'the failure to be said')
  const env = { ...SIGNED_ENV, ...(await postgres.env(t)), HOOKS_ADDR: from }
  const server = await startServer(t, { services: ['hooks'], env })
  await forwarder.connected()
  const body = '{"over":"a:b/?"}'
  const headers = { 'Content-Type': 'application/json', ...signatureHeaders('code_host', body) }
  const url = 'http://localhost/webhooks/code_host'
  const { status } = await request(url, { method: 'POST', headers, body, socketPath })
  t.equal(status, 202)
  await hasLines(forwarder, 1, 'the event')
  t.match(target.received, [{ body: Buffer.from(body) }])
  await server.stop()
  await until(() => forwarder.said().includes('The server stops'), 'its reason')
  // Behind the stop it is refused anew, which is another trouble.
  const [before = ''] = forwarder.said().split('The server stops')
  t.equal(before.match(/ENOENT/g)?.length, 1, 'one trouble is said once')
  t.same(await forwarder.stop(), ENDED, 'also while it waits')
})

t.test('answers that are no WebSocket', async (t) => {
  const start = async (status: number, body = '') => {
    const { url } = await startReceiver(t, (_, response) => {
      response.writeHead(status, { Location: '/login' }).end(body)
    })
    return openForward(t, [calm.url, '--from', url])
  }
  for (const [status, body, line] of [
    [302, '', '302\n'],
    [403, '{"detail":"Not\\u001b[31m here"}', '403: Not [31m here\n'],
    [403, '{"detail":"no \\q JSON"}', '403\n'],
  ] as const) {
    const forwarder = await start(status, body)
    t.same(await forwarder.exited, FAILED, `${status} ends it`)
    t.match(forwarder.said(), `gatehouse: the server answers ${line}`)
  }
  for (const status of [503, 429]) {
    const forwarder = await start(status)
    const line = `no connection (the server answers ${status});`
    await until(() => forwarder.said().includes(line), 'the trouble to be said')
    t.same(await forwarder.stop(), ENDED, `${status} is tried again`)
  }
})
