import { t } from 'tap'
import type { Test } from 'tap'
import { onPostgres } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { addDestination } from '../helpers/destinations.ts'
import { request } from '../helpers/http.ts'
import { refuseAll } from '../helpers/refusals.ts'
import type { Refusal } from '../helpers/refusals.ts'
import { addSigned, cardOf, change, secretKey, sendStandard } from '../helpers/senders.ts'
import { startServer } from '../helpers/server.ts'
import type { TestServer } from '../helpers/server.ts'
import { FORM_TYPE, addProvider, deliver, enable, post, startHooks } from '../helpers/hooks.ts'
import { openStream } from '../helpers/sse.ts'
import type { EventStream, StreamEvent } from '../helpers/sse.ts'
import { until } from '../helpers/until.ts'

/** The alarms that fire, by provider, as `/metrics` tells: 1 fires, 0 is set. */
async function metrics(base: string): Promise<Record<string, number>> {
  const { text } = await request(`${base}/metrics`)
  const line = /^gatehouse_hooks_alarm\{provider="([^"]+)",kind="(\w+)"\} (\d)$/gm
  return Object.fromEntries(
    [...text.matchAll(line)].map(([, name, kind, value]) => [`${name} ${kind}`, Number(value)]),
  )
}

/** Status code, `status` and reasons of the health probe, as in `200 ok`. */
async function health(base: string): Promise<string> {
  const { status, text } = await request(`${base}/healthz`)
  const said = JSON.parse(text) as { status: string; reasons?: readonly string[] }
  return `${status} ${[said.status, ...(said.reasons ?? [])].join('; ')}`
}

/** Whether a status message names these alarms of a provider. */
function says(provider: string, ...alarms: readonly string[]): (event: StreamEvent) => boolean {
  return ({ event, data }) => {
    if (event !== 'status') return false
    const status: { providers: { name: string; alarms: string[] }[] } = JSON.parse(data)
    const found = status.providers.find(({ name }) => name === provider)
    return JSON.stringify(found?.alarms) === JSON.stringify(alarms)
  }
}

/** The next message that passes: behind those that have come, or behind another one. */
function next(
  stream: EventStream,
  passes: (event: StreamEvent) => boolean,
  what: string,
  before = stream.events.at(-1),
) {
  const known = before === undefined ? -1 : stream.events.indexOf(before)
  const isNext = (event: StreamEvent) => stream.events.indexOf(event) > known && passes(event)
  return stream.until(isNext, what, 20_000)
}

/** Log lines of alarms that began and ended, of one provider. */
function logged(server: TestServer, provider: string): readonly string[] {
  return server
    .logs()
    .map((line) => JSON.parse(line) as { msg: string; provider?: string; kind?: string })
    .filter((line) => line.msg.startsWith('alarm') && line.provider === provider)
    .map(({ msg, kind }) => `${msg} ${kind}`)
}

/** A log line may come a moment after what it tells of. */
async function untilLogged(server: TestServer, provider: string, count: number): Promise<void> {
  await until(() => logged(server, provider).length >= count, `${count} log lines of ${provider}`)
}

await onPostgres(t, 'alarms', async (t: Test, backend) => {
  const { base, server, env } = await startHooks(t, backend, {
    GATEHOUSE_SECRET_KEY: secretKey(),
    HOOKS_MAX_BODY: '1000',
  })
  const token = await addProvider(base, 'ci')
  const bearer = { Authorization: `Bearer ${token}` }
  const stream = await openStream(t, `${base}/events`)
  const wrong = (count: number, provider: string) =>
    Promise.all(Array.from({ length: count }, () => post(base, provider, '{}')))

  await t.test('both are off until an operator sets them', async (t) => {
    await wrong(30, 'generic/ci')
    await wrong(30, 'code_host')
    const calm = next(stream, says('generic:ci'), 'a status without alarms')
    t.equal((await post(base, 'generic/ci', '{}', bearer)).status, 202)
    await calm
    t.same(await metrics(base), {})
    t.equal(await health(base), '200 ok')
    t.equal((await cardOf(base, 'generic:ci'))['Alarms'], 'off')
    t.notMatch((await request(`${base}/metrics`)).text, /^gatehouse_hooks_alarm\{/m)
  })

  await t.test('a silent sender: status, health, metrics, dashboard, log', async (t) => {
    const silent = next(stream, says('generic:ci', 'silent'), 'the alarm')
    const set = await change(base, 'generic:ci', 'alarm', { expected_interval: '6s' })
    t.match(set, { status: 200, headers: { 'gatehouse-done': 'Saved.' } })
    t.equal(await health(base), '200 ok', 'counted from when it is set')
    t.equal((await cardOf(base, 'generic:ci'))['Alarms'], 'silent after 6s')
    await silent
    t.equal(await health(base), '200 degraded; no event for longer than expected: 1 provider')
    t.same(await metrics(base), { 'generic:ci silent': 1 })
    const { text } = await request(`${base}/`)
    t.match(
      text,
      /1 provider silent[\s\S]*generic:<wbr \/>ci<\/a>: no event for longer/,
      'the page names it',
    )
    t.match(text, /class="badge bad" title="No event for longer than expected">silent</)
    t.match(await cardOf(base, 'generic:ci'), { badges: 'token, silent' })

    const ended = next(stream, says('generic:ci'), 'the end of the alarm')
    t.equal((await post(base, 'generic/ci', '{}', bearer)).status, 202)
    const end = await ended
    await next(stream, says('generic:ci', 'silent'), 'silence after the event', end)
    t.same(await metrics(base), { 'generic:ci silent': 1 })
    await untilLogged(server, 'generic:ci', 3)
    const lines = ['alarm silent', 'alarm ended silent', 'alarm silent']
    t.same(logged(server, 'generic:ci'), lines, 'once each')
  })

  await t.test('a longer interval, turning it off and disabling end it', async (t) => {
    const longer = next(stream, says('generic:ci'), 'the end by a longer interval')
    await change(base, 'generic:ci', 'alarm', { expected_interval: '1h', rejection_burst: '' })
    await longer
    t.equal(await health(base), '200 ok')
    t.same(await metrics(base), { 'generic:ci silent': 0 }, 'set, and does not fire')

    const again = next(stream, says('generic:ci', 'silent'), 'the alarm again')
    await change(base, 'generic:ci', 'alarm', { expected_interval: '1s' })
    await again
    const disabled = next(stream, says('generic:ci'), 'the end by disabling')
    await enable(base, 'generic:ci', false)
    await disabled
    t.equal(await health(base), '200 ok')
    t.same(await metrics(base), {}, 'a disabled sender raises none')
    await change(base, 'generic:ci', 'alarm', { expected_interval: '5m' })
    await change(base, 'generic:ci', 'alarm', { rejection_burst: '1000' })
    t.equal(
      (await cardOf(base, 'generic:ci'))['Alarms'],
      'silent after 5m; 1000 refusals in 5 minutes',
      'a field that is not sent stays',
    )
    await enable(base, 'generic:ci', true)
    const off = await runCli(['provider', 'alarm', 'ci', '--off'], { env })
    t.match(off, {
      code: 0,
      stdout: '',
      stderr: 'generic:ci: silence raises no alarm; refusals raise no alarm\n',
    })
    await until(async () => (await cardOf(base, 'generic:ci'))['Alarms'] === 'off', 'off')
    await until(async () => Object.keys(await metrics(base)).length === 0, 'no alarm that is set')
  })

  await t.test('a burst of wrong signatures and tokens', async (t) => {
    const signing = await addSigned(base, 'shop')
    await runCli(['provider', 'alarm', 'code_host', '--burst', '35'], { env })
    await runCli(['provider', 'alarm', 'shop', '--burst', '5', '--expect', '24h'], { env })
    await until(
      async () =>
        (await cardOf(base, 'generic:shop'))['Alarms'] ===
        'silent after 24h; 5 refusals in 5 minutes',
      'the alarm to be set',
    )
    await until(async () => (await metrics(base))['generic:shop burst'] === 0, 'the metric')
    await wrong(4, 'generic/shop')
    await Promise.all(
      Array.from({ length: 9 }, () => post(base, 'generic/shop', 'x'.repeat(1001))),
    )
    await enable(base, 'generic:shop', false)
    await wrong(9, 'generic/shop')
    await enable(base, 'generic:shop', true)
    await until(async () => {
      const [, total] = /(\d+)/.exec((await cardOf(base, 'generic:shop'))['Rejected'] ?? '') ?? []
      return total === '22'
    }, 'all refusals to be counted')
    const calm = next(stream, says('generic:shop'), 'no alarm: too long and disabled do not count')
    t.equal((await sendStandard(base, 'shop', signing)).status, 202)
    await calm
    const burst = next(stream, says('generic:shop', 'burst'), 'the burst')
    await sendStandard(base, 'shop', `whsec_${Buffer.alloc(32).toString('base64')}`)
    await burst
    t.equal(await health(base), '200 degraded; many rejected deliveries: 1 provider')
    t.match(await metrics(base), { 'generic:shop burst': 1, 'generic:shop silent': 0 })
    t.match((await request(`${base}/`)).text, /class="badge bad"[^>]*>many refused</)

    // 30 were refused before the alarm was set: what happened counts.
    t.equal((await metrics(base))['code_host burst'], 0)
    const host = next(stream, says('code_host', 'burst'), 'the burst of 401s')
    t.same(
      (await wrong(5, 'code_host')).map(({ status }) => status),
      Array.from({ length: 5 }, () => 401),
    )
    await host
    t.equal(
      (await deliver(base, 'code_host', '{}')).status,
      202,
      'right ones are taken all the same',
    )
    await untilLogged(server, 'code_host', 1)
    t.same(logged(server, 'code_host'), ['alarm burst'])
  })

  await t.test('what is refused', async (t: Test) => {
    const bad = {
      expected_interval: ['1', '1w', '-1h', '0s', '367d', 'x'],
      rejection_burst: ['-1', '1.5', '1000001', 'x'],
    }
    const call = (name: string, fields: Readonly<Record<string, string>>) => ({
      call: `POST /providers/${name}/alarm`,
      headers: FORM_TYPE,
      body: new URLSearchParams(fields).toString(),
    })
    const state = async () => (await cardOf(base, 'generic:ci'))['Alarms']
    await refuseAll(t, { service: 'hooks', base, state }, [
      ...Object.entries(bad).flatMap(([field, values]) =>
        values.map((value): Refusal => {
          const text = new RegExp(`^${field} must be a whole number`)
          return [call('generic:ci', { [field]: value }), 422, undefined, text]
        }),
      ),
      [call('generic:none', {}), 404],
    ])
    t.equal(await state(), 'off')
    const none = await runCli(['provider', 'alarm', 'none', '--off'], { env })
    t.match(none, { code: 1, stderr: /There is no provider "generic:none"/ })
  })

  await t.test('alarms outlive a restart, and end when the burst is over', async (t) => {
    await server.stop()
    await backend.query(
      env,
      `update hooks.rejection_minutes set minute = minute - interval '6 minutes'
        where provider = 'generic:shop'`,
    )
    const again = await startServer(t, { services: ['hooks'], env })
    await until(
      async () => (await metrics(again.hooks))['code_host burst'] === 1,
      'the burst of code_host',
    )
    t.match(await metrics(again.hooks), { 'generic:shop burst': 0 })
    t.equal(await health(again.hooks), '200 degraded; many rejected deliveries: 1 provider')
    await untilLogged(again, 'code_host', 1)
    t.same(logged(again, 'code_host'), ['alarm burst'])
    t.same(logged(again, 'generic:shop'), [])
  })
})

await onPostgres(t, 'alarms of two instances', async (t: Test, backend) => {
  const { base, env, server } = await startHooks(t, backend)
  const burst = '200 degraded; many rejected deliveries: 1 provider'
  const silent = '200 degraded; no event for longer than expected: 1 provider'

  await t.test('one that is raised shows on every other', async (t) => {
    const two = await startServer(t, { services: ['hooks'], env })
    await change(base, 'payments', 'alarm', { rejection_burst: '2' })
    await post(base, 'payments', '{}')
    await post(two.hooks, 'payments', '{}')
    for (const { hooks } of [server, two]) {
      await until(async () => (await metrics(hooks))['payments burst'] === 1, 'the alarm')
      t.equal(await health(hooks), burst)
    }
    await two.stop()
    await change(base, 'payments', 'alarm', { rejection_burst: '' })
  })

  await t.test('when a provider was heard last is known after retention', async (t) => {
    t.equal((await deliver(base, 'chat', '{}')).status, 202)
    t.equal((await change(base, 'chat', 'alarm', { expected_interval: '1h' })).status, 200)
    // As if it had been set long ago, and the only event pruned.
    await backend.query(
      env,
      `update hooks.providers set watched_since = now() - interval '3 days'`,
    )
    await backend.query(env, 'delete from hooks.events')
    await until(async () => (await metrics(base))['chat silent'] === 0, 'the alarm to be set')
    t.equal(await health(base), '200 ok', 'heard within the hour, as the counters know')
    const stream = await openStream(t, `${base}/events`)
    const minute = /T\d\d:\d\d:00\.000Z$/
    const chatIn = ({ data }: StreamEvent) => {
      const { providers } = JSON.parse(data) as {
        providers: { name: string; last_event_at: string }[]
      }
      return providers.find(({ name }) => name === 'chat')
    }
    // The stream may begin with a status from before the event was pruned.
    const status = await stream.until(
      (one) => one.event === 'status' && minute.test(chatIn(one)?.last_event_at ?? ''),
      'a status with the time to a minute',
    )
    t.match(chatIn(status), { recent_count: 1 }, 'counts stay')
    const { stats } = (await request(`${base}/api/v1/stats?provider=chat`)).json<{
      stats: readonly unknown[]
    }>()
    t.match(stats, [{ provider: 'chat', events: 1 }])
    const { text } = await request(`${base}/`)
    t.match(text, /data-total="events"[^>]*>1 event</)
    t.notMatch(text, 'id="start-here"', 'the page of a service that has received something')
    t.match((await cardOf(base, 'chat'))['Last 24 hours'], '1')
    t.notMatch((await cardOf(base, 'chat'))['Last event'], 'never')
    await backend.query(env, `update hooks.activity set minute = minute - interval '2 hours'`)
    await until(async () => (await metrics(base))['chat silent'] === 1, 'the alarm')
    t.equal(await health(base), silent)
  })
})

await onPostgres(t, 'an alarm of a destination reads no counts', async (t: Test, backend) => {
  const { env, server } = await startHooks(t, backend, { HOOKS_REPLAY_TARGETS: '127.0.0.1' })
  await addDestination(env, 'erp', 'http://127.0.0.1:9/')
  // Whoever sums the minutes of providers fails from here on.
  await backend.query(env, 'alter table hooks.rejection_minutes rename to minutes_away')
  const disable = (by: string | null) =>
    backend.query(
      env,
      `with changed as (
         update hooks.destinations set disabled_at = case when $1::text is not null then now() end, disabled_by = $1
       )
       select pg_notify('hooks_config', '')`,
      [by],
    )
  const lines = () => {
    const all = server.logs().map((line) => JSON.parse(line) as { msg: string })
    return all.map(({ msg }) => msg).filter((msg) => /^(alarm|status)/.test(msg))
  }
  await disable('failures')
  await until(() => lines().length > 0, 'the alarm')
  await disable(null)
  await until(() => lines().length > 1, 'its end')
  t.same(lines(), ['alarm', 'alarm ended'])
})
