import { join } from 'node:path'
import { t } from 'tap'
import type { Test } from 'tap'
import type { Locator, Page } from 'playwright-core'
import { CHAT_KEY, startBriefs } from '../helpers/alerts-setup.ts'
import { apiOf } from '../helpers/api.ts'
import { backends } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { linksServer, makeLink } from '../helpers/links-setup.ts'
import { openApiOf, operationsOf } from '../helpers/openapi.ts'
import type { Document } from '../helpers/openapi.ts'
import { ended, inventoryFile } from '../helpers/ops-setup.ts'
import type { Memory, Session } from '../helpers/ops-setup.ts'
import { keepSecret } from '../helpers/secrets.ts'
import { startServer } from '../helpers/server.ts'
import { browse, untilText } from './pages.ts'

const [, postgres] = backends
const env = {
  ...(await postgres.env(t)),
  OPS_INVENTORY: await inventoryFile(t, { services: [] }),
  OPS_CHAT_API_KEY: CHAT_KEY,
  ...(await startBriefs(t)).env,
  // Calls go where the page is from, whatever the public address is.
  LINKS_BASE_URL: 'https://go.example.com',
}
const server = await startServer(t, { services: ['links', 'ops'], env })

const HREF = (link: { href: string }): string => link.href

/** Further ones are in test/long. */
const WIDTHS = [390, 1280] as const

/** An API's explorer in a browser of its own. */
type Explorer = {
  readonly page: Page
  /** The document that it shows. */
  readonly document: Document
  /** Types a token into its dialog. */
  authorize(token: string): Promise<void>
  /** Opens an operation and executes it; a body that is not given is the sample as it stands. */
  tryOut(operationId: string, values?: Values): Promise<Tried>
  /** What the browser has asked for since the beginning. */
  readonly requests: readonly string[]
}

/** What is typed before an operation is executed. */
type Values = { readonly params?: Readonly<Record<string, string>>; readonly body?: string }

/** What came of it: the status that is shown, and the exchange as the browser had it. */
type Tried = {
  readonly status: number
  readonly url: string
  readonly sent: string | null
  readonly text: string
}

/**
 * Opens the explorer of a server. A violation of the policy, an error in script and a request to another
 * origin fail the test at once.
 */
async function openExplorer(t: Test, base: string): Promise<Explorer> {
  const { page, context, secretShown } = await browse(t, base)
  const requests: string[] = []
  context.on('request', (asked) => void requests.push(asked.url()))
  await context.addInitScript({ path: join(import.meta.dirname, 'in-page.js') })
  await page.goto(`${base}/api/docs`)
  await page.locator('.opblock').first().waitFor()

  async function execute(operation: Locator): Promise<Tried> {
    const [response] = await Promise.all([
      page.waitForResponse((answer) => answer.url().startsWith(`${base}/api/v1/`)),
      operation.getByRole('button', { name: 'Execute' }).click(),
    ])
    const status = response.status()
    const shown = operation.locator('.live-responses-table tbody .response-col_status')
    await untilText(shown, new RegExp(`^${status}\\b`))
    const [url, sent] = [response.url(), response.request().postData()]
    return { status, url, sent, text: status === 204 ? '' : await response.text() }
  }

  return {
    page,
    document: openApiOf((await request(`${base}/api/openapi.yaml`)).text),
    requests,
    async authorize(token) {
      await page.getByRole('button', { name: 'Authorize' }).click()
      const dialog = page.locator('.modal-ux')
      await dialog.locator('input').fill(token)
      await dialog.getByRole('button', { name: 'Apply credentials' }).click()
      await dialog.getByRole('button', { name: 'Close' }).first().click()
    },
    async tryOut(operationId, { params = {}, body } = {}) {
      const operation = page.locator(`.opblock[id$="-${operationId}"]`)
      await operation.locator('.opblock-summary-control').click()
      for (const [name, value] of Object.entries(params)) {
        await operation.locator(`tr[data-param-name="${name}"] input`).fill(value)
      }
      if (body !== undefined) await operation.locator('textarea').fill(body)
      // An answer may be a new token, shown this once.
      return secretShown(() => execute(operation))
    },
  }
}

/** Every operation of the document is listed. */
async function showsEverything(t: Test, { page, document }: Explorer): Promise<void> {
  await page.getByRole('heading', { name: document.info.title }).waitFor()
  t.equal(await page.title(), `${document.info.title} · Gatehouse`)
  const ids = operationsOf(document).map(({ operation }) => operation.operationId)
  t.equal(await page.locator('.opblock').count(), ids.length)
  for (const id of ids) t.equal(await page.locator(`.opblock[id$="-${id}"]`).count(), 1, id)
}

/** Nothing stands beyond the edge of a window, whatever is open. */
async function fitsEachWidth(t: Test, page: Page): Promise<void> {
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 844 })
    t.same(await page.evaluate('inPage.tooWide()'), [], `no sideways scroll at ${width} px`)
  }
}

/** Executes every operation that takes a body, with the sample as it stands; `paths` has ids for each. */
async function samplesWork(
  t: Test,
  explorer: Explorer,
  paths: Readonly<Record<string, Readonly<Record<string, string>>>>,
): Promise<ReadonlyMap<string, Tried>> {
  const tried = new Map<string, Tried>()
  for (const { operation } of operationsOf(explorer.document)) {
    const { operationId, requestBody } = operation
    if (requestBody === undefined) continue
    const one = await explorer.tryOut(operationId, { params: paths[operationId] ?? {} })
    tried.set(operationId, one)
    t.ok(one.status >= 200 && one.status < 300, `${operationId} → ${one.status}: ${one.sent}`)
    t.notMatch(one.sent, /"string"/, `${operationId}: the sample says something`)
  }
  t.ok(tried.size > 0)
  return tried
}

/** The browser's own list of requests: all of them went to one server. */
function staysAt(t: Test, { requests }: Explorer, base: string): void {
  t.ok(requests.includes(`${base}/api/openapi.yaml`), 'the list has what it asked for')
  // Its style sheet has pictures in it.
  const foreign = requests.filter((url) => !url.startsWith('data:') && new URL(url).origin !== base)
  t.same(foreign, [], 'nothing was asked of another origin')
}

await t.test('the explorer of the links API', async (t: Test) => {
  const links = linksServer(server, env)
  const ben = await links.user('ben', { admin: true })
  const ann = await links.user('ann')
  const explorer = await openExplorer(t, links.base)

  await t.test('shows every operation', (t) => showsEverything(t, explorer))

  await t.test('try it out: without a token it reads the configuration', async (t) => {
    const { url, status, text } = await explorer.tryOut('getConfig')
    t.match({ url, status }, { url: `${links.base}/api/v1/config`, status: 200 })
    t.match(text, /"short_keyword":"go"/)
  })

  await t.test('with a token, every sample does what it says, as it stands', async (t) => {
    await explorer.authorize(ben.token)
    const [owned, shared] = [await makeLink(ben, 'owned'), await makeLink(ben, 'shared')]
    const tried = await samplesWork(t, explorer, {
      ...{ replaceLink: { id: owned.id }, addOwner: { id: owned.id } },
      ...{ shareLink: { id: shared.id }, setRole: { id: ann.id } },
    })
    const made = JSON.parse(tried.get('createToken')?.text ?? '{}')
    keepSecret('api-token', String(made.token))
    const list = (await ben.api<{ links: readonly object[] }>('GET', '/links')).json.links
    const url = 'https://docs.example.com/handbook'
    t.match(list, [{ slug: 'handbook', url }, { slug: 'owned', url }, { slug: 'shared' }])
  })

  await t.test('the page fits each width with all of them open', (t) =>
    fitsEachWidth(t, explorer.page),
  )
  staysAt(t, explorer, links.base)
})

await t.test('without script the page leads to the description', async (t: Test) => {
  const { page } = await browse(t, server.links, { javaScriptEnabled: false })
  await page.goto(`${server.links}/api/docs/`)
  const link = page.getByRole('link', { name: 'openapi.yaml' })
  t.equal(await link.evaluate(HREF), `${server.links}/api/openapi.yaml`)
})

await t.test('the explorer of the ops API', async (t: Test) => {
  const ops = { base: server.ops, api: apiOf(server.ops) }
  await ended(ops)
  const explorer = await openExplorer(t, ops.base)

  await t.test('shows every operation', (t) => showsEverything(t, explorer))

  await t.test('try it out: it reads', async (t) => {
    const health = await explorer.tryOut('getHealth')
    t.match(health, { status: 200, text: '{"status":"ok"}', url: `${ops.base}/api/v1/health` })
    const { status, text } = await explorer.tryOut('listSessions', { params: { limit: '1' } })
    t.equal(status, 200)
    t.match(JSON.parse(text), { sessions: [{ trigger: 'scheduled', status: 'completed' }] })
  })

  await t.test('every sample does what it says, as it stands', async (t) => {
    await explorer.authorize(CHAT_KEY)
    const made = await ops.api<Memory>('POST', '/memories', { category: 'c', observation: 'o' })
    await samplesWork(t, explorer, { updateMemory: { id: String(made.json.id) } })
    const { memories } = (await ops.api<{ memories: readonly Memory[] }>('GET', '/memories')).json
    const observation = 'slow for ten minutes after the backup at 03:00'
    t.match(memories, [{ observation }, { observation }])
    t.match(memories.map(({ category }) => category).toSorted(), ['c', 'timing'])
    t.match((await ops.api('GET', '/config')).json, { interval: 1_800, dry_run: false })
    await ended(ops)
    const { sessions } = (await ops.api<{ sessions: readonly Session[] }>('GET', '/sessions')).json
    const asked = sessions.find(({ trigger }) => trigger === 'api')
    t.match(asked, { tier: 1, prompt_text: /^The shop has been slow/ })
  })

  await t.test('the page fits each width with all of them open', (t) =>
    fitsEachWidth(t, explorer.page),
  )
  staysAt(t, explorer, ops.base)
})
