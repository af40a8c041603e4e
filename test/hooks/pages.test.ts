import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { startHooks } from '../helpers/signing-setup.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends
const { base, server } = await startHooks(t, postgres)
const PAGES = ['/', '/log', '/log?rejected=1', '/providers', '/settings']
const BROWSER = { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }

t.test('every page is whole, guarded by its headers, and free of inline code', async (t) => {
  for (const path of PAGES) {
    const { status, headers, text } = await request(base + path)
    t.equal(status, 200, path)
    t.match(headers, {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'referrer-policy': 'same-origin',
      'x-content-type-options': 'nosniff',
      'x-request-id': /./,
    })
    const policy = String(headers['content-security-policy'])
    t.match(policy, /default-src 'self'.*frame-ancestors 'none'/)
    t.notMatch(policy, /unsafe/)
    t.match(text, /^\s*<!doctype html>.*<\/html>\s*$/is)
    t.notMatch(text, /<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=|href="javascript:/i)
    const head = await request(base + path, { method: 'HEAD' })
    t.match({ status: head.status, size: head.body.length }, { status: 200, size: 0 }, 'HEAD')
  }
})

t.test('an error is a page for a browser and a problem for everybody else', async (t) => {
  const cases: readonly (readonly [string, string, number])[] = [
    ['GET', '/nowhere', 404],
    ['GET', '/log/12345678', 404],
    ['GET', '/log?limit=0', 400],
    ['DELETE', '/log', 405],
    ['POST', '/', 405],
    ['POST', '/providers/nobody/enabled', 415],
  ]
  for (const [method, path, status] of cases) {
    const name = `${method} ${path}`
    const program = await request(base + path, { method })
    t.equal(program.status, status, name)
    t.equal(program.headers['content-type'], 'application/problem+json', name)
    const body = program.json<Record<string, unknown>>()
    t.same(Object.keys(body), ['type', 'title', 'status', 'detail', 'instance'])
    t.match(body, { type: 'about:blank', status, instance: path.replace(/\?.*/, '') })
    const browser = await request(base + path, { method, headers: BROWSER })
    t.match(
      browser,
      { status, headers: { 'content-type': /^text\/html/ }, text: /<!doctype/i },
      name,
    )
    t.match(browser.text, String(status))
    const script = await request(base + path, {
      method,
      headers: { ...BROWSER, 'HX-Request': 'true' },
    })
    t.match(script.headers['content-type'], /problem/, `${name} from htmx`)
  }
  const allow = await request(`${base}/log`, { method: 'PUT' })
  t.equal(allow.headers.allow, 'GET, HEAD')
  const receiver = await request(`${base}/webhooks/nobody`, { method: 'POST', headers: BROWSER })
  t.match(receiver, { status: 404, headers: { 'content-type': 'application/problem+json' } })
})

t.test('the answer’s id is that of its log line', async (t) => {
  const { headers } = await request(`${base}/providers`)
  const id = String(headers['x-request-id'])
  const line = await until(() => server.logs().find((text) => text.includes(`"${id}"`)), 'its line')
  t.match(JSON.parse(line), { msg: 'request', method: 'GET', route: '/providers', status: 200 })
})

t.test('the pages’ files are revalidated by their tags', async (t) => {
  const { text } = await request(`${base}/`)
  const links = [...text.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)]
  const paths = new Set(links.map((match) => match[1] ?? ''))
  t.ok(paths.size >= 3, 'a style sheet, a script and an icon at least')
  const types: Readonly<Record<string, RegExp>> = {
    css: /^text\/css/,
    js: /^text\/javascript/,
    svg: /^image\/svg\+xml/,
  }
  for (const path of paths) {
    const { status, headers, body } = await request(`${base}${path}`)
    t.match({ status, empty: body.length === 0 }, { status: 200, empty: false }, path)
    t.match(headers['content-type'], types[path.split('.').at(-1) ?? ''])
    const etag = String(headers.etag)
    t.match(etag, /^"[^"]+"$/)
    for (const list of [etag, `W/${etag}`, `"other", ${etag}`, `"a,b" , W/"c",W/${etag}`, '*']) {
      const known = await request(`${base}${path}`, { headers: { 'If-None-Match': list } })
      t.match({ status: known.status, size: known.body.length }, { status: 304, size: 0 }, list)
      t.equal(known.headers.etag, etag)
    }
    for (const list of ['"other"', 'W/"other", "more"', `"${etag.slice(1, -2)}"`, '"*"', '']) {
      const other = await request(`${base}${path}`, { headers: { 'If-None-Match': list } })
      t.equal(other.status, 200, list)
    }
  }
  for (const path of [
    '/assets/none.js',
    '/assets/',
    '/assets/../package.json',
    '/assets/%2e%2e/x',
  ]) {
    t.equal((await request(`${base}${path}`)).status, 404, path)
  }
})
