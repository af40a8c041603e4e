import { request as ask, type ServerResponse } from 'node:http'
import { t, type Test } from 'tap'
import type { Page } from 'playwright-core'
import { postgres } from '../helpers/backends.ts'
import { metricOf } from '../helpers/deliveries.ts'
import { postForm } from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'
import { identity, insertLinks, linksServer, makeLink } from '../helpers/links.ts'
import { opsServer } from '../helpers/ops.ts'
import { startReceiver } from '../helpers/replays.ts'
import { startTcpProxy } from '../helpers/tcp-proxy.ts'
import { until } from '../helpers/until.ts'
import { accessible, useZone } from './measure.ts'
import {
  browse,
  clickButton,
  clickCopy,
  clickLink,
  rowIds,
  send,
  textOf,
  untilText,
} from './pages.ts'
import { fillOps, fillOrdinary, startSites } from './sites.ts'

// What the pages of all services share: the header, the keys, the palette, copying, times, the way back,
// and what an open page keeps, says and asks for by itself.

const { server, env } = await startSites(t)
const { hooks, ops } = server
const links = linksServer(server, env)
await fillOrdinary(hooks)
await fillOps(opsServer(server, env))
const ann = await links.user('ann')
await makeLink(ann, 'docs')

const origins = [hooks, server.links, ops]
const WIDE = { width: 1600, height: 900 }
/** The page of all tests that need no browser of their own. */
const { page, newPage } = await browse(t, hooks, { origins, viewport: WIDE })

/** The id of the row whose link has the focus. */
function focusedRow(page: Page) {
  return page.evaluate<string | null>(
    `document.activeElement.closest('tr[data-id]')?.dataset.id ?? null`,
  )
}

await t.test('the header leads to the services that run, also without script', async (t) => {
  const { page } = await browse(t, hooks, {
    origins,
    javaScriptEnabled: false,
  })
  await page.goto(hooks)
  const services = page.getByRole('navigation', { name: 'Services' })
  t.same(await services.getByRole('link').allTextContents(), ['Hooks', 'Links', 'Ops'])
  await clickLink(services, 'Ops')
  await page.waitForURL(`${ops}/`)
  t.equal(await services.locator('[aria-current]').textContent(), 'Ops')

  await page.setViewportSize({ width: 390, height: 800 })
  const entry = page.getByRole('navigation', { name: 'Main' }).getByText('Sessions')
  t.notOk(await entry.isVisible(), 'on a narrow screen the navigation is folded')
  await clickButton(page, 'Menu')
  await entry.click()
  await page.waitForURL(`${ops}/sessions`)
})

await t.test('a stranger learns no address of another service', async (t) => {
  const headers = { accept: 'text/html', 'x-forwarded-for': '192.0.2.7' }
  const text = await (await fetch(`${server.links}/nothing-here`, { headers })).text()
  t.notMatch(text, hooks)
  t.notMatch(text, ops)
})

await t.test('keys: rows, search, pages, and what the keys are', async (t) => {
  await page.goto(`${hooks}/log`)
  const ids = await rowIds(page)
  await page.keyboard.press('j')
  await page.keyboard.press('j')
  t.equal(await focusedRow(page), String(ids[1]))
  await page.keyboard.press('k')
  t.equal(await focusedRow(page), String(ids[0]))
  await page.keyboard.press('/')
  await page.keyboard.type('j?gl')
  t.equal(await page.evaluate(`document.activeElement.value`), 'j?gl', 'typed, not obeyed')
  await page.locator('h1').click()

  await page.keyboard.press('?')
  const keys = page.getByRole('dialog', { name: 'Keyboard shortcuts' })
  await untilText(keys.locator('dd').first(), 'Search')
  t.match(await textOf(keys), 'Ctrl K')
  const one = keys.getByRole('checkbox', { name: /^Keys of one letter/ })
  await one.uncheck()
  await page.keyboard.press('Escape')
  await page.reload()
  await page.keyboard.press('j')
  await page.keyboard.press('?')
  t.equal(await focusedRow(page), null, 'turned off, also after a reload')
  t.equal(await keys.count(), 0)
  await clickButton(page, 'Keyboard shortcuts')
  await one.check()
  await page.keyboard.press('Escape')
  // The second key counts within 1.5 s of the first one.
  await until(async () => {
    await page.keyboard.type('gp')
    await page.waitForURL(`${hooks}/providers`, { timeout: 5_000 })
    return true
  }, 'the page of providers')
})

await t.test('the status page has no palette, and its keys name none', async (t) => {
  await postForm(ops, '/config/status', { services: 'idle' })
  await page.goto(`${ops}/status`)
  await clickButton(page, 'Keyboard shortcuts')
  const keys = page.getByRole('dialog', { name: 'Keyboard shortcuts' })
  t.match(await textOf(keys), 'These keys')
  t.notMatch(await textOf(keys), 'Ctrl K')
})

await t.test('copying works without https, and says when it failed', async (t) => {
  const page = await newPage()
  // As on a plain http site: no clipboard.
  await page.addInitScript(`
    delete Navigator.prototype.clipboard
    document.execCommand = () => { window.copied = getSelection().toString(); return true }`)
  await page.goto(`${hooks}/log/1?tab=curl`)
  const copy = page.getByRole('button', { name: /^Cop(y|ied) curl command/ })
  const command = await page.locator('#curl-command').textContent()
  await clickCopy(copy, page.getByRole('button', { name: 'Copied curl command' }))
  t.equal(await page.evaluate(`window.copied`), command?.trim())
  await page.evaluate(`document.execCommand = () => false`)
  await copy.click()
  await untilText(page.locator('#problem'), /^Not copied: .* press Ctrl\+C/)
})

/** Opens the palette and types, until the chosen option is the wanted one. */
async function find(page: Page, text: string, wanted: RegExp) {
  if (!(await page.locator('#palette').isVisible())) await page.keyboard.press('Control+k')
  await page.locator('#palette input').fill(text)
  await untilText(page.locator('#palette-list [aria-selected="true"]'), wanted)
}

// The ten tasks of test/browser/ten-tasks.test.ts find pages, checks, links and people by it.
await t.test('the palette by keyboard alone', async (t) => {
  await t.test('a page, a provider, an event by its id', async (t) => {
    await page.goto(hooks)
    await find(page, '', /^Dashboard/)
    await accessible(t, page)
    const parts = await page.locator('#palette-list :is(h2, a)').all()
    const boxes = await Promise.all(parts.map((part) => part.boundingBox()))
    const ends = boxes.map((box) => (box === null ? 0 : box.y + box.height))
    t.ok(
      boxes.every((box, at) => (box?.y ?? 0) >= (ends[at - 1] ?? 0)),
      'nothing is half covered',
    )
    await page.keyboard.press('ArrowDown')
    t.equal(await textOf(page.locator('#palette-list [aria-selected="true"]')), 'Log')
    const active = await page.getAttribute('#palette input', 'aria-activedescendant')
    t.equal(await textOf(page.locator(`#${active}`)), 'Log')
    await page.keyboard.press('Escape')
    await page.locator('#palette').waitFor({ state: 'hidden' })
    await find(page, 'door', /^generic:door-bell$/)
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/providers\?open=generic%3Adoor-bell$/)
    await find(page, '#1', /^Event 1: push/)
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/log\/1$/)
    await page.keyboard.press('Control+k')
    await page.locator('#palette input').fill('nothing-has-this-name')
    await untilText(page.locator('#palette [role="status"]'), 'Nothing found.')
  })

  await t.test('links: only those that the visitor may see', async (t) => {
    const bob = await links.user('bob2')
    await makeLink(bob, 'secure-plan', { visibility: 'secure' })
    const { text } = await ann.get('/-/palette?q=secure-plan')
    t.notMatch(text, /href="[^"]*secure-plan/)
    t.match(text, 'Nothing found.')
    const stranger = await fetch(`${links.base}/-/palette?q=docs`)
    t.equal(stranger.status, 403)
  })
})

await t.test('what was done is said where it was done, and once', async (t) => {
  const done = page.locator('#done')
  await page.goto(`${ops}/mutes`)
  await page.fill('#mute-form-for', '1h')
  await page.fill('#mute-form-reason', 'Moving house')
  await page.keyboard.press('Enter')
  await untilText(done, 'Created the mute.')
  await until(() => new URL(page.url()).search === '', 'the address not to keep it')
  await page.reload()
  t.equal(await done.textContent(), '')
})

const FAILURES = [
  /^Failed to load resource/,
  /^htmx: htmx:/,
  /Content Security Policy/,
  /Unsafe attempt/,
  /EventSource/,
]

/** Requests of htmx for the path of the page. */
function isPoll(path: string) {
  return (url: URL) => url.pathname === path
}

/** Counts in the page how often its region for problems was changed. */
function countProblems(page: Page) {
  return page.evaluate(`
    window.problems = []
    window.watch?.disconnect()
    window.watch = new MutationObserver(() => window.problems.push(problem.textContent))
    watch.observe(problem, { childList: true })`)
}

function problems(page: Page) {
  return page.evaluate<readonly string[]>('window.problems')
}

await t.test('a failed poll is said once, until one succeeds', async (t) => {
  const { page } = await browse(t, ops, { expectedErrors: FAILURES })
  await page.goto(ops)
  await countProblems(page)
  let polls = 0
  await page.route(isPoll('/'), async (route) => {
    polls += 1
    if (polls < 4) await route.fulfill({ status: 503, body: 'busy', contentType: 'text/plain' })
    else await route.continue()
  })
  await untilText(page.locator('#problem'), 'The server answered 503.')
  await until(() => polls >= 4, 'polls')
  await untilText(page.locator('#problem'), '')
  t.same(await problems(page), ['The server answered 503.', ''])

  for (const body of ['<h1>busy</h1>', 'null', '{"error":{"message":"busy"}}']) {
    await page.unrouteAll()
    await page.route(isPoll('/'), (route) =>
      route.fulfill({ status: 502, body, contentType: 'application/json' }),
    )
    await untilText(page.locator('#problem'), 'The server answered 502.')
    await page.unrouteAll()
    await untilText(page.locator('#problem'), '')
  }

  await countProblems(page)
  await page.route(isPoll('/'), async (route) => {
    polls += 1
    await route.abort()
  })
  await untilText(page.locator('#problem'), 'Gatehouse could not be reached.')
  const seen = polls
  await until(() => polls >= seen + 4, 'further polls')
  t.same(await problems(page), ['Gatehouse could not be reached.'])
  await page.unrouteAll()
  await untilText(page.locator('#problem'), '')
})

/** A proxy that lets all through until `signOut`; then its login is at this place. */
async function loginProxy(t: Test, target: string, place: 'same origin' | 'another origin') {
  let isSignedIn = true
  const answers: ServerResponse[] = []
  const askToSignIn = (response: ServerResponse) =>
    void response.setHeader('content-type', 'text/html').end('<h1>Please sign in</h1>')
  const elsewhere = await startReceiver(t, (_, response) => askToSignIn(response))
  const origin = place === 'same origin' ? '' : elsewhere.url
  const proxy = await startReceiver(t, ({ method, headers, path }, response) => {
    if (!isSignedIn && path === '/sign-in') return askToSignIn(response)
    if (!isSignedIn) return void response.writeHead(302, { location: `${origin}/sign-in` }).end()
    answers.push(response)
    const forwarded = ask(target + path, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    forwarded.on('error', () => response.destroy()).end()
  })
  const signOut = () => {
    isSignedIn = false
    for (const answer of answers) answer.destroy()
  }
  return { base: proxy.url, login: elsewhere.url, signOut }
}

await t.test('an expired sign-in is said with the way to sign in', async (t) => {
  for (const [target, path, place] of [
    [ops, '/', 'same origin'],
    [hooks, '/log', 'another origin'],
  ] as const) {
    const { base, login, signOut } = await loginProxy(t, target, place)
    const { page } = await browse(t, base, { origins: [base, login], expectedErrors: FAILURES })
    await page.goto(base + path)
    signOut()
    await untilText(page.locator('#problem'), 'You are no longer signed in. Sign in again')
    t.notOk(await page.getByText('Please sign in').count(), 'the page stays')
    t.equal(await page.locator('#now, #log-results').count(), 1)
    await page.keyboard.press('Control+k')
    await untilText(page.locator('#palette > .muted'), 'The search could not be reached.')
    await page.keyboard.press('Escape')
    await clickLink(page, 'Sign in again')
    await untilText(page.locator('h1'), 'Please sign in')
  }
})

await t.test('a stream that breaks shows on the log, too', async (t) => {
  const before = await streamClients()
  const proxy = await startTcpProxy(t, hooks)
  const base = new URL(proxy.through(hooks)).origin
  const { page } = await browse(t, base, { expectedErrors: FAILURES })
  await page.goto(`${base}/log`)
  await until(async () => (await streamClients()) > before, 'the stream')
  proxy.refuse()
  proxy.reset()
  await untilText(page.locator('#problem'), /^New entries do not arrive/)
  const { id } = await send(hooks, 'generic/door-bell')
  await proxy.pass()
  await page.locator(`tr[data-id="${id}"]`).waitFor()
  await untilText(page.locator('#problem'), '')
})

/** How many streams of events the server serves. */
async function streamClients() {
  const { text } = await request(`${hooks}/metrics`)
  return metricOf(text, 'gatehouse_hooks_stream_clients') ?? 0
}

/** As if somebody had turned to another tab, and back. */
function show(page: Page, isShown: boolean) {
  return page.evaluate(`
    Object.defineProperty(document, 'hidden', { value: ${!isShown}, configurable: true })
    document.dispatchEvent(new Event('visibilitychange'))`)
}

await t.test('ten windows share a stream, and a hidden one needs none', async (t) => {
  const others = await streamClients()
  const { page: first, newPage } = await browse(t, hooks)
  const pages = [first]
  while (pages.length < 10) pages.push(await newPage())
  for (const [at, page] of pages.entries()) await page.goto(hooks + (at % 2 === 0 ? '/' : '/log'))
  const hasRow = (id: number) => (page: Page) => page.locator(`tr[data-id="${id}"]`).waitFor()

  const { id: live } = await send(hooks, 'generic/door-bell')
  await Promise.all(pages.map(hasRow(live)))
  await until(async () => (await streamClients()) === others + 1, 'one stream')

  for (const page of pages) await show(page, false)
  await until(async () => (await streamClients()) === others, 'no stream')
  const { id: missed } = await send(hooks, 'generic/door-bell')
  for (const page of pages) await show(page, true)
  await Promise.all(pages.map(hasRow(missed)))
  for (const page of pages) t.equal(await textOf(page.locator('#problem')), '')
  await until(async () => (await streamClients()) === others + 1, 'one stream')
})

await t.test('what was typed stays where another form renews the page', async (t) => {
  await t.test('a new memory, and a filter', async (t) => {
    await page.goto(`${ops}/memories`)
    await page.locator('#new-memory-summary').click()
    await page.locator('#new-observation').fill('slow on Mondays')
    await page.locator('#new-memory [name=active]').setChecked(false)
    await page.locator('#filter-category').fill('timing')
    await page.keyboard.press('Enter')
    await page.waitForURL(/category=timing/)
    await page.locator('#memories .count').getByText('1 memory').waitFor()
    t.ok(await page.locator('#new-observation').isVisible())
    t.equal(await page.locator('#new-observation').inputValue(), 'slow on Mondays')
    t.notOk(await page.locator('#new-memory [name=active]').isChecked())
    await page.locator('#new-category').fill('timing')
    await clickButton(page, 'Add memory')
    await page.getByText('slow on Mondays').waitFor()
    t.equal(await page.locator('#new-observation').inputValue(), '', 'what was sent is gone')
  })

  await t.test('but not in the same form of another event', async (t) => {
    const events = [await send(hooks, 'generic/door-bell'), await send(hooks, 'generic/door-bell')]
    await page.goto(`${hooks}/log`)
    await page.locator(`tr[data-id="${events[0]?.id}"] a`).first().click()
    const first = page.locator(`#log-open[data-open="${events[0]?.id}"]`)
    await first.locator('#replay-menu > summary').click()
    await first.locator('#target_url').fill('https://9.9.9.9/a')
    await page.keyboard.press('Escape')
    await page.locator(`tr[data-id="${events[1]?.id}"] a`).first().click()
    const next = page.locator(`#log-open[data-open="${events[1]?.id}"] #target_url`)
    t.equal(await next.inputValue(), '')
  })
})

await t.test('filters that were set since stay in the address', async (t) => {
  await t.test('with a common time', async () => {
    await page.goto(`${hooks}/log`)
    await page.locator('#filter-q').fill('type:ring')
    await page.keyboard.press('Enter')
    await page.waitForURL(/type%3Aring/)
    await page.locator('#filter-when').selectOption('1h')
    await page.waitForURL(/type%3Aring.*1h/)
  })

  await t.test('with an event that was on its way', async () => {
    await page.goto(`${hooks}/log`)
    const { promise: isFiltered, resolve: letGo } = Promise.withResolvers<undefined>()
    await page.route(/\/log\/\d+$/, async (route) => {
      await isFiltered
      await route.continue()
    })
    await page.locator('#log-rows a').first().click()
    await page.locator('#filter-q').fill('type:ring')
    await page.keyboard.press('Enter')
    await page.waitForURL(/type%3Aring/)
    letGo(undefined)
    await page.waitForURL(/type%3Aring.*open=\d+/)
  })
})

await t.test('a page in the background asks for nothing until it is shown', async (t) => {
  const { page } = await browse(t, ops)
  await page.clock.install()
  await page.goto(ops)
  const asked: string[] = []
  page.on('request', (request) => asked.push(request.url()))
  await page.clock.runFor(3_000)
  await until(() => asked.length > 0, 'a poll of the page that is shown')
  await show(page, false)
  await page.waitForLoadState('networkidle')
  asked.length = 0
  await page.clock.runFor(30_000)
  t.same(asked, [])
  await show(page, true)
  await until(() => asked.length > 0, 'a poll at once')
})

/** What the page says of instants. */
async function told(page: Page, instants: readonly string[]) {
  const tags = instants.map((at) => `<li><time datetime="${at}"></time></li>`).join('')
  await page.evaluate(`
    document.querySelector('main').innerHTML = ${JSON.stringify(tags)}
    import('/assets/times.js').then(({ showTimes }) => showTimes(document))`)
  await until(async () => (await page.locator('time[title]').count()) === instants.length, 'times')
  return page.locator('time').allInnerTexts()
}

await t.test('days are those of the calendar, in the language of the page', async (t) => {
  const { page } = await browse(t, ops, { locale: 'de-DE' })
  await useZone(page)
  // 23:30 in the zone of the reader.
  await page.clock.setFixedTime('2026-05-04T18:00:00Z')
  await page.goto(`${ops}/config`)
  const texts = await told(page, [
    '2026-05-04T17:59:40Z',
    '2026-05-04T17:30:00Z',
    '2026-05-03T19:00:00Z',
    '2026-05-03T18:20:00Z',
    '2026-05-02T18:20:00Z',
    '2026-05-05T18:31:00Z',
    '2026-01-01T00:00:00Z',
  ])
  t.same(texts, [
    'just now',
    '30 minutes ago',
    '23 hours ago',
    'yesterday 23:50',
    '2 days ago',
    'in 2 days',
    '1 Jan 2026, 05:30:00 GMT+5:30',
  ])
})

await t.test('what is chosen shows where the system sets the colours', async (t) => {
  await page.emulateMedia({ forcedColors: 'active' })
  t.teardown(() => page.emulateMedia({ forcedColors: null }))
  await page.goto(`${hooks}/log`)
  await page.locator('#log-pause').click()
  await page.keyboard.press('Control+k')
  for (const chosen of [
    '#navigation [aria-current]',
    '.tabs [aria-current]',
    '#log-pause',
    '#palette-list [aria-selected="true"]',
  ]) {
    await page.locator(chosen).waitFor()
    const style = `getComputedStyle(document.querySelector(${JSON.stringify(chosen)})).outlineStyle`
    t.equal(await page.evaluate(style), 'solid', chosen)
  }
})

await t.test('tables of named rows keep their roles on a phone', async (t) => {
  await page.setViewportSize({ width: 390, height: 800 })
  await page.goto(`${hooks}/settings`)
  const table = page.locator('table.pairs').first()
  for (const [part, role] of [
    ['tbody', 'rowgroup'],
    ['tr', 'row'],
    ['thead th', 'columnheader'],
    ['tbody th', 'rowheader'],
    ['td', 'cell'],
  ] as const) {
    t.equal(await table.locator(part).first().getAttribute('role'), role)
  }
  t.equal(await table.getAttribute('role'), 'table')
})

await t.test('back shows the place that was left', async () => {
  const ivy = await links.user('ivy')
  const own = Array.from({ length: 130 }, (_, at) => {
    return { slug: `ivy-${at + 100}`, owners: [ivy.email] }
  })
  await insertLinks(links, postgres, own)
  await page.setExtraHTTPHeaders(identity(ivy.email))
  const scrolled = () => page.evaluate<number>('scrollY')
  // After more rows were shown, by any link.
  await page.goto(`${links.base}/-/`)
  const count = await page.locator('tbody tr').count()
  await clickLink(page, 'More links')
  await until(async () => (await page.locator('tbody tr').count()) > count, 'more rows')
  await page.mouse.wheel(0, 500)
  await until(async () => (await scrolled()) > 250, 'the page to scroll')
  await until(() => page.evaluate<boolean>('history.state.y === scrollY'), 'a place')
  const y = await scrolled()
  await page.evaluate(`document.querySelector('#navigation a[href$="/new"]').click()`)
  await page.waitForURL(/\/new$/)
  await page.goBack()
  await until(async () => Math.abs((await scrolled()) - y) < 40, `the place ${y}`)
})

await t.test('times are told relative to now, and kept so', async (t) => {
  const { page } = await browse(t, hooks)
  await page.clock.install({ time: Date.now() + 3 * 60_000 })
  await page.goto(`${hooks}/log`)
  const time = page.locator('tbody time').first()
  await untilText(time, /^\d minutes ago$/)
  t.match(await time.getAttribute('title'), / · \d{4}-.*Z$/)
  await page.clock.runFor(2 * 3_600_000)
  await untilText(time, /^2 hours ago$/)
})
