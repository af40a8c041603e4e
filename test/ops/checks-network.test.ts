import { spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { delimiter, join } from 'node:path'
import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { startProbe } from '../helpers/ops.ts'
import { freePort, temporaryFolder } from '../helpers/owner.ts'
import { recordProcess, runFolder } from '../helpers/program.ts'
import { until } from '../helpers/until.ts'
import { deploymentParts, lacks, onPath } from '../runner/system-parts.ts'

const [, postgres] = backends
const { lookAt, env } = await startProbe(t, { OPS_RUNNER: 'probe' })

/** What the last look at a check has said, also one that is good. */
async function messageOf(name: string): Promise<unknown> {
  const rows = await postgres.query(env, 'select message from ops.checks where name = $1', [name])
  return rows[0]?.['message']
}

/** Starts a TCP server; gives its port. */
async function startTcp(t: Test, greet: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    greet(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

t.test('tcp: what a port says', async (t) => {
  const greeting = await startTcp(t, (socket) => void socket.write('220 mail ready\r\n'))
  const closing = await startTcp(t, (socket) => void socket.end('421 busy\r\n'))
  const silent = await startTcp(t, () => undefined)
  const redis = await startTcp(t, (socket) => {
    socket.on('data', (bytes) => socket.write(bytes.toString() === 'PING\r\n' ? '+PONG' : '-ERR'))
  })
  const slow = await startTcp(t, (socket) => {
    socket.write('220-one moment\r\n')
    const timer = setTimeout(() => socket.write('220 mail ready\r\n'), 1_500)
    socket.on('close', () => clearTimeout(timer))
  })
  const endless = await startTcp(t, (socket) => void socket.write('x'.repeat(100_000)))
  const check = { type: 'tcp', host: '127.0.0.1', timeout_s: 30 }
  const { good, said } = await lookAt([
    { ...check, name: 'greets', port: greeting, contains: '220 ' },
    { ...check, name: 'other', port: greeting, contains: 'SSH-2.0', timeout_s: 0.5 },
    { ...check, name: 'closes', port: closing, contains: '220 ' },
    { ...check, name: 'silent', port: silent, contains: '220 ', timeout_s: 0.5 },
    { ...check, name: 'asked', port: redis, send: 'PING\r\n', contains: '+PONG' },
    { ...check, name: 'slow', port: slow, contains: '220 ' },
    { ...check, name: 'endless', port: endless, contains: '220 ' },
    { ...check, name: 'open', port: silent },
  ])
  t.match(good, { greets: true, asked: true, slow: true, open: true })
  t.same(said, [
    'other: takes connections and says "220 mail ready", expected "SSH-2.0"',
    'closes: takes connections and says "421 busy", expected "220 "',
    'silent: no answer within 0.5 s',
    `endless: takes connections and says "${'x'.repeat(100)}", expected "220 "`,
  ])
})

/** Peers that keep a check waiting, by what they do once somebody has connected. */
const PEERS: Readonly<Record<string, (socket: Socket) => void>> = {
  silent: () => undefined,
  trickles(socket) {
    const timer = setInterval(() => socket.write('2'), 50)
    socket.on('close', () => clearInterval(timer))
  },
  resets(socket) {
    // A Unix socket knows no reset.
    if (socket.remoteAddress === undefined) socket.destroy()
    else socket.resetAndDestroy()
  },
}

t.test('every check ends at its time-out, and frees what it holds', async (t) => {
  for (const [name, peer] of Object.entries(PEERS)) {
    const open = new Set<Socket>()
    const port = await startTcp(t, (socket) => {
      open.add(socket)
      socket.on('close', () => open.delete(socket)).resume()
      peer(socket)
    })
    const folder = await temporaryFolder(t, 'sockets')
    const path = join(folder, 'containers.sock')
    const local = createServer((socket) => {
      open.add(socket)
      socket
        .on('error', () => undefined)
        .on('close', () => open.delete(socket))
        .resume()
      peer(socket)
    })
    await new Promise<void>((resolve) => local.listen(path, resolve))
    t.teardown(() => local.close())
    const place = { host: '127.0.0.1', port, timeout_s: 0.5 }
    const checks = [
      { type: 'http', name: 'http', url: `http://127.0.0.1:${port}/`, timeout_s: 0.5 },
      { type: 'http', name: 'https', url: `https://127.0.0.1:${port}/`, timeout_s: 0.5 },
      { type: 'tcp', name: 'tcp', ...place, contains: 'ready' },
      { type: 'tcp', name: 'asked', ...place, send: 'PING', contains: 'PONG' },
      { type: 'tls', name: 'tls', ...place },
      { type: 'container', name: 'containers', socket: path, timeout_s: 0.5 },
    ]
    // A look that had not ended would be given up at once the second time, and say so.
    const first = await lookAt(checks)
    const second = await lookAt(checks)
    t.same(
      Object.values(first.good),
      checks.map(() => false),
      name,
    )
    t.equal(first.said.length, checks.length, `${name}: ${first.said.join('; ')}`)
    t.equal(second.said.length, checks.length, `${name}: ${second.said.join('; ')}`)
    t.notOk(
      second.said.some((line) => line.includes('has not ended')),
      name,
    )
    await until(() => open.size === 0, `${name}: every connection to be closed`)
  }
})

t.test('a host in brackets', async (t) => {
  const six = createServer((socket) => socket.end())
  const port = await new Promise<number>((resolve, reject) => {
    six.once('error', reject)
    six.listen(0, '::1', () => resolve((six.address() as AddressInfo).port))
  })
  t.teardown(() => six.close())
  const { good } = await lookAt([{ type: 'tcp', host: '[::1]', port, timeout_s: 30 }])
  t.same(good, { [`tcp [::1]:${port}`]: true })
})

const ZONE = `
no-resolv
no-hosts
port=PORT
listen-address=127.0.0.1
bind-interfaces
pid-file=
user=
local=/shop.test/
host-record=four.shop.test,192.0.2.10
host-record=both.shop.test,192.0.2.11,2001:db8::11
cname=www.shop.test,both.shop.test
cname=four6.shop.test,four.shop.test
mx-host=shop.test,mail.shop.test,10
txt-record=shop.test,"v=spf1 -all"
txt-record=text.shop.test,"Grüße"
dns-rr=shop.test,2,026e730473686f70047465737400
`

t.test('dns: records of a name server', { skip: lacks(deploymentParts.dnsmasq) }, async (t) => {
  const port = await freePort()
  const file = join(await temporaryFolder(t, 'zone'), 'dnsmasq.conf')
  writeFileSync(file, ZONE.replace('PORT', String(port)))
  const program = onPath('dnsmasq') ?? ''
  const child = spawn(program, ['--keep-in-foreground', `--conf-file=${file}`])
  recordProcess(runFolder(), child.pid ?? 0)
  t.teardown(() => void child.kill())
  let words = ''
  child.stderr.on('data', (bytes: Buffer) => (words += bytes.toString()))
  const server = `127.0.0.1:${port}`
  const check = { type: 'dns', host: 'shop.test', server, timeout_s: 30 }
  const four = { ...check, host: 'four.shop.test' }
  await until(
    async () => (await lookAt([four])).good[`dns four.shop.test at ${server}`] === true,
    `dnsmasq to answer ${words}`,
  )
  const { good, said } = await lookAt([
    { ...four, name: 'A', record: 'A', value: '192.0.2.10' },
    { ...four, name: 'either', value: '192.0.2.10' },
    { ...four, name: 'other', value: '192.0.2.99' },
    { ...four, name: 'no AAAA', record: 'AAAA' },
    { ...check, name: 'AAAA', host: 'both.shop.test', record: 'AAAA', value: '2001:DB8:0::11' },
    { ...check, name: 'CNAME', host: 'www.shop.test', record: 'CNAME', value: 'Both.shop.test.' },
    { ...check, name: 'MX', record: 'MX', value: '10 mail.shop.test' },
    { ...check, name: 'TXT', record: 'TXT', value: 'v=spf1 -all' },
    { ...check, name: 'TXT case', record: 'TXT', value: 'V=spf1 -all' },
    { ...check, name: 'NS', record: 'NS', value: 'ns.shop.test' },
    { ...check, name: 'TXT text', host: 'text.shop.test', record: 'TXT', value: 'Grüße' },
    { ...check, name: 'alias alone', host: 'four6.shop.test', record: 'AAAA' },
    { ...check, name: 'no name', host: 'nobody.shop.test' },
    { ...check, name: 'refused', host: 'elsewhere.test' },
  ])
  t.match(good, {
    A: true,
    either: true,
    AAAA: true,
    CNAME: true,
    MX: true,
    TXT: true,
    NS: true,
    'TXT text': true,
  })
  t.same(said, [
    'other: resolves to 192.0.2.10, expected 192.0.2.99',
    'no AAAA: has no such record',
    'TXT case: resolves to v=spf1 -all, expected V=spf1 -all',
    'alias alone: has no such record',
    'no name: no such host',
    'refused: the name server refuses to answer (REFUSED)',
  ])
  t.equal(await messageOf('MX'), 'resolves to 10 mail.shop.test')
})

t.test('dns: many queries of a silent name server hold up nothing else', async (t) => {
  const silent = createSocket('udp4')
  await new Promise<void>((resolve) => silent.bind(0, '127.0.0.1', resolve))
  t.teardown(() => silent.close())
  const server = `127.0.0.1:${silent.address().port}`
  // More than the threads that look-ups and files share.
  const queries = Array.from({ length: 8 }, (_, at) => ({
    ...{ type: 'dns', name: `silent ${at}`, host: 'shop.test', server, timeout_s: 10 },
  }))
  const disk = { type: 'disk', path: '/', max_percent: 100, timeout_s: 9 }
  const first = await lookAt([...queries, disk])
  t.equal(first.good['disk /'], true)
  t.same(
    first.said,
    queries.map(({ name }) => `${name}: no answer within 10 s`),
  )
  const closed = await freePort()
  const none = { type: 'dns', host: 'shop.test', server: `127.0.0.1:${closed}`, timeout_s: 30 }
  t.same((await lookAt([none])).said, [
    `dns shop.test at 127.0.0.1:${closed}: the name server does not answer`,
  ])
})

/** Replaces the program `ping` by a script until the end of the test; without one there is none. */
async function replacePing(t: Test, script?: string): Promise<void> {
  const folder = await temporaryFolder(t, 'programs')
  const { PATH } = process.env
  process.env['PATH'] = script === undefined ? folder : `${folder}${delimiter}${PATH}`
  t.teardown(() => void (process.env['PATH'] = PATH))
  if (script === undefined) return
  writeFileSync(join(folder, 'ping'), `#!/bin/sh\n${script}\n`)
  chmodSync(join(folder, 'ping'), 0o755)
}

t.test('ping: this machine answers', { skip: lacks(deploymentParts.ping) }, async (t) => {
  const { good, said } = await lookAt([
    { type: 'ping', host: '127.0.0.1', timeout_s: 30 },
    { type: 'ping', host: 'localhost', timeout_s: 30 },
    { type: 'ping', name: 'nobody', host: 'nobody.invalid', timeout_s: 30 },
  ])
  t.match(good, { 'ping 127.0.0.1': true, 'ping localhost': true })
  t.match(said, [/^nobody: ping: nobody\.invalid: /])
  t.match(await messageOf('ping 127.0.0.1'), /^answers the ping in [\d.]+ ms$/)
})

t.test('ping: hosts that do not answer', async (t) => {
  const check = { type: 'ping', host: '127.0.0.1', timeout_s: 30 }
  const given = join(await temporaryFolder(t, 'given'), 'arguments')
  await replacePing(t, `echo "$LC_ALL $@" >> ${given}; echo "1 packets transmitted"; exit 1`)
  t.same((await lookAt([check])).said, ['ping 127.0.0.1: no answer to the ping'])
  t.equal(readFileSync(given, 'utf8'), 'C -n -c 1 -W 30 127.0.0.1\n')
  await replacePing(t, 'exec sleep 60')
  t.same((await lookAt([{ ...check, name: 'late', timeout_s: 0.3 }])).said, [
    'late: no answer within 0.3 s',
  ])
})

t.test('ping: where it may not be sent, a port tells whether the host is there', async (t) => {
  const port = await startTcp(t, () => undefined)
  const check = { type: 'ping', host: '127.0.0.1', timeout_s: 30 }
  const checks = [
    { ...check, name: 'without port' },
    { ...check, name: 'open', port },
    { ...check, name: 'closed', port: await freePort() },
  ]
  // As iputils and BusyBox say it, and without the program.
  for (const script of [
    'echo "ping: socktype: SOCK_RAW"; echo "ping: socket: Operation not permitted" >&2; exit 2',
    'echo "ping: permission denied (are you root?)" >&2; exit 1',
    undefined,
  ]) {
    await t.test(script ?? 'no program', async (t) => {
      await replacePing(t, script)
      const { states } = await lookAt(checks)
      t.same(states, { 'without port': 'unknown', open: 'ok', closed: 'ok' })
      t.match(await messageOf('without port'), /^not looked at: .*; install iputils-ping, and let/)
      t.match(
        await messageOf('open'),
        `takes connections on port ${port}; ping can't be used here`,
      )
      t.match(await messageOf('closed'), /^refuses connections on port \d+, so it is there; ping/)
    })
  }
})
