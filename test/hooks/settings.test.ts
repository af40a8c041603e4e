import { t } from 'tap'
import type { Test } from 'tap'
import { backends, onPostgres } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { startServer } from '../helpers/server.ts'
import { FORM_TYPE, postForm, startHooks } from '../helpers/signing-setup.ts'
import { openStream } from '../helpers/sse.ts'
import { until } from '../helpers/until.ts'

const DEFAULTS = {
  retention_max_age_days: '30',
  retention_max_rows: '50000',
  sse_retry_ms: '3000',
  replay_default_target: '',
}
const OTHER = {
  retention_max_age_days: '7',
  retention_max_rows: '1000',
  sse_retry_ms: '500',
  replay_default_target: 'https://example.com/hook?a=1&b=2',
}
const STORED =
  'select retention_max_age_days, retention_max_rows, sse_retry_ms, replay_default_target from hooks.settings'

await onPostgres(t, 'settings', async (t: Test, backend) => {
  const { base, server, env } = await startHooks(t, backend)
  const save = (fields: Readonly<Record<string, string>>): ReturnType<typeof postForm> =>
    postForm(base, '/settings', fields)

  await t.test('defaults, and all fields changed', async (t) => {
    t.same(await settingsOf(base), DEFAULTS)
    const saved = await save(OTHER)
    t.match(saved, { status: 200, headers: { 'content-type': /^text\/html/ } })
    t.notMatch(saved.text, /<!doctype/i, 'the form alone')
    t.same(valuesIn(saved.text), OTHER, 'with the new values')
    t.same(await settingsOf(base), OTHER)
    const stream = await openStream(t, `${base}/events`)
    await until(() => stream.retry === 500, 'the stream to advertise the new delay')
  })

  await t.test('the smallest values, absent fields, an empty target', async (t) => {
    const least = { retention_max_age_days: '0', retention_max_rows: '0', sse_retry_ms: '250' }
    t.equal((await save(least)).status, 200)
    t.same(await settingsOf(base), { ...OTHER, ...least }, 'an absent field keeps its value')
    t.equal((await save({ replay_default_target: '' })).status, 200)
    t.same(await settingsOf(base), { ...OTHER, ...least, replay_default_target: '' })
    t.equal((await save({})).status, 200)
    t.equal((await save({ unknown_field: 'x' })).status, 200)
    t.same(await settingsOf(base), { ...OTHER, ...least, replay_default_target: '' })
    const { text } = await request(`${base}/settings`)
    t.match(text, /no limit/, 'the page says what 0 means')
    t.equal((await save(OTHER)).status, 200)
  })

  await t.test('changes of different fields at once are all kept', async (t) => {
    for (let round = 1; round <= 5; round++) {
      const changes = {
        retention_max_age_days: String(7 + round),
        retention_max_rows: String(1_000 + round),
        sse_retry_ms: String(500 + round),
        replay_default_target: `https://example.com/${round}`,
      }
      await Promise.all(Object.entries(changes).map(([name, value]) => save({ [name]: value })))
      t.same(await settingsOf(base), changes, `round ${round}`)
    }
    t.equal((await save(OTHER)).status, 200)
  })

  await t.test('an invalid value is refused, and nothing is taken then', async (t) => {
    const bad: Readonly<Record<string, readonly string[]>> = {
      retention_max_age_days: ['-1', '1.5', 'x', '', '36501', '99999999999999999999', '1e2', '0x1'],
      retention_max_rows: ['-1', '0.5', 'many', '', '2147483648', '9007199254740993'],
      sse_retry_ms: ['249', '0', '-250', '250.5', '', 'Infinity', '3600001'],
      replay_default_target: [
        'nonsense',
        'example.com/hook',
        'ftp://example.com/',
        'javascript:alert(1)',
        'https://user:pass@example.com/',
        'https://',
        'https://example.com/\0',
        'https://example.com/\nb',
        `https://example.com/${'a'.repeat(2_100)}`,
      ],
    }
    for (const [field, values] of Object.entries(bad)) {
      for (const value of values) {
        const refused = await save({ ...DEFAULTS, [field]: value })
        t.equal(refused.status, 422, `${field}=${value.slice(0, 40)}`)
        t.equal(refused.headers['content-type'], 'application/problem+json')
        t.match(refused.json(), {
          type: 'about:blank',
          title: 'Unprocessable Entity',
          status: 422,
          detail: new RegExp(`^${field} must be `),
          instance: '/settings',
        })
      }
    }
    t.same(await settingsOf(base), OTHER)
  })

  await t.test('a body that is no form, or too large', async (t) => {
    for (const type of ['application/json', 'text/plain', 'multipart/form-data; boundary=x']) {
      const headers = { 'Content-Type': type }
      const { status } = await request(`${base}/settings`, { method: 'POST', headers, body: '{}' })
      t.equal(status, 415, type)
    }
    t.equal((await request(`${base}/settings`, { method: 'POST', body: 'a=b' })).status, 415)
    const large = `sse_retry_ms=9999&x=${'x'.repeat(70_000)}`
    for (const body of [large, [large.slice(0, 40_000), large.slice(40_000)]]) {
      const headers = FORM_TYPE
      const { status } = await request(`${base}/settings`, { method: 'POST', headers, body })
      t.equal(status, 413, Array.isArray(body) ? 'chunked' : 'with its length')
    }
    t.same(await settingsOf(base), OTHER)
  })

  await t.test('without script: the whole page, with the same status', async (t) => {
    const navigates = { 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Site': 'same-origin' }
    const saved = await postForm(base, '/settings', { sse_retry_ms: '600' }, navigates)
    t.match(saved, { status: 200, text: /<!doctype html>/i })
    t.equal(valuesIn(saved.text)['sse_retry_ms'], '600')
    const refused = await postForm(base, '/settings', { sse_retry_ms: '1' }, navigates)
    t.match(refused, {
      status: 422,
      headers: { 'content-type': /^text\/html/ },
      text: /<!doctype/i,
    })
    t.match(refused.text, 'sse_retry_ms must be')
    t.equal((await settingsOf(base))['sse_retry_ms'], '600')
    t.equal((await save({ sse_retry_ms: '500' })).status, 200)
  })

  await t.test('they outlast the process', async (t) => {
    await server.stop()
    t.match(await backend.query(env, STORED), [
      {
        retention_max_age_days: 7,
        retention_max_rows: 1000,
        sse_retry_ms: 500,
        replay_default_target: OTHER.replay_default_target,
      },
    ])
    const next = await startServer(t, { services: ['hooks'], env })
    t.same(await settingsOf(next.hooks), OTHER)
    t.equal((await postForm(next.hooks, '/settings', { replay_default_target: ' ' })).status, 200)
    await next.stop()
    const [row] = await backend.query(env, STORED)
    t.equal(row?.['replay_default_target'], null, 'an empty target is none')
  })
})

t.test('a second instance hears of a change', async (t) => {
  const [, postgres] = backends
  const { base, env } = await startHooks(t, postgres)
  const other = await startServer(t, { services: ['hooks'], env })
  t.equal((await postForm(base, '/settings', { sse_retry_ms: '750' })).status, 200)
  t.equal((await settingsOf(other.hooks))['sse_retry_ms'], '750', 'its page')
  await until(async () => {
    const stream = await openStream(t, `${other.hooks}/events`)
    await stream.until(({ event }) => event === 'status')
    stream.close()
    return stream.retry === 750
  }, 'its stream to advertise the new delay')
})

/** The form's values on the settings page. */
async function settingsOf(base: string): Promise<Readonly<Record<string, string>>> {
  const { status, text } = await request(`${base}/settings`)
  if (status !== 200) throw new Error(`GET /settings answered ${status}, expected 200`)
  return valuesIn(text)
}

function valuesIn(text: string): Readonly<Record<string, string>> {
  const fields = Object.keys(DEFAULTS).map((name) => {
    const input = new RegExp(`<input[^>]*\\sname="${name}"[^>]*>`).exec(text)?.[0] ?? ''
    const value = /\svalue="([^"]*)"/.exec(input)?.[1] ?? 'no such field'
    return [name, value.replaceAll('&amp;', '&')] as const
  })
  return Object.fromEntries(fields)
}
