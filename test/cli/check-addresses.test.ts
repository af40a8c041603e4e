import { createServer as createHttp } from 'node:http'
import { rename, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import type { AddressInfo, ListenOptions, Server } from 'node:net'
import { join } from 'node:path'
import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { check, runCli } from '../helpers/cli.ts'
import { freePort, temporaryFolder } from '../helpers/owner.ts'
import type { Owner } from '../helpers/owner.ts'
import { startServer } from '../helpers/server.ts'

const [, postgres] = backends
const SYSTEMD = "when it is systemd's socket unit, set fd:NAME"

/** Listens somewhere until the test ends. */
async function listen(t: Owner, server: Server, where: ListenOptions): Promise<Server> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(where, resolve)
  })
  t.teardown(() => server.close())
  return server
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port
}

t.test('an address that is free, and one that two services share', async (t) => {
  const data = { GATEHOUSE_DATA_DIR: await temporaryFolder(t) }
  const [port, other] = [await freePort(), await freePort()]
  const good = await check({ ...data, HOOKS_ADDR: `127.0.0.1:${port}`, OPS_ADDR: `[::1]:${port}` })
  t.equal(good.code, 0)
  t.same(good.about('HOOKS_ADDR'), [`ok 127.0.0.1:${port} is free`])
  t.same(good.about('LINKS_ADDR'), ['ok 127.0.0.1:0, any free port'])
  t.same(good.about('OPS_ADDR'), [`ok [::1]:${port} is free`])

  const twin = `127.0.0.1:${other}`
  const shared = await check({ ...data, HOOKS_ADDR: twin, OPS_ADDR: twin })
  t.equal(shared.code, 1)
  t.same(shared.about('OPS_ADDR'), [
    `fail ${twin} is also HOOKS_ADDR: give each service an address of its own`,
  ])
  const alone = await check({ ...data, HOOKS_ADDR: twin, OPS_ADDR: twin }, ['ops', 'links'])
  t.equal(alone.code, 0, 'only what is going to run is looked at')
  t.same(alone.about('HOOKS_ADDR'), [])
})

t.test('an address that somebody holds: a Gatehouse, or another program', async (t) => {
  const data = { GATEHOUSE_DATA_DIR: await temporaryFolder(t) }
  const socket = join(await temporaryFolder(t, 'run'), 'links.sock')
  const env = { ...(await postgres.env(t)), LINKS_ADDR: `unix:${socket}` }
  const server = await startServer(t, { services: ['hooks', 'links'], env })
  const http = createHttp((_request, response) => response.end('{"version": "9"}'))
  const mute = portOf(await listen(t, createServer(), { host: '127.0.0.1', port: 0 }))
  const web = portOf(await listen(t, http, { host: '127.0.0.1', port: 0 }))
  const { host } = new URL(server.hooks)

  const held = await check({ ...data, HOOKS_ADDR: host, LINKS_ADDR: `unix:${socket}` })
  const { stdout: version } = await runCli(['version'])
  t.equal(held.code, 0)
  const holder = `is held by a running gatehouse ${version.trim()}`
  t.same(held.about('HOOKS_ADDR'), [`ok ${host} ${holder}`])
  t.same(held.about('LINKS_ADDR'), [`ok unix:${socket} ${holder}`])

  const taken = await check({
    ...data,
    HOOKS_ADDR: `127.0.0.1:${mute}`,
    LINKS_ADDR: `0.0.0.0:${web}`,
    GATEHOUSE_TRUSTED_PROXIES: '127.0.0.1/32',
  })
  t.equal(taken.code, 1)
  for (const [what, text] of [
    ['HOOKS_ADDR', `127.0.0.1:${mute}`],
    ['LINKS_ADDR', `0.0.0.0:${web}`],
  ] as const) {
    const line = `fail ${text} is held by another program (ss -ltnp): stop that or choose another; ${SYSTEMD}`
    t.same(taken.about(what), [line])
  }
})

t.test('a client that comes while addresses are looked at', async (t) => {
  const data = { GATEHOUSE_DATA_DIR: await temporaryFolder(t) }
  const port = await freePort()
  // It says nothing when it is asked who it is: meanwhile the first address is held.
  const mute = portOf(await listen(t, createServer(), { host: '127.0.0.1', port: 0 }))
  let [looking, came] = [true, 0]
  const knock = (): void => {
    // It never ends the connection by itself.
    const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    client.once('connect', () => (came += 1))
    client.on('error', () => undefined)
    client.once('close', () => looking && setTimeout(knock, 1))
    t.teardown(() => client.destroy())
  }
  knock()
  const addresses = { HOOKS_ADDR: `127.0.0.1:${port}`, LINKS_ADDR: `127.0.0.1:${mute}` }
  const found = await check({ ...data, ...addresses })
  looking = false
  t.same(found.about('HOOKS_ADDR'), [`ok 127.0.0.1:${port} is free`])
  t.ok(came > 0)
})

t.test("an address that can't be listened on", async (t) => {
  const data = { GATEHOUSE_DATA_DIR: await temporaryFolder(t) }
  const trusted = { GATEHOUSE_TRUSTED_PROXIES: '127.0.0.1/32' }
  const foreign = await check({ ...data, ...trusted, HOOKS_ADDR: '192.0.2.7:8080' })
  t.equal(foreign.code, 1)
  t.same(foreign.about('HOOKS_ADDR'), [
    'fail this host has no address 192.0.2.7:8080: see ip address, or listen on 127.0.0.1',
  ])
  const nameless = await check({ ...data, HOOKS_ADDR: 'nowhere.invalid:8080' })
  t.equal(nameless.code, 1)
  t.match(nameless.about('HOOKS_ADDR'), [/^fail nowhere\.invalid:8080 can't be listened on: /])
})

t.test('beyond loopback only behind a proxy', async (t) => {
  const data = { GATEHOUSE_DATA_DIR: await temporaryFolder(t) }
  const env = { ...data, OPS_ADDR: '0.0.0.0:0' }
  const open = await check(env)
  t.equal(open.code, 1)
  t.same(open.about('OPS_ADDR'), [
    'fail 0.0.0.0:0 is beyond loopback: set GATEHOUSE_TRUSTED_PROXIES to the proxy that authenticates, or listen on 127.0.0.1',
  ])
  const trusted = await check({ ...env, GATEHOUSE_TRUSTED_PROXIES: '10.0.0.0/8' })
  t.equal(trusted.code, 0)
  t.match(trusted.about('GATEHOUSE_TRUSTED_PROXIES'), [/^ok 10\.0\.0\.0\/8; of others, /])
  const forgotten = await check({ LINKS_BASE_URL: 'https://go.example', ...data })
  t.equal(forgotten.code, 0)
  t.match(forgotten.about('GATEHOUSE_TRUSTED_PROXIES'), [
    /^warn none, but LINKS_BASE_URL is a public/,
  ])
  const local = await check({ LINKS_BASE_URL: 'http://localhost:8081', ...data })
  t.match(local.about('GATEHOUSE_TRUSTED_PROXIES'), [/^ok none; a proxy that leaves no sign /])
  const unclear = await check({ ...env, GATEHOUSE_TRUSTED_PROXIES: '10.0.0.0/99' })
  t.equal(unclear.code, 1)
  t.match(unclear.about('OPS_ADDR'), ['ok '], 'what is meant by the list is not known')
})

t.test('a unix socket: its folder, what is there, and how long its path is', async (t) => {
  const folder = await temporaryFolder(t, 'sockets')
  const data = { GATEHOUSE_DATA_DIR: await temporaryFolder(t) }
  const path = join(folder, 'a.sock')
  async function lineOf(at: string): Promise<string> {
    const { about, code } = await check({ ...data, HOOKS_ADDR: `unix:${at}` }, ['hooks'])
    const [line = ''] = about('HOOKS_ADDR')
    t.equal(code, line.startsWith('ok ') ? 0 : 1)
    return line.replaceAll(at, 'PATH')
  }
  t.equal(await lineOf(path), 'ok unix:PATH is free')
  t.match(await lineOf(join(folder, 'none', 'a.sock')), /^fail unix:PATH can't be made \(ENOENT/)
  const long = join(folder, 'x'.repeat(108))
  t.equal(await lineOf(long), 'fail unix:PATH is longer than 107 bytes: choose a shorter path')
  await writeFile(join(folder, 'file'), '')
  const file = 'fail PATH is no socket: remove it, or choose another path'
  t.equal(await lineOf(join(folder, 'file')), file)

  const holder = await listen(t, createServer(), { path })
  t.match(await lineOf(path), /^fail unix:PATH is held by another program/)
  holder.close()
  // Node removes a socket that it closes by the name that it has made: a crash leaves it.
  const crashed = await listen(t, createServer(), { path: `${path}.new` })
  await rename(`${path}.new`, path)
  crashed.close()
  t.equal(await lineOf(path), 'ok unix:PATH is free (a server left it)')
})

t.test('sockets of systemd, which it passes to the service only', async (t) => {
  const data = { GATEHOUSE_DATA_DIR: await temporaryFolder(t) }
  const before = await check({ ...data, HOOKS_ADDR: 'fd:hooks' }, ['hooks'])
  t.equal(before.code, 0, 'in ExecStartPre')
  t.same(before.about('HOOKS_ADDR'), [
    'ok fd:hooks, which systemd passes to the service only: seen when it starts',
  ])
  const passed = { LISTEN_PID: String(process.pid), LISTEN_FDS: '2', LISTEN_FDNAMES: 'hooks:web' }
  const env = { ...data, ...passed, HOOKS_ADDR: 'fd:hooks', LINKS_ADDR: 'fd:links' }
  const named = await check(env, ['hooks', 'links'])
  t.equal(named.code, 1)
  t.same(named.about('HOOKS_ADDR'), ['ok fd:hooks was passed'])
  t.same(named.about('LINKS_ADDR'), [
    'fail no socket named "links" was passed, but hooks, web: set FileDescriptorName=links in the socket unit',
  ])
})
