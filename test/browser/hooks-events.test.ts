import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { t } from 'tap'
import { postgres } from '../helpers/backends.ts'
import {
  addProvider,
  deliver,
  eventIds,
  payloadOf,
  post,
  shown,
  startHooks,
} from '../helpers/hooks.ts'
import { onPath } from '../runner/system-parts.ts'
import { request } from '../helpers/http.ts'
import { until } from '../helpers/until.ts'
import {
  browse,
  clickButton,
  clickCopy,
  clickLink,
  copiedOn,
  focusedId,
  hasMark,
  leaveMark,
  loadFailure,
  rememberCopies,
  rowIds,
  send,
  textOf,
  tile,
  untilText,
} from './pages.ts'

/** One service for all tests of this file; the first of them finds it empty. */
const { base, env } = await startHooks(t, postgres)
// First of all: the dashboard reads its figures at most once a second, and a later tile may be missing.
for (const name of ['live', 'many', 'proxied']) await addProvider(base, name, { open: true })

const shell = promisify(execFile)

/** Characters that a shell, curl or a careless page would take for something of theirs. */
const QUOTES = `{"name":"it's \\"quoted\\" $HOME \`id\` \\\\ @file %s é 🦄","n":12345678901234567890}\n`
/** A page makes one line end of the first two; a terminal takes the escape for the end of a paste. */
const CONTROLS = 'a=1\r\nb=2\rc=3\u001B[201~\n'
const LONG = JSON.stringify({ text: 'é'.repeat(20_000) })
const BINARY = Buffer.from([0x00, 0xff, 0xfe, 0x0a, 0x0d, 0x80, 0x27])

/** A row leads to the event's page here, and on wider screens beside the list. */
const LAPTOP = { width: 1024, height: 768 }
const WIDE = { width: 1280, height: 800 }
const { page, context } = await browse(t, base, {
  viewport: LAPTOP,
  expectedErrors: [loadFailure(400)],
})
await rememberCopies(context)

async function copied() {
  await clickCopy(
    page.locator('[data-copy="curl-command"]'),
    page.getByRole('button', { name: 'Copied curl command' }),
  )
  return copiedOn(page)
}

function connection() {
  return textOf(page.locator('.connection'))
}

/** Path and query of the address bar. */
function address() {
  const { pathname, search } = new URL(page.url())
  return pathname + search
}

async function untilAddress(wanted: string) {
  await until(() => address() === wanted, `the address ${wanted}`)
}

/** Goes back, and waits for the page to be loaded anew: until then its script does not listen. */
async function backToAnother() {
  await leaveMark(page)
  await page.goBack()
  await until(async () => !(await hasMark(page)), 'the page anew')
  await page.waitForLoadState()
}

async function untilRows(count: number) {
  return until(async () => {
    const ids = await rowIds(page)
    return ids.length === count && ids
  }, `${count} rows`)
}

const SHOP = 12
const ZONE = encodeURIComponent(Intl.DateTimeFormat().resolvedOptions().timeZone)

await t.test('the dashboard follows events without reload', async (t) => {
  await page.goto(`${base}/`)
  t.equal(await connection(), 'idle')
  t.ok(await page.locator('#start-here').isVisible(), 'an empty dashboard says what to do')
  t.equal(await page.locator('#recent').count(), 0)
  t.equal(await textOf(tile(page, 'generic:live', '.when')), 'never')
  await leaveMark(page)

  const ack = await send(base, 'generic/live', '{"total": 1}', { 'X-Event-Type': 'order.paid' })
  const row = page.locator(`#recent-rows > tr[data-id="${ack.id}"]`)
  await row.waitFor()
  // The status comes behind the event.
  await untilText(page.locator('.connection'), 'receiving')
  t.equal(await page.locator('#start-here').count(), 0, 'it becomes the real one by itself')
  await untilText(tile(page, 'generic:live', '.counts'), '1 received')
  const last = tile(page, 'generic:live', 'time')

  await t.test('counts and times stand beside the right provider', async (t) => {
    const second = await send(base, 'generic/live', '{}')
    const signed = await deliver(base, 'code_host', '{"zen":1}', { 'X-CodeHost-Event': 'push' })
    const { id, received_at } = signed.json<{ id: number; received_at: string }>()
    await untilText(tile(page, 'generic:live', '.counts'), '2 received')
    await untilText(tile(page, 'code_host', '.counts'), '1 received')
    t.equal(await textOf(tile(page, 'payments', '.counts')), '0 received')
    t.equal(await textOf(tile(page, 'payments', '.when')), 'never')
    t.equal(await last.getAttribute('datetime'), second.received_at)
    const time = tile(page, 'code_host', 'time')
    t.equal(await time.getAttribute('datetime'), received_at)
    t.same(await untilRows(3), [id, second.id, ack.id])
    t.equal(await textOf(page.locator(`tr[data-id="${id}"] .verify`)), 'verified')

    // A page knows how far the stream was before it read its rows: some of them may be newer.
    await page.locator('#recent').evaluate((list) => list.setAttribute('data-position', '0'))
    const third = await send(base, 'generic/live', '{}')
    t.same(await untilRows(4), [third.id, id, second.id, ack.id], 'each row once')
  })

  await t.test('the live row is the one that a reload shows', async (t) => {
    t.ok(await hasMark(page), 'without a full load')
    const rows = page.locator('#recent-rows > tr')
    const before = await rows.allInnerTexts()
    await page.reload()
    t.same(await rows.allInnerTexts(), before)
    await row.getByRole('link').click()
    t.equal(new URL(page.url()).pathname, `/log/${ack.id}`)
  })
})
await t.test('the log in a browser', async (t) => {
  await addProvider(base, 'shop', { open: true })
  const shop: number[] = []
  for (let count = 0; count < SHOP; count++) {
    const type = count % 3 === 0 ? 'order.paid' : 'order.open'
    shop.unshift((await send(base, 'generic/shop', '{}', { 'X-Event-Type': type })).id)
  }
  await deliver(base, 'code_host', '{"a":1}', { 'X-CodeHost-Event': 'push' })
  const all = await eventIds(base)
  await page.goto(`${base}/log`)
  t.same(await rowIds(page), all)
  const provider = page.getByLabel('Provider')
  const words = page.getByRole('combobox', { name: 'Filters' })

  await t.test('filters narrow the list and stand in the address', async (t) => {
    await leaveMark(page)
    await provider.selectOption('generic:shop')
    await untilAddress('/log?provider=generic%3Ashop')
    // Applied without Enter. In one go: after a pause a part of it would be in the history.
    await words.fill('type:order.paid')
    await untilAddress('/log?q=type%3Aorder.paid&provider=generic%3Ashop')
    const paid = shop.filter((_, at) => at % 3 === 2)
    t.same(await untilRows(4), paid)
    await untilText(page.locator('.filter-line [role="status"]'), '4 events')
    await page.getByLabel('Time').selectOption('Today')
    const filters = 'q=type%3Aorder.paid&provider=generic%3Ashop'
    await untilAddress(`/log?${filters}&when=today&zone=${ZONE}`)
    await untilRows(4)
    t.ok(await hasMark(page), 'without a full load')
  })

  await t.test('back gives the earlier page whole, its fields too', async (t) => {
    await backToAnother()
    await untilAddress('/log?q=type%3Aorder.paid&provider=generic%3Ashop')
    await untilRows(4)
    t.equal(await page.getByLabel('Time').inputValue(), '')
    await backToAnother()
    await untilAddress('/log?provider=generic%3Ashop')
    t.same(await untilRows(SHOP), shop)
    t.equal(await words.inputValue(), '')
    t.equal(await provider.inputValue(), 'generic:shop')
    await page.locator('#log-rows a').first().click()
    await page.waitForURL(`${base}/log/${shop[0]}`)
    t.equal(await page.getByRole('heading', { level: 1 }).count(), 1)
    await page.goBack()
    await untilAddress('/log?provider=generic%3Ashop')
    t.same(await untilRows(SHOP), shop, 'the page, not the fragment of the same address')
    t.ok(await page.locator('header nav').isVisible())
    await clickLink(page, 'Clear')
    await untilAddress('/log')
    t.same(await untilRows(all.length), all)
    t.equal(await provider.inputValue(), '')
  })

  await t.test('older entries are appended, each once', async (t) => {
    await page.goto(`${base}/log?limit=5&provider=generic%3Ashop`)
    const link = page.locator('#log-rows-more-link')
    t.same(await rowIds(page), shop.slice(0, 5))
    await link.focus()
    await page.keyboard.press('Enter')
    t.same(await untilRows(10), shop.slice(0, 10))
    t.equal(await focusedId(page), 'log-rows-more-link', 'the focus stays for the next press')
    // An event that comes meanwhile shifts no page.
    await send(base, 'generic/shop')
    await page.keyboard.press('Enter')
    t.same(await untilRows(SHOP), shop)
    await untilText(link, 'No older entries.')
    t.equal(await focusedId(page), 'log-rows-more-link')
    t.equal(await page.locator('time:not([title])').count(), 0, 'local times in new rows as well')
  })

  await t.test('new events come on top by themselves, or are told', async (t) => {
    const paid = async () =>
      (await send(base, 'generic/shop', '{}', { 'X-Event-Type': 'order.paid' })).id
    const news = page.locator('#log-news')
    await page.goto(`${base}/log?provider=generic%3Ashop&event_type=order.paid`)
    let rows = await rowIds(page)
    await send(base, 'generic/shop', '{}', { 'X-Event-Type': 'order.open' })
    rows = [await paid(), ...rows]
    t.same(await untilRows(rows.length), rows, 'the filters of the page decide')
    t.match(await page.locator('#log-rows > tr').first().getAttribute('class'), 'fresh')
    t.equal(await textOf(news), '')

    await clickButton(page, 'Pause')
    const first = await paid()
    await untilText(news, '1 new event – show')
    const second = await paid()
    await untilText(news, '2 new events – show')
    t.same(await rowIds(page), rows)
    // Its state alone changes: a label that changes, too, would be read as "Resume, pressed".
    await page.getByRole('button', { name: 'Pause', pressed: true }).click()
    await page.getByRole('button', { name: 'Pause', pressed: false }).waitFor()
    rows = [second, first, ...rows]
    t.same(await untilRows(rows.length), rows)
    await untilText(news, '')

    // A row with the focus must not move away from its reader.
    await page.keyboard.press('j')
    const third = await paid()
    await untilText(news, '1 new event – show')
    t.same(await rowIds(page), rows)
    await news.getByRole('link').click()
    rows = [third, ...rows]
    t.same(await untilRows(rows.length), rows)
    await untilText(news, '')

    // What came before the stream was open comes as well, but nothing twice: rows may be newer than the position.
    let before = 0
    await page.route(
      '**/log?*',
      async (route) => {
        const response = await route.fetch()
        const body = (await response.text()).replace(/data-last="\d+"/, `data-last="${third - 1}"`)
        before = await paid()
        await route.fulfill({ response, body })
      },
      { times: 1 },
    )
    await page.reload()
    await until(async () => (await rowIds(page))[0] === before && before > 0, 'its row')
    t.same(await rowIds(page), [before, ...rows])
  })

  await t.test('a search of payloads is live, an empty list as well', async (t) => {
    await page.goto(`${base}/log?text=needle`)
    await untilText(page.locator('#log-results .empty strong'), 'No event matches these filters.')
    await send(base, 'generic/shop', '{"in":"the hay"}')
    const { id } = await send(base, 'generic/shop', '{"a":"needle"}')
    t.same(await untilRows(1), [id])
    t.equal(await textOf(page.locator('#log-rows .preview')), '{"a":"needle"}')
    t.equal(await textOf(page.locator('#log-rows mark')), 'needle')
    const next = await send(base, 'generic/shop', '{"another":"needle"}')
    t.same(await untilRows(2), [next.id, id])
  })

  await t.test('more at once than a page has: the list begins anew', async (t) => {
    await page.goto(`${base}/log?limit=3&provider=generic%3Ashop`)
    // The rows are asked for once a second: the others come meanwhile.
    const sent: number[] = []
    for (let count = 0; count < 9; count++) sent.unshift((await send(base, 'generic/shop')).id)
    await page.locator(`tr[data-id="${sent[0]}"]`).waitFor()
    const rows = await rowIds(page)
    t.same(rows, sent.slice(0, rows.length), 'none is left out')
    await page.locator('#log-rows-more-link').click()
    const more = await untilRows(rows.length + 3)
    t.same(new Set(more).size, more.length, 'none is there twice')
  })

  await t.test('nothing found, and a filter that is refused', async (t) => {
    await words.fill('type:never')
    await untilText(page.locator('#log-results .empty strong'), 'No event matches these filters.')
    await words.fill('type:never since:yesterday')
    await untilText(page.getByRole('alert'), /^since must be an event id or a time/)
    t.equal(await words.inputValue(), 'type:never since:yesterday')
  })
})

await t.test('a range drawn over the times becomes a filter', async (t) => {
  await postgres.query(
    env,
    `update hooks.events set received_at = received_at - (1000 - id) * interval '1 minute'`,
  )
  await page.setViewportSize(WIDE)
  await page.goto(`${base}/log?provider=generic%3Ashop&limit=200`)
  const before = await rowIds(page)
  const box = await page.locator('#log-times').boundingBox()
  if (box === null) throw new Error('there are no times')
  const y = box.y + box.height / 2
  const words = page.getByRole('combobox', { name: 'Filters' })
  await page.mouse.click(box.x + 5, y)
  await page.locator('h1').hover()
  await page.mouse.down()
  await page.mouse.move(box.x + box.width - 5, y)
  await page.mouse.up()
  t.equal(await words.inputValue(), '', 'neither a click nor what ends there draws a range')
  await page.mouse.move(box.x + box.width / 2, y)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width + 5, y, { steps: 5 })
  await page.mouse.up()
  await until(async () => /^since:\S+Z until:\S+Z$/.test(await words.inputValue()), 'the words')
  const after = await until(async () => {
    const ids = await rowIds(page)
    return ids.length < before.length && ids
  }, 'fewer rows')
  t.same(after, before.slice(0, after.length), 'the newest')
})

await t.test('an event beside the log on a wide screen', async (t) => {
  const type = { 'X-Event-Type': 'beside' }
  const sent: number[] = []
  for (let count = 0; count < 6; count++) {
    sent.unshift((await send(base, 'generic/shop', `{"count":${count}}`, type)).id)
  }
  await page.setViewportSize(WIDE)
  const list = '/log?event_type=beside&limit=3'
  const box = page.locator('#log-open')
  const opened = async (id: number | undefined) => {
    await untilAddress(`${list}&open=${id}`)
    await box.locator(`a[href="/log/${id}"]`).first().waitFor()
    t.equal(await page.locator('#log-rows [aria-current]').getAttribute('href'), `/log/${id}`)
  }

  await t.test('by mouse and by keys, without a full load', async (t) => {
    await page.goto(base + list)
    await leaveMark(page)
    t.notOk(await page.locator('.beside').isVisible(), 'the list has all of the width')
    const steps = () => page.evaluate<number>('history.length')
    const before = await steps()
    await page.keyboard.press('Escape')
    t.equal(await steps(), before, 'Escape closes nothing then')
    // All of the row is its link.
    await page.locator(`tr[data-id="${sent[1]}"]`).click({ position: { x: 4, y: 4 } })
    await opened(sent[1])
    t.match(await textOf(box), /\bcount\b.*\b4\b/)
    await page.keyboard.press('j')
    await opened(sent[2])
    await page.keyboard.press('k')
    await opened(sent[1])
    await page.keyboard.press('Escape')
    await untilAddress(list)
    t.equal(await box.locator('*').count(), 0)
    await page.keyboard.press('j')
    await opened(sent[2])
    await page.keyboard.press('r')
    t.ok(await page.locator('#replay-menu :focus').count(), 'a replay wants one key more')
    await page.keyboard.press('Escape')
    await page.keyboard.press('c')
    await until(async () => (await copiedOn(page)) === '{"count":3}', 'the payload to be copied')
    t.ok(await hasMark(page))
  })

  await t.test('new rows are told while an event is open', async (t) => {
    const { id } = await send(base, 'generic/shop', '{}', type)
    await untilText(page.locator('#log-news'), '1 new event – show')
    t.same(await rowIds(page), sent.slice(0, 3))
    await page.locator('#log-news a').click()
    await page.locator(`tr[data-id="${id}"]`).waitFor()
    sent.unshift(id)
    t.same(await rowIds(page), sent.slice(0, 3))
    await page.locator('#log-rows [aria-current]').waitFor({ state: 'detached' })
    await untilAddress(`${list}&open=${sent[3]}`)
  })
})

await t.test('the page of an event', async (t) => {
  await page.setViewportSize(LAPTOP)
  const text = await send(base, 'generic/shop', QUOTES, {
    'X-Event-Type': "it's paid",
    'X-Note': `$(id) 'single' "double"`,
  })
  const binary = await send(base, 'generic/shop', BINARY, {
    'Content-Type': 'application/octet-stream',
  })
  const controls = await send(base, 'generic/shop', CONTROLS, { 'Content-Type': 'text/plain' })
  const long = await send(base, 'generic/shop', LONG)
  const skip = onPath('curl') === undefined ? 'curl is not installed' : false
  for (const [kind, { id }, bytes] of [
    ['text', text, Buffer.from(QUOTES)],
    ['control characters', controls, Buffer.from(CONTROLS)],
    ['long text', long, Buffer.from(LONG)],
    ['binary', binary, BINARY],
  ] as const) {
    await t.test(`the copied command sends the same bytes: ${kind}`, { skip }, async (t) => {
      await page.goto(`${base}/log/${id}?tab=curl`)
      const command = await copied()
      const { stdout } = await shell('sh', ['-c', command], { env: { PATH: process.env['PATH'] } })
      const ack: { id: number } = JSON.parse(stdout)
      t.not(ack.id, id, 'a new event')
      t.same(await payloadOf(base, ack.id), bytes)
      const [before, after] = [await shown(base, id), await shown(base, ack.id)]
      for (const name of ['Event type', 'Content type']) {
        t.equal(after.facts[name], before.facts[name], name)
      }
      t.equal(after.headers['x-note'], before.headers['x-note'])
    })
  }
})

await t.test('a home of many providers', async (t) => {
  for (let n = 1; n < 16; n++) await addProvider(base, `source-${n}`, { open: true })
  // The page reads its figures at most once a second.
  await until(async () => (await request(`${base}/`)).text.includes('source-15'), 'all of them')
  await page.setViewportSize(WIDE)
  await page.goto(`${base}/`)
  const rows = page.locator('#provider-rows > tr')
  const count = await rows.count()
  t.ok(count > 20, `${count} providers`)

  await t.test('the search narrows the rows, and the key leads to it', async (t) => {
    await page.keyboard.press('/')
    t.equal(await focusedId(page), 'provider-rows-find')
    await page.keyboard.type('SOURCE 1 open')
    await untilText(page.locator('#provider-rows-found'), `7 of ${count}`)
    t.equal(await rows.locator('visible=true').count(), 7)
    await page.locator('#provider-rows-find').fill('')
    t.equal(await rows.locator('visible=true').count(), count)
  })

  await t.test('a new status keeps what was typed, and what it hides', async (t) => {
    const find = page.locator('#provider-rows-find')
    await find.fill('source-1')
    await send(base, 'generic/source-2')
    await untilText(tile(page, 'generic:source-2', '.counts'), '1 received')
    t.equal(await find.inputValue(), 'source-1')
    t.equal(await rows.locator('visible=true').count(), 7)
    await find.fill('')
  })

  await t.test('a refusal shows at its provider by itself', async () => {
    const rejected = tile(page, 'payments', '.rejected')
    t.notOk(await rejected.isVisible())
    t.equal((await post(base, 'payments', '{}')).status, 401)
    await until(async () => {
      await send(base, 'generic/source-2')
      return rejected.isVisible()
    }, 'the count of refusals')
    await untilText(rejected, '1 rejected')
    await rejected.click()
    await page.waitForURL(`${base}/log?rejected=1&provider=payments`)
  })
})
