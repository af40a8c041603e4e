import { randomBytes } from 'node:crypto'
import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { startOps } from '../helpers/ops.ts'
import { startReceiver } from '../helpers/replays.ts'
import { secret } from '../helpers/secrets.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends
const token = secret('notify')
const key = randomBytes(32).toString('base64')

await t.test('targets in the database', async (t) => {
  const { url, received } = await startReceiver(t, (_request, response) => {
    response.writeHead(200).end()
  })
  const env = { ...(await postgres.env(t)), GATEHOUSE_SECRET_KEY: key }
  await runCli(['migrate'], { env })
  const run = (words: readonly string[], input?: string) =>
    runCli(['notify', ...words], { env, ...(input !== undefined && { input }) })
  const rows = async (): Promise<readonly Record<string, unknown>[]> =>
    JSON.parse((await run(['list', '--json'])).stdout) as readonly Record<string, unknown>[]

  await t.test('a target is added, with its key encrypted', async (t) => {
    const rules = ['--services', 'web,shop', '--levels', 'critical', '--quiet', '22:00-07:00']
    const words = ['add', 'phone', `ntfy+${url}/topic-${token}`, ...rules]
    const added = await run([...words, '--after', '5m', '--remind', '4h', '--token', '-'], token)
    t.equal(added.code, 0, added.stderr)
    t.match(added.stderr, /phone gets the notices from now on/)
    t.match(await rows(), [
      {
        ...{ name: 'phone', kind: 'ntfy', host: new URL(url).host, services: ['web', 'shop'] },
        ...{ levels: ['critical'], quiet: '22:00-07:00', after_s: 300, remind_s: 14_400 },
      },
    ])
    const [stored] = await postgres.query(env, `select n::text from notices.targets n`)
    t.notMatch(JSON.stringify(stored), token)
    for (const word of ['list', 'show']) {
      const { stdout } = await run(word === 'list' ? [word] : [word, 'phone'])
      t.match(stdout, /phone .*ntfy.* web,shop .*critical .*22:00-07:00 .*5m .*4h/)
      t.notMatch(stdout, token)
    }
  })

  await t.test('it is tested, with its key', async (t) => {
    const tested = await run(['test', 'phone'])
    t.equal(tested.code, 0, tested.stderr)
    t.match(received.at(-1), {
      path: '/',
      body: new RegExp(`"topic":"topic-${token}"`),
      headers: { authorization: `Bearer ${token}`, 'idempotency-key': /^notice-test-/ },
    })
    t.equal((await run(['add', 'nobody', 'http://127.0.0.1:2/x'])).code, 0)
    const failed = await run(['test', 'nobody'])
    t.equal(failed.code, 1)
    t.match(failed.stderr, /not taken: ECONNREFUSED/)
  })

  await t.test('it is changed, and what no flag names stays', async (t) => {
    t.equal((await run(['set', 'phone', '--after', '0', '--without', 'quiet,levels'])).code, 0)
    t.match((await rows()).at(-1), { after_s: 0, quiet: null, levels: null, remind_s: 14_400 })
    t.equal((await run(['set', 'phone', '--url', '-'], `slack+${url}/chat`)).code, 0)
    await run(['test', 'phone'])
    t.match(received.at(-1), { path: '/chat' })
  })

  await t.test('a bad one is refused in a line, and nothing is changed', async (t) => {
    const before = await rows()
    for (const [words, reason] of [
      [['add', 'x', `pigeon+https://x/${token}`], /its scheme is not known; expected/],
      [['add', 'X y', url], /the name must be 1 to 64 lower-case letters/],
      [['add', 'phone', url], /there is a target phone already/],
      [['add', 'x', url, '--levels', 'loud'], /expected of info, warning, critical|must be/],
      [['add', 'x', url, '--quiet', '7-9'], /two times of the day such as 22:00-07:00/],
      [['add', 'x', url, '--quiet', '07:00-07:00'], /two times of the day/],
      [['add', 'x', url, '--after', '13h'], /12h at most/],
      [['add', 'x', url, '--remind', '5s'], /from 1m to 7d/],
      [['add', 'x', 'pagerduty+https://x/v2/enqueue'], /routing_key/],
      [
        ['add', 'x', 'smtp://u:secret-1@h?from=a@b&to=c@d'],
        /URL has a password, which others can see: give it by --token/,
      ],
      [['set', 'other', '--after', '5m'], /there is no target other/],
      [['set', 'phone'], /Missing a setting/],
      [['set', 'phone', '--url', 'pigeon+https://x/'], /the address is not valid/],
      [['remove', 'other'], /there is no target other/],
      [['test', 'other'], /there is no target other/],
    ] as const) {
      const { code, stderr } = await run(words)
      t.ok(code === 1 || code === 2, words.join(' '))
      t.match(stderr, reason, words.join(' '))
      t.notMatch(stderr, token)
    }
    t.same(await rows(), before)
    const { GATEHOUSE_SECRET_KEY: _, ...without } = env
    const keyless = await runCli(['notify', 'add', 'x', url], { env: without })
    t.match(keyless.stderr, /stored encrypted: set GATEHOUSE_SECRET_KEY/)
    const unread = await runCli(['notify', 'test', 'phone'], { env: without })
    t.match(unread.stderr, /not taken: GATEHOUSE_SECRET_KEY is not set/)
  })

  await t.test('the running service sends to it, beside OPS_NOTIFY_URL', async (t) => {
    await run(['set', 'phone', '--without', 'services,remind', '--url', `${url}/phone`])
    const ops = await startOps(t, postgres, { ...env, OPS_NOTIFY_URL: `${url}/configured` })
    await postgres.query(
      env,
      `insert into notices.notices (service, level, message, site, path, created_at)
       values ('shop', 'critical', 'x', 'ops', '/events', now())`,
    )
    const got = (path: string): boolean => received.some((request) => request.path === path)
    await until(() => got('/phone') && got('/configured'), 'both targets to be told')
    const waiting = async (): Promise<string> => (await fetch(`${ops.base}/waiting`)).text()
    await until(async () => /could not be sent to nobody/.test(await waiting()), 'the failing one')
    t.equal((await run(['remove', 'nobody'])).code, 0)
    await until(async () => !/could not be sent/.test(await waiting()), 'nothing to be unsent')
    const { stdout } = await runCli(['notify', 'list'], { env: ops.env })
    t.match(stdout, /^OPS_NOTIFY_URL .*\nphone /m)
  })
})
