import { t } from 'tap'
import { postgres } from '../helpers/backends.ts'
import { refuseCommands, refusedRows, runCli } from '../helpers/cli.ts'
import { startOps } from '../helpers/ops.ts'
import { startReceiver } from '../helpers/replays.ts'
import { secret } from '../helpers/secrets.ts'
import { secretKey } from '../helpers/senders.ts'
import { until } from '../helpers/until.ts'

const token = secret('notify')
const { url, received } = await startReceiver(t)
const keyless = await postgres.env(t)
const env = { ...keyless, GATEHOUSE_SECRET_KEY: secretKey() }
const run = (words: string, input = '') => runCli(`notify ${words}`, { env, input })
const rows = async (): Promise<readonly Record<string, unknown>[]> =>
  JSON.parse((await run('list --json')).stdout)

await t.test('a target is added, with its key encrypted, tested and changed', async (t) => {
  const added = await run(
    `add phone ntfy+${url}/topic-${token} --services web,shop --levels critical --quiet 22:00-07:00 --after 5m --remind 4h --token -`,
    token,
  )
  t.match(added, { code: 0, stderr: 'phone gets the notices from now on' })
  t.match(await rows(), [
    { name: 'phone', kind: 'ntfy', host: new URL(url).host, after_s: 300, remind_s: 14_400 },
  ])
  const [stored] = await postgres.query(env, `select n::text from notices.targets n`)
  t.notMatch(JSON.stringify(stored), token)
  for (const words of ['list', 'show phone']) {
    const { stdout } = await run(words)
    t.match(stdout, /phone .*ntfy.* web,shop .*critical .*22:00-07:00 .*5m .*4h/)
    t.notMatch(stdout, token)
  }
  t.match(await run('test phone'), { code: 0 })
  t.match(received.at(-1), {
    path: '/',
    body: new RegExp(`"topic":"topic-${token}"`),
    headers: { authorization: `Bearer ${token}`, 'idempotency-key': /^notice-test-/ },
  })
  await run('add nobody http://127.0.0.1:2/x')
  t.match(await run('test nobody'), { code: 1, stderr: 'not taken: ECONNREFUSED' })
  await run('add odd http://127.0.0.1:25/x')
  t.match(await run('test odd'), { code: 1, stderr: 'not taken: bad port' })
  await run('remove odd')

  t.match(await run('set phone --after 0 --without quiet,levels'), { code: 0 })
  const kept = { after_s: 0, quiet: null, levels: null, remind_s: 14_400 }
  t.match((await rows()).at(-1), kept, 'what no flag names stays')
  await run('set phone --url -', `slack+${url}/chat`)
  await run('test phone')
  t.match(received.at(-1), { path: '/chat' })
})

await t.test('a bad one is refused in a line, and nothing is changed', async (t) => {
  const none = 'there is no target other'
  const period = 'must be a whole number with s, m, h or d, such as 90s, 15m, 24h or 7d'
  const times = '--quiet must be two times of the day such as 22:00-07:00'
  await refuseCommands(t, { env, state: rows }, [
    ...refusedRows('notify', 2, [
      [`add x pigeon+https://x/${token}`, 'URL is not valid: its scheme is not known'],
      [
        'add x pagerduty+https://x/v2/enqueue',
        'URL is not valid: it is not like pagerduty+https://events.pagerduty.com/v2/enqueue?routing_key',
      ],
      ['set phone', 'Missing a setting'],
      [
        'add x smtp://u:secret-1@h?from=a@b&to=c@d',
        'URL has a password, which others can see: give it by --token',
      ],
    ]),
    ...refusedRows('notify', 1, [
      [`add X:y ${url}`, 'the name must be 1 to 64 lower-case letters'],
      [`add phone ${url}`, 'there is a target phone already'],
      ['set other --after 5m', none],
      ['remove other', none],
      ['test other', none],
    ]),
    ...refusedRows(`notify add x ${url}`, 2, [
      ['--levels loud', '--levels must be'],
      ['--quiet 7-9', times],
      ['--quiet 07:00-07:00', times],
      ['--after 13h', `--after ${period}, 12h at most`],
      ['--remind 5s', `--remind ${period}, from 1m to 7d`],
    ]),
  ])
  const sealed = 'Addresses of notices are stored encrypted: set GATEHOUSE_SECRET_KEY'
  await refuseCommands(t, { env: keyless, state: rows }, [[`notify add x ${url}`, 1, sealed]])
  const otherKey = { ...keyless, GATEHOUSE_SECRET_KEY: secretKey() }
  await runCli(`notify add sealed ${url} --token -`, { env, input: token })
  await refuseCommands(t, { env: otherKey, state: rows }, [
    [
      `notify set sealed --url ${url}/new`,
      1,
      "its address can't be read: sealed with another key",
    ],
  ])
  const both = `notify set sealed --url ${url}/new --without token`
  t.match(await runCli(both, { env: otherKey }), { code: 0 })
  await run('remove sealed')
  const unread = await runCli('notify test phone', { env: keyless })
  t.match(unread, { code: 1, stderr: 'not taken: GATEHOUSE_SECRET_KEY is not set' })
})

await t.test('the running service sends to it, beside OPS_NOTIFY_URL', async (t) => {
  await run(`set phone --without services,remind --url ${url}/phone`)
  const ops = await startOps(t, postgres, { ...env, OPS_NOTIFY_URL: `${url}/configured` })
  await postgres.query(
    env,
    `insert into notices.notices (service, level, message, site, path, created_at)
     values ('shop', 'critical', 'x', 'ops', '/events', now())`,
  )
  const got = (path: string) => received.some((request) => request.path === path)
  await until(() => got('/phone') && got('/configured'), 'both targets to be told')
  const unsent = async () =>
    (await (await fetch(`${ops.base}/waiting`)).text()).includes('could not be sent to nobody')
  await until(unsent, 'the failing one')
  await run('remove nobody')
  await until(async () => !(await unsent()), 'nothing to be unsent')
  const { stdout } = await runCli('notify list', { env: ops.env })
  t.match(stdout, /^OPS_NOTIFY_URL .*\nphone /m)
})
