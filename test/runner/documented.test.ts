import { t } from 'tap'
import { compare } from './documented.ts'
import type { Exchange } from './exchanges.ts'

const DOCUMENT = `
components:
  schemas:
    Config:
      { type: object, required: [size], properties: { size: { type: integer } } }
    Error: { type: object, required: [error], properties: { error: { type: string } } }
paths:
  /api/v1/config:
    get:
      responses:
        '200':
          content: { application/json: { schema: { $ref: '#/components/schemas/Config' } } }
  /api/v1/links/{id}:
    get: { responses: { '204': {} } }
`
const HEADERS = {
  'content-type': 'application/json; charset=utf-8',
  'x-content-type-options': 'nosniff',
  'x-request-id': 'one',
}
const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64')

/** The faults of a call that is as documented but for these changes, and the operations that it left out. */
function compared(changes: Partial<Exchange>) {
  const call = { service: 'links', method: 'GET', target: '/api/v1/config', headers: {}, body: '' }
  const answer = { status: 200, answerHeaders: HEADERS, answer: base64({ size: 5 }) }
  return compare(DOCUMENT, [{ ...call, ...answer, ...changes }])
}

t.test('an answer that is as documented', async (t) => {
  t.same(compared({}), { faults: [], unreached: ['GET /api/v1/links/{id}'] })
})

t.test('an answer that is not', async (t) => {
  const without = (name: keyof typeof HEADERS) => ({ ...HEADERS, [name]: undefined })
  for (const [changes, expected] of [
    [{ status: 409 }, /its status is not documented/],
    [{ answer: base64({ size: 'x' }) }, /its body is not as documented: \{"size"/],
    [{ answer: '' }, /its body is not as documented/],
    [{ answerHeaders: without('content-type') }, /its documented type/],
    [{ answerHeaders: without('x-request-id') }, /it has no x-request-id/],
    [{ answerHeaders: without('x-content-type-options') }, /it has no nosniff/],
    [{ target: '/api/v1/links/7', status: 204 }, /it has a body/],
    [{ target: '/api/v1/nothing' }, /the document has no such operation/],
    [{ target: '/api/v1/nothing', status: 404 }, /its body is not as documented/],
  ] as const) {
    t.match(compared(changes).faults[0], expected, String(expected))
  }
})
