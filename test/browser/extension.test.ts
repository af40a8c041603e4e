import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { chromium, type Page } from 'playwright-core'
import { t, type Test } from 'tap'
import { postgres } from '../helpers/backends.ts'
import { CHROMIUM_ARGS } from '../helpers/browser.ts'
import { leadsTo, makeLink, startLinks, type Link } from '../helpers/links.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { ROOT } from '../helpers/program.ts'
import { startReceiver } from '../helpers/replays.ts'
import { until } from '../helpers/until.ts'
import { deploymentParts, lacks } from '../runner/system-parts.ts'
import { clickButton, textOf, untilText } from './pages.ts'

const FOLDER = join(ROOT, 'integrations/browser')

/** What a popup shows. It is no page of a tab: another page of the extension reads it. */
const POPUP = `(() => {
  const [popup] = chrome.extension.getViews({ type: 'popup' })
  if (popup === undefined) return undefined
  const text = (id) => popup.document.getElementById(id).textContent
  const { value: slug } = popup.document.getElementById('slug')
  const { value: title } = popup.document.getElementById('title')
  const isAsking = !popup.document.getElementById('create').hidden
  const names = [...popup.document.querySelectorAll('#existing a')].map((link) => link.href)
  return { message: text('message'), problem: text('problem'), slug, title, isAsking, names }
})()`

/** Fills the form of the popup, and sends it. */
const SEND = `(fields) => {
  const [{ document: popup }] = chrome.extension.getViews({ type: 'popup' })
  popup.getElementById('another').click()
  for (const [id, value] of Object.entries(fields)) popup.getElementById(id).value = value
  popup.getElementById('create').requestSubmit()
}`

interface Popup {
  message: string
  problem: string
  slug: string
  title: string
  isAsking: boolean
  names: readonly string[]
}

/** Chromium with the extension, and what a person does with it. */
async function openExtension(t: Test) {
  const context = await chromium.launchPersistentContext(await temporaryFolder(t), {
    executablePath: deploymentParts.extensions.find() ?? '',
    // Playwright's own headless mode is another program, which has no extensions.
    headless: false,
    args: [...CHROMIUM_ARGS, '--headless=new', '--enable-unsafe-extension-debugging'],
    ignoreDefaultArgs: ['--disable-extensions'],
  })
  t.teardown(() => context.close())
  const browser = context.browser()
  if (browser === null) throw new Error('Chromium has no browser behind its context')
  const devtools = await browser.newBrowserCDPSession()
  // Playwright's types lag behind: these commands are of Chromium 140 and newer.
  const send = devtools.send.bind(devtools) as (
    method: string,
    args: object,
  ) => Promise<{ id: string; targetInfos: readonly { url: string; targetId: string }[] }>
  const started = context.waitForEvent('serviceworker')
  const { id } = await send('Extensions.loadUnpacked', { path: FOLDER })
  const worker = await started
  const options = await context.newPage()
  await options.goto(`chrome-extension://${id}/options.html`)
  const page = await context.newPage()

  return {
    context,
    page,
    options,
    async save(base: string, token: string) {
      await options.getByLabel('Address').fill(base)
      await options.getByLabel('API token').fill(token)
      await clickButton(options, 'Save')
    },
    /** Goes to a page and clicks the button of the extension; gives what its popup then shows. */
    async clickOn(url: string) {
      await page.bringToFront()
      await page.goto(url)
      const { targetInfos } = await send('Target.getTargets', { filter: [{ type: 'tab' }] })
      const tab = targetInfos.find((target) => target.url === page.url())
      await send('Extensions.triggerAction', { id, targetId: tab?.targetId })
      return popupWhere(options, ({ message }) => !message.startsWith('Looking'))
    },
    /** Types into the fields of the popup and sends its form. */
    async create(fields: Readonly<Record<string, string>>) {
      await options.evaluate(`(${SEND})(${JSON.stringify(fields)})`)
      return popupWhere(options, isAnswered)
    },
    /** Enters `go TEXT` in the address bar. */
    enter: (text: string) =>
      worker.evaluate(
        `chrome.omnibox.onInputEntered.dispatch(${JSON.stringify(text)}, 'currentTab')`,
      ),
  }
}

function isAnswered({ problem, message }: Popup) {
  return problem !== '' || message.startsWith('Created')
}

function popupWhere(options: Page, isSo: (popup: Popup) => boolean) {
  return until(async () => {
    const popup = await options.evaluate<Popup | undefined>(POPUP)
    return popup !== undefined && isSo(popup) ? popup : undefined
  }, 'the popup')
}

t.test('the extension asks for activeTab and storage alone', async (t) => {
  const manifest = JSON.parse(readFileSync(join(FOLDER, 'manifest.json'), 'utf8'))
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  t.match(manifest, { manifest_version: 3, permissions: ['activeTab', 'storage'], version })
  const more = Object.keys(manifest).filter((name) => /permissions|content_scripts/.test(name))
  t.same(more, ['permissions'])
})

t.test('an extension in Chromium', { skip: lacks(deploymentParts.extensions) }, async (t) => {
  const env = { ...(await postgres.env(t)), LINKS_SHORT_KEYWORD: 'go' }
  const links = await startLinks(t, postgres, env)
  const ann = await links.user('ann')
  const site = await startReceiver(t, (_, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<title>Team handbook</title>')
  })
  // A link may not lead back to a host of its own service.
  const elsewhere = `http://site.localhost:${site.port}`
  const wanted = `${elsewhere}/guides/Über-uns.html`
  const extension = await openExtension(t)
  const { options, page } = extension
  const said = options.locator('#message')

  await t.test('settings that do not work are not saved', async (t) => {
    t.match(await extension.clickOn(wanted), { message: /^Enter the address/, isAsking: false })
    await extension.save(links.base, 'gh_wrong')
    await untilText(said, /^Not saved\. The token is not valid/)
    await extension.save('http://127.0.0.1:1', ann.token)
    await untilText(said, /^Not saved\. http:\/\/127\.0\.0\.1:1 could not be reached/)
    await extension.save(elsewhere, ann.token)
    await untilText(
      said,
      /^Not saved\. What answers at http:\/\/site.* is not the API of Gatehouse/,
    )
    await extension.save('ftp://go.test', ann.token)
    await untilText(said, /must begin with http/)
    t.match(await extension.clickOn(wanted), { message: /^Enter the address/ })
    await extension.save(`${links.base}/`, ann.token)
    await untilText(said, 'Saved. Links belong to ann@example.com.')
  })

  await t.test('the popup creates a link for the page that is open', async (t) => {
    const popup = await extension.clickOn(wanted)
    t.match(popup, { message: 'No link leads to this page yet.', isAsking: true })
    t.match(popup, { title: 'Team handbook', names: [] })
    t.match(await extension.create({ slug: 'api' }), { problem: /^Slug is reserved/ })
    const made = await extension.create({ slug: 'Handbook' })
    t.match(made, { message: 'Created go/handbook', isAsking: false })
    t.same(made.names, [`${links.base}/handbook+`])
    const { json } = await ann.api<{ links: readonly Link[] }>('GET', '/links')
    t.match(json.links, [{ slug: 'handbook', url: page.url(), title: 'Team handbook' }])
  })

  await t.test('the popup says which links lead to the page already', async (t) => {
    const popup = await extension.clickOn(wanted)
    t.match(popup, { message: 'Already go/handbook', isAsking: false })
    t.same(popup.names, [`${links.base}/handbook+`])
    t.match(await extension.clickOn(`${elsewhere}/other`), { isAsking: true, names: [] })
    t.match(await extension.clickOn('chrome://version/'), { message: /^Links lead to http/ })
  })

  await t.test('the scope of the token counts', async (t) => {
    const reads = await links.token(ann.email, { scope: 'read' })
    await extension.save(links.base, reads)
    await untilText(said, /^Saved/)
    await extension.clickOn(wanted)
    t.match(await extension.create({ slug: 'second' }), { problem: /scope read/ })
    const creates = await links.token(ann.email, { scope: 'create' })
    await extension.save(links.base, creates)
    await untilText(said, /^Saved/)
    const popup = await extension.clickOn(wanted)
    t.match(popup, { message: /^Your token may not look/, isAsking: true })
    t.match(await extension.create({ slug: 'second' }), { message: 'Created go/second' })
  })

  await t.test('go in the address bar opens a link', async (t) => {
    await makeLink(ann, 'docs', { url: `${elsewhere}/docs`, append_path: true })
    t.equal(await leadsTo(links.base, '/docs/a?x=1'), `${elsewhere}/docs/a?x=1`)
    await page.bringToFront()
    await extension.enter(' docs/a?x=1')
    await page.waitForURL(`${elsewhere}/docs/a?x=1`)
    await extension.enter('team handbook')
    await page.waitForURL(`${links.base}/-/go?q=team%20handbook`)
    t.match(await textOf(page.locator('main')), 'handbook')
  })
})
