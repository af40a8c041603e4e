import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { t } from 'tap'
import { embedded, postgres } from '../helpers/backends.ts'
import {
  FREE,
  check,
  openCli,
  refuseCommands,
  runCli,
  type RefusedCommand,
} from '../helpers/cli.ts'
import { request } from '../helpers/http.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { secret } from '../helpers/secrets.ts'
import { parseReady, startServer } from '../helpers/server.ts'
import { addProvider, signatureHeaders } from '../helpers/hooks.ts'
import { until } from '../helpers/until.ts'

const database = await postgres.env(t)
/** Deliveries so far. */
let count = 0

t.test('flag over environment file over environment over default', async (t) => {
  const envFile = join(await temporaryFolder(t, 'env'), 'gatehouse.env')
  const lines = ['HOOKS_MAX_BODY=2KiB', 'HOOKS_FRESHNESS_S=120', 'LINKS_BASE_URL=', 'OTHER=1']
  writeFileSync(envFile, lines.join('\n'))
  const env = {
    ...FREE,
    ...database,
    HOOKS_MAX_BODY: '3KiB',
    HOOKS_FRESHNESS_S: '130',
    OPS_BASE_URL: 'https://ops.example',
    LINKS_BASE_URL: 'https://links.example',
    HOOKS_BASE_URL: '',
  }
  const server = openCli(t, `serve hooks --hooks-max-body=1KiB --env-file ${envFile}`, env)
  const { hooks = '' } = await until(() => parseReady(server.stdout()), 'the ready line')
  t.match(await configurationOf(hooks), {
    HOOKS_MAX_BODY: '1KiB (flag)',
    HOOKS_FRESHNESS_S: '120 (environment file)',
    OPS_BASE_URL: 'https://ops.example (environment)',
    // Empty in the file is unset there.
    LINKS_BASE_URL: 'https://links.example (environment)',
    HOOKS_BASE_URL: undefined,
  })
  await addProvider(hooks, 'any', { open: true })
  const post = async (size: number) => (await send(hooks, 'generic/any', 'x'.repeat(size))).status
  t.equal(await post(1024), 202, 'the shown value is the one that counts')
  t.equal(await post(1025), 413)
  t.equal(await server.stop(), 0)
})

t.test('a secret is its whole value, of a credential without its last newline', async (t) => {
  const inEnvironment = ` ${secret('spaces')}  `
  const inFile = `${secret('quoted')}  # no comment `
  const credential = secret('credential')
  const envFile = join(await temporaryFolder(t, 'env'), 'gatehouse.env')
  writeFileSync(envFile, `HOOKS_CODE_HOST_SECRET_PREVIOUS="${inFile}"\n`)
  const folder = await temporaryFolder(t, 'credentials')
  writeFileSync(join(folder, 'hooks_code_host_secret'), `${credential}\n`)
  writeFileSync(join(folder, 'hooks_code_host_secret_previous'), `${credential}-2\n\n`)
  writeFileSync(join(folder, 'hooks_freshness_s'), '1')
  const credentials = { ...database, CREDENTIALS_DIRECTORY: folder }
  const given = { GATEHOUSE_ENV_FILE: envFile, HOOKS_CODE_HOST_SECRET: inEnvironment }
  // An empty variable counts as unset.
  const empty = { HOOKS_FRESHNESS_S: '', HOOKS_CHAT_SECRET: '', GATEHOUSE_ENV_FILE: '' }
  for (const [more, accepted, refused] of [
    [given, [inEnvironment, inFile], [inEnvironment.trim(), inFile.trim(), credential]],
    [empty, [credential, `${credential}-2\n`], [`${credential}\n`, `${credential}-2`]],
  ] as const) {
    const env = { ...credentials, ...more }
    const server = await startServer(t, { services: ['hooks'], env })
    for (const key of accepted) t.equal(await delivery(server.hooks, key), 202)
    for (const key of refused) t.equal(await delivery(server.hooks, key), 401)
    if (more === given) continue
    const shown = await configurationOf(server.hooks)
    t.equal(shown['HOOKS_CODE_HOST_SECRET'], 'set (credential)')
    t.equal(shown['HOOKS_FRESHNESS_S'], '300 (default)', 'a credential is for secrets only')
    const { status } = await send(server.hooks, 'chat', '{}')
    t.equal(status, 404, 'no secret: unconfigured, not a secret without characters')
  }
  const none = { DATABASE_URL: '', GATEHOUSE_DATA_DIR: await temporaryFolder(t) }
  t.match((await check(none)).about('database'), [/^ok embedded, /])
})

t.test('an unknown variable in the environment is told of once, and stops nothing', async (t) => {
  const value = secret('unknown-variable')
  // As Kubernetes injects them for a service named hooks, and somebody mistypes one.
  const names = {
    HOOKS_PORT: 'tcp://10.0.0.1:80',
    OPS_SERVICE_HOST: '10.0.0.2',
    LINKS_ADRR: value,
    // What a program of `forward --exec` gets.
    GATEHOUSE_EVENT_ID: '1',
  }
  const env = { ...database, ...names, HOOKS_ADDR: '127.0.0.1:0' }
  const started = await runCli('serve hooks', { env })
  t.equal(started.code, 0)
  const [, warned = '', ...more] = started.stderr.split('unknown variables ignored')
  t.match(warned, '"names":"HOOKS_PORT, OPS_SERVICE_HOST, LINKS_ADRR"')
  t.same(more, [], 'once')
  t.notOk(started.stderr.includes(value), 'names only')

  const strange = { ...env, ['HOOKS_\u001b[2J']: '1' }
  t.match(await runCli('provider list', { env: strange }), {
    code: 0,
    stderr:
      'gatehouse: unknown in the environment and ignored: HOOKS_PORT, OPS_SERVICE_HOST, LINKS_ADRR, ' +
      'HOOKS_\\u001b[2J; see gatehouse help settings for the names that count\n',
  })
})

t.test('an environment file that is wrong, or not there, is refused by name', async (t) => {
  const envFile = join(await temporaryFolder(t, 'env'), 'gatehouse.env')
  writeFileSync(envFile, `HOOKS_CHATT_SECRET=${secret('unknown-variable')}\n`)
  const migrate = (file: string) => ({ args: 'migrate', env: { GATEHOUSE_ENV_FILE: file } })
  await refuseCommands(t, undefined, [
    [migrate(envFile), 1, /^gatehouse: HOOKS_CHATT_SECRET in .* mean HOOKS_CHAT_SECRET\?/],
    [migrate(`${envFile}.none`), 1, `The environment file ${envFile}.none can't be read`],
  ])
})

t.test('an invalid value is refused with the accepted form', async (t) => {
  const address = 'host:port, unix:/path, unix:/path?mode=0660 or fd:NAME'
  const url = 'an http:// or https:// URL without a path'
  const cases: readonly (readonly [string, readonly string[], string])[] = [
    ['HOOKS_ADDR', ['127.0.0.1:65536', ':8080', 'fd:', 'unix:relative', '::1:80'], address],
    ['LINKS_ADDR', ['unix:/a?mode=0060', 'unix:/a?mode=', 'unix:/a?group=www'], address],
    ['OPS_BASE_URL', ['ftp://h', 'https://h/path', 'h.example', 'https://h/?q'], url],
    ['GATEHOUSE_TRUSTED_PROXIES', ['10.0.0.0/33', '10.0.0.0/', 'proxy'], 'list of CIDR blocks'],
    ['LINKS_SCHEMES', ['tel,javascript', 'Data', 'tel:', 'a b', 'tel,'], 'such as mailto,tel'],
    ['HOOKS_MAX_BODY', ['0', '25MB', '101MiB', '1.5MiB'], 'a size from 1 to 100 MiB'],
    ['HOOKS_FRESHNESS_S', ['0', '86401', '1.5', '5m'], 'seconds from 1 to 86400'],
    ['OPS_MODEL_URL', ['http://h/v2', 'http://h/v1?', 'http://h/v1/#x'], 'that ends in /v1'],
    [
      'OPS_AGENT_COMMAND',
      ['claude --tools="Read Grep"', 'claude "--tools', '"claude"x'],
      'double quotes around words that have spaces',
    ],
    ['OPS_TIER1_MODEL', ['--debug', '  ', '🙂'.repeat(101)], 'name of a model'],
  ]
  const rows = cases.flatMap(([name, values, form]) =>
    values.map((value): RefusedCommand => {
      const line = new RegExp(
        `^gatehouse: ${name} is not valid \\(.*: expected .*${RegExp.escape(form)}`,
      )
      return [{ args: 'migrate', env: { [name]: value } }, 1, line]
    }),
  )
  const password = secret('database-password')
  // The value is not shown.
  const unshown =
    /^gatehouse: DATABASE_URL is not valid(?!.*(secret-|gatehouse:)).*expected a postgres:\/\/ URL/
  const urls = [
    ['mysql://', '5432'],
    ['postgres://%zz', '5432'],
    ['postgres://', 'port'],
    ['postgres://', '5432,127.0.0.1:port'],
  ].map(([start, port]): RefusedCommand => {
    const url = `${start}gatehouse:${password}@127.0.0.1:${port}/db`
    return [{ args: 'migrate', env: { DATABASE_URL: url } }, 1, unshown]
  })
  await refuseCommands(t, undefined, [...rows, ...urls])
})

t.test(
  'a changed environment file counts without a restart; a broken one changes nothing',
  async (t) => {
    const file = join(await temporaryFolder(t, 'env'), 'gatehouse.env')
    const [first, second] = [secret('first'), secret('second')]
    /** As an editor or a deployment does it: a new file takes the old one's name. */
    function change(text: string) {
      writeFileSync(`${file}.new`, text)
      renameSync(`${file}.new`, file)
    }
    change('HOOKS_FRESHNESS_S=100\n')
    const env = { ...(await postgres.env(t)), GATEHOUSE_ENV_FILE: file }
    const { hooks, logs } = await startServer(t, { services: ['hooks'], env })
    const answers = (key: string, status: number) =>
      until(async () => (await delivery(hooks, key)) === status, `an answer ${status}`)
    const kept = () => logs().filter((line) => line.includes('configuration not re-read'))

    t.equal(await delivery(hooks, first), 404, 'not configured')
    change(`HOOKS_CODE_HOST_SECRET=${first}\n`)
    await answers(first, 202)
    change(`HOOKS_CODE_HOST_SECRET=${second}\n`)
    await answers(second, 202)
    t.equal(await delivery(hooks, first), 401, 'the former secret is retired')
    // Other editors write the file in place: for a moment it is empty.
    const before = logs().length
    for (let n = 0; n < 5; n++) {
      writeFileSync(file, '')
      await pause(100)
      // At once, or a thread that was held up reads the empty file first.
      writeFileSync(file, `HOOKS_CODE_HOST_SECRET=${second}\n# ${n}\n`)
    }
    const reread = () =>
      logs()
        .slice(before)
        .filter((line) => line.includes('configuration re-read'))
    await until(() => reread().length > 0, 'the file to be read')
    for (const line of reread()) t.match(JSON.parse(line), { applied: '' }, 'nothing was lost')

    for (const [at, wrong] of ['HOOKS_FRESHNESS_S=never', 'HOOKS_NONSENSE=1'].entries()) {
      change(`HOOKS_CODE_HOST_SECRET=${first}\n${wrong}\n`)
      await until(() => kept().length > at, 'the log to say that it was not taken')
      t.match(kept()[at], wrong.split('=')[0])
      t.equal(await delivery(hooks, second), 202, 'the former configuration stays')
    }
    t.equal(await delivery(hooks, first), 401)
    change('\n')
    await answers(second, 404)
  },
)

/** Status of a delivery to the code host's receiver, signed with `key`. */
async function delivery(base: string, key: string) {
  // A known body would be answered like the first time.
  const body = JSON.stringify({ count: (count += 1) })
  return (
    await send(base, 'code_host', body, signatureHeaders('code_host', body, { secret: key }))
  ).status
}

function send(base: string, path: string, body: string, signed = {}) {
  const headers = { 'Content-Type': 'application/json', ...signed }
  return request(`${base}/webhooks/${path}`, { method: 'POST', headers, body })
}

/** What the settings page says of the configuration, by variable. */
async function configurationOf(base: string): Promise<Readonly<Record<string, string>>> {
  const { text } = await request(`${base}/settings`)
  const rows = text.matchAll(/<th [^>]*>([A-Z_]+)<\/th>\s*<td[^>]*>(.*?)<\/td>/gs)
  return Object.fromEntries(
    [...rows].map(([, name = '', value = '']) => [name, value.replace(/<[^>]*>/g, '').trim()]),
  )
}

t.test('what counts at once, and what waits for the next start', async (t) => {
  const file = join(await temporaryFolder(t, 'env'), 'gatehouse.env')
  const former = `
GATEHOUSE_TRUSTED_PROXIES=127.0.0.1/32
GATEHOUSE_USER_HEADER=X-User
HOOKS_BASE_URL=https://hooks.example
LINKS_BASE_URL=https://go.example
GATEHOUSE_WATCHDOG_S=50
`
  writeFileSync(file, former)
  const env = { ...(await embedded.env(t)), GATEHOUSE_ENV_FILE: file }
  const server = await startServer(t, { services: ['hooks', 'links'], env })
  const ask = async (url: string, headers: Readonly<Record<string, string>>) =>
    (await request(url, { headers })).status
  const proxied = {
    host: 'hooks.example',
    'x-user': 'ann@example.com',
    'x-forwarded-for': '9.9.9.9',
  }
  t.equal(await ask(`${server.hooks}/settings`, proxied), 200, 'by the proxy')
  t.equal(await ask(`${server.hooks}/settings`, { ...proxied, host: 'new.example' }), 403)
  const links = { ...proxied, host: 'go.example' }
  t.equal(await ask(`${server.links}/-/`, links), 200)

  const changed = `${former}
GATEHOUSE_USER_HEADER=X-Who
HOOKS_BASE_URL=https://new.example
GATEHOUSE_WATCHDOG_S=40
HOOKS_QUEUE_CHANNELS=orders
`
  // Of two lines for a setting the last one counts.
  writeFileSync(file, changed)
  const said = await until(
    () => server.logs().find((line) => line.includes('"configuration re-read"')),
    'the line',
  )
  t.match(JSON.parse(said), {
    applied: 'GATEHOUSE_USER_HEADER HOOKS_BASE_URL',
    waits_for_restart: 'GATEHOUSE_WATCHDOG_S HOOKS_QUEUE_CHANNELS',
  })
  const renamed = { ...proxied, host: 'new.example', 'x-who': 'ann@example.com' }
  t.equal(await ask(`${server.hooks}/settings`, renamed), 200, 'the new address')
  t.equal(await ask(`${server.hooks}/settings`, { ...renamed, host: 'hooks.example' }), 403)
  const page = (await request(`${server.hooks}/settings`, { headers: renamed })).text
  t.match(page, '50 (environment file); from the next start: 40 (environment file)')
  t.match(page, 'not set; from the next start: orders')
  const looked = await check(env)
  t.match(looked.about('configuration'), [
    'ok ',
    /^warn .*HOOKS_QUEUE_CHANNELS has no effect/,
    /^warn GATEHOUSE_WATCHDOG_S is 50 .*; from the next start: 40 .*: restart to apply it$/,
    'warn HOOKS_QUEUE_CHANNELS is not set; from the next start: orders',
  ])

  writeFileSync(file, former.replace('127.0.0.1/32', '10.0.0.0/8'))
  await until(
    async () => (await ask(`${server.hooks}/settings`, proxied)) === 403,
    'the proxy to be out of trust',
  )
  t.equal(await ask(`${server.links}/-/`, links), 403, 'in links, too')
})
