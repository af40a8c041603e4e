import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { t } from 'tap'
import type { Test } from 'tap'
import type { Page } from 'playwright-core'
import { backends } from '../helpers/backends.ts'
import { addProvider, payloadOf, shown, startHooks } from '../helpers/signing-setup.ts'
import { onPath } from '../helpers/system-parts.ts'
import { browse, send, textOf, untilText } from './pages.ts'

const shell = promisify(execFile)

/** Characters that a shell, curl or a careless page would take for something of theirs. */
const QUOTES = `{"name":"it's \\"quoted\\" $HOME \`id\` \\\\ @file %s é 🦄","n":12345678901234567890}\n`
/** A page makes one line end of the first two; a terminal takes the escape for the end of a paste. */
const CONTROLS = 'a=1\r\nb=2\rc=3\u001B[201~\n'
const LONG = JSON.stringify({ text: 'é'.repeat(20_000) })
const BINARY = Buffer.from([0x00, 0xff, 0xfe, 0x0a, 0x0d, 0x80, 0x27])

async function downloaded(page: Page): Promise<Buffer> {
  const waiting = page.waitForEvent('download')
  await page.getByRole('link', { name: 'Download raw bytes' }).click()
  return readFile(await (await waiting).path())
}

async function copied(page: Page): Promise<string> {
  const button = page.locator('[data-copy="curl-command"]')
  await button.click()
  await untilText(button, 'Copied curl command')
  return page.evaluate<string>('navigator.clipboard.readText()')
}

await t.test('the page of an event', async (t: Test) => {
  const { base } = await startHooks(t, backends[1])
  await addProvider(base, 'shop', { open: true })
  const { page, context } = await browse(t, base)
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  const text = await send(base, 'generic/shop', QUOTES, {
    'X-Event-Type': "it's paid",
    'X-Note': `$(id) 'single' "double"`,
  })
  const binary = await send(base, 'generic/shop', BINARY, {
    'Content-Type': 'application/octet-stream',
  })

  const controls = await send(base, 'generic/shop', CONTROLS, { 'Content-Type': 'text/plain' })
  const long = await send(base, 'generic/shop', LONG)

  await t.test('the raw payload is one click away', async (t) => {
    await page.goto(`${base}/log`)
    await page.getByRole('link', { name: "it's paid" }).click()
    await page.waitForURL(`${base}/log/${text.id}`)
    const raw = page.locator('#raw-payload pre')
    t.notOk(await raw.isVisible())
    t.match(await page.locator('pre.payload').first().textContent(), /^\{\n +"name"/)
    await page.getByText('Raw text as received').click()
    t.ok(await raw.isVisible())
    t.equal(await raw.textContent(), QUOTES)
    t.match(await textOf(page.locator('pre.payload').first()), /"n": 12345678901234567890/)
  })

  await t.test('the download has the bytes as received', async (t) => {
    t.same(await downloaded(page), Buffer.from(QUOTES))
    await page.goto(`${base}/log/${binary.id}`)
    t.same(await downloaded(page), BINARY)
    t.equal(await page.locator('pre.payload code').textContent(), BINARY.toString('base64'))
  })

  const skip = onPath('curl') === undefined ? 'curl is not installed' : false
  for (const [kind, { id }, bytes] of [
    ['text', text, Buffer.from(QUOTES)],
    ['control characters', controls, Buffer.from(CONTROLS)],
    ['long text', long, Buffer.from(LONG)],
    ['binary', binary, BINARY],
  ] as const) {
    await t.test(`the copied command sends the same bytes: ${kind}`, { skip }, async (t) => {
      await page.goto(`${base}/log/${id}`)
      const command = await copied(page)
      t.equal(command, await page.locator('#curl-command').textContent())
      const { stdout } = await shell('sh', ['-c', command], { env: { PATH: process.env['PATH'] } })
      const ack: { id: number } = JSON.parse(stdout)
      t.not(ack.id, id, 'a new event')
      t.same(await payloadOf(base, ack.id), bytes)
      const [before, after] = [await shown(base, id), await shown(base, ack.id)]
      for (const name of ['Event type', 'Content type', 'Payload size']) {
        t.equal(after.facts[name], before.facts[name], name)
      }
      t.equal(after.headers['x-note'], before.headers['x-note'])
      await page.goto(`${base}/`)
      t.equal(await page.locator(`#recent-rows > tr[data-id="${ack.id}"]`).count(), 1)
    })
  }

  await t.test('without a clipboard the text is selected', async (t) => {
    await context.clearPermissions()
    await page.goto(`${base}/log/${text.id}`)
    await page.evaluate(`navigator.clipboard.writeText = () => Promise.reject(new Error('denied'))`)
    await page.locator('[data-copy="curl-command"]').click()
    const command = await page.locator('#curl-command').textContent()
    t.equal(await page.evaluate('String(getSelection())'), command)
  })
})
