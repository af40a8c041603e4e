import { spawn, spawnSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer as createHttps } from 'node:https'
import { createServer, type Socket } from 'node:net'
import { delimiter, join } from 'node:path'
import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { t, type Test } from 'tap'
import { startProbe } from '../../helpers/ops.ts'
import { freePort, temporaryFolder } from '../../helpers/owner.ts'
import { recordChild } from '../../helpers/program.ts'
import { startReceiver } from '../../helpers/replays.ts'
import { secret } from '../../helpers/secrets.ts'
import { until } from '../../helpers/until.ts'
import { deploymentParts, lacks, onPath } from '../../runner/system-parts.ts'
import { finds, type Row } from './finds.ts'
import { listen } from '../../helpers/listen.ts'

const key = secret('model-key')
const { lookAt, query } = await startProbe(t, { OPS_RUNNER: 'probe', OPS_MODEL_KEY: key })

/** Looks at checks of one kind: each is good, or says what its row has. */
const look = (t: Test, kind: object, rows: readonly Row[]) =>
  finds(t, lookAt, { timeout_s: 30, ...kind }, rows)

/** What the last look at a check has said, also one that is good. */
async function messageOf(name: string) {
  const rows = await query('select message from ops.checks where name = $1', [name])
  return rows[0]?.['message']
}

t.test('http: a request is sent as it is written', async (t) => {
  const { url, received } = await startReceiver(t)
  const headers = {
    authorization: `Bearer ${secret('bearer')}`,
    'content-type': 'application/json',
  }
  await look(t, { type: 'http', url }, [
    ['plain', {}],
    ['post', { method: 'POST', headers, body: '{"ping":"é"}' }],
    ['delete', { method: 'DELETE', body: 'all' }],
    ['head', { method: 'HEAD' }],
    ['agent', { headers: { 'User-Agent': 'other' } }],
  ])
  const byMethod = Map.groupBy(received, ({ method }) => method)
  const sent = { ...headers, 'user-agent': 'gatehouse-probe' }
  t.match(byMethod.get('POST'), [{ headers: sent, body: Buffer.from('{"ping":"é"}') }])
  const length = { 'content-length': '3' }
  t.match(byMethod.get('DELETE'), [{ headers: length, body: Buffer.from('all') }])
  t.equal(byMethod.get('HEAD')?.length, 1)
  const agents = byMethod.get('GET')?.map((request) => request.headers['user-agent'])
  t.same(agents?.toSorted(), ['gatehouse-probe', 'other'])
})

t.test('http: statuses, texts, members and time are as expected', async (t) => {
  const json = {
    status: 'ok',
    db: { up: false, pools: [{ free: 3 }] },
    note: `a ${key}`,
    no: null,
  }
  const body = `<h1>Shop</h1> ${'x'.repeat(100)} <p>Basket: 3</p>`
  const { url } = await startReceiver(t, async ({ path }, response) => {
    if (path === '/stream') {
      response.writeHead(200)
      // And no end.
      return void response.write('the beginning')
    }
    if (path === '/slow') await new Promise((resolve) => setTimeout(resolve, 60))
    if (path === '/teapot') response.statusCode = 418
    if (path === '/moved') response.writeHead(302, { location: '/nowhere' })
    response.end(path === '/json' ? JSON.stringify(json) : body)
  })
  const member = (...members: string[]) => ({ url: `${url}/json`, members })
  await look(t, { type: 'http', url }, [
    ['list', { url: `${url}/teapot`, status: [200, '300-399', '418'] }],
    [
      'other',
      { url: `${url}/teapot`, status: ['200-299', 301] },
      'answered 418, expected 200 to 299 or 301',
    ],
    ['redirect', { url: `${url}/moved`, status: '300-399', redirects: 0 }],
    ['pattern', { pattern: '*Shop*Basket: *</p>' }],
    ['twice', { pattern: 'Shop*Shop' }, 'answered 200 without a match of "Shop*Shop"'],
    ['members', member('status=ok', 'db.up=false', 'db.pools.0.free=3', 'no=null')],
    ['value', member('db.up=true'), 'answered 200, db.up is "false", expected "true"'],
    ['inherited', member('db.constructor=x'), 'answered 200 without the member db.constructor'],
    ['secret', member('note=b'), 'answered 200, note is "a «redacted»", expected "b"'],
    ['no JSON', { members: ['status=ok'] }, 'answered 200, but not with JSON of 1 MiB at most'],
    [
      'slow',
      { url: `${url}/slow`, max_ms: 20 },
      /^answered 200 in \d+ ms, expected 20 ms at most$/,
    ],
    // An answer is read as far as something is asked of it.
    ['stream', { url: `${url}/stream` }],
  ])
})

t.test(
  'http: redirects are followed, and what the check sends goes to its own origin',
  async (t) => {
    const token = secret('bearer')
    const other = await startReceiver(t, ({ path }, response) => {
      response.writeHead(path === '/down' ? 503 : 200).end('other')
    })
    const own = await startReceiver(t, ({ path }, response) => {
      const [, status = '', to = ''] = /^\/(\d+)\/(.*)$/.exec(path) ?? []
      if (status === '') return void response.end('own')
      response.writeHead(Number(status), { location: decodeURIComponent(to) }).end()
    })
    const headers = { authorization: `Bearer ${token}` }
    const moved = (status: number, to: string, more = {}) => {
      return { url: `${own.url}/${status}/${encodeURIComponent(to)}`, ...more }
    }
    const twice = `/302/${encodeURIComponent('/end')}`
    const post = { method: 'POST', body: 'x' }
    const nowhere = 'answered 302, whose Location leads to no address of http or https'
    await look(t, { type: 'http', headers }, [
      ['up', moved(301, `${other.url}/up`)],
      [
        'down',
        moved(301, `${other.url}/down`),
        `answered 503 at ${other.url}/down, expected 200 to 399`,
      ],
      ['twice', moved(307, twice)],
      [
        'once',
        moved(302, twice, { redirects: 1 }),
        `answered 302 at ${own.url}${twice}, the end of 1 redirects`,
      ],
      [
        'status',
        moved(301, `${other.url}/up`, { status: 301 }),
        `answered 200 at ${other.url}/up, expected 301`,
      ],
      ['file', moved(302, 'file:///etc/passwd'), nowhere],
      ['credentials', moved(302, `http://user:${token}@127.0.0.1/`), nowhere],
      ['posted on', moved(308, '/form', post)],
      [
        'posted away',
        moved(308, `${other.url}/form`, post),
        `answered 308, which leads the body to ${other.url}: it is not sent there`,
      ],
    ])
    t.notOk(other.received.some((request) => 'authorization' in request.headers))
    const forms = own.received.filter(({ path }) => path === '/form')
    t.match(forms, [{ method: 'POST', headers }])
    t.equal(forms.length, 1)
  },
)

t.test('http: bodies are read as they are encoded', async (t) => {
  const text = 'Grüße {"a": 1.10, "big": 9007199254740993, "a.b": {"c": true}}'
  const json = text.slice(text.indexOf('{'))
  const bodies: Readonly<
    Record<string, readonly [headers: Record<string, string>, body: Buffer]>
  > = {
    gzip: [{ 'content-encoding': 'gzip' }, gzipSync(text)],
    br: [{ 'content-encoding': 'br' }, brotliCompressSync(text)],
    zstd: [{ 'content-encoding': 'zstd' }, zstdCompressSync(text)],
    broken: [{ 'content-encoding': 'gzip' }, Buffer.from(text)],
    hostile: [{ 'content-encoding': 'constructor' }, Buffer.from(text)],
    bomb: [{ 'content-encoding': 'gzip' }, gzipSync(Buffer.alloc(64 * 1024 * 1024))],
    latin: [{ 'content-type': 'text/html; charset="ISO-8859-1"' }, Buffer.from(text, 'latin1')],
    marked: [
      { 'content-type': 'text/html; charset=iso-8859-1' },
      Buffer.from(`\u{FEFF}${text}`, 'utf16le'),
    ],
    json: [{}, Buffer.from(`\u{FEFF}${json}`)],
  }
  const { url } = await startReceiver(t, ({ path }, response) => {
    const [headers, body] = bodies[path.slice(1)] ?? [{}, '']
    response.writeHead(200, headers).end(body)
  })
  const contains = 'Grüße'
  const says: Readonly<Record<string, string>> = {
    broken: 'the body is not gzip, as its header says',
    hostile: 'the body is encoded as constructor, which is not read here',
    bomb: `answered 200 without "${contains}" in its first 1 MiB`,
  }
  const members = ['a=1.10', 'big=9007199254740993', 'a\\.b.c=true']
  const rows = Object.keys(bodies).map((name): Row => {
    const expects = name === 'json' ? { members } : { contains }
    return [name, { url: `${url}/${name}`, ...expects }, says[name]]
  })
  await look(t, { type: 'http' }, rows)
})

t.test(
  'http: what breaks the rules of HTTP is said, and taken where the check says so',
  async (t) => {
    const heads: Readonly<Record<string, string>> = {
      control: 'HTTP/1.1 200 OK\r\nx: a\u0001b\r\n',
      large: `HTTP/1.1 200 OK\r\n${`x: ${'y'.repeat(1_000)}\r\n`.repeat(60)}`,
      'too large': `HTTP/1.1 200 OK\r\n${`x: ${'y'.repeat(1_000)}\r\n`.repeat(70)}`,
      other: 'SSH-2.0-OpenSSH\r\n',
    }
    const server = createServer((socket) => {
      socket.once('data', (bytes) => {
        const name = decodeURIComponent(/^GET \/(\S*)/.exec(bytes.toString())?.[1] ?? '')
        socket.end(`${heads[name]}content-length: 2\r\n\r\nok`)
      })
    })
    const base = `http://127.0.0.1:${await listen(t, server)}`
    const at = (name: string, more = {}) => ({
      url: `${base}/${encodeURIComponent(name)}`,
      ...more,
    })
    const advice = 'browsers may take it, and so does a check with lenient'
    const invalid = (what: string) => `the answer is no valid HTTP (${what}): ${advice}`
    await look(t, { type: 'http' }, [
      ['large', at('large')],
      ['control', at('control'), invalid('invalid header value char')],
      ['control taken', at('control', { lenient: true })],
      ['too large', at('too large'), 'the answer has more than 64 KiB of headers'],
      ['other', at('other'), invalid('expected http/, rtsp/ or ice/')],
    ])
  },
)

const CURVE = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']

/** Files of an authority, of one that it has signed for three days, and of certificates for 127.0.0.1 by each of them. */
async function makeCertificates(t: Test) {
  const folder = await temporaryFolder(t, 'certificates')
  const file = (name: string) => join(folder, name)
  const openssl = (...args: readonly string[]) => {
    const { status, stderr } = spawnSync('openssl', args, { encoding: 'utf8' })
    if (status !== 0) throw new Error(`openssl ${args[0]}: ${stderr}`)
  }
  const request = (name: string, subject: string, ...more: readonly string[]) => {
    const files = ['-keyout', file(`${name}.key`), '-out', file(`${name}.${more[0] ?? 'csr'}`)]
    openssl('req', ...CURVE, ...files, '-subj', `/CN=${subject}`, ...more.slice(1))
  }
  const sign = (of: string, by: string, extensions: string, out: string, days: string) => {
    const authority = ['-CA', file(`${by}.pem`), '-CAkey', file(`${by}.key`), '-CAcreateserial']
    const names = ['-in', file(`${of}.csr`), '-extfile', file(extensions), '-out', file(out)]
    openssl('x509', '-req', ...authority, ...names, '-days', days)
  }
  writeFileSync(file('names'), 'subjectAltName=IP:127.0.0.1,DNS:localhost\n')
  writeFileSync(file('authority'), 'basicConstraints=critical,CA:true\n')
  writeFileSync(file('none.pem'), 'no certificate')
  request('ca', 'Our authority', 'pem', '-x509', '-days', '30')
  request('leaf', 'shop')
  request('between', 'Between')
  sign('leaf', 'ca', 'names', 'leaf.pem', '5')
  sign('between', 'ca', 'authority', 'between.pem', '3')
  sign('leaf', 'between', 'names', 'long.pem', '20')
  return file
}

t.test('http and tls: certificates', { skip: lacks(deploymentParts.openssl) }, async (t) => {
  const file = await makeCertificates(t)
  const ca = file('ca.pem')
  const serve = (...names: readonly string[]) => {
    const cert = Buffer.concat(names.map((name) => readFileSync(file(name))))
    const pair = { key: readFileSync(file('leaf.key')), cert }
    return listen(
      t,
      createHttps(pair, (_, response) => void response.end('ok')),
    )
  }
  const http = (port: number) => ({ type: 'http', url: `https://127.0.0.1:${port}/` })
  const tls = (port: number) => ({ type: 'tls', host: '127.0.0.1', port, days: 3 })

  await t.test('an authority of our own', async (t) => {
    const port = await serve('leaf.pem')
    const short = 'the certificate of shop is valid for 4 more days, expected 14'
    const unread = /^not looked at: the authorities of .* can't be read: .*; name a PEM/
    const { states } = await look(t, http(port), [
      ['foreign', {}, /^unable to verify the first certificate/],
      ['known', { ca, days: 3 }],
      ['insecure', { insecure: true }],
      ['too short', { ca, days: 14 }, `answered 200, ${short}`],
      ['any, too short', { insecure: true, days: 14 }, `answered 200, ${short}`],
      ['no authority', { ca: file('none.pem') }, unread],
      ['no file', { ca: file('nothing.pem') }, unread],
    ])
    t.match(states, { 'no file': 'unknown', 'no authority': 'unknown' })
    await look(t, tls(port), [
      ['foreign', {}, 'the certificate is not trusted: UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
      ['known', { ca }],
      ['by name', { host: 'localhost', ca }],
      ['too short', { ca, days: 14 }, short],
    ])
  })

  await t.test('a chain of which another one ends first', async (t) => {
    const port = await serve('long.pem', 'between.pem')
    const short = 'the certificate of Between is valid for 2 more days, expected 14'
    await look(t, { ca }, [
      ['http', { ...http(port), days: 14 }, `answered 200, ${short}`],
      ['tls', { ...tls(port), days: 14 }, short],
    ])
  })
})

t.test('tcp: what a port says', async (t) => {
  const start = (greet: (socket: Socket) => void) => listen(t, createServer(greet))
  const greeting = await start((socket) => void socket.write('220 mail ready\r\n'))
  const closing = await start((socket) => void socket.end('421 busy\r\n'))
  const redis = await start((socket) => {
    socket.on('data', (bytes) => socket.write(bytes.toString() === 'PING\r\n' ? '+PONG' : '-ERR'))
  })
  const slow = await start((socket) => {
    socket.write('220-one moment\r\n')
    const timer = setTimeout(() => socket.write('220 mail ready\r\n'), 300)
    socket.on('close', () => clearTimeout(timer))
  })
  const endless = await start((socket) => void socket.write('x'.repeat(100_000)))
  const six = await listen(
    t,
    createServer((socket) => void socket.end()),
    { port: 0, host: '::1' },
  )
  const contains = '220 '
  await look(t, { type: 'tcp', host: '127.0.0.1' }, [
    ['greets', { port: greeting, contains }],
    [
      'other',
      { port: greeting, contains: 'SSH-2.0', timeout_s: 0.5 },
      'takes connections and says "220 mail ready", expected "SSH-2.0"',
    ],
    [
      'closes',
      { port: closing, contains },
      'takes connections and says "421 busy", expected "220 "',
    ],
    ['asked', { port: redis, send: 'PING\r\n', contains: '+PONG' }],
    ['slow', { port: slow, contains }],
    [
      'endless',
      { port: endless, contains },
      `takes connections and says "${'x'.repeat(100)}", expected "220 "`,
    ],
    ['brackets', { host: '[::1]', port: six }],
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
    const keep = (socket: Socket) => {
      open.add(socket)
      socket.on('close', () => open.delete(socket)).resume()
      peer(socket)
    }
    const port = await listen(t, createServer(keep))
    const path = join(await temporaryFolder(t, 'sockets'), 'containers.sock')
    await listen(t, createServer(keep), { path })
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
    for (const { said } of [await lookAt(checks), await lookAt(checks)]) {
      t.equal(said.length, checks.length, `${name}: ${said.join('; ')}`)
      t.notMatch(said.join(), 'has not ended', name)
    }
    await until(() => open.size === 0, `${name}: every connection to be closed`)
  }
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
dns-rr=shop.test,2,026e730473686f70047465737400
`

t.test('dns: records of a name server', { skip: lacks(deploymentParts.dnsmasq) }, async (t) => {
  const port = await freePort()
  const file = join(await temporaryFolder(t, 'zone'), 'dnsmasq.conf')
  writeFileSync(file, ZONE.replace('PORT', String(port)))
  const program = onPath('dnsmasq') ?? ''
  const child = spawn(program, ['--keep-in-foreground', `--conf-file=${file}`])
  recordChild(child)
  t.teardown(() => void child.kill())
  let words = ''
  child.stderr.on('data', (bytes: Buffer) => (words += bytes.toString()))
  const server = `127.0.0.1:${port}`
  const four = { type: 'dns', host: 'four.shop.test', server, timeout_s: 30 }
  const name = `dns four.shop.test at ${server}`
  const answers = async () => (await lookAt([four])).good[name] === true
  await until(answers, `dnsmasq to answer ${words}`)
  await look(t, { type: 'dns', host: 'shop.test', server }, [
    ['A', { host: 'four.shop.test', record: 'A', value: '192.0.2.10' }],
    [
      'other',
      { host: 'four.shop.test', value: '192.0.2.99' },
      'resolves to 192.0.2.10, expected 192.0.2.99',
    ],
    ['AAAA', { host: 'both.shop.test', record: 'AAAA', value: '2001:DB8:0::11' }],
    ['CNAME', { host: 'www.shop.test', record: 'CNAME', value: 'Both.shop.test.' }],
    ['MX', { record: 'MX', value: '10 mail.shop.test' }],
    ['TXT', { record: 'TXT', value: 'v=spf1 -all' }],
    [
      'TXT case',
      { record: 'TXT', value: 'V=spf1 -all' },
      'resolves to v=spf1 -all, expected V=spf1 -all',
    ],
    ['NS', { record: 'NS', value: 'ns.shop.test' }],
    ['alias alone', { host: 'four6.shop.test', record: 'AAAA' }, 'has no such record'],
    ['no name', { host: 'nobody.shop.test' }, 'no such host'],
    ['refused', { host: 'elsewhere.test' }, 'the name server refuses to answer (REFUSED)'],
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
    type: 'dns',
    name: `silent ${at}`,
    host: 'shop.test',
    server,
    timeout_s: 2,
  }))
  const disk = { type: 'disk', path: '/', max_percent: 100, timeout_s: 1.9 }
  const says = 'no answer within 2 s'
  const { said } = await lookAt([...queries, disk])
  t.same(
    said,
    queries.map(({ name }) => `${name}: ${says}`),
  )
})

/** Replaces the program `ping` by a script until the end of the test; without one there is none. */
async function replacePing(t: Test, script?: string) {
  const folder = await temporaryFolder(t, 'programs')
  const { PATH } = process.env
  process.env['PATH'] = script === undefined ? folder : `${folder}${delimiter}${PATH}`
  t.teardown(() => void (process.env['PATH'] = PATH))
  if (script === undefined) return
  writeFileSync(join(folder, 'ping'), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
}

t.test('ping: this machine answers', { skip: lacks(deploymentParts.ping) }, async (t) => {
  await look(t, { type: 'ping' }, [
    ['ping 127.0.0.1', { host: '127.0.0.1' }],
    ['nobody', { host: 'nobody.invalid' }, /^ping: nobody\.invalid: /],
  ])
  t.match(await messageOf('ping 127.0.0.1'), /^answers the ping in [\d.]+ ms$/)
})

t.test('ping: a host that does not answer', async (t) => {
  const given = join(await temporaryFolder(t, 'given'), 'arguments')
  await replacePing(t, `echo "$LC_ALL $@" >> ${given}; echo "1 packets transmitted"; exit 1`)
  const says = 'no answer to the ping'
  await look(t, { type: 'ping', host: '127.0.0.1' }, [['silent', {}, says]])
  t.equal(readFileSync(given, 'utf8'), 'C -n -c 1 -W 30 127.0.0.1\n')
})

t.test('ping: where it may not be sent, a port tells whether the host is there', async (t) => {
  const port = await listen(t, createServer())
  const closed = await freePort()
  // As iputils and BusyBox say it, and without the program.
  for (const script of [
    'echo "ping: socktype: SOCK_RAW"; echo "ping: socket: Operation not permitted" >&2; exit 2',
    'echo "ping: permission denied (are you root?)" >&2; exit 1',
    undefined,
  ]) {
    await t.test(script ?? 'no program', async (t) => {
      await replacePing(t, script)
      const { states } = await look(t, { type: 'ping', host: '127.0.0.1' }, [
        ['without port', {}, /^not looked at: .*; install iputils-ping, and let/],
        ['open', { port }],
        ['closed', { port: closed }],
      ])
      t.equal(states['without port'], 'unknown')
      t.match(
        await messageOf('open'),
        `takes connections on port ${port}; ping can't be used here`,
      )
      t.match(await messageOf('closed'), /^refuses connections on port \d+, so it is there; ping/)
    })
  }
})
