import { join } from 'node:path'
import type { Test } from 'tap'
import type { Locator, Page } from 'playwright-core'
import { request } from '../helpers/http.ts'
import { openApiOf, operationsOf } from '../helpers/api.ts'
import type { Document } from '../helpers/api.ts'
import { browse, untilText } from './pages.ts'

/** An API's explorer in a browser of its own. */
export type Explorer = {
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
export type Values = { readonly params?: Readonly<Record<string, string>>; readonly body?: string }

/** What came of it: the status that is shown, and the exchange as the browser had it. */
export type Tried = {
  readonly status: number
  readonly url: string
  readonly sent: string | null
  readonly text: string
}

/**
 * Opens the explorer of a server. A violation of the policy, an error in script and a request to another
 * origin fail the test at once.
 */
export async function openExplorer(t: Test, base: string): Promise<Explorer> {
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
export async function showsEverything(t: Test, { page, document }: Explorer): Promise<void> {
  await page.getByRole('heading', { name: document.info.title }).waitFor()
  t.equal(await page.title(), `${document.info.title} · Gatehouse`)
  const ids = operationsOf(document).map(({ operation }) => operation.operationId)
  t.equal(await page.locator('.opblock').count(), ids.length)
  for (const id of ids) t.equal(await page.locator(`.opblock[id$="-${id}"]`).count(), 1, id)
}

/** It has the reader's colours, and its header leads to the pages. */
export async function hasFrame(t: Test, { page }: Explorer, home: string): Promise<void> {
  await page.emulateMedia({ colorScheme: 'dark' })
  await page.locator('html.dark-mode').waitFor()
  await page.emulateMedia({ colorScheme: 'light' })
  await page.locator('html:not(.dark-mode)').waitFor()
  const back = page.getByRole('banner').getByRole('link', { name: 'Back to the pages' })
  t.equal(await back.getAttribute('href'), home)
}

/** Nothing stands beyond the edge of windows this wide, whatever is open. */
export async function fitsWidths(t: Test, page: Page, widths: readonly number[]): Promise<void> {
  for (const width of widths) {
    await page.setViewportSize({ width, height: 844 })
    t.same(await page.evaluate('inPage.tooWide()'), [], `no sideways scroll at ${width} px`)
  }
}

/**
 * Executes operations that take a body, all or those named, with the sample as it stands; `paths` has ids for
 * each.
 */
export async function samplesWork(
  t: Test,
  explorer: Explorer,
  paths: Readonly<Record<string, Readonly<Record<string, string>>>>,
  only?: readonly string[],
): Promise<ReadonlyMap<string, Tried>> {
  const tried = new Map<string, Tried>()
  for (const { operation } of operationsOf(explorer.document)) {
    const { operationId, requestBody } = operation
    if (requestBody === undefined || only?.includes(operationId) === false) continue
    const one = await explorer.tryOut(operationId, { params: paths[operationId] ?? {} })
    tried.set(operationId, one)
    t.ok(one.status >= 200 && one.status < 300, `${operationId} → ${one.status}: ${one.sent}`)
    t.notMatch(one.sent, /"string"/, `${operationId}: the sample says something`)
  }
  t.ok(tried.size > 0)
  return tried
}

/** The browser's own list of requests: all of them went to one server. */
export function staysAt(t: Test, { requests }: Explorer, base: string): void {
  t.ok(requests.includes(`${base}/api/openapi.yaml`), 'the list has what it asked for')
  // Its style sheet has pictures in it.
  const foreign = requests.filter(
    (url) => !url.startsWith('data:') && new URL(url).origin !== base,
  )
  t.same(foreign, [], 'nothing was asked of another origin')
}
