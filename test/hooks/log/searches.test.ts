import { t } from 'tap'
import { apiOf } from '../../helpers/api.ts'
import { auditOf } from '../../helpers/audit.ts'
import { postgres } from '../../helpers/backends.ts'
import { addProvider, plain, postForm, startHooks } from '../../helpers/hooks.ts'
import { request } from '../../helpers/http.ts'
import { addEndpoint } from '../../helpers/mcp.ts'
import { refuseAll } from '../../helpers/refusals.ts'

type Search = { id: number; name: string; query: string; created_at: string }
type List = { searches: readonly Search[] }

const { base, env } = await startHooks(t, postgres)
await addProvider(base, 'shop', { open: true })
const api = apiOf(base)

const list = async () => (await api<List>('GET', '/searches')).json.searches
const save = (name: string, query: string) => api<Search>('POST', '/searches', { name, query })
const pageOf = async (path: string) => (await request(base + path)).text
const BROWSER = { 'Sec-Fetch-Mode': 'navigate' }
const HTMX = { 'HX-Request': 'true' }

await t.test('filters are kept as the address of the log has them', async (t) => {
  t.same(await list(), [])
  const rows: readonly (readonly [name: string, given: string, kept: string])[] = [
    ['words', 'q=type:invoice.*+customer:Globex', 'q=type%3Ainvoice.*+customer%3AGlobex'],
    ['names', 'provider=generic%3Ashop&event_type=push', 'q=type%3Apush&provider=generic%3Ashop'],
    ['a day', 'when=yesterday&zone=Europe/Berlin', 'when=yesterday&zone=Europe%2FBerlin'],
    ['Über', 'q=since:7d&when=today&from=', 'q=since%3A7d'],
  ]
  for (const [name, given, kept] of rows) {
    const { status, json } = await save(name, given)
    t.match({ status, json }, { status: 201, json: { name, query: kept } })
    t.equal((await request(`${base}/log?${kept}`, { headers: HTMX })).status, 200, name)
  }
  t.same(
    (await list()).map(({ name }) => name),
    ['a day', 'names', 'words', 'Über'],
  )
  const menu =
    /id="saved-searches".*?<\/details>/s.exec(await pageOf('/log?q=type:push'))?.[0] ?? ''
  for (const { name, query } of await list()) {
    t.match(menu, `href="/log?${query.replaceAll('&', '&amp;')}"`)
    t.match(plain(menu), name)
  }
  t.match(menu, 'name="query" value="q=type%3Apush"', 'the filters that are set')
  t.notMatch(await pageOf('/log'), 'id="save-search"', 'without filters nothing is to be saved')
})

await t.test('the palette finds them by name', async (t) => {
  const found = await pageOf('/palette?q=wor')
  t.match(found, 'href="/log?q=type%3Ainvoice.*+customer%3AGlobex"')
  t.match(plain(found), 'type:invoice.* customer:Globex')
  t.match(plain(await pageOf('/palette?q=a+day')), 'Yesterday (Europe/Berlin)')
  t.match(await pageOf('/palette?q=saved'), 'href="/searches"', 'and their page')
})

await t.test('they are renamed and removed', async (t) => {
  const [day] = await list()
  const renamed = await api<Search>('PUT', `/searches/${day?.id}`, { name: ' last day ' })
  t.match(renamed, { status: 200, json: { ...day, name: 'last day' } })
  t.equal((await api('PUT', `/searches/${day?.id}`, { name: 'last day' })).status, 200, 'the same')
  t.equal((await api('DELETE', `/searches/${day?.id}`)).status, 204)
  t.notOk((await list()).some(({ id }) => id === day?.id))
  const [first, second] = await auditOf(env, '--limit', '2')
  t.match([first, second], [{ action: 'search remove' }, { action: 'search rename' }])
})

await t.test('what is refused', async (t) => {
  const [names] = await list()
  const { token } = await addEndpoint(base, 'agent')
  const post = (body: unknown) => ({ call: 'POST /api/v1/searches', body })
  const put = (body: unknown, id: unknown = names?.id) => ({
    call: `PUT /api/v1/searches/${String(id)}`,
    body,
  })
  const query = 'q=type:push'
  const asAgent = { headers: { authorization: `Bearer ${token}` } }
  await refuseAll(t, { service: 'hooks', base, state: list }, [
    [post({ name: 'words', query }), 409, /^There is a saved search "words" already/],
    [post({ name: '  ', query }), 400, /^name must have 1 to 60/],
    [post({ name: 'x'.repeat(61), query }), 400, /^name must have 1 to 60/],
    [post({ name: 'a\u0000', query }), 400, /^name must have no control characters/],
    [post({ name: 'a\u202eb', query }), 400, /^name .* direction of text/],
    [post({ name: 'new', query: 'q=+' }), 422, undefined, 'There must be a filter to save.'],
    [post({ name: 'new', query: 'cursor=a' }), 400, /^query may have only provider,/],
    [post({ name: 'new', query: 'q=since:soon' }), 400, /^since must be an event id/],
    [post({ name: 'new', query: 'when=today&zone=Nowhere' }), 400, /^zone must be/],
    [post({ name: 'new', query: 'q=a&q=b' }), 400, undefined, 'q may be given once.'],
    [post({ name: 'new', query: `provider=${'x'.repeat(2_000)}` }), 422, /2000/],
    [put({ name: 'words' }), 409, /already/],
    [put({ name: '' }), 400],
    [put({ name: 'x' }, 999), 404],
    ['DELETE /api/v1/searches/999', 404],
    [{ ...post({ name: 'new', query }), ...asAgent }, 403, /^No token may do this/],
    [{ ...put({ name: 'new' }), ...asAgent }, 403],
    [{ call: `DELETE /api/v1/searches/${names?.id}`, ...asAgent }, 403],
  ])
  const asked = await apiOf(base, token)<List>('GET', '/searches')
  t.same(asked.json.searches, await list(), 'an agent may read them')
})

await t.test('forms without script, and their refusals beside the field', async (t) => {
  const query = 'q=type%3Aorder.*'
  const saved = await postForm(base, '/searches', { name: 'Orders', query }, BROWSER)
  t.match(saved, { status: 303, headers: { location: `/log?${query}&done=saved&of=Orders` } })
  const taken = await postForm(base, '/searches', { name: 'Orders', query }, BROWSER)
  t.equal(taken.status, 409)
  t.match(taken.text, /id="search-name"[^>]*value="Orders"/, 'what was typed')
  t.match(taken.text, /id="search-name-refused" class="refused">There is a saved search/)
  t.match(taken.text, `name="query" value="${query}"`)
  const id = (await list()).find(({ name }) => name === 'Orders')?.id
  const wrong = await postForm(base, `/searches/${id}/rename`, { name: 'words' }, BROWSER)
  t.equal(wrong.status, 409)
  t.match(wrong.text, new RegExp(`id="search-${id}-name-refused"`))
  t.match(await postForm(base, `/searches/${id}/rename`, { name: 'All orders' }, BROWSER), {
    status: 303,
    headers: { location: '/searches?done=renamed&of=All+orders' },
  })
  t.match(plain(await pageOf('/searches')), /All orders.*type:order\.\*/s)
  t.match(await postForm(base, `/searches/${id}/remove`, {}, BROWSER), {
    status: 303,
    headers: { location: '/searches?done=removed&of=the+search' },
  })
})

await t.test('at most 100 of them', async (t) => {
  const many = `insert into hooks.searches (name, query, created_at)
    select 'search ' || n, 'q=x', now() from generate_series(${(await list()).length}, 98) n`
  await postgres.query(env, many)
  t.equal((await save('the last one', 'q=x')).status, 201)
  await refuseAll(t, { service: 'hooks', base, state: list }, [
    [
      { call: 'POST /api/v1/searches', body: { name: 'one more', query: 'q=x' } },
      ...([409, /^There are 100 saved searches already; remove one first/] as const),
    ],
  ])
})
