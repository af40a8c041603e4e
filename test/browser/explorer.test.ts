import { t } from 'tap'
import type { Test } from 'tap'
import { CHAT_KEY } from '../helpers/alerts.ts'
import { apiOf } from '../helpers/api.ts'
import { backends } from '../helpers/backends.ts'
import { addProvider, post, type Ack } from '../helpers/hooks.ts'
import { linksServer } from '../helpers/links.ts'
import { ended, inventoryFile } from '../helpers/ops.ts'
import type { Memory } from '../helpers/ops.ts'
import { startServer } from '../helpers/server.ts'
import {
  fitsWidths,
  hasFrame,
  openExplorer,
  samplesWork,
  showsEverything,
  staysAt,
} from './explorer-page.ts'
import { browse } from './pages.ts'

// All samples are in test/long.
const [, postgres] = backends
const env = {
  ...(await postgres.env(t)),
  OPS_INVENTORY: await inventoryFile(t, { services: [] }),
  OPS_CHAT_API_KEY: CHAT_KEY,
  // Calls go where the page is from, whatever the public address is.
  LINKS_BASE_URL: 'https://go.example.com',
}
const server = await startServer(t, { services: ['hooks', 'links', 'ops'], env })

await t.test('the explorer of the hooks API', async (t: Test) => {
  const base = server.hooks
  await addProvider(base, 'ci', { open: true })
  const { id } = (await post(base, 'generic/ci', '{"order":"o-1"}')).json<Ack>()
  const explorer = await openExplorer(t, base)

  await showsEverything(t, explorer)
  await hasFrame(t, explorer, '/')

  await t.test('try it out: as the pages, it needs no token', async (t) => {
    const found = await explorer.tryOut('listEvents', { params: { text: 'o-1' } })
    t.match(JSON.parse(found.text), { events: [{ id, provider: 'generic:ci' }] })
    const event = await explorer.tryOut('getEvent', { params: { id: String(id) } })
    t.match(JSON.parse(event.text), { id, payload: '{"order":"o-1"}' })
    const body = '{"target_url": "http://127.0.0.1:9/"}'
    const sent = await explorer.tryOut('replayEvent', { params: { id: String(id) }, body })
    t.match(JSON.parse(sent.text), { outcome: 'refused' })
  })

  await fitsWidths(t, explorer.page, [1280, 390])
  staysAt(t, explorer, base)
})

await t.test('the explorer of the links API', async (t: Test) => {
  const links = linksServer(server, env)
  const ben = await links.user('ben', { admin: true })
  const explorer = await openExplorer(t, links.base)

  await showsEverything(t, explorer)
  await hasFrame(t, explorer, '/-/')

  await t.test('try it out: without a token it reads the configuration', async (t) => {
    const { url, status, text } = await explorer.tryOut('getConfig')
    t.match({ url, status }, { url: `${links.base}/api/v1/config`, status: 200 })
    t.match(text, /"short_keyword":"go"/)
  })

  await t.test('with a token, a sample does what it says, as it stands', async (t) => {
    await explorer.authorize(ben.token)
    await samplesWork(t, explorer, {}, ['createLink'])
    const list = (await ben.api<{ links: readonly object[] }>('GET', '/links')).json.links
    t.match(list, [{ slug: 'handbook', url: 'https://docs.example.com/handbook' }])
  })

  await fitsWidths(t, explorer.page, [1280, 390])
  staysAt(t, explorer, links.base)
})

await t.test('without script the page leads to the description', async (t: Test) => {
  const { page } = await browse(t, server.links, { javaScriptEnabled: false })
  await page.goto(`${server.links}/api/docs/`)
  const link = page.getByRole('link', { name: 'openapi.yaml' })
  t.equal(
    await link.evaluate(({ href }: { href: string }) => href),
    `${server.links}/api/openapi.yaml`,
  )
})

await t.test('the explorer of the ops API', async (t: Test) => {
  const ops = { base: server.ops, api: apiOf(server.ops) }
  await ended(ops)
  const explorer = await openExplorer(t, ops.base)

  await showsEverything(t, explorer)
  await hasFrame(t, explorer, '/')

  await t.test('try it out: it reads', async (t) => {
    const health = await explorer.tryOut('getHealth')
    t.match(health, { status: 200, text: '{"status":"ok"}', url: `${ops.base}/api/v1/health` })
    const { status, text } = await explorer.tryOut('listSessions', { params: { limit: '1' } })
    t.equal(status, 200)
    t.match(JSON.parse(text), { sessions: [{ trigger: 'scheduled', status: 'completed' }] })
  })

  await t.test('with the key, a sample does what it says, as it stands', async (t) => {
    await explorer.authorize(CHAT_KEY)
    await samplesWork(t, explorer, {}, ['createMemory'])
    const { memories } = (await ops.api<{ memories: readonly Memory[] }>('GET', '/memories')).json
    const observation = 'slow for ten minutes after the backup at 03:00'
    t.match(memories, [{ category: 'timing', observation }])
  })

  await fitsWidths(t, explorer.page, [1280, 390])
  staysAt(t, explorer, ops.base)
})
