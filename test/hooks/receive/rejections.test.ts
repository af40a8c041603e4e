import { randomBytes } from 'node:crypto'
import { t, type Test } from 'tap'
import { openDatabase } from '../../../db/open.ts'
import { systemClock } from '../../../kernel/time.ts'
import { createLog } from '../../../kernel/log.ts'
import { createMetrics } from '../../../kernel/metrics.ts'
import { openRejections, type Rejections } from '../../../services/hooks/receive/rejections.ts'
import { backends, connectionTo, onPostgres } from '../../helpers/backends.ts'
import { request } from '../../helpers/http.ts'
import { keepSecret, secret, transcript } from '../../helpers/secrets.ts'
import {
  SECRETS,
  addProvider,
  deliver,
  enable,
  eventIds,
  now,
  post,
  postForm,
  refusals,
  signatureHeaders,
  startHooks,
  tokenOf,
  type Refused,
} from '../../helpers/hooks.ts'
import { expectStatus } from '../../helpers/refusals.ts'
import { until } from '../../helpers/until.ts'

const [, server] = backends
const LIMIT = 100 * 1024

/** Refused deliveries by provider and status, as /metrics counts them. */
async function counted(base: string) {
  const { text } = await request(`${base}/metrics`)
  const line = /^gatehouse_hooks_rejections_total\{provider="([^"]+)",status="(\d+)"\} (\d+)$/gm
  const found = [...text.matchAll(line)]
  return Object.fromEntries(
    found.map(([, name, status, total]) => [`${name} ${status}`, Number(total)]),
  )
}

await onPostgres(t, 'rejections', async (t, backend) => {
  const newline = keepSecret('with-newline', `${SECRETS.chat}\n`)
  const { base, server, env } = await startHooks(t, backend, {
    HOOKS_CHAT_SECRET: newline,
    HOOKS_MAX_BODY: String(LIMIT),
  })
  const marked = secret('in-a-payload')
  const token = await addProvider(base, 'ci')
  const old = await addProvider(base, 'turns')
  tokenOf(await postForm(base, '/providers/generic%3Aturns/rotate', { overlap: '0' }))
  await addProvider(base, 'idle', { enabled: false })
  const body = JSON.stringify({ marked })
  const bearer = (value: string) => ({ Authorization: `Bearer ${value}` })
  const expected: Omit<Refused, 'source'>[] = []
  let unknown = 0

  await t.test('each refusal is one of a known kind', async (t) => {
    async function refused(
      provider: string,
      status: number,
      reason: string,
      answer: ReturnType<typeof post>,
    ) {
      expected.push({ provider, status, reason })
      t.equal((await answer).status, status, `${provider}: ${reason}`)
    }
    const sign = signatureHeaders
    const altered = 'wrong secret or altered body'
    const cut = { 'X-CodeHost-Signature-256': 'sha256=abc' }
    const wrong = sign('code_host', body, { secret: 'another' })
    const right = sign('code_host', body)
    const trailing = 'would match without the trailing newline of the body'
    const large = JSON.stringify({ large: 'x'.repeat(64 * 1024) })
    const ofLarge = sign('code_host', large)
    const long = body + ' '.repeat(LIMIT)
    for (const [reason, sent, headers, status = 401] of [
      ['signature missing', body, {}],
      ['signature malformed', body, cut],
      [altered, body, wrong],
      [trailing, `${body}\r\n`, right],
      [altered, `${large}\n`, ofLarge],
      ['body too large', long, right, 413],
    ] as const) {
      await refused('code_host', status, reason, post(base, 'code_host', sent, headers))
    }
    const inSecret = 'would match without the trailing newline of the configured secret'
    await refused('chat', 401, inSecret, deliver(base, 'chat', body))
    await enable(base, 'code_host', false)
    await refused('code_host', 403, 'disabled', post(base, 'code_host', body, right))
    await enable(base, 'code_host', true)
    for (const [name, reason, path, headers] of [
      [
        'ci',
        'token missing in Authorization, x-webhook-token, x-gitlab-token, x-api-key, ' +
          'x-auth-token, ?token= and the path',
        'ci',
        {},
      ],
      ['ci', 'token missing: it is empty in the header x-api-key', 'ci', { 'X-API-Key': '' }],
      ['ci', 'wrong token, in Authorization: Bearer', 'ci', bearer(marked)],
      ['ci', 'wrong token, in the header x-auth-token', 'ci', { 'X-Auth-Token': marked }],
      [
        'ci',
        'would match without white space around the token, in ?token=',
        `ci?token=%20${token}`,
        {},
      ],
      ['turns', 'matches a retired token, in Authorization: Bearer', 'turns', bearer(old)],
      ['idle', 'disabled', 'idle', {}],
    ] as const) {
      await refused(`generic:${name}`, 403, reason, post(base, `generic/${path}`, body, headers))
    }
  })

  await t.test('all are listed, newest first, by network only', async (t) => {
    const listed = await until(async () => {
      const rows = await refusals(base)
      return rows.length >= expected.length && rows
    }, 'the refusals to be listed')
    const source = '127.0.0.0/24'
    t.same(
      listed,
      expected.toReversed().map((row) => ({ ...row, source })),
    )
    t.equal((await refusals(base, '&provider=generic:turns')).length, 1)
  })

  await t.test('what is refused otherwise is no rejection', async (t) => {
    const before = await counted(base)
    await expectStatus(400, post(base, 'chat', body), 'without time stamp')
    await expectStatus(404, request(`${base}/wp-login.php`, { method: 'POST' }))
    await expectStatus(400, deliver(base, 'code_host', '[]'), 'no object')
    t.same(await counted(base), before)
  })

  await t.test(
    'a delivery to an unknown path is listed, without what may be a token',
    async (t) => {
      // As long as a token of ours; a sender may read its own path in the answer.
      const stray = 'mK3vQ9xT7bR2nW5cY8dF1gH4jL6pS0zA-eU_iO2kB7q'
      const listed: string[] = []
      for (const [path, shown] of [
        ['gitub/push', '/webhooks/gitub/push'],
        ['generic/nobody', '/webhooks/generic/nobody'],
        [`generic/nobody/${token}`, '/webhooks/generic/nobody/…'],
        [stray, '/webhooks/…'],
        [`generic/${stray}?token=${marked}`, '/webhooks/generic/…'],
        ['T024BE7LD/B8QK2/xYz', '/webhooks/…/…/…'],
      ] as const) {
        await expectStatus(404, post(base, path, body), path)
        listed.unshift(`unknown path: POST ${shown}`)
      }
      await expectStatus(404, request(`${base}/webhooks/generic/ci/a/b`, { method: 'PUT' }))
      const wanted = ['unknown path: PUT /webhooks/generic/ci/…', ...listed]
      const found = await until(async () => {
        const rows = await refusals(base, '&provider=unknown')
        return rows.length === wanted.length && rows
      }, 'the unknown paths')
      t.same(
        found.map(({ reason }) => reason),
        wanted,
      )
      for (const row of found) t.match(row, { status: 404, source: '127.0.0.0/24' })
      t.match((await counted(base))['unknown 404'], found.length)
      unknown = found.length
    },
  )

  await t.test('metrics count each by provider and status', async (t) => {
    const totals = { 'code_host 401': 5, 'code_host 413': 1, 'generic:ci 403': 5 }
    t.match(await counted(base), totals)
    const { text } = await request(`${base}/providers?open=code_host`)
    const link =
      /href="\/log\?rejected=1&amp;provider=code_host"[^>]*>7<\/a>\s*<span>\(last: disabled\)/
    t.match(text, link, 'and so does the card')
  })

  await t.test('no payload, token or signature is kept', async (t) => {
    t.same(await eventIds(base), [])
    await server.stop()
    const rows = await backend.query(env, 'select r::text as text from hooks.rejections r')
    t.equal(rows.length, expected.length + unknown)
    const text = rows.map((row) => row['text']).join('\n')
    for (const value of [marked, token, old]) t.notOk(text.includes(value))
    t.notMatch(text, /[0-9a-f]{32}/, 'nothing like a signature')
    const [sum] = await backend.query(
      env,
      'select sum(total)::int as total from hooks.rejection_totals',
    )
    t.equal(sum?.['total'], expected.length + unknown, 'totals are stored')
  })
})

/** The groups of `/log?rejected=1`: provider, reason, count, and what it opens to. */
async function groups(base: string) {
  const { text } = await request(`${base}/log?rejected=1`)
  const articles = text.split('<article class="openable"').slice(1)
  return articles.map((article) => {
    const part = (form: RegExp) => form.exec(article)?.[1]?.replace(/<[^>]*>/g, '') ?? ''
    return {
      provider: part(/data-provider="([^"]*)"/),
      reason: part(/<h3>(.*?)<\/h3>/s),
      count: part(/class="number">(.*?)×/),
      cause: part(/Probable cause<\/dt>\s*<dd>(.*?)<\/dd>/s),
      expected: part(/Expected<\/dt>\s*<dd>(.*?)<\/dd>/s),
      button: part(/<a class="button" href="([^"]*)"/),
    }
  })
}

t.test('alike ones are one group, with cause, what was expected and a remedy', async (t) => {
  const { base, env } = await startHooks(t, server)
  await addProvider(base, 'ci')
  const wrong = { Authorization: 'Bearer wrong-token' }
  for (let n = 0; n < 3; n++) await post(base, 'generic/ci', '{}', wrong)
  await post(base, 'generic/shoop', '{}')
  await deliver(base, 'payments', '{}', {}, { at: now() - 1_000 })
  await deliver(base, 'payments', '{}', {}, { at: now() - 2_000 })
  await until(async () => (await refusals(base)).length === 6, 'all of them')
  t.match((await request(`${base}/`)).text, '1 of them to unknown paths')
  const found = await groups(base)
  t.equal(found.length, 3)
  const of = (provider: string) => found.find((group) => group.provider === provider)
  t.match(of('generic:ci'), {
    reason: 'wrong token, in Authorization: Bearer',
    count: '3',
    cause: /another token/,
    expected: /The provider&#39;s token: in Authorization: Bearer TOKEN.*x-api-key/,
    button: '/providers?open=generic%3Aci#provider-generic%3Aci',
  })
  t.match(of('unknown'), {
    reason: /\/webhooks\/generic\/shoop$/,
    count: '1',
    cause: /mistyped/,
    button: '/providers/new?name=shoop',
  })
  t.match(of('payments'), { reason: 'stale by … s', count: '2', cause: /clock/, button: '' })
  t.match(of('payments'), { expected: /stripe-signature/ })

  // Anybody may fill the unknown paths, and old ones say nothing of today.
  await server.query(
    env,
    `insert into hooks.rejections (at, provider, status, source, reason)
     select now(), 'unknown', 404, '192.0.2.0/24', 'unknown path: POST /webhooks/n' || n
       from generate_series(1, 900) n
      union all
     select now() - interval '8 days', 'chat', 401, '192.0.2.0/24', 'signature missing'`,
  )
  const filled = await groups(base)
  t.equal(filled.filter(({ provider }) => provider === 'unknown').length, 30)
  const others = filled.filter(({ provider }) => provider !== 'unknown')
  t.same(others.map(({ provider }) => provider).toSorted(), ['generic:ci', 'payments'])
})

/** The table of refused deliveries without a server around it. */
async function openTable(t: Test) {
  const env = await server.env(t)
  const log = createLog(
    (text) => transcript('log', text, 'rejections'),
    () => new Date(),
  )
  const opened = await openDatabase({ url: env['DATABASE_URL'], dataDirectory: '' }, log)
  t.teardown(() => opened[Symbol.asyncDispose]())
  const open = () =>
    openRejections({
      db: opened.db,
      clock: systemClock,
      random: randomBytes,
      log,
      metrics: createMetrics(),
    })
  const counts = () =>
    server.query(
      env,
      `select (select count(*)::int from hooks.rejections) as rows,
              (select sum(total)::int from hooks.rejection_totals) as total,
              (select sum(wrong_secret)::int from hooks.rejection_minutes) as minutes,
              (select min(id)::int from hooks.rejections) as oldest`,
    )
  return { env, open, counts }
}

function refused(reason: string): Parameters<Rejections['record']>[0] {
  const at = new Date()
  return { provider: 'code_host', status: 401, client: '192.0.2.7', reason, at, wrongSecret: true }
}

t.test('how many are kept: of a second, of all, and of unknown paths', async (t) => {
  const { env, open, counts } = await openTable(t)
  const insert = (provider: string, count: number) =>
    server.query(
      env,
      `insert into hooks.rejections (at, provider, status, source, reason)
       select now(), $1, 401, '192.0.2.0/24', 'old ' || n from generate_series(1, $2) n`,
      [provider, count],
    )
  await insert('code_host', 10_500)
  const rejections = await open()
  async function flood() {
    for (let n = 1; n <= 300; n++) rejections.record(refused(`number ${n}`))
    await rejections.flush()
  }
  await flood()
  const newest = `select min(reason) as first, max(reason) as last from hooks.rejections
                   where reason like 'number%'`
  t.same(await server.query(env, newest), [{ first: 'number 101', last: 'number 300' }])
  // Refusals that keep coming are enough: nobody has to wait for the hourly run.
  for (let n = 0; n < 4; n++) await flood()
  t.same(await counts(), [{ rows: 10_000, total: 1_500, minutes: 1_500, oldest: 1_501 }])

  // Unknown paths have a bound of their own, and evict nothing else.
  const kept = () =>
    server.query(
      env,
      `select provider, count(*)::int as rows, max(reason) as last
         from hooks.rejections group by 1 order by 1`,
    )
  const stray = { provider: 'unknown', status: 404, client: '192.0.2.7' } as const
  async function lose(count: number) {
    for (let n = 0; n < count; n++) {
      rejections.record({ ...stray, reason: `unknown path: ${1000 + n}`, at: new Date() })
    }
    await rejections.flush()
  }
  await lose(900)
  const others = { provider: 'code_host', rows: 10_000 }
  const twenty = { provider: 'unknown', rows: 20, last: 'unknown path: 1899' }
  t.match(await kept(), [others, twenty], 'the newest 20 of a second')
  await insert('unknown', 2_000)
  await lose(1)
  t.match(await kept(), [others, { ...twenty, rows: 1_000, last: 'unknown path: 1000' }])
  await rejections.close()
  const total = `select total::int from hooks.rejection_totals where provider = 'unknown'`
  t.same(await server.query(env, total), [{ total: 901 }], 'all are counted')
})

// What an instance counts in memory is one statement for many rows: two that took them in different
// orders would each wait for the other. Another instance is played by a transaction of our own.

t.test('two instances that count refusals do not block each other', async (t) => {
  const hooks = await startHooks(t, server)
  const { base, env } = hooks
  const refuse = async () => {
    for (const provider of ['payments', 'code_host']) await post(base, provider, '{}')
  }
  const total = async () =>
    (await server.query(env, 'select sum(total)::int as n from hooks.rejection_totals'))[0]?.['n']
  await refuse()
  await until(async () => (await total()) === 2, 'a first flush')
  const sql = connectionTo(t, env)
  await sql.begin(async (tx) => {
    const take = (provider: string) =>
      tx`update hooks.rejection_totals set total = total where provider = ${provider}`
    await take('code_host')
    await refuse()
    const waits = `select 1 from pg_stat_activity
      where wait_event_type = 'Lock' and query like '%insert into hooks.rejection_writers%'`
    await until(async () => (await server.query(env, waits)).length > 0, 'the server to wait')
    await take('payments')
  })
  await until(async () => (await total()) === 4, 'the second flush')
  t.notMatch(hooks.server.logs().join('\n'), 'rejections not saved')
})
