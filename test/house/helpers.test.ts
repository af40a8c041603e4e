import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { RequestListener } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { t } from 'tap'
import { openBrowser } from '../helpers/browser.ts'
import { runCliProcess } from '../helpers/cli.ts'
import { request } from '../helpers/http.ts'
import { findLeaks, registerSecret } from '../helpers/leaks.ts'
import type { Owner } from '../helpers/owner.ts'
import { run, sharedPostgres, startPostgres } from '../helpers/postgres.ts'
import { rawExchange } from '../helpers/raw-http.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { chatHeaders, codeHostHeaders, paymentsHeader } from '../helpers/sign.ts'
import { openStream } from '../helpers/sse.ts'
import { until } from '../helpers/until.ts'

async function listen(t: Owner, listener: RequestListener): Promise<{ url: string; port: number }> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.closeAllConnections())
  t.teardown(() => server.close())
  const address = server.address()
  const port = address !== null && typeof address === 'object' ? address.port : 0
  return { url: `http://127.0.0.1:${port}`, port }
}

/** A program that behaves like the product at its edges. */
function standIn(t: Owner, body: string): readonly string[] {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-stand-in-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'program.ts')
  writeFileSync(path, body)
  return [process.execPath, path]
}

t.test('http: headers, bytes and chunks go out as given', async (t) => {
  const { url, port } = await listen(t, async (req, res) => {
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk)
    const body = Buffer.concat(chunks).toString('hex')
    res.writeHead(201, { 'X-Two': ['a', 'b'] })
    res.end(JSON.stringify({ method: req.method, raw: req.rawHeaders, body }))
  })
  const headers = { Host: 'evil.example', 'X-Many': ['1', '2'] }
  const sent = await request(url, { method: 'POST', headers, body: Uint8Array.of(0, 255) })
  const seen = sent.json<{ raw: string[]; body: string }>()
  t.equal(sent.status, 201)
  t.equal(sent.headers['x-two'], 'a, b')
  t.match(seen.raw.join('|'), /Host\|evil\.example.*X-Many\|1\|X-Many\|2/)
  t.match(seen.raw.join('|'), /Content-Length\|2/)
  t.equal(seen.body, '00ff')
  const chunked = await request(url, { method: 'POST', body: ['a', 'b'] })
  t.match(chunked.text, /Transfer-Encoding","chunked".*6162/)
  t.match(await rawExchange(port, 'NONSENSE\r\n\r\n'), { text: /^HTTP\/1\.1 400/, closed: true })
  await t.rejects(request(`http://127.0.0.1:1`), /GET \/: connect ECONNREFUSED/)
})

t.test('sse: messages, ids, comments, and the end', async (t) => {
  const { url } = await listen(t, (req, res) => {
    res.writeHead(200, { 'Content-Type': 'text/event-stream' })
    res.write(`retry: 1500\n: hi\nid: 7\nevent: e\ndata: ${req.headers['last-event-id']}\n\n`)
    setTimeout(() => res.end('data: last\n\n'), 20)
  })
  const streams = await Promise.all(
    Array.from({ length: 200 }, () => openStream(t, url, { lastEventId: '6' })),
  )
  for (const stream of streams) await stream.until(({ data }) => data === 'last')
  const [stream] = streams
  await stream?.closed
  t.match(stream, { retry: 1500, lastEventId: '7', comments: ['hi'] })
  t.match(stream?.events, [{ event: 'e', id: '7', data: '6' }, { event: 'message' }])
  const miracle = async (): Promise<unknown> => stream?.until(() => false, 'a miracle')
  await t.rejects(miracle, /waited for a miracle: the stream had/)
})

t.test('until: names what it waited for', async (t) => {
  t.equal(await until(() => 3, 'three'), 3)
  const never = (): boolean => {
    throw new Error('not there')
  }
  await t.rejects(until(never, 'the moon', 50), { message: 'waited 50 ms for the moon: not there' })
})

t.test('secrets: a planted one is found in every spelling, never shown', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-leaks-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  registerSecret(folder, 'planted', 's3cret/value')
  writeFileSync(join(folder, 'clean.log'), 'nothing here')
  t.same(findLeaks(folder), [])
  writeFileSync(join(folder, 'plain.log'), 'one\ntwo s3cret/value three')
  writeFileSync(join(folder, 'url.http'), 'x=s3cret%2Fvalue')
  writeFileSync(join(folder, 'basic.sse'), Buffer.from('s3cret/value').toString('base64'))
  const leaks = [...findLeaks(folder)].sort((a, b) => a.file.localeCompare(b.file))
  t.match(leaks, [{ file: 'basic.sse' }, { file: 'plain.log', line: 2 }, { file: 'url.http' }])
  t.match(leaks[1], { secret: 'planted', text: 'two … three' })
})

t.test('postgres: stops, crashes, starts again and keeps what was committed', async (t) => {
  const cluster = await startPostgres()
  t.teardown(() => cluster.destroy())
  const url = await cluster.createDatabase()
  await run(url, 'create table kept (n int)')
  await cluster.stop()
  await t.rejects(run(url, 'select 1'), { code: 'ECONNREFUSED' })
  await cluster.start()
  await run(url, 'insert into kept values ($1)', [42])
  await cluster.stop('immediate')
  await cluster.start()
  t.match(await run(url, 'select n from kept'), [{ n: 42 }])
  await cluster.dropDatabase(url)
  await t.rejects(run(url, 'select 1'), { code: '3D000' })
})

t.test('postgres: the shared cluster gives each test a database of its own', async (t) => {
  const databases = await sharedPostgres()
  const [one, two] = await Promise.all([databases.createDatabase(), databases.createDatabase()])
  t.teardown(() => Promise.all([one, two].map((url) => databases.dropDatabase(url))))
  t.not(one, two)
  t.match(await run(two, 'show fsync'), [{ fsync: 'on' }])
})

t.test('server: ready line, logs, stop, and the reason of an early end', async (t) => {
  const program = standIn(
    t,
    `process.on('SIGTERM', () => process.exit(0))
    console.error(JSON.stringify({ args: process.argv.slice(2), keys: Object.keys(process.env) }))
    console.log('gatehouse 0.1.0 ready hooks=http://127.0.0.1:1')
    setInterval(() => {}, 1000)`,
  )
  const server = await startServerProcess(t, { program, services: ['hooks'], flags: ['--x'] })
  t.equal(server.hooks, 'http://127.0.0.1:1')
  t.throws(() => server.links, /links was not started/)
  const [line = ''] = await until(() => server.logs().length > 0 && server.logs(), 'a log line')
  t.match(JSON.parse(line), { args: ['serve', 'hooks', '--x'] })
  t.notMatch(line, /TAP|NODE_OPTIONS|GATEHOUSE_TEST/)
  t.same(await server.stop(), { code: 0, signal: null })
  const second = await startServerProcess(t, { program })
  t.same(await second.kill(), { code: null, signal: 'SIGKILL' })
  const failing = standIn(t, `console.error('no such thing'); process.exit(1)`)
  await t.rejects(
    startServerProcess(t, { program: failing, mayExit: true }),
    /ended with 1 before.*no such thing/,
  )
})

t.test('cli: code, output and input', async (t) => {
  const program = standIn(
    t,
    `for await (const part of process.stdin) process.stdout.write(part)
    console.error(process.argv.slice(2).join()); process.exitCode = 2`,
  )
  t.same(await runCliProcess(['a', 'b'], { program, input: 'in' }), {
    code: 2,
    stdout: 'in',
    stderr: 'a,b\n',
  })
})

t.test('sign: shapes that the receivers read', async (t) => {
  t.match(await codeHostHeaders('k', '{}'), { 'X-CodeHost-Signature-256': /^sha256=[0-9a-f]{64}$/ })
  t.match(paymentsHeader('k', '{}', 12), /^t=12,v1=[0-9a-f]{64}$/)
  t.match(chatHeaders('k', '{}', { at: 9, spelling: 'real' }), {
    'X-Slack-Signature': /^v0=[0-9a-f]{64}$/,
    'X-Slack-Request-Timestamp': '9',
  })
})

t.test('browser: a page that errs or calls elsewhere fails its test', async (t) => {
  const { url } = await listen(t, (req, res) => {
    res.setHeader('Content-Security-Policy', "default-src 'self'; img-src *")
    res.setHeader('Content-Type', req.url === '/a.js' ? 'text/javascript' : 'text/html')
    res.end(
      req.url === '/a.js'
        ? "throw new Error('thrown')"
        : '<link rel=icon href="data:,"><p style="color:red">hi<script src=/a.js></script>' +
            '<img src="http://elsewhere.example/x.png">',
    )
  })
  const failures: string[] = []
  const owner = { teardown: t.teardown.bind(t), fail: (text: string) => failures.push(text) }
  const { page } = await openBrowser(owner, {
    origins: [url],
    viewport: { width: 320, height: 600 },
  })
  await page.goto(url)
  t.equal(await page.textContent('p'), 'hi')
  for (const part of ['thrown', 'elsewhere.example', 'Content Security Policy']) {
    await until(() => failures.some((text) => text.includes(part)), `a failure about ${part}`)
  }
})
