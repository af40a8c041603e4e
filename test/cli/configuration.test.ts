import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { t } from 'tap'
import type { Test } from 'tap'
import { runCli } from '../helpers/cli.ts'
import { request } from '../helpers/http.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import type { Env } from '../helpers/program.ts'
import { secret } from '../helpers/secrets.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { codeHostHeaders } from '../helpers/sign.ts'

t.test('flag over environment file over environment over default', async (t) => {
  const envFile = join(await temporaryFolder(t, 'env'), 'gatehouse.env')
  await writeFile(
    envFile,
    ['HOOKS_MAX_BODY=2KiB', 'HOOKS_FRESHNESS_S=120', 'LINKS_BASE_URL=', 'OTHER_PROGRAM=1'].join(
      '\n',
    ),
  )
  const env = {
    GATEHOUSE_ENV_FILE: envFile,
    HOOKS_MAX_BODY: '3KiB',
    HOOKS_FRESHNESS_S: '130',
    OPS_BASE_URL: 'https://ops.example',
    LINKS_BASE_URL: 'https://links.example',
    HOOKS_BASE_URL: '',
  }
  const server = await startServerProcess(t, {
    services: ['hooks'],
    env,
    flags: ['--hooks-max-body=1KiB'],
  })
  const shown = await configurationOf(server.hooks)
  t.equal(shown['HOOKS_MAX_BODY'], '1KiB (flag)')
  t.equal(shown['HOOKS_FRESHNESS_S'], '120 (environment file)')
  t.equal(shown['OPS_BASE_URL'], 'https://ops.example (environment)')
  t.equal(
    shown['LINKS_BASE_URL'],
    'https://links.example (environment)',
    'empty in the file: unset',
  )
  t.notOk('HOOKS_BASE_URL' in shown && shown['HOOKS_BASE_URL'] !== 'unset', 'empty: unset')

  await request(`${server.hooks}/providers`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    body: 'name=any&trust_mode=open&acknowledge_open=true',
  })
  await request(`${server.hooks}/providers/generic%3Aany/enabled`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    body: 'enabled=true',
  })
  const post = (size: number): Promise<{ status: number }> =>
    request(`${server.hooks}/webhooks/generic/any`, { method: 'POST', body: 'x'.repeat(size) })
  t.equal((await post(1024)).status, 202, 'the shown value is the one that counts')
  t.equal((await post(1025)).status, 413)
})

t.test('an empty variable counts as unset', async (t) => {
  const env = {
    HOOKS_FRESHNESS_S: '',
    HOOKS_CHAT_SECRET: '',
    HOOKS_MAX_BODY: '',
    DATABASE_URL: '',
    GATEHOUSE_ENV_FILE: '',
  }
  const server = await startServerProcess(t, { services: ['hooks'], env })
  const shown = await configurationOf(server.hooks)
  t.equal(shown['HOOKS_FRESHNESS_S'], '300 (default)')
  t.equal(shown['HOOKS_MAX_BODY'], '25MiB (default)')
  const { status } = await request(`${server.hooks}/webhooks/chat`, { method: 'POST', body: '{}' })
  t.equal(status, 404, 'no secret: unconfigured, not a secret without characters')
})

t.test('a secret is its whole value', async (t) => {
  const inEnvironment = ` ${secret('spaces')}  `
  const inFile = `${secret('quoted')}  # no comment `
  const envFile = join(await temporaryFolder(t, 'env'), 'gatehouse.env')
  await writeFile(envFile, `HOOKS_CODE_HOST_SECRET_PREVIOUS="${inFile}"\n`)
  const env = { HOOKS_CODE_HOST_SECRET: inEnvironment }
  const server = await startServerProcess(t, {
    services: ['hooks'],
    env,
    flags: ['--env-file', envFile],
  })
  t.equal(await delivery(server.hooks, inEnvironment), 202)
  t.equal(await delivery(server.hooks, inEnvironment.trim()), 401)
  t.equal(await delivery(server.hooks, inFile), 202)
  t.equal(await delivery(server.hooks, inFile.trim()), 401)
})

t.test('a credential file gives a secret, without its last newline', async (t) => {
  const folder = await temporaryFolder(t, 'credentials')
  const fromFile = secret('credential')
  await writeFile(join(folder, 'hooks_code_host_secret'), `${fromFile}\n`)
  await writeFile(join(folder, 'hooks_code_host_secret_previous'), `${fromFile}-2\n\n`)
  await writeFile(join(folder, 'hooks_freshness_s'), '1')
  const env = { CREDENTIALS_DIRECTORY: folder }
  const server = await startServerProcess(t, { services: ['hooks'], env })
  t.equal(await delivery(server.hooks, fromFile), 202)
  t.equal(await delivery(server.hooks, `${fromFile}\n`), 401)
  t.equal(await delivery(server.hooks, `${fromFile}-2\n`), 202, 'only one newline')
  const shown = await configurationOf(server.hooks)
  t.equal(shown['HOOKS_CODE_HOST_SECRET'], 'set (credential)')
  t.equal(shown['HOOKS_FRESHNESS_S'], '300 (default)', 'a credential is for secrets only')
  await server.stop()

  const given = secret('environment')
  const both = { ...env, HOOKS_CODE_HOST_SECRET: given }
  const second = await startServerProcess(t, { services: ['hooks'], env: both })
  t.equal(await delivery(second.hooks, given), 202)
  t.equal(await delivery(second.hooks, fromFile), 401, 'the environment goes before a credential')
})

t.test('an unknown variable in the environment is told of once, and stops nothing', async (t) => {
  const value = secret('unknown-variable')
  // As Kubernetes injects them for a service named hooks, and somebody mistypes one.
  const env = { HOOKS_PORT: 'tcp://10.0.0.1:80', OPS_SERVICE_HOST: '10.0.0.2', LINKS_ADRR: value }
  const server = await startServerProcess(t, { services: ['hooks'], env })
  const warned = server.logs().filter((line) => line.includes('unknown variables ignored'))
  t.equal(warned.length, 1)
  t.match(JSON.parse(warned[0] ?? '{}'), {
    level: 'warn',
    names: 'HOOKS_PORT, OPS_SERVICE_HOST, LINKS_ADRR',
  })
  t.notOk(server.logs().join('').includes(value), 'names only')

  const strange = { ...env, ['HOOKS_\u001b[2J']: '1', GATEHOUSE_DATA_DIR: await temporaryFolder(t) }
  const { code, stderr } = await runCli(['provider', 'list'], { env: strange })
  t.equal(code, 0)
  t.equal(
    stderr,
    'gatehouse: unknown in the environment and ignored: HOOKS_PORT, OPS_SERVICE_HOST, LINKS_ADRR, ' +
      'HOOKS_\\u001b[2J; see gatehouse help for the names that count\n',
  )
})

t.test('an unknown variable of ours in the environment file is refused by name', async (t) => {
  const value = secret('unknown-variable')
  const envFile = join(await temporaryFolder(t, 'env'), 'gatehouse.env')
  await writeFile(envFile, `HOOKS_CHATT_SECRET=${value}\n`)
  await refused(
    t,
    { GATEHOUSE_ENV_FILE: envFile },
    /^gatehouse: HOOKS_CHATT_SECRET in .+gatehouse\.env is no variable/,
  )
  const missing = `${envFile}.none`
  await refused(
    t,
    { GATEHOUSE_ENV_FILE: missing },
    /^gatehouse: The environment file .+ can't be read/,
  )
})

t.test('an invalid value is refused with the accepted form', async (t) => {
  const cases: readonly (readonly [string, readonly string[], string])[] = [
    [
      'HOOKS_ADDR',
      ['nonsense', '127.0.0.1:65536', ':8080', 'fd:'],
      'host:port, unix:/path or fd:NAME',
    ],
    ['LINKS_ADDR', ['unix:relative'], 'host:port, unix:/path or fd:NAME'],
    ['OPS_ADDR', ['::1:80'], 'host:port, unix:/path or fd:NAME'],
    ['HOOKS_BASE_URL', ['ftp://h', 'https://h/path'], 'an http:// or https:// URL without a path'],
    ['LINKS_BASE_URL', ['h.example'], 'an http:// or https:// URL without a path'],
    ['OPS_BASE_URL', ['https://h/?q'], 'an http:// or https:// URL without a path'],
    ['GATEHOUSE_TRUSTED_PROXIES', ['10.0.0.0/33', '10.0.0.0/', 'proxy'], 'list of CIDR blocks'],
    ['HOOKS_MAX_BODY', ['0', '25MB', '101MiB', '-1', '1.5MiB'], 'a size from 1 to 100 MiB'],
    ['HOOKS_FRESHNESS_S', ['0', '86401', '1.5', '5m'], 'seconds from 1 to 86400'],
    ['OPS_INTERVAL', ['0', '2147483648', '99999999999'], 'seconds'],
    [
      'OPS_MODEL_URL',
      ['http://h/v2', 'http://h/v1?a=b', 'http://h/v1/#x', 'http://h/v1?'],
      'that ends in /v1',
    ],
    [
      'OPS_AGENT_COMMAND',
      ['claude --tools="Read Grep"', 'claude "--tools', '"claude"x'],
      'double quotes around words that have spaces',
    ],
    ['OPS_TIER1_MODEL', ['--debug', '  ', 'x'.repeat(201), '🙂'.repeat(101)], 'name of a model'],
  ]
  for (const [name, values, form] of cases) {
    for (const value of values) {
      const { stderr } = await refused(
        t,
        { [name]: value },
        new RegExp(`^gatehouse: ${name} is not valid \\(`),
      )
      t.match(stderr, `: expected `)
      t.match(stderr, form, `${name}=${value}`)
    }
  }
  const password = secret('database-password')
  for (const [start, port] of [
    ['mysql://', 5432],
    ['postgres://%zz', 5432],
    ['postgres://', 'port'],
    ['postgres://', '5432,127.0.0.1:port'],
  ] as const) {
    const url = `${start}gatehouse:${password}@127.0.0.1:${port}/db`
    const line = /^gatehouse: DATABASE_URL is not valid/
    const { stderr } = await refused(t, { DATABASE_URL: url }, line)
    t.match(stderr, 'expected a postgres:// URL')
    t.notOk(stderr.includes(password) || stderr.includes(url), 'the value is not shown')
  }
})

/** No command starts with such a configuration: code 1 and one line. */
async function refused(t: Test, env: Env, line: RegExp): Promise<{ stderr: string }> {
  const { code, stdout, stderr } = await runCli(['migrate'], { env })
  t.same({ code, stdout, lines: stderr.split('\n').length }, { code: 1, stdout: '', lines: 2 })
  t.match(stderr, line)
  return { stderr }
}

/** Status of a delivery to the code host's receiver, signed with `key`. */
async function delivery(base: string, key: string): Promise<number> {
  const body = '{"a":1}'
  const headers = { 'Content-Type': 'application/json', ...(await codeHostHeaders(key, body)) }
  return (await request(`${base}/webhooks/code_host`, { method: 'POST', headers, body })).status
}

/** What the settings page says of the configuration, by variable. */
async function configurationOf(base: string): Promise<Readonly<Record<string, string>>> {
  const { text } = await request(`${base}/settings`)
  const rows = text.matchAll(/<th scope="row">([A-Z_]+)<\/th>\s*<td>(.*?)<\/td>/gs)
  return Object.fromEntries(
    [...rows].map(([, name = '', value = '']) => [name, value.replace(/<[^>]*>/g, '').trim()]),
  )
}
