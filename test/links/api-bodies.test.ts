import { t } from 'tap'
import type { Test } from 'tap'
import { onPostgres } from '../helpers/backends.ts'
import { makeLink, refuses, startLinks } from '../helpers/links-setup.ts'
import type { Link } from '../helpers/links-setup.ts'
import { rawExchange } from '../helpers/raw-http.ts'

const LIMIT = 64 * 1024

await onPostgres(t, 'bodies of the links API', async (t: Test, backend) => {
  const links = await startLinks(t, backend)
  const ann = await links.user('ann')
  const bob = await links.user('bob')
  const root = await links.user('root', { admin: true })
  const link = await makeLink(ann, 'mine')
  const good = { slug: 'made', url: 'https://example.com/' }

  /** Every operation that takes a body, with a good one, by somebody who may. */
  const takers = [
    [root, 'PUT', `/admin/users/${bob.id}/role`, { role: 'user' }],
    [ann, 'PUT', `/links/${link.id}`, { url: 'https://example.com/' }],
    [ann, 'POST', `/links/${link.id}/owners`, { email: bob.email }],
    [ann, 'POST', `/links/${link.id}/shares`, { email: bob.email }],
    [ann, 'POST', '/links', good],
    [ann, 'POST', '/tokens', { name: 'made' }],
  ] as const

  for (const [{ api }, method, path, body] of takers) {
    await t.test(`${method} ${path.replaceAll(/[\w-]{36}/g, '{id}')}`, async (t) => {
      const text = JSON.stringify(body)
      for (const type of [
        ...['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', '*/*'],
        ...['application/json5', 'application/problem+json', 'text/json', 'application', '', ', '],
      ]) {
        const answer = await api(method, path, text, { 'content-type': type })
        refuses(t, answer, 415, 'UNSUPPORTED_MEDIA_TYPE', { what: type })
      }
      const long = `"${'a'.repeat(LIMIT - 1)}"`
      refuses(t, await api(method, path, long), 413, 'BODY_TOO_LARGE')
      refuses(t, await api(method, path, [long, long]), 413, 'BODY_TOO_LARGE', { what: 'chunked' })
      const type = { 'content-type': 'text/plain' }
      refuses(t, await api(method, path, long, type), 415, 'UNSUPPORTED_MEDIA_TYPE')
      for (const bad of [
        ...['', ' ', 'nothing', '{', '[]', '[{}]', '"text"', '5', 'null', 'true', `${text}x`],
        ...[`${text}${text}`, text.slice(0, -1), "{'a': 1}", '{"a":1,}', '\ufeff{}', '{"a":"\t"}'],
        ...['['.repeat(60_000), '{"a":'.repeat(10_000), '{"a":NaN}', '{"a":"\\u12"}', '{"a":01}'],
        ...[text.replace('}', ',"x":"\0"}')],
      ]) {
        const answer = await api(method, path, bad)
        refuses(t, answer, 400, 'BAD_REQUEST', { what: JSON.stringify(bad.slice(0, 20)) })
      }
      for (const bytes of [[0xff], [0xc3, 0x28], [0xed, 0xa0, 0x80], [0xc0, 0xaf]]) {
        const body_ = Buffer.concat([
          Buffer.from(`${text.slice(0, -1)},"x":"`),
          Buffer.from(bytes),
          Buffer.from('"}'),
        ])
        refuses(t, await api(method, path, body_), 400, 'BAD_REQUEST', { what: 'not UTF-8' })
        const utf16 = Buffer.from(text, 'utf16le')
        refuses(t, await api(method, path, utf16), 400, 'BAD_REQUEST', { what: 'UTF-16' })
      }
      refuses(t, await api(method, path, {}), 400, 'BAD_REQUEST', { what: 'an empty object' })
      const proto = `{"__proto__":${text},"constructor":${text}}`
      refuses(t, await api(method, path, proto), 400, 'BAD_REQUEST', { what: '__proto__' })

      t.comment('a good body works, in whatever pieces it comes')
      const pieces = [...text].map((char) => char)
      const { status } = await api(method, path, pieces, {
        'content-type': 'Application/JSON ; charset=utf-8',
      })
      t.ok(status === 200 || status === 201, `chunked, a character each: ${status}`)
    })
  }

  await t.test('none of the refused made anything', async (t) => {
    const { json } = await ann.api<{ links: Link[] }>('GET', '/links')
    t.same(
      json.links.map(({ slug }) => slug),
      ['made', 'mine'],
    )
    t.equal(json.links[1]?.owners.length, 2)
  })

  await t.test('a body of exactly the limit is read', async (t) => {
    const text = JSON.stringify({ ...good, slug: 'padded' })
    const full = text.padEnd(LIMIT)
    t.equal((await ann.api('POST', '/links', full)).status, 201)
    refuses(t, await ann.api('POST', '/links', `${full} `), 413, 'BODY_TOO_LARGE')
    refuses(t, await ann.api('POST', '/links', [full, ' ']), 413, 'BODY_TOO_LARGE')
    t.equal((await ann.api('POST', '/links', [text.replace('padded', 'again')])).status, 201)
  })

  await t.test('of a name that stands twice the last counts', async (t) => {
    const twice = '{"slug":"first","slug":"second","url":"no url","url":"https://example.com/"}'
    const { status, json } = await ann.api<Link>('POST', '/links', twice)
    t.match([status, json], [201, { slug: 'second', url: 'https://example.com/' }])
    const bad = '{"slug":"fine","url":"https://example.com/","slug":"api"}'
    refuses(t, await ann.api('POST', '/links', bad), 400, 'RESERVED_SLUG')
  })

  await t.test('escapes mean what they stand for', async (t) => {
    const body =
      '{"\\u0073lug":"\\u0065sc","url":"https:\\/\\/example.com\\/","title":"\\ud83d\\ude80"}'
    const { json } = await ann.api<Link>('POST', '/links', body)
    t.match(json, { slug: 'esc', url: 'https://example.com/', title: '\u{1f680}' })
  })

  await t.test('a body where none is expected changes nothing', async (t) => {
    const get = await ann.api<Link>('GET', `/links/${link.id}`, 'no json', {
      'content-length': '7',
    })
    t.same([get.status, get.json.slug], [200, 'mine'])
    const made = await makeLink(ann, 'to-go')
    t.equal(
      (await ann.api('DELETE', `/links/${made.id}`, '{"x":1}', { 'content-length': '7' })).status,
      204,
    )
  })

  await t.test('a body that ends early makes nothing', async (t) => {
    const text = JSON.stringify({ ...good, slug: 'half' })
    const head = `POST /api/v1/links HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${ann.token}\r\n`
    const length = `Content-Type: application/json\r\nContent-Length: ${text.length + 1}\r\n\r\n`
    const port = Number(new URL(links.base).port)
    await rawExchange(port, head + length + text, { timeoutMs: 300 })
    const made = await makeLink(ann, 'half')
    t.equal(made.slug, 'half', 'the slug is free')
  })
})
