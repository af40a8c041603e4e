import { t } from 'tap'
import type { Test } from 'tap'
import { CHAT_KEY } from '../helpers/alerts-setup.ts'
import { backends } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { openApiOf, operationsOf } from '../helpers/openapi.ts'
import { startOps } from '../helpers/ops-setup.ts'
import { lint } from '../helpers/redocly.ts'

/** The contract's operations: the document has these, and no other. */
const OPERATIONS = [
  ...['GET /health', 'GET /sessions', 'GET /sessions/{id}', 'POST /sessions/trigger'],
  ...['GET /events', 'GET /memories', 'POST /memories', 'PUT /memories/{id}'],
  ...['DELETE /memories/{id}', 'GET /cooldowns', 'GET /config', 'PUT /config', 'POST /webhook'],
]
const SCHEMAS = ['Session', 'Event', 'Memory', 'Cooldown', 'Config', 'Error']

await t.test('the document of the ops API', async (t: Test) => {
  const { base } = await startOps(t, backends[1], { OPS_CHAT_API_KEY: CHAT_KEY })
  const sent = await request(`${base}/api/openapi.yaml`)
  const document = openApiOf(sent.text)

  t.test('is YAML that anybody may read', async (t) => {
    t.match(sent, { status: 200, headers: { 'content-type': 'application/yaml' } })
    t.match(document, { openapi: /^3\.1\./, info: { title: /ops/, version: /^\d/ } })
    t.match(document.servers, [{ url: base }, { url: '/' }])
    const elsewhere = await request(`${base}/api/openapi.yaml`, {
      headers: { host: 'ops.example.com', 'sec-fetch-site': 'cross-site' },
    })
    t.equal(elsewhere.text, sent.text)
    const posted = await request(`${base}/api/openapi.yaml`, { method: 'POST' })
    t.match(posted, { status: 405, headers: { allow: 'GET, HEAD' } })
  })

  t.test('passes redocly lint', async (t) => {
    const { code, problems } = await lint(t, sent.text)
    // Who asks for the health can't be wrong.
    const path = '#/paths/~1api~1v1~1health/get/responses'
    t.same(problems, [{ ruleId: 'operation-4xx-response', severity: 'warn', path }])
    t.equal(code, 0)
  })

  t.test('has every operation of the contract, and no other', async (t) => {
    const operations = operationsOf(document)
    const names = operations.map(({ method, path }) => `${method} ${path}`)
    const wanted = OPERATIONS.map((name) => name.replace(' ', ' /api/v1'))
    t.same(names.toSorted(), wanted.toSorted())
    const ids = new Set(operations.map(({ operation }) => operation.operationId))
    t.equal(ids.size, OPERATIONS.length, 'operationIds are unique')
  })

  t.test('each of them answers as it says; the webhook alone needs a key', async (t) => {
    for (const { method, path, operation } of operationsOf(document)) {
      const answer = await request(base + path.replace('{id}', '1'), { method })
      const what = `${method} ${path} → ${answer.status}`
      t.ok(String(answer.status) in operation.responses, what)
      t.notOk(answer.text.includes('nothing is served'), 'it is there')
      const open = operation.security?.length === 0
      t.equal(answer.status === 401, !open, `${what}, open: ${open}`)
    }
    t.match(document.components.securitySchemes, { bearer: { type: 'http', scheme: 'bearer' } })
  })

  t.test('describes everything once, with its schemas by their names', async (t) => {
    const { schemas, responses } = document.components
    for (const name of SCHEMAS) t.type(schemas[name]?.properties, 'object', name)
    const text = JSON.stringify({ paths: document.paths, responses })
    for (const name of SCHEMAS) t.ok(text.includes(`"#/components/schemas/${name}"`), name)
    t.notMatch(
      text,
      /prompt_text|"confidence"|last_action|tier1_model/,
      'none is written out twice',
    )
    t.same(Object.keys(schemas['Error']?.properties ?? {}), ['error'])
  })

  t.test('has the bounds of the configuration', async (t) => {
    t.match(document.components.schemas['Config']?.properties, {
      interval: { minimum: 1, maximum: 2_147_483_647 },
      tier1_model: { minLength: 1, maxLength: 200 },
    })
  })

  t.test('is shown by the explorer, which is guarded as pages are', async (t) => {
    const moved = await request(`${base}/api/docs`)
    t.match(moved, { status: 308, headers: { location: '/api/docs/' } })
    const page = await request(`${base}/api/docs/`)
    t.match(page, { status: 200, headers: { 'content-type': 'text/html; charset=utf-8' } })
    t.notMatch(page.headers['content-security-policy'], /unsafe|https?:|\*/)
    t.notMatch(page.text, /<script(?![^>]*src=)|<style|\sstyle=|\son\w+=|https?:\/\//)
    const files = [...page.text.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, file = '']) => file)
    t.equal(files.length, 5)
    for (const file of files) t.equal((await request(`${base}${file}`)).status, 200, file)
    const foreign = await request(`${base}/api/docs/`, { headers: { host: 'evil.example' } })
    t.equal(foreign.status, 403)
  })
})
