import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { t } from 'tap'
import { request } from '../helpers/http.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { ROOT } from '../helpers/program.ts'
import { secret } from '../helpers/secrets.ts'
import { browse } from '../browser/pages.ts'
import { until } from '../helpers/until.ts'

// The first minutes of a stranger, as README has them: a clone, `npm ci`, `npm start`, and a browser. Nothing is set.

const run = promisify(execFile)
const folder = await temporaryFolder(t, 'clone')
await run('git', ['clone', '--quiet', ROOT, folder])
const flags = ['--ignore-scripts', '--no-audit', '--no-fund']
await run('npm', ['ci', ...flags], { cwd: folder, maxBuffer: 16 * 1024 * 1024 })

/** Any free ports; all else is as it comes. */
const env = {
  PATH: process.env['PATH'] ?? '',
  HOME: folder,
  HOOKS_ADDR: '127.0.0.1:0',
  LINKS_ADDR: '127.0.0.1:0',
  OPS_ADDR: '127.0.0.1:0',
}
const program = spawn('npm', ['start'], { cwd: folder, env, detached: true })
t.teardown(async () => {
  const exited = once(program, 'exit')
  process.kill(-(program.pid ?? 0), 'SIGTERM')
  await exited
})
let said = ''
program.stdout.setEncoding('utf8').on('data', (text: string) => (said += text))
program.stderr.setEncoding('utf8').on('data', (text: string) => (said += text))
const READY = /ready hooks=(\S+) links=(\S+) ops=(\S+)/
const ready = await until(() => READY.exec(said), 'the line that it is ready', 120_000)
const [, hooks = '', links = '', ops = ''] = ready
const { page } = await browse(t, hooks, { origins: [hooks, links, ops] })

await t.test(
  'the empty page of hooks gives a URL, shows what comes, and verifies it',
  async (t) => {
    await page.goto(hooks)
    await page.getByRole('button', { name: 'Create a URL' }).click()
    await page.getByText('Waiting for the first delivery…').waitFor()
    const url = (await page.locator('#made-url').textContent()) ?? ''
    const sent = await request(url.trim(), {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-github-event': 'push',
        'x-github-delivery': 'd-1',
        'x-hub-signature-256': `sha256=${'0'.repeat(64)}`,
      },
      body: '{"ref":"refs/heads/main"}',
    })
    t.equal(sent.status, 202)
    await page.getByRole('heading', { name: 'What is this?' }).waitFor()
    await page.locator('#delivery-rows tr', { hasText: 'refs/heads/main' }).waitFor()
    t.match(await page.locator('#first-delivery').textContent(), /It looks like\s+GitHub/)
    await page.getByRole('link', { name: 'Verify it' }).click()
    await page.getByLabel(/^Secret/).fill(secret('first-start'))
    await page.getByRole('button', { name: 'Verify deliveries' }).click()
    await page.getByText('verifies what it receives').waitFor()
  },
)

await t.test('secrets have a key by itself', async (t) => {
  await page.goto(`${hooks}/providers/new?scheme=shopify`)
  t.equal(await page.getByText('GATEHOUSE_SECRET_KEY').count(), 0, 'nobody has to set one')
  await page.getByLabel('Secret that the sender made').fill(secret('first-shopify'))
  await page.getByRole('button', { name: 'Add provider' }).click()
  await page.getByText('Waiting for the first delivery…').waitFor()
  const key = statSync(join(folder, 'data/secret.key'))
  t.equal(key.mode & 0o777, 0o600, 'the key is for its owner alone')
})

await t.test('a link is found as people type it', async (t) => {
  await page.goto(`${links}/-/`)
  await page.getByLabel(/^Short name/).fill('team')
  await page.getByLabel('Leads to').fill('https://team.example.com/')
  await page.getByRole('button', { name: 'Create link' }).click()
  await page.locator('h1', { hasText: 'team' }).waitFor()
  for (const typed of ['go/team', 'http://go/team', `${links}/team`, 'team/']) {
    await page.goto(`${links}/-/all`)
    await page.getByRole('searchbox', { name: 'Search' }).fill(typed)
    await page.waitForURL((url) => url.searchParams.get('q') === typed)
    const rows = page.locator('#links > tr')
    await until(async () => (await rows.count()) === 1, `a row for ${typed}`)
    t.match(await rows.first().textContent(), /team/, typed)
  }
})
