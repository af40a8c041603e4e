import { t, type Test } from 'tap'
import { onPostgres, type Backend } from '../../helpers/backends.ts'
import { check } from '../../helpers/cli.ts'
import { startGithub, type GithubApi } from '../../helpers/github-api.ts'
import { eventIds, shownIn, startHooks, type Hooks } from '../../helpers/hooks.ts'
import type { Env } from '../../helpers/program.ts'
import { request } from '../../helpers/http.ts'
import { secret } from '../../helpers/secrets.ts'
import { HURRIED } from '../../helpers/server.ts'
import { noteSeen, until } from '../../helpers/until.ts'

const REPO = '/repos/octo/app/hooks'
/** The names of the lines of a log that tell of recoveries. */
const LINES = /^(redelivery asked for|failed deliveries .*)$/

const start = (t: Test, backend: Backend, env: Env) =>
  startHooks(t, backend, env, { clock: HURRIED })

function schedule(github: GithubApi, changes = {}) {
  return {
    HOOKS_RECOVER: 'github:Octo/App',
    HOOKS_RECOVER_INTERVAL_S: '1',
    HOOKS_RECOVER_GITHUB_TOKEN: github.token,
    HOOKS_RECOVER_GITHUB_API: github.url,
    ...changes,
  }
}

/** What the log has said of recoveries, and of which source. */
function said({ server }: Hooks): readonly string[] {
  const lines = server.logs().map((line) => JSON.parse(line) as Record<string, string>)
  const own = lines.filter(({ msg = '' }) => LINES.test(msg))
  return own.map(({ level, msg, source }) => `${level} ${msg} ${source}`)
}

async function atSender({ base }: Hooks, provider = 'code_host') {
  const { text } = await request(`${base}/providers?open=${provider}`)
  return shownIn(text).facts['At the sender'] ?? ''
}

function untilShown(hooks: Hooks, expected: RegExp, provider?: string) {
  async function isShown() {
    const shown = await atSender(hooks, provider)
    noteSeen(`at the sender: ${shown}`)
    return expected.test(shown)
  }
  return until(isShown, String(expected), undefined, 200)
}

/** Looks that GitHub has answered or refused. */
function looks(github: GithubApi) {
  return github.requests.filter(({ path }) => path === `${REPO}?per_page=100`).length
}

/** Waits until a look has ended: the next one has begun. */
async function untilLooked(github: GithubApi) {
  const before = looks(github)
  await until(() => looks(github) >= before + 2, 'two more looks')
}

await onPostgres(t, 'HOOKS_RECOVER', async (t, backend: Backend) => {
  const github = await startGithub(t, REPO)
  const hooks = await start(t, backend, schedule(github))
  const second = await start(t, backend, hooks.env)

  await t.test('a failure is said once, and stands on the page', async (t) => {
    await untilShown(hooks, /github:octo\/app:.*no webhook of octo\/app leads to an enabled/s)
    await untilLooked(github)
    const lines = [...said(hooks), ...said(second)]
    t.same(lines, ['warn failed deliveries not recovered github:octo/app'])
  })

  await t.test('what failed is asked for once, by one of two instances', async (t) => {
    const hook = github.addHook(`${hooks.base}/webhooks/code_host`)
    const other = github.addHook(`${second.base}/webhooks/code_host`)
    for (const guid of ['one', 'two', 'three']) {
      github.addAttempt(hook, guid, 500)
      github.addAttempt(other, `other-${guid}`, 200)
    }
    await untilShown(hooks, /github:octo\/app: 3 failed at the sender, redelivered/)
    await untilLooked(github)
    t.equal(github.asked.length, 3)
    t.equal((await eventIds(hooks.base)).length, 3)
    const lines = [...said(hooks), ...said(second)].toSorted()
    t.same(lines, [
      'info failed deliveries are recovered again github:octo/app',
      'info redelivery asked for github:octo/app',
      'warn failed deliveries not recovered github:octo/app',
    ])
  })

  await t.test('what is refused again and again is given up', async (t) => {
    // The other instance has another address: the page would tell of its looks, which find nothing.
    await second.server.stop()
    github.secret = secret('another-secret')
    const hook = github.addHook(`${hooks.base}/webhooks/code_host`)
    for (let times = 0; times < 4; times++) github.addAttempt(hook, 'wrong', 401)
    await untilShown(hooks, /4 failed at the sender, 3 redelivered, 1 not asked for/)
    await untilLooked(github)
    t.equal(hook.attempts.length, 5)
  })

  await t.test('a limit is kept', async (t) => {
    github.fault = (_, response) =>
      Boolean(response.writeHead(429, { 'retry-after': '3600' }).end())
    await untilShown(hooks, /3 redelivered, 1 not asked for.*limits requests \(429\)/s)
    const [row] = await backend.query(
      hooks.env,
      'select extract(epoch from next_at - ended_at)::int as wait from hooks.recoveries',
    )
    t.equal(row?.['wait'], 3_600)
  })
})

await onPostgres(t, 'HOOKS_RECOVER at the stop', async (t, backend: Backend) => {
  const github = await startGithub(t, REPO)
  github.fault = () => true
  const hooks = await start(t, backend, schedule(github))
  await until(() => looks(github) === 1, 'the first look, right after the start')
  await hooks.server.stop()
  t.same(said(hooks), [], 'what was cut is no failure of the sender')
  github.fault = () => false
  const next = await start(t, backend, hooks.env)
  github.addHook(`${next.base}/webhooks/code_host`)
  await until(() => looks(github) > 1, 'the next instance, without waiting for the claim')
})

await onPostgres(t, 'HOOKS_RECOVER without a token', async (t, backend: Backend) => {
  const github = await startGithub(t, REPO)
  const { HOOKS_RECOVER_GITHUB_TOKEN: _, ...env } = schedule(github)
  const database = await backend.env(t)
  await backend.query(
    database,
    "insert into hooks.recoveries values ('github:gone', now() - interval '31 days', null, 'x')",
  )
  const HOOKS_RECOVER = 'github:octo/app, stripe'
  const hooks = await start(t, backend, { ...env, ...database, HOOKS_RECOVER })
  await untilShown(hooks, /github:octo\/app:.*HOOKS_RECOVER_GITHUB_TOKEN is not set/s)
  await untilShown(hooks, /stripe:.*HOOKS_RECOVER_STRIPE_KEY is not set/s, 'payments')
  t.equal(github.requests.length, 0)
  const gone = async () =>
    (await backend.query(database, 'select from hooks.recoveries')).length === 2
  await until(gone, 'the source of a month ago to be forgotten')
  const found = await check(hooks.env, ['hooks'])
  t.same(found.about('HOOKS_RECOVER'), [
    'warn github:octo/app is not looked up: set HOOKS_RECOVER_GITHUB_TOKEN',
    'warn stripe is not looked up: set HOOKS_RECOVER_STRIPE_KEY',
  ])
})
