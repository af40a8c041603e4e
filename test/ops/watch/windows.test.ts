import t from 'tap'
import { occurrenceAt } from '../../../services/ops/watch/mutes/windows.ts'
import { backends } from '../../helpers/backends.ts'
import { postForm } from '../../helpers/hooks.ts'
import { leadsTo, request } from '../../helpers/http.ts'
import { NAVIGATION } from '../../helpers/links.ts'
import { inventoryFile, startOps } from '../../helpers/ops.ts'
import { refuseAll } from '../../helpers/refusals.ts'
import { until } from '../../helpers/until.ts'

const [, postgres] = backends
const BERLIN = 'Europe/Berlin'

await t.test('the present time of a window, else the next one', (t) => {
  const rows: readonly (readonly [string, string, string, string])[] = [
    // 2026-11-28 is a Saturday.
    ['sat,sun 02:00-04:00', 'UTC', '2026-11-28T03:00Z', '28T02:00 28T04:00'],
    ['sat,sun 02:00-04:00', 'UTC', '2026-11-28T04:00Z', '29T02:00 29T04:00'],
    ['Sat-Mon 02:00-04:00', 'UTC', '2026-11-29T12:00Z', '30T02:00 30T04:00'],
    ['fri 22:00-06:00', 'UTC', '2026-11-28T05:59Z', '27T22:00 28T06:00'],
    ['daily 03:00-03:30', 'Asia/Kolkata', '2026-11-27T21:00Z', '27T21:30 27T22:00'],
    // Whole days that follow each other are one time.
    ['sat-sun 00:00-24:00', 'UTC', '2026-11-28T12:00Z', '28T00:00 30T00:00'],
    // The night of 2026-03-29 has no 02:00 to 03:00 in Berlin, that of 2026-10-25 has it twice.
    ['sun 02:00-04:00', BERLIN, '2026-03-28T12:00Z', '29T01:00 29T02:00'],
    ['sun 02:00-04:00', BERLIN, '2026-10-24T12:00Z', '25T00:00 25T03:00'],
    ['sun 00:00-24:00', BERLIN, '2026-10-25T22:30Z', '24T22:00 25T23:00'],
  ]
  for (const [every, tz, now, expected] of rows) {
    const found = occurrenceAt(every, tz, new Date(now))
    const times = [found?.starts_at, found?.ends_at]
    const text = times.map((time) => time?.toISOString().slice(8, 16)).join(' ')
    t.equal(text, expected, `${every} ${tz} at ${now}`)
  }
  t.end()
})

await t.test('a mute that comes back', async (t) => {
  const check = { name: 'front', type: 'tcp', host: '127.0.0.1', port: 1 }
  const file = await inventoryFile(t, { services: [{ name: 'shop', checks: [check] }] })
  const { api, base, env } = await startOps(t, postgres, { OPS_INVENTORY: file })
  type Check = { readonly name: string; readonly muted_until: string | null }
  const front = async (): Promise<Check | undefined> =>
    (await api<{ checks: readonly Check[] }>('GET', '/checks')).json.checks.find(
      ({ name }) => name === 'front',
    )
  await until(front, 'the check of the file')
  const always = { service: 'shop', every: 'daily 00:00-24:00', reason: 'the shop moves' }

  const made = await api<{ id: number; tz: string; ends_at: string }>('POST', '/mutes', always)
  t.match(made, { status: 201, json: { every: always.every, tz: 'UTC' } })
  t.equal((await front())?.muted_until, made.json.ends_at)

  await t.test('its next time follows when the present one is over', async (t) => {
    await postgres.query(
      env,
      `update ops.mutes set starts_at = '2026-01-01', ends_at = '2026-01-02' where id = ${made.json.id}`,
    )
    const renewed = async (): Promise<boolean> => {
      const sql = `select from ops.mutes where id = ${made.json.id} and ends_at > now()`
      return (await postgres.query(env, sql)).length === 1
    }
    await until(renewed, 'the round of checks to give it its next time')
    t.ok((await front())?.muted_until)
  })

  await t.test('by the form, without script; it is removed at once', async (t) => {
    const form = { service: 'shop', every: 'sat,sun 02:00-04:00', tz: BERLIN, reason: 'updates' }
    t.equal(leadsTo(await postForm(base, '/mutes', form, NAVIGATION)), '/mutes')
    const page = async (): Promise<string> =>
      (await request(`${base}/mutes`, { headers: { accept: 'text/html' } })).text
    t.match(await page(), /Every <bdi>sat,sun 02:00-04:00<\/bdi> \(<bdi>Europe\/Berlin<\/bdi>\)/)
    t.match(await page(), /Remove/)
    t.equal((await api('DELETE', `/mutes/${made.json.id}`)).status, 204)
    t.equal((await front())?.muted_until, null, 'also one whose time it is')
  })

  await refuseAll(
    t,
    { service: 'ops', base, state: () => postgres.query(env, 'select * from ops.mutes') },
    [
      ...[
        'noon',
        'sat 02:00',
        'sat 02:00-02:00',
        'sat 02:00-24:30',
        'caturday 02:00-03:00',
        'sat-sun-mon 01:00-02:00',
        'sat 1:00-2:00',
      ].map(
        (every) =>
          [
            { call: 'POST /api/v1/mutes', body: { ...always, every } },
            400,
            undefined,
            /^every must be days and hours such as sat,sun 02:00-04:00/,
          ] as const,
      ),
      [
        { call: 'POST /api/v1/mutes', body: { ...always, tz: 'Mars/Base' } },
        400,
        undefined,
        'tz must be a time zone such as Europe/Berlin',
      ],
      [
        { call: 'POST /api/v1/mutes', body: { ...always, for: '1h' } },
        400,
        undefined,
        'every must be given without for, starts_at and ends_at',
      ],
      [
        { call: 'POST /api/v1/mutes', body: { reason: 'r', for: '1h', tz: 'UTC' } },
        400,
        undefined,
        'tz must not be given without every',
      ],
    ],
  )
})
