import { createServer } from 'node:net'
import { t } from 'tap'
import { postgres } from '../helpers/backends.ts'
import { listen } from '../helpers/listen.ts'
import { inventoryFile, startOps } from '../helpers/ops.ts'
import { until } from '../helpers/until.ts'
import { browse, clickButton, focusedId, loadFailure, textOf, untilText } from './pages.ts'

type Check = { id: number; state: string }

const port = await listen(
  t,
  createServer((socket) => socket.destroy()),
)
const inventory = {
  services: [
    {
      name: 'shop',
      checks: [
        { type: 'tcp', name: 'front', host: '127.0.0.1', port: 1, every: '1h', retries: 0 },
        { type: 'tcp', name: 'back', host: '127.0.0.1', port, every: '1h' },
      ],
    },
  ],
}
const ops = await startOps(t, postgres, { OPS_INVENTORY: await inventoryFile(t, inventory) })
const { api, base } = ops
const { page, newPage } = await browse(t, base, { expectedErrors: [loadFailure(400)] })

const list = async () => (await api<{ checks: readonly Check[] }>('GET', '/checks')).json.checks
const failing = async () => (await list()).find(({ state }) => state === 'fail')
const { id } = await until(failing, 'the check of the front to fail')

await t.test('a check is muted from its row, and unmuted', async (t) => {
  await page.goto(`${base}/checks`)
  await page.click(`#mute-${id}`)
  await clickButton(page, '8 hours')
  const row = page.locator(`#check-${id}`)
  await untilText(row.locator('.verify'), 'fail muted')
  await untilText(page.locator('#done'), 'Muted front.')
  t.equal(await focusedId(page), `mute-${id}`, 'the focus stays in the row')
  await untilText(row.locator('.message > .muted'), /^Muted: muted by one click \(/)
  const home = await newPage()
  await home.goto(base)
  const service = home.locator('#service-rows tr', { hasText: 'shop' })
  await untilText(service.locator('.type'), /^shop muted, muted by one click · front: /)
  await untilText(service.locator('.verify'), 'fail muted')
  await page.keyboard.press('Enter')
  await untilText(row.locator('.verify'), 'fail')
})

await t.test('a check is run from its row, which alone is renewed', async (t) => {
  for (const path of ['/checks', '/checks?service=shop']) {
    await page.goto(base + path)
    const cells = await page.locator(`#check-${id} td`).count()
    await page.click(`#run-${id}`)
    await untilText(page.locator('#done'), 'Checked front.')
    t.equal(await page.locator(`#check-${id} td`).count(), cells, path)
    t.equal(await focusedId(page), `run-${id}`)
    t.match(await textOf(page.locator(`#check-${id} .message`)), /connection refused/)
  }
})

await t.test('a refused mute stays on the page of the check', async (t) => {
  await page.goto(`${base}/checks/${id}`)
  await page.click('#mute > summary')
  await page.getByLabel('For', { exact: true }).fill('soon')
  await page.getByLabel('Reason').fill('it moves')
  await page.click('#add-mute')
  await untilText(page.locator('#mute-form-for-refused'), /^For must be/)
  t.equal(await focusedId(page), 'mute-form-for')
  t.equal(await page.locator('#mutes').count(), 0)
  await page.getByLabel('For', { exact: true }).fill('1h')
  await page.click('#add-mute')
  await untilText(page.locator('#check-now .check-head .badge').last(), 'muted')
  t.equal(new URL(page.url()).pathname, `/checks/${id}`)
  await page.click(`#mute-${id}`)
  await untilText(page.locator('#done'), 'Unmuted front.')
})

await t.test('a try shows what it found, and stores nothing', async (t) => {
  const before = await list()
  await page.goto(`${base}/checks/new?type=tcp`)
  await page.getByLabel('Host', { exact: true }).fill('127.0.0.1')
  const portField = page.getByLabel('Port', { exact: true })
  await portField.fill(String(port))
  await page.click('#try-check')
  await untilText(page.locator('#tried'), /^ok takes connections \d+ ms\. Not stored\.$/)
  t.equal(await portField.inputValue(), String(port))
  t.equal(await focusedId(page), 'try-check')
  await portField.fill('1')
  await page.click('#try-check')
  await untilText(page.locator('#tried'), /^fail connection refused/)
  await portField.fill('0')
  await page.click('#try-check')
  await untilText(page.locator('#check-port-refused'), /^Port must be/)
  t.equal(await page.locator('#tried').count(), 0)
  t.same(
    (await list()).map(({ id }) => id),
    before.map(({ id }) => id),
  )
})
