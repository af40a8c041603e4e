import { t } from 'tap'
import type { Test } from 'tap'
import { CHAT_KEY, deliverAlert, sample } from '../helpers/alerts-setup.ts'
import { request } from '../helpers/http.ts'
import { backends } from '../helpers/backends.ts'
import { ended, startOps } from '../helpers/ops-setup.ts'
import { run } from '../helpers/postgres.ts'

await t.test('real senders: what is grouped, and what it is called', async (t: Test) => {
  const ops = await startOps(t, backends[1], { OPS_CHAT_API_KEY: CHAT_KEY })
  await ended(ops)
  const [prometheus, grafana, kuma] = [
    ...['alertmanager-v4-firing.json', 'grafana-v12-firing.json', 'uptime-kuma-down.json'],
  ].map(sample)
  const later = (text = ''): string =>
    text.replaceAll('2026-11-21', '2026-11-22').replaceAll('firing', 'resolved')
  const group = (count: number): string => {
    const alert = JSON.parse(prometheus ?? '')
    const others = Array.from({ length: count }, (_, at) => ({
      ...alert.alerts[0],
      fingerprint: `f${at}`,
    }))
    return JSON.stringify({ ...alert, alerts: others })
  }
  const log = (at: string, what = 'disk'): string => `${at} db-1: ${what} is full (97 %)`
  for (const body of [
    ...[
      prometheus ?? '',
      later(prometheus),
      grafana ?? '',
      later(grafana),
      kuma ?? '',
      later(kuma),
    ],
    ...[group(2), group(3), log('2026-11-21T03:20:11.123Z'), log('2026-11-22 04:20:11+01:00')],
    ...[log('Sat, 21 Nov 2026 03:20:11'), log('1795231211'), log('1795231211', 'memory')],
    ...['at=2026-11-21T03%3A20%3A11Z&x=1', 'at=2026-11-22T03%3A20%3A12Z&x=1'],
    ...['{"id":7,"n":1}', '{"id":7,"n":2}', '{"id":" 7 ","n":3}', '{"alert_id":"7","n":4}'],
    ...['{"id":"9c1f","n":1}', '{"id":"9c1f","n":2}', '{"monitor":{"id":3}}'],
    ...['{"dedup_key":"k","id":8}', '{"dedup_key":"k","id":9}', '{"dedup_key":"k","id":8}'],
    '{"event":{"data":{"id":"note","incident":{"id":"Q2AIXW2ZIWCI5K"}}}}',
    '{"event":{"data":{"id":"Q2AIXW2ZIWCI5K","type":"incident","number":7}}}',
    ...['cpu at 10:40', 'cpu at 10:41 pm', 'cpu at 9:05'],
    ...[
      'backup of 2026-11-21.',
      'backup of 2026-11-22.',
      'x=cpu%20at%2010%3A40&y',
      'x=cpu%20at%207%3A05&y',
    ],
    ...[
      'Nov 21 03:20:11 db-1: slow',
      'Nov  2 04:20:11 db-1: slow',
      'on 21 Nov 2026',
      'on 2 Nov 2026',
    ],
    // None of these is a time.
    ...['host-1:40 is down', 'host-1:41 is down', 'fe80::10:40 is down', 'fe80::10:41 is down'],
    `{"text":"the key is ${CHAT_KEY}"}`,
    // The title is cut within the key.
    `{"text":"${'x'.repeat(190)}${CHAT_KEY}"}`,
    `${'y'.repeat(190)}${CHAT_KEY}`,
  ]) {
    t.equal((await deliverAlert(ops.base, body)).status, 502, 'kept without a model')
  }
  const text = `select a.*, t.title, t.payload, (select count(*)::int from ops.alert_texts where alert_id = id) as texts
    from ops.alerts a join ops.alert_texts t on t.alert_id = a.id and t.content = a.content order by a.id`
  const rows = await run(ops.env['DATABASE_URL'] ?? '', text, [])
  t.match(
    rows.map(({ fingerprint, source, title, count, texts }) => {
      return [fingerprint, source, title, count, ...(texts === 1 ? [] : [texts])]
    }),
    [
      // Firing, resolved, and the same group with other members.
      ['{}:{alertname="InstanceDown"}', 'alertmanager', 'web-1 down', 4, 4],
      ['6b8c1c8f2f0a4d11', 'grafana', /DiskFull/, 2, 2],
      ['monitor:3:Shop', 'uptime-kuma', 'Shop', 2],
      [/^sha256:/, null, /^1795231211 db-1: disk is full/, 4],
      [/^sha256:/, null, /memory is full/, 1],
      [/^sha256:/, null, /^at=2026-11-22/, 2],
      // A number alone is no key, however it is written.
      ...[1, 2, 3, 4].map((n) => [/^sha256:/, null, new RegExp(`"n":${n}}`), 1]),
      ['9c1f', null, /"n":2/, 2, 2],
      [/^sha256:/, null, /monitor/, 1],
      ['k', null, /"id":8/, 3, 2],
      ['Q2AIXW2ZIWCI5K', null, /"number":7/, 2, 2],
      [/^sha256:/, null, 'cpu at 9:05', 3],
      [/^sha256:/, null, 'backup of 2026-11-22.', 2],
      [/^sha256:/, null, 'x=cpu%20at%207%3A05&y', 2],
      [/^sha256:/, null, 'Nov 2 04:20:11 db-1: slow', 2],
      [/^sha256:/, null, 'on 2 Nov 2026', 2],
      ...['host-1:40', 'host-1:41', 'fe80::10:40', 'fe80::10:41'].map((what) => [
        ...[/^sha256:/, null, `${what} is down`, 1],
      ]),
      [/^sha256:/, null, 'the key is «redacted»', 1],
      [/^sha256:/, null, /^x{190}«redacted»$/, 1],
      [/^sha256:/, null, /^y{190}«redacted»$/, 1],
    ],
  )
  t.equal(rows.length, 26)
  for (const { first_seen, last_seen, count } of rows) {
    t.ok(Number(last_seen) >= Number(first_seen))
    if (count === 1) t.same(last_seen, first_seen)
  }
  t.notMatch(JSON.stringify(rows), CHAT_KEY.slice(0, 8))

  const id = String(rows.find(({ fingerprint }) => fingerprint === 'k')?.['id'])
  const [list, page, other] = await Promise.all(
    ['', `/${id}`, '/999'].map((path) => request(`${ops.base}/alerts${path}`)),
  )
  t.match(list?.text, `<a href="/alerts/${id}">2 different texts</a>`, 'the list leads to them')
  for (const text of ['&quot;id&quot;:8}', '&quot;id&quot;:9}', '2 times', 'once']) {
    t.match(page?.text, text, 'each text is shown')
  }
  t.equal(other?.status, 404)
})
