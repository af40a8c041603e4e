import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { t, type Test } from 'tap'
import { postgres } from '../helpers/backends.ts'
import { refuseCommands, refusedRows, runCli, type CliResult } from '../helpers/cli.ts'
import { startGithub, type GithubApi } from '../helpers/github-api.ts'
import { deliver, eventIds, shown, shownIn, startHooks } from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { startReceiver, type Received } from '../helpers/replays.ts'
import { secret } from '../helpers/secrets.ts'
import { until } from '../helpers/until.ts'

const REPO = '/repos/octo/app/hooks'
const { base, env } = await startHooks(t, postgres)
const known = { ...env, HOOKS_BASE_URL: base }

/** Runs `gatehouse recover …` where the pages' address is known. */
function recover(api: string, token: string, ...words: readonly string[]) {
  const args = ['recover', ...words, '--api', api, '--token', '-']
  return runCli(args, { env: known, input: token })
}

function recoverGithub(github: GithubApi, ...words: readonly string[]) {
  return recover(github.url, github.token, 'github', ...words)
}

/** The rows that a command printed, as `delivery outcome`. */
function outcomes({ stdout }: CliResult) {
  const rows = stdout
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => line.split(/ {2,}/))
  return rows.map((cells) => `${cells[1]} ${cells.at(-1)}`)
}

/** What a provider's page says of its sender. */
async function atSender(provider: string) {
  const { text } = await request(`${base}/providers?open=${provider}`)
  return shownIn(text).facts['At the sender'] ?? ''
}

await t.test('recover github', async (t: Test) => {
  const github = await startGithub(t, REPO)
  const other = github.addHook('https://other.example/webhooks/code_host')
  github.addAttempt(other, 'of-another', 500)
  const hook = github.addHook(`${base}/webhooks/code_host`)
  github.addAttempt(hook, 'old', 500, { delivered_at: '2020-01-01T00:00:00Z' })
  github.addAttempt(hook, 'down', 0)
  github.addAttempt(hook, 'again', 500)
  github.addAttempt(hook, 'came', 502)
  github.addAttempt(hook, 'again', 503, { redelivery: true })
  github.addAttempt(hook, 'came', 202, { redelivery: true })
  github.addAttempt(hook, 'fine', 200)

  await t.test('a dry run lists what failed and asks for nothing', async (t) => {
    const run = await recoverGithub(github, 'Octo/App', '--dry-run')
    t.match(run, { code: 0, stderr: 'code_host: 3 failed at the sender, 1 redelivered, 2 not ' })
    t.match(run.stdout, /^PROVIDER +DELIVERY +TYPE +FAILED +STATUS +OUTCOME\n/)
    t.same(outcomes(run), ['down not asked for', 'again not asked for', 'came redelivered'])
    t.same(github.asked, [])
    t.equal(await atSender('code_host'), '', 'and the page has nothing')
  })

  await t.test('what failed comes through the front door, verified and once', async (t) => {
    const run = await recoverGithub(github, 'octo/app', '--json')
    t.match(run, { code: 0, stderr: '3 failed at the sender, 1 redelivered, 2 asked for again' })
    t.match(JSON.parse(run.stdout), [
      { id: 'down', status: '0 failed to connect', outcome: 'asked for' },
      { id: 'again', status: '503 code 503', outcome: 'asked for' },
      { id: 'came', outcome: 'redelivered' },
    ])
    const ids = await until(async () => {
      const found = await eventIds(base)
      return found.length === 2 && found
    }, 'both events')
    t.match((await shown(base, ids[1] ?? 0)).facts, { Verified: /yes|ok/i, 'Delivery id': 'down' })
    t.match(github.asked, ['down ', 'again '], 'oldest first')
    t.equal(github.asked.length, 2, 'each once')
    const [newest] = hook.attempts.filter(({ guid, redelivery }) => guid === 'again' && redelivery)
    t.ok(newest, 'by the id of its newest attempt, to the last digit')
    t.match(await atSender('code_host'), /github:octo\/app: 3 failed .*, 2 asked for again/s)
  })

  await t.test('what was redelivered is not asked for again', async (t) => {
    await until(() => hook.attempts.length === 9, 'the attempts of both')
    const run = await recoverGithub(github, 'octo/app', '--since', '30d')
    t.match(run, { code: 0, stderr: 'code_host: 3 failed at the sender, redelivered\n' })
    t.equal(github.asked.length, 2)
    t.match(await atSender('code_host'), 'octo/app: 3 failed at the sender, redelivered')
    const page = await request(`${base}/log?provider=code_host`)
    t.notMatch(page.text, 'delivered 2 times')
  })

  const run = await recoverGithub(github, 'octo/app', '--since', '2099-01-01T00:00:00Z')
  t.match(run, { code: 0, stderr: 'code_host: none failed at the sender\n' })
})

await t.test('recover github of an organization', async (t: Test) => {
  const github = await startGithub(t, '/orgs/octo/hooks')
  const hook = github.addHook(`${base}/webhooks/code_host?token=x`)
  github.addAttempt(hook, 'of-octo', 500)
  t.match(await recoverGithub(github, 'octo'), { code: 0, stderr: '1 asked for again' })
  await until(() => hook.attempts.length === 2, 'the delivery')
})

await t.test('recover: what is refused, here and by a sender', async (t: Test) => {
  const github = await startGithub(t, REPO)
  const file = join(await temporaryFolder(t), 'token')
  await writeFile(file, `${github.token}\n`)
  const state = () => postgres.query(env, 'select * from hooks.recoveries')
  const target = { env: known, state }
  const { host } = new URL(github.url)
  const words = `recover github octo/app --token ${file} --api ${github.url}`
  const of = 'TARGET must be OWNER/REPO, or the name of an'
  await refuseCommands(t, target, [
    ...refusedRows('recover github', 2, [
      ['octo/app', '--token must be a file with the token'],
      ['octo/app --token ghp_x', '--token must be -'],
      [`a/b/c --token ${file}`, of],
      [`a/.. --token ${file}`, of],
      [`octo/app --token ${file} --since 5`, '--since must be a time such as'],
      [`octo/app --token ${file} --api http://ghe.example`, '--api must be an https:// URL'],
    ]),
    [{ args: 'recover github octo/app --token -', input: 'a b' }, 2, '--token must be a file'],
  ])
  const spent: GithubApi['fault'] = (_, response) => {
    const reset = String(Math.floor(Date.now() / 1_000) + 600)
    const headers = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': reset }
    return Boolean(response.writeHead(403, headers).end())
  }
  for (const [fault, line] of [
    [
      () => false,
      /no webhook of octo\/app leads to an enabled provider at http.*: HOOKS_BASE_URL must be/,
    ],
    [answering(401), `${host} does not accept the token (401)`],
    [answering(403), `${host} does not let the token do that (403)`],
    [answering(404), /does not have it, or does not show it to the token \(404/],
    [answering(301, { location: '/x' }), /has it under another name now \(301\)/],
    [answering(500), `${host} refuses the request (500)`],
    [answering(200, {}, '<p>'), /something else than its documentation says/],
    [answering(200, {}, '{"message":1}'), /something else than its documentat/],
    [answering(200, {}, `"${'x'.repeat(8_400_000)}"`), /more than 8 MiB/],
    [(_, response) => Boolean(response.destroy()), /can't be reached: /],
    [answering(429, { 'retry-after': '37' }), /limits requests \(429\): .* for 37 s/],
    [answering(403, {}, '{"message":"secondary rate limit"}'), / for 60 s/],
    [spent, /limits requests \(403\): nothing is asked for (?:59\d|600) s/],
  ] satisfies readonly (readonly [GithubApi['fault'], string | RegExp])[]) {
    github.fault = fault
    await refuseCommands(t, target, [[words, 1, line]])
  }
})

await t.test('recover github: asking is broken off', async (t: Test) => {
  const github = await startGithub(t, REPO)
  const hook = github.addHook(`${base}/webhooks/code_host`)
  for (const guid of ['gone', 'first', 'second']) github.addAttempt(hook, guid, 500)
  const [, , gone] = hook.attempts
  github.fault = (got, response) => {
    if (got.method === 'GET') return false
    if (got.path.includes(String(gone?.id))) return answering(422)(got, response)
    return github.asked.length > 0 && answering(403, { 'retry-after': '7' })(got, response)
  }
  const run = await recoverGithub(github, 'octo/app')
  t.match(run, { code: 1, stderr: /1 asked for again, 2 not asked for\ngatehouse: .* for 7 s\n$/ })
  t.same(outcomes(run), ['gone not asked for', 'first asked for', 'second not asked for'])
  t.match(await atSender('code_host'), /1 asked for again, 2 not .*limits requests/s)
})

await t.test('recover stripe', async (t: Test) => {
  const stripe = await startStripe(t)
  const stored = (await eventIds(base)).length
  await deliver(base, 'payments', JSON.stringify({ id: 'evt_here', type: 'charge.failed' }))

  const run = await recover(stripe.url, stripe.key, 'stripe')
  t.same(outcomes(run), ['evt_1 not asked for', 'evt_2 not asked for'], 'oldest first')
  const resend =
    'to resend an event of payments: stripe events resend EVENT --webhook-endpoint=we_1 --live\n'
  // Nobody has asked for them.
  t.match(run, { code: 1, stderr: `payments: 2 failed at the sender, 2 not asked for\n${resend}` })
  const [first] = stripe.received.filter(({ path }) => path.startsWith('/v1/events'))
  t.match(first?.path, /delivery_success=false&.*created%5Bgte%5D=\d+/)
  // Nothing is called that is not documented.
  for (const { method } of stripe.received) t.equal(method, 'GET')
  t.equal((await eventIds(base)).length, stored + 1, 'nothing unsigned is stored')
  t.match(await atSender('payments'), 'stripe: 2 failed at the sender, 2 not asked for')
})

/** Stripe, as its documentation describes the lists of events and of webhook endpoints. */
async function startStripe(t: Test) {
  const [key, type] = [secret('stripe-key'), 'charge.failed']
  const endpoint = { created: 1_700_000_000, livemode: true, enabled_events: ['*'] }
  const endpoints = [
    { ...endpoint, id: 'we_0', url: 'https://other.example/webhooks/payments' },
    { ...endpoint, id: 'we_1', url: `${base}/webhooks/payments`, enabled_events: [type] },
  ]
  const event = { object: 'event', type, pending_webhooks: 1, data: {} }
  const events = [
    { ...event, id: 'evt_2', created: 1_800_000_002 },
    { ...event, id: 'evt_unwanted', created: 1_800_000_001, type: 'charge.captured' },
    { ...event, id: 'evt_here', created: 1_800_000_001 },
    { ...event, id: 'evt_1', created: 1_800_000_000 },
    { ...event, id: 'evt_older_than_the_endpoint', created: 1_600_000_000 },
  ]
  const receiver = await startReceiver(t, (got, response) => {
    if (got.headers.authorization !== `Bearer ${key}`) return void response.writeHead(401).end()
    const { pathname, searchParams } = new URL(got.path, 'http://stripe')
    const rows: readonly { id: string }[] = pathname === '/v1/events' ? events : endpoints
    const after = rows.findIndex(({ id }) => id === searchParams.get('starting_after')) + 1
    const data = rows.slice(after, after + 2)
    const has_more = after + 2 < rows.length
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ object: 'list', data, has_more }))
  })
  return { ...receiver, key }
}

/** A fault that answers in GitHub's place. */
function answering(status: number, headers = {}, body = '{}'): GithubApi['fault'] {
  return (_: Received, response) => Boolean(response.writeHead(status, headers).end(body))
}
