import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t, type Test } from 'tap'
import { openForward, recorded } from '../fixtures/forward-setup.ts'
import { postgres } from '../helpers/backends.ts'
import { runOk } from '../helpers/cli.ts'
import { createSender } from '../helpers/deliveries.ts'
import { JSON_TYPE } from '../helpers/hooks.ts'
import { request, type RequestOptions } from '../helpers/http.ts'
import { META, addEndpoint } from '../helpers/mcp.ts'
import { freePort, temporaryFolder } from '../helpers/owner.ts'
import { ROOT } from '../helpers/program.ts'
import { startReceiver } from '../helpers/replays.ts'
import { keepSecret, secret } from '../helpers/secrets.ts'
import { startServer } from '../helpers/server.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { openStream } from '../helpers/sse.ts'
import { deploymentParts, lacks } from '../runner/system-parts.ts'
import { linksServer, longestTarget, makeLink } from '../helpers/links.ts'
import { FORWARDER, openFolder, runNginx } from './nginx.ts'
import {
  ALONE,
  COOKIE,
  EMAIL,
  startCaddyExample,
  startNginxExample,
  type SignIn,
} from './proxies.ts'

const LOGINS = {
  authelia: /^https:\/\/auth\.example\.com\//,
  'oauth2-proxy': /^https?:\/\/[^/]+\/oauth2\/sign_in\?rd=|^\/oauth2\/sign_in\?rd=/,
}
const skipCaddy = lacks(deploymentParts.caddy)
const proxies = [
  { name: 'nginx', start: startNginxExample, skip: false },
  { name: 'caddy', start: startCaddyExample, skip: skipCaddy },
] as const
type Proxied = (typeof proxies)[number]

t.test('nginx takes the file as it is', async (t) => {
  const folder = await temporaryFolder(t, 'nginx')
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const subject = ['-subj', '/CN=example.com', '-days', '2', '-nodes', '-newkey', 'rsa:2048']
  const files = ['-keyout', key, '-out', certificate]
  execFileSync('openssl', ['req', '-x509', ...subject, ...files], { stdio: 'ignore' })
  const setting = join(folder, 'gatehouse.conf')
  const text = readFileSync(join(ROOT, 'deploy', 'nginx.conf'), 'utf8')
  const [pem, secretKey] = [/\/etc\/ssl\/gatehouse\.pem/g, /\/etc\/ssl\/gatehouse\.key/g]
  writeFileSync(setting, text.replaceAll(pem, certificate).replaceAll(secretKey, key))
  const main = join(folder, 'nginx.conf')
  writeFileSync(main, `pid ${folder}/pid;\nevents {}\nhttp { include ${setting}; }\n`)
  const { status, stderr } = spawnSync('nginx', ['-t', '-q', '-c', main, '-e', 'stderr'], {
    encoding: 'utf8',
  })
  t.same({ status, stderr }, { status: 0, stderr: '' })
})

t.test('Caddy takes the file as it is', { skip: skipCaddy }, async (t) => {
  const folder = await temporaryFolder(t, 'caddy')
  const args = ['validate', '--adapter', 'caddyfile', '--config', join(ROOT, 'deploy/Caddyfile')]
  const env = { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
  const { status, stdout, stderr } = spawnSync('caddy', args, { encoding: 'utf8', env })
  t.equal(status, 0, stderr)
  t.match(stdout + stderr, /Valid configuration/)
})

// One server, behind one proxy after the other.
const sender = createSender()
const chatKey = secret('chat-key')
const env = {
  ...(await postgres.env(t)),
  ...sender.env,
  OPS_CHAT_API_KEY: chatKey,
  HOOKS_BASE_URL: 'https://hooks.example.com',
  LINKS_BASE_URL: 'https://go.example.com',
  OPS_BASE_URL: 'https://ops.example.com',
  GATEHOUSE_TRUSTED_PROXIES: '127.0.0.1/32',
  GATEHOUSE_GROUPS_HEADER: 'Remote-Groups',
}
const server = await startServer(t, { env })
const owner = await linksServer(server, env).user('owner')
for (const group of ['ops', 'board']) {
  const { id } = await makeLink(owner, `of-${group}`, { visibility: 'secure' })
  const added = await owner.api('POST', `/links/${id}/shares`, { email: `group:${group}` })
  t.equal(added.status, 201)
}

for (const proxy of proxies) {
  for (const signIn of ['authelia', 'oauth2-proxy'] as const) {
    const name = `${proxy.name} with ${signIn} lets in who may come in`
    await t.test(name, { skip: proxy.skip }, (t) => throughProxy(t, proxy, signIn))
  }
}

async function throughProxy(t: Test, { name, start }: Proxied, signIn: SignIn) {
  const login = LOGINS[signIn]
  // All but the sign-in itself is the same for each service.
  const isWhole = signIn === 'authelia'
  const proxy = await start(t, server, signIn, isWhole)
  const ask = (host: string, path: string, options: RequestOptions = {}) =>
    request(`${proxy}/`, {
      ...options,
      path,
      headers: { Host: `${host}.example.com`, ...options.headers },
    })
  const signedIn = { Cookie: COOKIE }
  const forged = { 'Remote-Email': 'boss@example.com' }

  await t.test('pages ask who comes, whatever a visitor claims', async (t) => {
    const pages = {
      hooks: '/ /log /events /mcpx /api/v1/events /metrics',
      go: '/-/ /metrics /docs /-/api',
      ops: '/ /api/v1/sessions /metrics /v1x',
    }
    for (const [host, paths] of Object.entries(pages)) {
      for (const path of paths.split(' ')) {
        for (const headers of [{}, forged]) {
          const { status, headers: answered } = await ask(host, path, { headers })
          t.equal(status, 302, `${host} ${path}`)
          t.match(answered.location, login, `${host} ${path}`)
        }
      }
    }
    for (const path of ['/webhooks/../log', '/mcp/%2e%2e/log', '/webhooks//../log', '//log']) {
      t.not((await ask('hooks', path)).status, 200, `no way in by ${path}`)
    }
    t.equal((await ask('hooks', '/log', { headers: signedIn })).status, 200)
    t.equal((await ask('ops', '/api/v1/sessions', { headers: signedIn })).status, 200)
    const page = await ask('go', '/-/', { headers: { ...signedIn, ...forged } })
    t.equal(page.status, 200)
    t.match(page.text, EMAIL, 'the one who signed in')
    t.notMatch(page.text, 'boss@example.com')
  })

  await t.test('groups are those that the sign-in service names', async (t) => {
    const claimed = { 'Remote-Groups': 'board, ops' }
    for (const [cookie, path, status] of [
      [COOKIE, '/of-ops', 302],
      [COOKIE, '/of-board', 403],
      [ALONE, '/of-ops', 403],
      [ALONE, '/of-board', 403],
    ] as const) {
      const headers = { Cookie: cookie, ...claimed }
      t.equal((await ask('go', path, { headers })).status, status, `${cookie} ${path}`)
    }
  })

  if (!isWhole) return

  await t.test('what brings its own authentication goes around', async (t) => {
    for (const host of ['hooks', 'go', 'ops']) {
      t.match(await ask(host, '/healthz'), { status: 200, text: /"ok"/ }, host)
    }
    const { body, headers } = await sender.delivery({ size: 2_000_000 })
    const to = { method: 'POST', body, headers: { 'Content-Type': 'application/json' } }
    const { token } = await addEndpoint(server.hooks, name)
    const bearer = (text: string) => ({ Authorization: `Bearer ${text}` })
    const asked = {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': '2026-07-28',
      'Mcp-Method': 'server/discover',
    }
    const call = { jsonrpc: '2.0', id: 1, method: 'server/discover', params: { _meta: META } }
    const tool = { method: 'POST', body: JSON.stringify(call), headers: asked }
    // A user by having come once.
    const made = await runOk(`token create ${EMAIL}`, { env, secretShown: true })
    const user = bearer(keepSecret('links', made.stdout.trim().split('\n').at(-1) ?? ''))
    const { url, location } = longestTarget()
    const link = { method: 'POST', body: JSON.stringify({ slug: `far-${name}`, url }) }
    const [mcp, events, me] = [`/mcp/${name}`, '/api/v1/events', '/api/v1/users/me']
    const rows: readonly (readonly [number, string, string, RequestOptions?])[] = [
      [202, 'hooks', '/webhooks/code_host', { ...to, headers }],
      [401, 'hooks', '/webhooks/code_host', to],
      [200, 'hooks', mcp, { ...tool, headers: { ...asked, ...bearer(token) } }],
      [401, 'hooks', mcp, tool],
      [200, 'hooks', events, { headers: bearer(token) }],
      [401, 'hooks', events, { headers: bearer(chatKey) }],
      // People sign in.
      [200, 'hooks', events, { headers: signedIn }],
      ...['', 'Basic x', 'Bearer', 'Bearerx y', `x Bearer ${token}`].map(
        (Authorization) => [302, 'hooks', events, { headers: { Authorization } }] as const,
      ),
      [400, 'hooks', events, { headers: { Authorization: [`Bearer ${token}`, 'Basic x'] } }],
      [302, 'hooks', '/log', { headers: bearer(token) }],
      [200, 'go', me, { headers: user }],
      [401, 'go', me, { headers: { ...signedIn, ...forged } }],
      [201, 'go', '/api/v1/links', { ...link, headers: { ...JSON_TYPE, ...user } }],
      [200, 'ops', '/api/v1/health'],
      [200, 'ops', '/v1/models', { headers: bearer(chatKey) }],
      [401, 'ops', '/v1/models'],
      [401, 'ops', '/api/v1/webhook', to],
      // A job brings its token.
      [404, 'ops', '/beat/unknown', { method: 'POST' }],
    ]
    for (const [status, host, path, options] of rows) {
      const answer = await ask(host, path, options)
      const what = `${host} ${path} ${JSON.stringify(options?.headers)}`
      t.equal(answer.status, status, what)
      if (path === me && status === 200) t.match(answer.text, EMAIL)
    }
    const two = await ask('hooks', events, {
      headers: { Authorization: ['Basic x', `Bearer ${token}`] },
    })
    // nginx takes only one.
    t.ok([302, 400].includes(two.status), 'the first one counts')
    const follow = { Host: 'hooks.example.com', ...bearer(token) }
    t.equal((await openStream(t, `${proxy}/events`, { headers: follow })).status, 200)
    const visit = await ask('go', `/far-${name}`, { headers: signedIn })
    t.match(visit, { status: 302, headers: { location } }, 'a link with the longest address')
  })

  await t.test('streams are passed on as they come', async (t) => {
    const headers = { Host: 'hooks.example.com', ...signedIn }
    const stream = await openStream(t, `${proxy}/events`, { headers })
    t.equal(stream.status, 200)
    // From its first status on a stream misses nothing.
    await stream.until(({ event }) => event === 'status', 'its place')
    const delivery = await sender.delivery()
    const sent = await ask('hooks', '/webhooks/code_host', { ...delivery, method: 'POST' })
    t.equal(sent.status, 202)
    await stream.until(({ event }) => event === 'event-received', 'the event')
    stream.close()
  })

  await t.test('the forwarder comes in with its password', async (t) => {
    const delivered = await start(t, server, signIn, false)
    const { status, headers } = await ask('hooks', '/relay', { headers: signedIn })
    t.equal(status, 401)
    t.match(headers['www-authenticate'], /^Basic /)
    for (const words of [FORWARDER, 'forwarder:forwarder', 'forwarder:']) {
      const basic = Buffer.from(words).toString('base64')
      const asked = { ...signedIn, Host: 'hooks.example.com', Authorization: `Basic ${basic}` }
      const closed = await request(`${delivered}/relay`, { headers: asked })
      t.equal(closed.status, 403, 'closed until a password is set')
    }
    const target = await startReceiver(t)
    const from = proxy.replace('//', `//${FORWARDER}@`)
    const forwarder = openForward(t, [target.url, '--from', '-'], `${from}\n`)
    await forwarder.connected()
    const delivery = await sender.delivery()
    const { text } = await ask('hooks', '/webhooks/code_host', { ...delivery, method: 'POST' })
    const { id }: { id: number } = JSON.parse(text)
    t.match(await recorded(server.hooks, id), [{ outcome: 'delivered' }])
    t.equal(target.received[0]?.body.toString(), delivery.body)
    t.match(await forwarder.stop(), { code: 0 })
  })
}

const NOBODY = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']

t.test(
  'nginx of another user comes in by a unix socket with a mode',
  { skip: process.getuid?.() === 0 ? false : 'another user takes root' },
  async (t) => {
    const folder = openFolder(t)
    const [own, shared] = [join(folder, 'own.sock'), join(folder, 'shared.sock')]
    const env = {
      ...(await postgres.env(t)),
      HOOKS_ADDR: `unix:${shared}?mode=0666`,
      LINKS_ADDR: `unix:${own}`,
    }
    await startServerProcess(t, { services: ['hooks', 'links'], env })
    t.same([modeOf(shared), modeOf(own)], [0o666, 0o700])
    const port = await freePort()
    const setting = `server {
      listen 127.0.0.1:${port};
      location /healthz { proxy_pass http://unix:${shared}; }
      location /links { proxy_pass http://unix:${own}:/healthz; }
    }`
    const address = `http://127.0.0.1:${port}`
    await runNginx(t, setting, `${address}/healthz`, NOBODY)
    t.equal((await request(`${address}/healthz`)).status, 200)
    t.equal((await request(`${address}/links`)).status, 502, 'without a mode it is for its user')
  },
)

function modeOf(path: string) {
  return statSync(path).mode & 0o777
}
