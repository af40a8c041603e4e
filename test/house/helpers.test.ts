import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { t } from 'tap'
import { openBrowser } from '../helpers/browser.ts'
import { findLeaks, registerSecret } from '../runner/leaks.ts'
import { endOrphans, recordFolder, recordProcess } from '../helpers/program.ts'
import type { Owner } from '../helpers/owner.ts'
import { startReceiver } from '../helpers/replays.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { until } from '../helpers/until.ts'

/** A program that behaves like the product at its edges. */
function standIn(t: Owner, body: string) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-stand-in-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'program.ts')
  writeFileSync(path, body)
  return [process.execPath, path]
}

// Only helpers whose fault would hide those of others.

t.test('orphans: what a test left behind ends with the run', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-orphans-'))
  const child = spawn('sleep', ['600'])
  t.teardown(() => child.kill('SIGKILL'))
  const ended = once(child, 'exit')
  recordProcess(folder, child.pid ?? 0)
  recordFolder(folder, folder)
  endOrphans(folder)
  t.same(await ended, [null, 'SIGKILL'])
  t.notOk(existsSync(folder))
})

t.test('until: names what it waited for', async (t) => {
  t.equal(await until(() => 3, 'three'), 3)
  const never = () => {
    throw new Error('not there')
  }
  await t.rejects(until(never, 'the moon', 50), {
    message: 'waited 50 ms for the moon: not there',
  })
})

t.test('secrets: a planted one is found in every spelling, never shown', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-leaks-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  registerSecret(folder, 'planted', 's3cret/value')
  writeFileSync(join(folder, 'clean.log'), 'nothing here')
  t.same(findLeaks(folder), [])
  writeFileSync(join(folder, 'plain.log'), 'one\ntwo s3cret/value three')
  writeFileSync(join(folder, 'url.http'), 'x=s3cret%2Fvalue')
  writeFileSync(join(folder, 'basic.sse'), Buffer.from('s3cret/value').toString('base64'))
  const leaks = [...findLeaks(folder)].sort((a, b) => a.file.localeCompare(b.file))
  t.match(leaks, [{ file: 'basic.sse' }, { file: 'plain.log', line: 2 }, { file: 'url.http' }])
  t.match(leaks[1], { secret: 'planted', text: 'two … three' })
})

t.test(
  'server: no variables of the tests reach it, and an early end has its reason',
  async (t) => {
    const program = standIn(
      t,
      `process.on('SIGTERM', () => process.exit(0))
    console.error(Object.keys(process.env).join())
    console.log('gatehouse 0.1.0 ready hooks=http://127.0.0.1:1')
    setInterval(() => {}, 1000)`,
    )
    const server = await startServerProcess(t, { program, services: ['hooks'] })
    const [names] = await until(() => server.logs().length > 0 && server.logs(), 'a log line')
    t.match(names, 'PATH')
    t.notMatch(names, /TAP|NODE_OPTIONS|GATEHOUSE_TEST/)
    t.same(await server.stop(), { code: 0, signal: null })
    const failing = standIn(t, `console.error('no such thing'); process.exit(1)`)
    await t.rejects(
      startServerProcess(t, { program: failing, mayExit: true }),
      /ended with 1 before.*no such thing/,
    )
  },
)

const SCRIPT = "throw new Error('thrown')"
const PAGE = `<link rel=icon href="data:,"><p style="color:red">hi<script src=/a.js></script>
  <img src="http://elsewhere.example/x.png">`

t.test('browser: a page that errs or calls elsewhere fails its test', async (t) => {
  const { url } = await startReceiver(t, ({ path }, response) => {
    const isScript = path === '/a.js'
    response.setHeader('Content-Security-Policy', "default-src 'self'; img-src *")
    response.setHeader('Content-Type', isScript ? 'text/javascript' : 'text/html')
    response.end(isScript ? SCRIPT : PAGE)
  })
  const failures: string[] = []
  const owner = { teardown: t.teardown.bind(t), fail: (text: string) => failures.push(text) }
  const viewport = { width: 320, height: 600 }
  const { page } = await openBrowser(owner, { origins: [url], viewport })
  await page.goto(url)
  t.match(await page.textContent('p'), /^hi/)
  for (const part of ['thrown', 'elsewhere.example', 'Content Security Policy']) {
    await until(() => failures.some((text) => text.includes(part)), `a failure about ${part}`)
  }
})
