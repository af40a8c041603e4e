import { t } from 'tap'
import { makeLink, NAVIGATION, openPages, visitorAt } from '../../helpers/links.ts'
import { decodeQr, pixelsOf } from '../../helpers/qr.ts'
import { expectStatus, refuses } from '../../helpers/refusals.ts'

const BASE = 'https://go.example.com'

const links = await openPages(t, { LINKS_BASE_URL: BASE })
const ann = await links.user('ann')
const bob = await links.user('bob')
const cyd = await links.user('cyd')
const root = await links.user('root', { admin: true })
const longest = `l${'o'.repeat(62)}g`
await makeLink(ann, 'docs', { visibility: 'secure' })
await makeLink(ann, longest)
await makeLink(ann, 'shared', { visibility: 'private', shares: [bob.email] })

const KINDS = [
  ['qr.svg', 'image/svg+xml'],
  ['qr.png', 'image/png'],
] as const

await t.test('a code has the whole short address', async (t) => {
  for (const slug of ['docs', longest]) {
    const picture = pixelsOf((await ann.get(`/-/links/${slug}/qr.png`)).body)
    t.equal(decodeQr(picture), `${BASE}/${slug}`)
    t.ok(picture.width <= 400, 'of moderate size')
    const { width, pixels } = picture
    const edge = (4 * 8 - 1) * width
    t.notOk(pixels.subarray(0, edge * 4).includes(0), 'four modules at the top are white')
    t.ok(pixels.subarray(edge * 4, edge * 4 + 2 * width * 4).includes(0), 'and no more')
  }
})

await t.test('who may read a link gets its code, and asks again for a stored one', async (t) => {
  for (const [name, type] of KINDS) {
    const path = `/-/links/shared/${name}`
    const headers = { 'content-type': type, 'cache-control': 'private, no-cache' }
    for (const who of [ann, bob, root]) t.match(await who.get(path), { status: 200, headers })
    const { etag = '' } = (await ann.get(path)).headers
    const known = { 'if-none-match': etag }
    t.match(await ann.get(path, known), { status: 304, text: '' })
    await expectStatus(200, ann.get(`/-/links/docs/${name}`, known), 'another link')
    await expectStatus(404, cyd.get(path, known), 'a known tag tells a stranger nothing')
  }
})

await t.test('who may not gets the answer of a slug that no link has', async (t) => {
  for (const [name] of KINDS) {
    const unknown = await cyd.get(`/-/links/nothing/${name}`)
    refuses(t, unknown, [404, 'NOT_FOUND', 'no link has this slug'])
    for (const slug of ['docs', 'shared', longest, 'a%00b']) {
      const { status, text } = await cyd.get(`/-/links/${slug}/${name}`)
      t.same({ status, text }, { status: 404, text: unknown.text }, slug)
    }
    const nobody = await visitorAt(links.base, '').get(`/-/links/docs/${name}`)
    const signIn = 'you are not signed in: come through the address where you sign in'
    refuses(t, nobody, [403, 'FORBIDDEN', signIn])
    const foreign = { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'image' }
    await expectStatus(403, ann.get(`/-/links/docs/${name}`, foreign), 'a page elsewhere')
  }
  const page = await expectStatus(404, cyd.get('/-/links/docs/qr.svg', NAVIGATION))
  t.match(page.headers, { 'content-type': /^text\/html/ })
  refuses(t, await ann.post('/-/links/docs/qr.svg'), [405, 'METHOD_NOT_ALLOWED'])
  await expectStatus(404, ann.get('/-/links/docs/qr.gif'), 'no such picture')
})
