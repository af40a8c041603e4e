import type { BrowserContext, Locator, Page } from 'playwright-core'
import {
  openBrowser,
  type BrowserOptions,
  type BrowserOwner,
  type TestBrowser,
} from '../helpers/browser.ts'
import { post, type Ack } from '../helpers/hooks.ts'
import { expectStatus } from '../helpers/refusals.ts'
import { until } from '../helpers/until.ts'

/** A browser beside a server and a database needs more than the usual limit on a busy machine. */
const LIMIT_MS = 20_000

/** Opens Chromium on pages of one server only. */
export function browse(
  t: BrowserOwner,
  base: string,
  options: Partial<BrowserOptions> = {},
): Promise<TestBrowser> {
  return openBrowser(t, { origins: [base], ...options })
}

/** What Chromium writes on its console for an answer with this status. */
export function loadFailure(status: number) {
  return new RegExp(`^Failed to load resource: the server responded with a status of ${status}\\b`)
}

/** Posts to a receiver as a sender does and gives the ack. */
export async function send(
  base: string,
  path: string,
  body: string | Uint8Array = '{"hello":"world"}',
  headers: Readonly<Record<string, string>> = {},
) {
  return (await expectStatus(202, post(base, path, body, headers), path)).json<Ack>()
}

/** Text as the bytes of a header: UTF-8, where node:http takes one character a byte. */
export function headerText(text: string) {
  return Buffer.from(text, 'utf8').toString('latin1')
}

/** Leaves a mark on the page, which a full load wipes away. */
export async function leaveMark(page: Page) {
  await page.evaluate(`document.documentElement.dataset.mark = 'left'`)
}

/** Whether no full load has come since the mark was left. */
export function hasMark(page: Page): Promise<boolean> {
  return page.evaluate<boolean>(`document.documentElement.dataset.mark === 'left'`)
}

/** Lets pages copy, and remembers what each has copied: files at the same time share one clipboard. */
export async function rememberCopies(context: BrowserContext) {
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  await context.addInitScript(`
    const write = navigator.clipboard.writeText.bind(navigator.clipboard)
    navigator.clipboard.writeText = async (text) => {
      await write(text)
      window.copied = text
    }`)
}

/** Clicks the button of this name. */
export async function clickButton(on: Page | Locator, name: string | RegExp) {
  await on.getByRole('button', { name }).click()
}

/** Clicks the link of this name. */
export async function clickLink(on: Page | Locator, name: string | RegExp) {
  await on.getByRole('link', { name }).click()
}

/** Clicks a button that copies. What then says so goes after 2 s: the wait for it begins before. */
export async function clickCopy(button: Locator, copied: Locator) {
  await Promise.all([copied.waitFor(), button.click()])
}

/** What a page has copied last. */
export function copiedOn(page: Page): Promise<string> {
  return page.evaluate<string>('window.copied')
}

/** The ids of the rows that a page shows, from top to bottom. */
export function rowIds(page: Page): Promise<readonly number[]> {
  return page
    .locator('tbody > tr[data-id]')
    .evaluateAll((rows: readonly { dataset: { id: string } }[]) =>
      rows.map((row) => Number(row.dataset.id)),
    )
}

/** Waits until an element's text, with white space made single, is the one that is wanted. */
export async function untilText(locator: Locator, wanted: string | RegExp) {
  let last = 'nothing'
  const passes = async () => {
    last = await textOf(locator)
    return typeof wanted === 'string' ? last === wanted : wanted.test(last)
  }
  const what = `the text ${String(wanted)} at ${String(locator)}`
  await until(passes, what, LIMIT_MS).catch((error: unknown) => {
    throw new Error(`${String(error)}; it is '${last}'`)
  })
}

/** An element's text with white space made single. */
export async function textOf(locator: Locator): Promise<string> {
  return ((await locator.textContent({ timeout: LIMIT_MS })) ?? '').replace(/\s+/g, ' ').trim()
}

/** Waits for the focus: a full page gives it to a field only once its style sheets are there. */
export async function untilFocused(page: Page, id: string) {
  await until(async () => (await focusedId(page)) === id, `the focus on ${id}`)
}

/** Id of the element that has the focus; empty when it has none. */
export async function focusedId(page: Page): Promise<string> {
  const focused = page.locator(':focus')
  return (await focused.count()) === 0 ? '' : ((await focused.getAttribute('id')) ?? '')
}

/** Presses Tab until the element with this id has the focus, as a person without a mouse does. */
export async function tabTo(page: Page, id: string) {
  for (let presses = 0; presses < 100; presses++) {
    if ((await focusedId(page)) === id) return
    await page.keyboard.press('Tab')
  }
  throw new Error(`100 presses of Tab did not reach #${id}`)
}

/** A part of a provider's tile on the dashboard. */
export function tile(page: Page, provider: string, part: string) {
  return page.locator(`[data-provider="${provider}"]`).locator(part)
}
