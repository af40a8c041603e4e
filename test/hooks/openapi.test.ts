import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { openApiOf, operationsOf } from '../helpers/openapi.ts'
import { lint } from '../helpers/redocly.ts'
import { startHooks } from '../helpers/signing-setup.ts'

/** What programs use; pages and the tool protocol are described elsewhere. */
const OPERATIONS = [
  'POST /webhooks/{provider}',
  'POST /webhooks/generic/{name}',
  'POST /webhooks/generic/{name}/{token}',
  'GET /events',
  'GET /healthz',
]

await t.test('the document of the hooks endpoints', async (t: Test) => {
  const { base } = await startHooks(t, backends[1])
  const sent = await request(`${base}/api/openapi.yaml`)
  t.equal(sent.status, 200)
  t.equal(sent.headers['content-type'], 'application/yaml')
  const document = openApiOf(sent.text)
  t.match(document, { openapi: /^3\.1\./, servers: [{ url: base }, { url: '/' }], security: [] })
  const operations = operationsOf(document)
  const names = operations.map(({ method, path }) => `${method} ${path}`)
  t.same(names.toSorted(), OPERATIONS.toSorted())
  const health = await request(`${base}/healthz`)
  t.same(
    [...Object.keys(health.json<object>()), 'reasons'].toSorted(),
    Object.keys(document.components.schemas['Health']?.properties ?? {}).toSorted(),
  )

  const { code, problems } = await lint(t, sent.text)
  // There is no wrong question after its health.
  const path = '#/paths/~1healthz/get/responses'
  t.same(problems, [{ ruleId: 'operation-4xx-response', severity: 'warn', path }])
  t.equal(code, 0)

  const page = await request(`${base}/api/docs/`)
  t.match(page, { status: 200, text: /swagger-ui-bundle\.js/ })
  const foreign = await request(`${base}/api/docs/`, { headers: { host: 'evil.example' } })
  t.equal(foreign.status, 403)
})
