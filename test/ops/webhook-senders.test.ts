import { t } from 'tap'
import type { Test } from 'tap'
import { CHAT_KEY, deliverAlert, sample } from '../helpers/alerts-setup.ts'
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
    ...['at=2026-11-21T03%3A20%3A11Z&x=1', 'at=2026-11-22T03%3A20%3A12Z&x=1', '{"id":7,"n":1}'],
    ...['{"id":7,"n":2}', '{"dedup_key":"k","id":8}', '{"dedup_key":"k","id":9}'],
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
  const text = 'select * from ops.alerts order by id'
  const rows = await run(ops.env['DATABASE_URL'] ?? '', text, [])
  t.match(
    rows.map(({ fingerprint, source, title, count }) => [fingerprint, source, title, count]),
    [
      ['20f7da56295f2463', 'alertmanager', 'web-1 down', 2],
      ['6b8c1c8f2f0a4d11', 'grafana', /DiskFull/, 2],
      ['monitor:3', 'uptime-kuma', 'Shop', 2],
      ['{}:{alertname="InstanceDown"}', 'alertmanager', 'web-1 down', 2],
      [/^sha256:/, null, /^1795231211 db-1: disk is full/, 4],
      [/^sha256:/, null, /memory is full/, 1],
      [/^sha256:/, null, /^at=2026-11-22/, 2],
      ['7', null, /"n":2/, 2],
      ['k', null, /"id":9/, 2],
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
  t.equal(rows.length, 21)
  for (const { first_seen, last_seen, count } of rows) {
    t.ok(Number(last_seen) >= Number(first_seen))
    if (count === 1) t.same(last_seen, first_seen)
  }
  t.notMatch(JSON.stringify(rows), CHAT_KEY.slice(0, 8))
})
