import { t } from 'tap'
import { connectionTo } from '../../helpers/backends.ts'
import {
  HTMX,
  leadsTo,
  makeLink,
  openLinks,
  openPages,
  slugsOf,
  suggested,
  visit,
  visitorAt,
  type Link,
} from '../../helpers/links.ts'
import { expectStatus, refuses } from '../../helpers/refusals.ts'
import { until } from '../../helpers/until.ts'

const FUTURE = '2099-01-31T12:00:00.000Z'
const PAST = '2001-01-31T12:00:00.000Z'

const links = await openPages(t)
const { base, env, query, value } = links
const ann = await links.user('ann')
const bob = await links.user('bob')
const cyd = await links.user('cyd')
const NOBODY = visitorAt(base, '')

/** Lets the expiry of a link pass: it is set as time would have it. */
async function expire(slug: string) {
  await query('update links.links set expires_at = $2 where slug = $1', [slug, PAST])
  await query("select pg_notify('links_changed', $1)", [slug])
}

await t.test('POST and PUT: set, left, cleared', async (t) => {
  const given = { expires_at: '2099-01-31T13:00:00+01:00', max_visits: 5, archived: true }
  const { id } = await makeLink(ann, 'fields', given)
  const put = (fields: object) =>
    ann.api<Link>('PUT', `/links/${id}`, { url: 'https://fields.test/', ...fields })
  const left = await put({})
  t.match(left.json, { expires_at: FUTURE, max_visits: 5, archived: true })
  t.not((await put({ max_visits: 6 })).headers.etag, left.headers.etag)
  const cleared = await put({ expires_at: null, max_visits: null, archived: null })
  t.match(cleared.json, { expires_at: null, max_visits: null, archived: false })
})

await t.test('what is refused changes nothing', async (t) => {
  const { id } = await makeLink(ann, 'refused', { expires_at: FUTURE })
  const path = `/links/${id}`
  const visits = 'max_visits must be a whole number from 1 to 1,000,000,000, or null'
  const wrong: readonly (readonly [object, string | RegExp])[] = [
    [{ expires_at: PAST }, 'expires_at must be in the future'],
    [{ expires_at: '2099-01-31' }, /^expires_at must be a time with its zone/],
    [{ max_visits: 0 }, visits],
    [{ max_visits: 1.5 }, visits],
    [{ max_visits: '7' }, visits],
    [{ archived: 'yes' }, 'archived must be true, false or null'],
  ]
  const body = (fields: object) => ({ slug: 'refused-2', url: 'https://x.test/', ...fields })
  await ann.refused(
    t,
    () => ann.read('/links'),
    wrong.flatMap(([fields, text]) => [
      [{ call: 'POST /links', body: body(fields) }, 400, 'BAD_REQUEST', text],
      [{ call: `PUT ${path}`, body: body(fields) }, 400, 'BAD_REQUEST', text],
    ]),
  )
  await ann.api('PUT', path, body({ archived: true }))
  await expire('refused')
  const kept = { url: 'https://y.test/', expires_at: PAST }
  await expectStatus(200, ann.api('PUT', path, kept), 'it has this expiry')
})

await t.test('a visit of an ended link is 410, and so is HEAD', async (t) => {
  await makeLink(ann, 'over', { archived: true, append_path: true })
  const ended = { archived: true, shares: [cyd.email] }
  await makeLink(ann, 'over-secure', { ...ended, visibility: 'secure' })
  await makeLink(ann, 'over-hidden', { ...ended, visibility: 'private' })
  for (const path of ['/over', '/Over./more?x=1', '/over+', '/over-hidden']) {
    for (const method of ['GET', 'HEAD']) {
      const { status, headers } = await visit(base, path, { method })
      t.equal(status, 410, `${method} ${path}`)
      t.match(headers, { location: undefined, 'x-robots-tag': 'noindex' })
    }
  }
  t.equal(await leadsTo(base, '/over-hidden+'), 404, 'a stranger learns of no private link')
  t.equal(await leadsTo(base, '/over-secure'), 403, 'who may not follow a link, not how it is')
  for (const [who, names] of [
    [NOBODY, false],
    [bob, false],
    [cyd, true],
    [ann, true],
  ] as const) {
    const page = await expectStatus(410, who.get('/over-hidden'))
    t.match(page.text, /The link .*over-hidden has ended/s)
    t.equal(page.text.includes('Its owner is <bdi>ann@example.com</bdi>'), names)
    t.equal(page.text.includes('Renew it'), who === ann)
    const json = await who.get('/over-hidden', { accept: 'application/json' })
    const owner = names ? '; its owner is ann@example.com' : ''
    refuses(t, json, [410, 'GONE', `this link has ended${owner}`])
  }
  await expectStatus(410, cyd.get('/over-secure'))
  t.match(await NOBODY.text('/metrics'), /gatehouse_links_visits_total\{outcome="gone"\} [1-9]/)
})

await t.test('the clock ends a link that is in memory, and a PUT renews it', async (t) => {
  const soon = new Date(Date.now() + 5_000).toISOString()
  const { id } = await makeLink(ann, 'soon', { expires_at: soon })
  t.equal(await leadsTo(base, '/soon'), 'https://soon.test/')
  await until(async () => (await leadsTo(base, '/soon')) === 410, 'the expiry')
  t.ok(new Date() >= new Date(soon))
  t.match(await ann.text('/soon'), 'It expired')
  const renewed = { url: 'https://soon.test/', expires_at: FUTURE }
  await expectStatus(200, ann.api('PUT', `/links/${id}`, renewed))
  t.equal(await leadsTo(base, '/soon'), 'https://soon.test/')
})

await t.test(
  'max_visits: this instance counts at once, another one hears of the last',
  async (t) => {
    const other = await openLinks(t, env)
    const { id } = await makeLink(ann, 'thrice', { max_visits: 3 })
    t.equal(await leadsTo(other.base, '/thrice'), 'https://thrice.test/')
    const stored = () => value("select clicks::int from links.links where slug = 'thrice'")
    await until(async () => (await stored()) === 1, 'the first click to be written')
    const look = { method: 'HEAD' }
    await expectStatus(302, visit(base, '/thrice', look), 'HEAD is no visit')
    const heard = await hear('links_changed')
    const led = []
    for (let n = 0; n < 4; n++) led.push(await leadsTo(base, '/thrice'))
    t.same(led, ['https://thrice.test/', 'https://thrice.test/', 410, 410])
    await until(() => heard.includes('thrice'), 'all instances to be told of the last visit')
    const isOver = async () => (await visit(other.base, '/thrice', look)).status === 410
    await until(isOver, 'the other instance to hear of the last visit')
    t.equal(await stored(), 3)
    t.match(await ann.text('/thrice'), 'All of its 3 visits are used up.')
    t.match(await ann.text(`/-/links/${id}`), '3 of 3')
    const usedUp = () => slugsOf(ann, '/links?state=used_up')
    t.same(await usedUp(), ['thrice'])
    const limitTo = (max_visits: number) =>
      ann.api('PUT', `/links/${id}`, { url: 'https://thrice.test/', max_visits })
    await limitTo(4)
    t.same(await usedUp(), [])
    t.equal(await leadsTo(base, '/thrice'), 'https://thrice.test/', 'renewed')
    await limitTo(2)
    t.same(await usedUp(), ['thrice'], 'visits before the limit count')

    // One instance may not have written its visits yet when the other one deletes the link.
    const parted = await makeLink(ann, 'parted')
    for (let n = 0; n < 20; n++) await leadsTo(other.base, '/parted')
    await expectStatus(204, ann.api('DELETE', `/links/${parted.id}`))
    const kept = `select (link ->> 'clicks')::int from links.deleted_links where id = '${parted.id}'`
    await until(async () => (await value(kept)) === 20, 'visits of a deleted link')
  },
)

/** The payloads of a channel from now on. */
async function hear(channel: string) {
  const sql = connectionTo(t, env)
  const heard: string[] = []
  await sql.listen(channel, (payload) => void heard.push(payload))
  return heard
}

/** How often visits of these paths, all at once, were redirected. */
async function redirectedOf(
  paths: readonly string[],
  go = (path: string) => visit(base, path),
): Promise<number> {
  const answers = await Promise.all(paths.map((path) => go(path)))
  return answers.filter(({ status }) => status === 302).length
}

await t.test('max_visits is exact on one instance', async (t) => {
  const url = 'https://exact.test/'
  const put = (id: string, fields: object) => ann.api('PUT', `/links/${id}`, { url, ...fields })
  const restored = async (id: string) => {
    await expectStatus(204, ann.api('DELETE', `/links/${id}`))
    await expectStatus(200, ann.api('POST', `/links/${id}/restore`))
  }

  await t.test('with an edit, a rename or a restore after each visit', async (t) => {
    const { id } = await makeLink(ann, 'edited', { url, max_visits: 10 })
    const history = `/links/${id}/history`
    const { changes: made } = await ann.read<{ changes: { id: number }[] }>(history)
    let names = ['edited', 'renamed']
    const changes: readonly (() => Promise<unknown>)[] = [
      () => put(id, { title: 'another' }),
      () => {
        names = names.toReversed()
        return ann.api('PUT', `/links/${id}/slug`, { slug: names[0] })
      },
      () => restored(id),
      () => ann.api('POST', `${history}/${made[0]?.id}/restore`),
    ]
    let redirected = 0
    for (let n = 0; n < 40; n++) {
      redirected += await redirectedOf([`/${names[0]}`])
      await changes[n % changes.length]?.()
    }
    t.equal(redirected, 10)
  })

  await t.test('100 visits at once by all names, with edits and deletions between', async (t) => {
    const fields = { url, max_visits: 50, append_path: true, aliases: ['rush-hour', 'hurry'] }
    const { id } = await makeLink(ann, 'rush', fields)
    const names = ['/rush', '/hurry', '/RUSH', '/rush-hour', '/rush/x']
    const paths = names.flatMap((path): string[] => Array(20).fill(path))
    const edits = async () => {
      for (let n = 0; n < 5; n++) await put(id, { title: `${n}`, aliases: fields.aliases })
    }
    const first = paths.filter((_, n) => n % 4 === 0)
    let redirected = (await Promise.all([redirectedOf(first), edits()]))[0]
    t.equal(redirected, 25)
    await restored(id)
    redirected += (await Promise.all([redirectedOf(paths), edits()]))[0]
    await restored(id)
    redirected += await redirectedOf(paths)
    t.equal(redirected, 50)
    const total = async () => (await ann.read<{ total: number }>(`/links/${id}/stats`)).total
    await until(async () => (await total()) === 50, 'all visits to be written')
  })

  await t.test('previews of chats and what is loaded ahead use up none', async (t) => {
    await makeLink(ann, 'shown', { url, max_visits: 2 })
    const chat = { 'user-agent': 'WhatsApp/2.23.20.0 A' }
    const ahead = { 'sec-purpose': 'prefetch' }
    const statuses: number[] = []
    for (const headers of [chat, ahead, chat, ahead, chat, ahead, {}, {}, {}, chat]) {
      statuses.push((await visit(base, '/shown', { headers })).status)
    }
    t.same(statuses, [...Array(8).fill(302), 410, 410], 'and see the end')
  })

  await t.test('of a secure link, and of one that had no limit', async (t) => {
    await makeLink(ann, 'guarded', { url, max_visits: 10, visibility: 'secure' })
    t.equal(await redirectedOf(Array(100).fill('/guarded'), ann.get), 10)
    const { id } = await makeLink(ann, 'late', { url })
    t.equal(await redirectedOf(Array(30).fill('/late')), 30)
    await put(id, { max_visits: 40 })
    t.equal(await redirectedOf(Array(100).fill('/late')), 10)
  })
})

await t.test('did-you-mean and completions skip ended links', async (t) => {
  await makeLink(ann, 'roadmap')
  await makeLink(ann, 'roadmap-old', { archived: true })
  await makeLink(ann, 'roadmap-late', { expires_at: FUTURE })
  await expire('roadmap-late')
  t.same(suggested(await ann.get('/roadma')), ['roadmap'])
  t.match(await ann.text('/-/suggest?q=roadmap'), '["roadmap",["roadmap"],')
  t.match(await ann.text('/-/all?q=roadmap'), /roadmap-old.*archived.*/s, 'lists have them')
})

await t.test('the form', async (t) => {
  const fields = { slug: 'typed', url: 'https://typed.test/', visibility: 'public' }
  const end = { expires_at: '2099-01-31T12:00', max_visits: '9', archived: 'true' }
  const made = await expectStatus(303, ann.post('/-/new', { ...fields, ...end }))
  const at = String(made.headers.location).split('?')[0] ?? ''
  const stored = async () => await ann.read(at.replace('/-', ''))
  t.match(await stored(), { expires_at: FUTURE, max_visits: 9, archived: true })
  const form = await ann.text(`${at}/edit`)
  t.match(form, /name="expires_at"[^>]*value="2099-01-31T12:00"/)
  t.match(form, /name="max_visits"[^>]*value="9"/)
  t.match(form, /name="archived"[^>]*checked/)
  t.match(await ann.text(at), /archived.*Renew it/s)
  const refused = await ann.post(`${at}/edit`, { ...fields, max_visits: 'x' }, HTMX)
  t.match(refused, { status: 400, text: 'must be a whole number from 1' })
  await expectStatus(303, ann.post(`${at}/edit`, { ...fields, expires_at: '', max_visits: '' }))
  t.match(await stored(), { expires_at: null, max_visits: null, archived: false })
  await expectStatus(303, ann.post(`${at}/edit`, { ...fields, ...end }))
  const page = await ann.text(at)
  t.match(page, 'archived the link', 'the history says who ended it')
  t.match(page, 'set the limit of visits to <q><bdi>9')
  t.match(page, /set the expiry to <time[^>]* datetime="2099-01-31T12:00:00.000Z"/)
})
