import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { t } from 'tap'
import { postgres } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { allIn, request } from '../helpers/http.ts'
import { freePort, temporaryFolder } from '../helpers/owner.ts'
import { ROOT } from '../helpers/program.ts'
import { startServer } from '../helpers/server.ts'
import { expectStatus } from '../helpers/refusals.ts'

const server = await startServer(t, { env: await postgres.env(t) })
const LISTENERS = [server.hooks, server.links, server.ops]
const BASE = `${server.hooks}/-/docs/`

const addressesOf = (text: string, attribute: string) =>
  allIn(text, new RegExp(`${attribute}="([^"]+)"`, 'g'))

t.test('each listener has the documentation, guarded like its pages', async (t) => {
  for (const base of LISTENERS) {
    t.match(await request(`${base}/-/docs`), { status: 308, headers: { location: '/-/docs/' } })
    const page = await request(`${base}/-/docs/`)
    t.match(page.headers, { 'content-type': 'text/html; charset=utf-8' })
    t.match(page.text, '<h1 id="documentation">Documentation</h1>')
    const paths = ['', 'hooks', 'search?q=a', 'decisions/048-actors', 'pictures/hooks-log.png']
    for (const path of paths) {
      await expectStatus(200, request(`${base}/-/docs/${path}`), path)
      for (const headers of [{ host: 'evil.example' }, { 'x-forwarded-for': '203.0.113.7' }]) {
        await expectStatus(403, request(`${base}/-/docs/${path}`, { headers }), path)
      }
    }
    for (const path of ['nothing', 'decisions/nothing', 'pictures/nothing.png', '..%2FREADME']) {
      await expectStatus(404, request(`${base}/-/docs/${path}`), path)
    }
  }
})

t.test('every page is there, and every link on it leads somewhere', async (t) => {
  const names = globSync('docs/{*,decisions/*}.md', { cwd: ROOT }).map((path) =>
    path.slice('docs/'.length, -'.md'.length),
  )
  const texts = new Map<string, string>()
  async function textAt(path: string) {
    const known = texts.get(path)
    if (known !== undefined) return known
    const page = await expectStatus(200, request(server.hooks + path), path)
    texts.set(path, page.text)
    return page.text
  }
  for (const name of names) {
    const path = `/-/docs/${name}`
    const text = await textAt(path)
    t.equal([...text.matchAll(/<h1[ >]/g)].length, 1, `${name} has one title`)
    const ids = addressesOf(text, ' id')
    t.equal(new Set(ids).size, ids.length, `${name}: ids are unique`)
    for (const link of addressesOf(text, '<a href')) {
      const { origin, pathname, hash } = new URL(link, server.hooks + path)
      if (origin !== server.hooks || !pathname.startsWith('/-/docs/')) continue
      const target = await textAt(pathname)
      if (hash !== '') t.ok(addressesOf(target, ' id').includes(hash.slice(1)), `${name}: ${link}`)
    }
    for (const picture of addressesOf(text, '<img src')) {
      if (!picture.startsWith('/-/docs/')) continue
      const { headers, body } = await expectStatus(200, request(server.hooks + picture), picture)
      t.equal(headers['content-type'], 'image/png', picture)
      t.same(body, readFileSync(join(ROOT, 'docs/pictures', basename(picture))))
    }
  }
})

t.test('a page is drawn as it was written', async (t) => {
  const { text } = await request(`${BASE}settings`)
  t.match(text, '<div class="wide" tabindex="0"><table>')
  t.match(text, '<code>HOOKS_MAX_BODY</code>')
  t.match(text, '<a href="/-/docs/links#groups">')
  t.notMatch(text, /<script(?![^>]*src=)|<style|\sstyle=/)
  const install = await request(`${BASE}install`)
  t.match(install.text, '<pre><code class="language-sh">npm ci')
})

t.test('a search finds parts of pages, those with the words in their heading first', async (t) => {
  const found = async (text: string) => {
    const q = new URLSearchParams({ q: text })
    return (await expectStatus(200, request(`${BASE}search?${q}`))).text
  }
  const first = async (text: string) =>
    addressesOf(await found(text), '<a href').find((href) => href.includes('#'))
  t.equal(await first('qr codes'), '/-/docs/links#qr-codes')
  t.equal(await first('BACKUP restore'), '/-/docs/upgrade#backup-and-restore')
  t.match(await found('OPS_IDLE_S'), /…[^<]*OPS_IDLE_S/, 'with the text around a word')
  t.match(await found('no page has thiswordinit'), 'Nothing found.')
  t.match(await found(''), 'Type what to look for.')
  t.match(await found('<b>"x'), 'value="&lt;b&gt;&quot;x"')
})

t.test('gatehouse docs', async (t) => {
  const none = `127.0.0.1:${await freePort()}`
  const at = { HOOKS_ADDR: none, LINKS_ADDR: new URL(server.links).host, OPS_ADDR: none }
  const folder = await temporaryFolder(t)
  const file = join(folder, 'opened')
  const opens = (code: number) => {
    const script = `#!/bin/sh\nprintf %s "$1" > '${file}'\nexit ${code}\n`
    writeFileSync(join(folder, 'xdg-open'), script, { mode: 0o755 })
  }
  const env = { ...at, PATH: `${folder}:/usr/bin:/bin` }
  const desktop = { ...env, DISPLAY: ':0' }
  const stdout = `${server.links}/-/docs/\n`
  opens(0)
  t.same(await runCli('docs', { env }), { code: 0, stdout, stderr: '' })
  t.notOk(existsSync(file), 'without a desktop nothing is opened')
  const moved = { ...env, LINKS_BASE_URL: 'https://go.example.com' }
  t.match(await runCli('docs', { env: moved }), { stdout: 'https://go.example.com/-/docs/\n' })
  // The opener is started as this process finds it.
  const { PATH } = process.env
  t.teardown(() => (process.env['PATH'] = PATH))
  process.env['PATH'] = env.PATH
  t.same(await runCli('docs', { env: desktop }), { code: 0, stdout, stderr: '' })
  t.equal(readFileSync(file, 'utf8'), stdout.trim())
  opens(3)
  const stderr = 'xdg-open did not open it: exit code 3\n'
  t.same(await runCli('docs', { env: desktop }), { code: 1, stdout, stderr })
  t.match(await runCli('docs', { env: { ...env, LINKS_ADDR: none } }), {
    code: 1,
    stdout: '',
    stderr: /^gatehouse: no running Gatehouse was found: start it.*unix socket.*HOOKS_BASE_URL/,
  })
})
