import { readFileSync } from 'node:fs'
import { createServer, request as httpRequest } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { t } from 'tap'
import type { Test } from 'tap'
import { openForward, startForward } from '../fixtures/forward-setup.ts'
import { backends } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { freePort, temporaryFolder } from '../helpers/owner.ts'
import { ROOT } from '../helpers/program.ts'
import { startReceiver } from '../helpers/replays.ts'
import { startServer } from '../helpers/server.ts'
import { SIGNED_ENV, deliver, signatureHeaders, startHooks } from '../helpers/hooks.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends
const CERTIFICATE = join(ROOT, 'test', 'fixtures', 'localhost.pem')

/** A proxy with TLS that serves `base` under `/gate/hooks`. */
async function startProxy(t: Test, base: string): Promise<string> {
  const pem = readFileSync(CERTIFICATE)
  const proxy = createTlsServer({ key: pem, cert: pem })
  const sockets = new Set<{ destroy(): void }>()
  proxy.on('upgrade', (incoming, near) => {
    sockets.add(near)
    const path = (incoming.url ?? '').replace(/^\/gate\/hooks\//, '/')
    // Without its own prefix it would be none of ours.
    const headers = { ...incoming.headers, host: new URL(base).host }
    const outgoing = httpRequest(base + (path === incoming.url ? '/nowhere' : path), { headers })
    outgoing.on('upgrade', (response, far) => {
      sockets.add(far)
      const lines = Object.entries(response.headers).map(([name, value]) => `${name}: ${value}`)
      near.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('\r\n')}\r\n\r\n`)
      far.pipe(near).pipe(far)
      for (const socket of [near, far]) socket.on('error', () => undefined)
    })
    outgoing.end()
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    proxy.close()
  })
  return `https://localhost:${(proxy.address() as AddressInfo).port}/gate/hooks/`
}

t.test('over TLS, under a path', async (t: Test) => {
  const { base } = await startHooks(t, postgres)
  const proxy = await startProxy(t, base)
  const target = await startReceiver(t)
  const trust = { NODE_EXTRA_CA_CERTS: CERTIFICATE }
  const forwarder = startForward(t, [target.url, '--from', proxy], trust)
  await forwarder.connected()
  t.equal((await deliver(base, 'code_host', '{"over":"tls"}')).status, 202)
  await until(() => forwarder.lines().length === 1, 'the event')
  t.match(target.received, [{ body: Buffer.from('{"over":"tls"}') }])
  const stranger = openForward(t, [target.url, '--from', proxy, '--name', 'stranger'])
  await until(() => /certificate/.test(stranger.said()), 'the certificate to be doubted')
})

t.test('over a unix socket', async (t: Test) => {
  const socketPath = join(await temporaryFolder(t, 'socket'), 'hooks.sock')
  const from = `unix:${socketPath}`
  const target = await startReceiver(t)
  const forwarder = openForward(t, [target.url, '--from', from, '--text', 'a:b/?'])
  await until(() => forwarder.said().includes('ENOENT'), 'the failure to be said')
  const env = { ...SIGNED_ENV, ...(await postgres.env(t)), HOOKS_ADDR: from }
  await startServer(t, { services: ['hooks'], env })
  await forwarder.connected()
  const body = '{"over":"a:b/?"}'
  const headers = { 'Content-Type': 'application/json', ...signatureHeaders('code_host', body) }
  const url = 'http://localhost/webhooks/code_host'
  const { status } = await request(url, { method: 'POST', headers, body, socketPath })
  t.equal(status, 202)
  await until(() => forwarder.lines().length === 1, 'the event')
  t.match(target.received, [{ body: Buffer.from(body) }])
})

t.test('a server that comes later', async (t: Test) => {
  const port = await freePort()
  const target = await startReceiver(t)
  const base = `http://127.0.0.1:${port}`
  const forwarder = openForward(t, [target.url, '--from', base])
  await until(() => forwarder.said().includes('ECONNREFUSED'), 'the failure to be said')
  const env = { ...SIGNED_ENV, ...(await postgres.env(t)), HOOKS_ADDR: `127.0.0.1:${port}` }
  const server = await startServer(t, { services: ['hooks'], env })
  await forwarder.connected()
  await deliver(base, 'code_host', '{}')
  await until(() => forwarder.lines().length === 1, 'the event')
  await server.stop()
  await until(() => forwarder.said().includes('The server stops'), 'its reason')
  // Behind the stop it is refused anew, which is another trouble.
  const [before = ''] = forwarder.said().split('The server stops')
  t.equal(before.match(/ECONNREFUSED/g)?.length, 1, 'one trouble is said once')
  t.same(await forwarder.stop(), { code: 0, signal: null }, 'also while it waits')
})

t.test('answers that are no WebSocket', async (t: Test) => {
  const target = await startReceiver(t)
  let answer = { status: 200, body: 'hello' }
  const other = createServer((_, response) => {
    response.writeHead(answer.status, { Location: '/login' }).end(answer.body)
  })
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
  t.teardown(() => other.close())
  const from = `http://127.0.0.1:${(other.address() as AddressInfo).port}`
  const start = () => openForward(t, [target.url, '--from', from])

  const detail = 'Not\\u001b[31m here'
  const final: readonly (readonly [number, string, RegExp])[] = [
    [200, 'hello', /^gatehouse: the server answers 200$/m],
    [302, '', /^gatehouse: the server answers 302$/m],
    [403, `{"detail":"${detail}"}`, /^gatehouse: the server answers 403: Not \[31m here$/m],
    [403, '{"detail":"no \\q JSON"}', /^gatehouse: the server answers 403$/m],
  ]
  for (const [status, body, line] of final) {
    answer = { status, body }
    const forwarder = start()
    t.same(await forwarder.exited, { code: 1, signal: null }, `${status} ends it`)
    t.match(forwarder.said(), line)
  }
  for (const status of [503, 429]) {
    answer = { status, body: '' }
    const forwarder = start()
    const line = `no connection (the server answers ${status});`
    await until(() => forwarder.said().includes(line), 'the trouble to be said')
    t.same(await forwarder.stop(), { code: 0, signal: null }, `${status} is tried again`)
  }
})
