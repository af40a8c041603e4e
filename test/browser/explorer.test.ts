import { t } from 'tap'
import type { Page } from 'playwright-core'
import { CHAT_KEY } from '../helpers/alerts.ts'
import { apiOf, openApiOf, operationsOf } from '../helpers/api.ts'
import { postgres } from '../helpers/backends.ts'
import { accepted, addProvider, post } from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'
import { linksServer } from '../helpers/links.ts'
import { ended, inventoryFile } from '../helpers/ops.ts'
import { startServer } from '../helpers/server.ts'
import { measurable, noSidewaysScroll } from './measure.ts'
import { browse, clickButton, untilText } from './pages.ts'

const env = {
  ...(await postgres.env(t)),
  OPS_INVENTORY: await inventoryFile(t, { services: [] }),
  OPS_CHAT_API_KEY: CHAT_KEY,
  // Calls go where the page is from, whatever the public address is.
  LINKS_BASE_URL: 'https://go.example.com',
}
const server = await startServer(t, { services: ['hooks', 'links', 'ops'], env })
const ben = await linksServer(server, env).user('ben', { admin: true })
await addProvider(server.hooks, 'ci', { open: true })
const id = await accepted(post(server.hooks, 'generic/ci', '{"order":"o-1"}'))
await ended({ api: apiOf(server.ops) })

/** What is typed before an operation is executed, and what must come back. */
type Trial = readonly [operationId: string, params: Readonly<Record<string, string>>, json: object]
/** A service: where its pages are, what works without a token, and what a sample makes with one. */
type Explored = readonly [
  service: 'hooks' | 'links' | 'ops',
  home: string,
  trials: readonly Trial[],
  sample?: readonly [operationId: string, token: string, list: string, made: object],
]
const EXPLORED: readonly Explored[] = [
  [
    'hooks',
    '/',
    [
      ['listEvents', { text: 'o-1' }, { events: [{ id, provider: 'generic:ci' }] }],
      ['getEvent', { id: String(id) }, { id, payload: '{"order":"o-1"}' }],
    ],
  ],
  [
    'links',
    '/-/',
    [['getConfig', {}, { short_keyword: 'go' }]],
    ['createLink', ben.token, '/links', { links: [{ slug: 'handbook' }] }],
  ],
  [
    'ops',
    '/',
    [
      ['getHealth', {}, { status: 'ok' }],
      ['listSessions', { limit: '1' }, { sessions: [{ trigger: 'scheduled' }] }],
    ],
    ['createMemory', CHAT_KEY, '/memories', { memories: [{ category: 'timing' }] }],
  ],
]

/** Opens an operation and executes it, with the sample of its body as it stands. */
async function tryOut(page: Page, base: string, operationId: string, params: Trial[1]) {
  const operation = page.locator(`.opblock[id$="-${operationId}"]`)
  await operation.locator('.opblock-summary-control').click()
  for (const [name, value] of Object.entries(params)) {
    await operation.locator(`tr[data-param-name="${name}"] input`).fill(value)
  }
  const [response] = await Promise.all([
    page.waitForResponse((answer) => answer.url().startsWith(`${base}/api/v1/`)),
    operation.getByRole('button', { name: 'Execute' }).click(),
  ])
  const shown = operation.locator('.live-responses-table tbody .response-col_status')
  await untilText(shown, new RegExp(`^${response.status()}\\b`))
  return response
}

// A violation of the policy, an error in script and a request to another origin fail the test at once.
for (const [service, home, trials, sample] of EXPLORED) {
  await t.test(`the explorer of the ${service} API`, async (t) => {
    const base = server[service]
    const { page, context } = await browse(t, base)
    await measurable(context)
    await page.goto(`${base}/api/docs`)
    await page.locator('.opblock').first().waitFor()
    const document = openApiOf((await request(`${base}/api/openapi.yaml`)).text)
    t.equal(await page.title(), `${document.info.title} · Gatehouse`)
    const ids = operationsOf(document).map(({ operation }) => operation.operationId)
    t.equal(await page.locator('.opblock').count(), ids.length)
    for (const one of ids) t.equal(await page.locator(`.opblock[id$="-${one}"]`).count(), 1, one)
    await page.emulateMedia({ colorScheme: 'dark' })
    await page.locator('html.dark-mode').waitFor()
    const back = page.getByRole('banner').getByRole('link', { name: 'Back to the pages' })
    t.equal(await back.getAttribute('href'), home)

    for (const [operationId, params, json] of trials) {
      const answer = await tryOut(page, base, operationId, params)
      t.match(await answer.json(), json, operationId)
    }
    if (sample !== undefined) {
      const [operationId, token, list, made] = sample
      await clickButton(page, 'Authorize')
      const dialog = page.locator('.modal-ux')
      await dialog.locator('input').fill(token)
      await clickButton(dialog, 'Apply credentials')
      await dialog.getByRole('button', { name: 'Close' }).first().click()
      const answer = await tryOut(page, base, operationId, {})
      t.notMatch(answer.request().postData(), /"string"/, 'the sample says something')
      t.match((await apiOf(base, token)('GET', list)).json, made)
    }
    for (const width of [1280, 390]) await noSidewaysScroll(t, page, width)
  })
}

await t.test('without script the page leads to the description', async (t) => {
  const { page } = await browse(t, server.links, { javaScriptEnabled: false })
  await page.goto(`${server.links}/api/docs/`)
  const link = page.getByRole('link', { name: 'openapi.yaml' })
  const href = await link.evaluate(({ href }: { href: string }) => href)
  t.equal(href, `${server.links}/api/openapi.yaml`)
})
