import { createServer } from 'node:net'
import { hostname } from 'node:os'
import { t } from 'tap'
import {
  keepConnections,
  post,
  publicOnly,
  type OutboundRequest,
  type ResolveName,
} from '../../kernel/net/outbound.ts'
import { isPublicAddress } from '../../kernel/net/addresses.ts'
import { listen } from '../helpers/listen.ts'
import { startReceiver } from '../helpers/replays.ts'
import { until } from '../helpers/until.ts'

function send(url: string, changes: Partial<OutboundRequest> = {}, resolveName?: ResolveName) {
  const body = Buffer.from('{"a":1}')
  const usual = { headers: {}, body, timeoutMs: 5_000, trusted: true, answerBytes: 0 }
  return post({ url: new URL(url), ...usual, ...changes }, resolveName)
}

/** A resolver that gives one list of addresses after the other, and counts how often it was asked. */
function resolver(...answers: readonly (readonly string[])[]) {
  let asked = 0
  const resolveName: ResolveName = (_, __, callback) => {
    const addresses = answers[Math.min(asked, answers.length - 1)] ?? []
    asked += 1
    const found = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
    setImmediate(() => callback(null, found))
  }
  return Object.assign(resolveName, { asked: () => asked })
}

// NAT64 of 8.8.8.8: by the prefix of all, then by a local one of 96, 64, 56 and 48 bits (RFC 6052).
const PUBLIC = `
  1.1.1.1 172.32.0.1 192.169.0.1 100.128.0.1 2606:4700::1
  64:ff9b::808:808 64:ff9b::8.8.8.8
  64:ff9b:1::808:808 64:ff9b:1:0:8:808:800:0 64:ff9b:1:8:8:808:: 64:ff9b:1:808:8:800::
`

// 64:ff9b:1:808:8:800:a00:1 is public under one length of its prefix, and private under another one.
const CLOSED = `
  127.0.0.1 127.255.255.254 0.0.0.0 10.1.2.3 100.64.0.1 168.63.129.16 169.254.169.254 172.16.0.1
  172.31.255.255 192.168.1.1 192.0.2.1 198.18.0.1 203.0.113.9 224.0.0.1 255.255.255.255
  :: ::1 ::ffff:127.0.0.1 ::ffff:8.8.8.8 fe80::1 fc00::1 fd00:ec2::254 ff02::1 2001:db8::1 2002:7f00:1::
  64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:: 64:ff9b:1::a00:1 64:ff9b:1:0:a:0:100:0
  64:ff9b:1:a:0:1:: 64:ff9b:1:a00:0:100:: 64:ff9b:1:808:8:800:a00:1 64:ff9b:1:: 64:ff9b:2::808:808
  localhost
`

const words = (text: string) => text.trim().split(/\s+/)

t.test('only addresses of the public internet are public', async (t) => {
  for (const address of words(PUBLIC)) t.ok(isPublicAddress(address), address)
  for (const address of ['', ...words(CLOSED)]) t.notOk(isPublicAddress(address), address)
})

t.test('an address that is not public is never connected to, however it is spelled', async (t) => {
  const receiver = await startReceiver(t)
  const hosts = words(
    '127.0.0.1 127.1 0x7f.1 0177.0.0.1 2130706433 127.0.0.1. 0.0.0.0 %31%32%37.0.0.1 ①②⑦.0.0.1 ' +
      '[::ffff:127.0.0.1] [::ffff:7f00:1] [::1] [::]',
  )
  for (const host of hosts) {
    const result = await send(`http://${host}:${receiver.port}/`, { trusted: false })
    t.match(result, { kind: 'refused', reason: /not on the public internet/ }, host)
  }
  t.equal(receiver.connections(), 0)
  t.match(await send(`${receiver.url}/`), { kind: 'answered', status: 204 }, 'where it is trusted')
  t.equal(receiver.connections(), 1)
})

t.test('a name of this host is resolved and refused', async (t) => {
  const receiver = await startReceiver(t)
  const result = await send(`http://${hostname()}:${receiver.port}/`, { trusted: false })
  t.not(result.kind, 'answered')
  const local = await send(`http://LOCALHOST:${receiver.port}/`, { trusted: false })
  t.equal(local.kind, 'refused')
  t.equal(receiver.connections(), 0)
})

t.test('of a name that leads to both worlds only the public addresses are used', async (t) => {
  const receiver = await startReceiver(t)
  const url = `http://rebind.test:${receiver.port}/`
  for (const addresses of [['127.0.0.1'], ['10.0.0.1', '127.0.0.1'], ['64:ff9b::7f00:1', '::1']]) {
    const result = await send(url, { trusted: false }, resolver(addresses))
    t.match(result, { kind: 'refused' }, addresses.join(' '))
  }
  t.equal(receiver.connections(), 0)
  const used = (addresses: readonly string[], options: { all?: boolean }) =>
    new Promise((resolve) => {
      publicOnly(resolver(addresses))('both.test', options, (error, found) =>
        resolve(error ?? found),
      )
    })
  const both = ['127.0.0.1', '1.1.1.1', '::1', '2606:4700::1']
  t.same(await used(both, { all: true }), [
    { address: '1.1.1.1', family: 4 },
    { address: '2606:4700::1', family: 6 },
  ])
  t.equal(await used(both, {}), '1.1.1.1')
})

t.test('a name is asked for once: what was checked is what is connected to', async (t) => {
  const receiver = await startReceiver(t)
  // A rebinding name. A second question would be answered with a public address.
  const turned = resolver(['127.0.0.1'], ['1.1.1.1'])
  const url = `http://rebind.test:${receiver.port}/`
  t.match(await send(url, { trusted: false }, turned), { kind: 'refused' })
  t.equal(turned.asked(), 1)
  // Where private addresses are allowed, the request goes to the first answer, asked for once.
  const trusted = resolver(['127.0.0.1'], ['192.0.2.1'])
  t.match(await send(url, {}, trusted), { kind: 'answered', status: 204 })
  t.equal(trusted.asked(), 1)
  t.equal(receiver.connections(), 1)
})

t.test('a redirect is an answer and is not followed', async (t) => {
  const inside = await startReceiver(t)
  for (const status of [301, 307]) {
    const receiver = await startReceiver(t, (_, response) => {
      response.writeHead(status, { location: `${inside.url}/inside` }).end()
    })
    t.match(await send(receiver.url), { kind: 'answered', status })
  }
  t.equal(inside.connections(), 0)
})

t.test('an answer that does not come, or never ends, holds nobody', async (t) => {
  const silent = await startReceiver(t, () => undefined)
  const late = await send(silent.url, { timeoutMs: 150 })
  t.match(late, { kind: 'failed', reason: 'no answer within 0.15 s' })

  const endless = await startReceiver(t, (_, response) => {
    response.writeHead(200)
    const pour = () => {
      while (response.writable && response.write(Buffer.alloc(65_536, 'x')));
      response.once('drain', pour)
    }
    pour()
  })
  t.match(await send(endless.url), { kind: 'answered', status: 200 })
  const start = await send(endless.url, { answerBytes: 10 })
  t.match(start, { kind: 'answered', body: Buffer.from('xxxxxxxxxx') })

  const stalled = await startReceiver(t, (_, response) => {
    response.writeHead(202).write('part')
  })
  const part = await send(stalled.url, { timeoutMs: 1_000, answerBytes: 10 })
  t.match(part, { kind: 'answered', status: 202, body: Buffer.from('part') })
})

t.test('what is no HTTP is a failure with its reason', async (t) => {
  const raw = createServer((socket) => socket.resume().end('SSH-2.0-nothing\r\n'))
  const port = await listen(t, raw)
  t.match(await send(`http://127.0.0.1:${port}/`), { kind: 'failed', reason: /Parse Error/ })
  await new Promise((resolve) => raw.close(resolve))
  t.match(await send(`http://127.0.0.1:${port}/`), { kind: 'failed', reason: /ECONNREFUSED/ })
  const receiver = await startReceiver(t)
  const broken = await send(receiver.url, { headers: { 'x-a': 'b\r\nx-c: d' } })
  t.match(broken, { kind: 'failed', reason: /Invalid character/ })
})

t.test('kept connections serve targets that are trusted alike, and are replaced', async (t) => {
  let answers = 0
  const receiver = await startReceiver(t, (_, response) => {
    // The third request finds its connection closed, as after a restart of the target.
    if (++answers === 3) return void response.destroy()
    response.writeHead(200, { 'Retry-After': '7' }).end('an answer')
  })
  const connections = keepConnections(1)
  t.teardown(connections.close)
  const kept = { connections, answerBytes: 1_024 }
  const first = await send(receiver.url, kept)
  t.match(first, { kind: 'answered', status: 200, headers: { 'retry-after': '7' } })
  t.match(await send(receiver.url, kept), { kind: 'answered' })
  t.equal(receiver.connections(), 1, 'both came on one')
  t.match(await send(receiver.url, kept), { kind: 'answered' }, 'sent again on a new one')
  t.equal(receiver.connections(), 2)
  const name = `http://receiver.test:${receiver.port}/`
  const local = resolver(['127.0.0.1'])
  t.match(await send(name, kept, local), { kind: 'answered' })
  t.match(await send(name, { ...kept, trusted: false }, local), { kind: 'refused' })
})

t.test('a request that kept connections end is sent twice at most', async (t) => {
  const waiting: (() => void)[] = []
  let received = 0
  const receiver = await startReceiver(t, (_, response) => {
    if (waiting.length < 3) return void waiting.push(() => response.end('an answer'))
    received += 1
    // As after a restart of the target, which knows none of the kept connections.
    response.destroy()
  })
  const connections = keepConnections(3)
  t.teardown(connections.close)
  const kept = { connections, answerBytes: 1_024 }
  const first = [1, 2, 3].map(() => send(receiver.url, kept))
  await until(() => waiting.length === 3, 'three connections')
  for (const answer of waiting) answer()
  for (const result of await Promise.all(first)) t.match(result, { kind: 'answered' })
  t.match(await send(receiver.url, kept), { kind: 'failed', code: 'ECONNRESET' })
  t.equal(received, 2)
})

t.test('of one destination a name is asked for once at a time', async (t) => {
  const answers: (() => void)[] = []
  const slow: ResolveName = (_, __, callback) => {
    answers.push(() => callback(null, [{ address: '127.0.0.1', family: 4 }]))
  }
  const receiver = await startReceiver(t)
  const connections = keepConnections(8)
  t.teardown(connections.close)
  const name = `http://receiver.test:${receiver.port}/`
  const sent = Promise.all([1, 2, 3].map(() => send(name, { connections }, slow)))
  await until(() => answers.length > 0, 'the name to be asked for')
  answers[0]?.()
  for (const result of await sent) t.match(result, { kind: 'answered', status: 204 })
  t.equal(answers.length, 1)
})
