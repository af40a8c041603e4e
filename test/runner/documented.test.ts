import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { startLinks } from '../helpers/links.ts'
import { compare } from './documented.ts'
import type { Exchange } from './exchanges.ts'

const links = await startLinks(t, backends[1])
const { text } = await request(`${links.base}/api/openapi.yaml`)
const config = await request(`${links.base}/api/v1/config`)

/** A call of the configuration, with something changed. */
function exchange(changes: Partial<Exchange> = {}) {
  const { status, headers, body } = config
  const call = { service: 'links', method: 'GET', target: '/api/v1/config', headers: {}, body: '' }
  return { ...call, status, answerHeaders: headers, answer: body.toString('base64'), ...changes }
}

const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64')

t.test('an answer that is as documented', async (t) => {
  const { faults, unreached } = compare(text, [exchange()])
  t.same(faults, [])
  t.notOk(unreached.includes('GET /api/v1/config'))
  t.ok(unreached.includes('GET /api/v1/links/{id}'))
})

t.test('an answer that is not', async (t) => {
  const { 'x-request-id': _, ...unnamed } = config.headers
  const cases: readonly (readonly [Partial<Exchange>, RegExp])[] = [
    [{ status: 409 }, /its status is not documented/],
    [{ answer: base64({ short_keyword: 5 }) }, /its body is not as documented: \{"short_keyword"/],
    [{ answer: '' }, /its body is not as documented/],
    [
      { answerHeaders: { ...config.headers, 'content-type': 'text/plain' } },
      /its documented type/,
    ],
    [{ answerHeaders: unnamed }, /it has no x-request-id/],
    [{ answerHeaders: { ...unnamed, 'x-content-type-options': '' } }, /it has no nosniff/],
    [{ target: '/api/v1/nothing' }, /the document has no such operation/],
    [{ target: '/api/v1/nothing', status: 404 }, /its body is not as documented/],
  ]
  for (const [changes, expected] of cases) {
    t.match(compare(text, [exchange(changes)]).faults[0], expected, String(expected))
  }
})
