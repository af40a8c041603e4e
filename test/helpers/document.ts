import type { Test } from 'tap'
import { lint } from '../runner/redocly.ts'
import { openApiOf, operationsOf, type Document } from './api.ts'
import { request } from './http.ts'
import { expectStatus } from './refusals.ts'

const FOREIGN = { host: 'evil.example' }
const INLINE = /<script(?![^>]*src=)|<style|\sstyle=|\son\w+=|https?:\/\//

/**
 * The document of a service is open to everybody, has these operations (`GET /path`) and passes redocly; its explorer
 * is guarded as pages are. The operation at `unrefused` alone has no 4xx answer.
 */
export async function checkDocument(
  t: Test,
  base: string,
  { operations, unrefused }: { operations: readonly string[]; unrefused: string },
): Promise<Document> {
  const address = `${base}/api/openapi.yaml`
  const sent = await request(address)
  const document = openApiOf(sent.text)

  await t.test('the document: YAML that anybody may read', async (t) => {
    t.match(sent, { status: 200, headers: { 'content-type': 'application/yaml' } })
    const headers = { host: 'elsewhere.example', 'sec-fetch-site': 'cross-site' }
    t.equal((await request(address, { headers })).text, sent.text)
    const length = { 'content-length': sent.headers['content-length'] }
    const head = await request(address, { method: 'HEAD' })
    t.match(head, { status: 200, text: '', headers: length })
    const posted = await request(address, { method: 'POST' })
    t.match(posted, { status: 405, headers: { allow: 'GET, HEAD' } })
  })

  await t.test('the document: every operation of the contract, and no other', async (t) => {
    t.match(document, { openapi: /^3\.1\./, info: { version: /^\d/ } })
    const found = operationsOf(document)
    const names = found.map(({ method, path }) => `${method} ${path}`)
    t.same(names.toSorted(), operations.toSorted())
    const ids = new Set(found.map(({ operation }) => operation.operationId))
    t.equal(ids.size, operations.length, 'operationIds are unique')
  })

  await t.test('the document: passes redocly lint', async (t) => {
    const { code, problems } = await lint(t, sent.text)
    const path = `#/paths/${unrefused.replaceAll('/', '~1')}/get/responses`
    t.same(problems, [{ ruleId: 'operation-4xx-response', severity: 'warn', path }])
    t.equal(code, 0)
  })

  await t.test('the explorer: guarded, from our own origin, nothing inline', async (t) => {
    const moved = await request(`${base}/api/docs`)
    t.match(moved, { status: 308, headers: { location: '/api/docs/' } })
    const page = await request(`${base}/api/docs/`)
    t.match(page, { status: 200, headers: { 'content-type': 'text/html; charset=utf-8' } })
    const policy = page.headers['content-security-policy'] ?? ''
    t.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self';/)
    t.match(policy, /connect-src 'self'.*frame-ancestors 'none'/)
    t.notMatch(policy, /unsafe|https?:|\*/)
    t.notMatch(page.text, INLINE)
    const named = page.text.matchAll(/(?:src|href)="(\/api\/docs\/[^"]+)"/g)
    const files = [...new Set([...named].map(([, path = '']) => path))]
    t.equal(files.length, 5)
    for (const path of files) {
      const { headers } = await expectStatus(200, request(base + path), path)
      const known = { 'if-none-match': headers.etag ?? '' }
      t.match(await request(base + path, { headers: known }), { status: 304, text: '' }, path)
    }
    for (const path of ['/api/docs', '/api/docs/', ...files]) {
      await expectStatus(
        403,
        request(base + path, { headers: FOREIGN }),
        `${path} by another name`,
      )
    }
    await expectStatus(404, request(`${base}/api/docs/nothing`))
  })
  return document
}
