import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { t, type Test } from 'tap'
import { eachBackend } from '../helpers/backends.ts'
import { runCliProcess } from '../helpers/cli.ts'
import { request } from '../helpers/http.ts'
import { createSender, sendAll } from '../helpers/deliveries.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { ROOT } from '../helpers/program.ts'
import { keepSecret } from '../helpers/secrets.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { onPath } from '../runner/system-parts.ts'
import { until } from '../helpers/until.ts'
import { makeRoot, noChroot } from './chroot.ts'
import { hasDocs } from './has-docs.ts'

const BODY = '{"build": 42}'
/** Paths of the pages' own files, and the sources whose bytes they must be. */
const ASSETS = [
  ['app.css', 'html/assets/app.css'],
  ['app.js', 'html/assets/app.js'],
  ['times.js', 'html/assets/times.js'],
  ['drafts.js', 'html/assets/drafts.js'],
  ['places.js', 'html/assets/places.js'],
  ['keys.js', 'html/assets/keys.js'],
  ['filter.js', 'html/assets/filter.js'],
  ['palette.js', 'html/assets/palette.js'],
  ['hooks.css', 'html/assets/hooks.css'],
  ['hooks.js', 'html/assets/hooks.js'],
  ['icon.svg', 'html/assets/icon.svg'],
  ['htmx.js', 'node_modules/htmx.org/dist/htmx.min.js'],
] as const
const LINKS_ASSETS = [
  ['links.css', 'html/assets/links.css'],
  ['links.js', 'html/assets/links.js'],
] as const
const OPS_ASSETS = [
  ['ops.css', 'html/assets/ops.css'],
  ['ops.js', 'html/assets/ops.js'],
] as const
const EXPLORER = [
  ['swagger-ui-bundle.js', 'node_modules/swagger-ui-dist/swagger-ui-bundle.js'],
  ['swagger-ui.css', 'node_modules/swagger-ui-dist/swagger-ui.css'],
  ['explorer.css', 'html/assets/explorer.css'],
  ['explorer.js', 'html/assets/explorer.js'],
] as const

const missing = await import('esbuild').then(
  () => undefined,
  (error: unknown) => `esbuild is not installed: ${String(error)}`,
)
if (missing !== undefined) {
  await t.test('the executable', { skip: missing }, async () => undefined)
} else {
  const folder = await temporaryFolder(t, 'build')
  const empty = await temporaryFolder(t, 'empty')
  const executable = join(folder, 'gatehouse')
  // In an empty directory, without a PATH: nothing of the repository or of Node can be found.
  const program = [onPath('env') ?? 'env', '-C', empty, executable]
  const run = (args: readonly string[], env = {}) =>
    runCliProcess(args, {
      program,
      env: { ...env, PATH: '' },
      secretShown: args[0] === 'provider',
    })

  await t.test('the build leaves one file, whose bytes depend on the sources only', async (t) => {
    const hashes = []
    for (const name of ['second', 'gatehouse']) {
      const built = await runCliProcess([join(folder, name)], {
        program: [process.execPath, 'deploy/build.ts'],
      })
      t.equal(built.code, 0, built.stderr)
      t.match(built.stdout, new RegExp(`^${join(folder, name)}: \\d+\\.\\d MB$`, 'm'))
      hashes.push(
        createHash('sha256')
          .update(readFileSync(join(folder, name)))
          .digest('hex'),
      )
    }
    t.equal(hashes[0], hashes[1])
    t.equal(statSync(executable).mode & 0o777, 0o755)
    rmSync(join(folder, 'second'))
    t.same(readdirSync(folder), ['gatehouse'])
  })

  await eachBackend(t, 'the executable serves', async (t, backend) => {
    const env = await backend.env(t)
    const options = { program, env: { ...env, PATH: '' } }
    const first = await startServerProcess(t, options)
    for (const address of [first.hooks, first.links, first.ops]) {
      t.equal((await request(`${address}/healthz`)).status, 200)
    }

    const added = await run(['provider', 'add', 'ci', '--enable'], env)
    t.equal(added.code, 0, 'a command works beside the server')
    const token = keepSecret('token', added.stdout.trim().split('\n').at(-1) ?? '')
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
    const send = (base: string) =>
      request(`${base}/webhooks/generic/ci`, { method: 'POST', headers, body: BODY })
    // The server learns of the new sender by a notification.
    const accepted = await until(async () => {
      const answer = await send(first.hooks)
      return answer.status === 202 && answer
    }, 'the delivery to be accepted')
    const { id } = accepted.json<{ id: number }>()

    for (const path of ['/', '/log', '/providers', '/settings', `/log/${id}`]) {
      const page = await request(`${first.hooks}${path}`)
      t.equal(page.status, 200, path)
      t.match(page.text, /^<!doctype html>/i, path)
    }
    await hasFiles(t, `${first.hooks}/assets`, ASSETS)
    await hasFiles(t, `${first.links}/-/assets`, LINKS_ASSETS)
    await hasFiles(t, `${first.ops}/assets`, OPS_ASSETS)
    for (const address of [first.hooks, first.links, first.ops]) await hasExplorer(t, address)
    for (const address of [first.hooks, first.links, first.ops]) await hasDocs(t, address)

    if (backend.name === 'embedded') {
      const second = await run(['serve'], env)
      t.match(second, { code: 1, stdout: '', stderr: /is held by another process/ })
    }

    await first.kill()
    const again = await startServerProcess(t, options)
    t.equal(
      (await request(`${again.hooks}/log/${id}/payload`)).text,
      BODY,
      'it survived the crash',
    )
    t.ok((await send(again.hooks)).json<{ id: number }>().id > id)
    t.same(await again.stop(), { code: 0, signal: null })

    const rows = await backend.query(env, 'select id::int from hooks.events order by 1 limit 1')
    t.same(rows, [{ id }], 'the sources open what the executable made')
    t.same(readdirSync(empty), [], 'nothing is written where it runs')
    for (const line of [...first.logs(), ...again.logs()]) {
      t.match(line, /^\{"time"/, 'no word of Node itself')
    }
  })

  const skip = noChroot()
  await eachBackend(t, 'alone in a root directory', async (t, backend) => {
    if (skip !== undefined) {
      t.pass(skip, { skip })
      return
    }
    const { root, program } = await makeRoot(t, executable)
    const entries = readdirSync(root)
    const { DATABASE_URL: url } = await backend.env(t)
    const sender = createSender()
    const env = {
      // The cache of the tests would be a folder in here.
      GATEHOUSE_DATA_DIR: '/data',
      PATH: '',
      NODE_DISABLE_COMPILE_CACHE: '1',
      ...sender.env,
      ...(url !== undefined && { DATABASE_URL: url }),
    }
    const first = await startServerProcess(t, { program, env })
    for (const address of [first.hooks, first.links, first.ops]) {
      t.equal((await request(`${address}/healthz`)).status, 200)
      t.ok((await request(address)).status < 400, 'its page')
      await hasExplorer(t, address)
    }
    const [before] = await sendAll(t, [first.hooks], await sender.deliveries(1))
    await first.kill()
    const again = await startServerProcess(t, { program, env })
    const kept = await request(`${again.hooks}/log/${before?.id}`)
    t.equal(kept.status, 200, 'it survived the crash')
    t.same(await again.stop(), { code: 0, signal: null })
    t.same(readdirSync(root), entries, 'it writes to /data alone')
    const logs = [...first.logs(), ...again.logs()].join('\n')
    t.match(logs, /"no \/proc: what a session starts/, 'what is missing is said')
    t.notMatch(logs, /"level":"error"/, 'and nothing goes wrong by it')
  })
}

/** The explorer of an API is whole: its page, its files, and the description that it shows. */
async function hasExplorer(t: Test, address: string) {
  t.match(await request(`${address}/api/docs/`), { status: 200, text: /explorer\.js/ })
  await hasFiles(t, `${address}/api/docs`, EXPLORER)
  t.match(await request(`${address}/api/openapi.yaml`), { status: 200, text: /^openapi: / })
}

/** What is sent are the bytes of the sources. */
async function hasFiles(
  t: Test,
  address: string,
  files: readonly (readonly [name: string, source: string])[],
) {
  for (const [name, source] of files) {
    const sent = await request(`${address}/${name}`)
    t.ok(sent.body.equals(readFileSync(join(ROOT, source))), `${name} is ${source}`)
  }
}
