import { existsSync } from 'node:fs'
import type { Test } from 'tap'
import { apiOf } from '../helpers/api.ts'
import { addProvider, payloadOf, postForm, store } from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'
import { leadsTo } from '../helpers/links.ts'
import { freePort } from '../helpers/owner.ts'
import type { Env } from '../helpers/program.ts'
import { startServerProcess, type ServerProcess } from '../helpers/server-process.ts'
import { until } from '../helpers/until.ts'
import { hasDocs } from './has-docs.ts'

/** One file of two releases, on a machine that had nothing of it. */
export interface Artefact {
  versions: readonly [first: string, next: string]
  /** Puts the first version in place, or the next one over it, as the documentation says. */
  install(isNext: boolean): unknown
  /** What starts it; `serve` follows. */
  program(isNext: boolean): readonly string[]
  /** The data directory, as the program names it. */
  data: string
  /** A file of the data by its path here, which a removal leaves; undefined if the data is on a server. */
  kept: string | undefined
  /** Further variables. */
  env?: Env
  /** Looks at it from outside while it runs. */
  whileRunning?(): unknown
  /** Removes it as the documentation says. */
  remove(): unknown
  /** Everything that is there, without the data. */
  traces(): Promise<readonly string[]> | readonly string[]
  /** What stays besides the data, as the documentation says. */
  left: readonly string[]
}

const BODY = '{"build": 42}'
/** An emulated machine takes minutes for its first start. */
const READY_MS = 900_000

/**
 * Installs it, starts it, gives it a webhook, a link and a check, upgrades it to the next version,
 * which must have all three, and removes it without a trace but the data.
 */
export async function liveOn(t: Test, artefact: Artefact) {
  const [first, next] = artefact.versions
  const before = new Set(await artefact.traces())
  const port = await freePort()
  const env = {
    ...artefact.env,
    HOOKS_ADDR: `127.0.0.1:${port}`,
    GATEHOUSE_DATA_DIR: artefact.data,
    HOME: '/root',
    // That of the tests would be a folder of this machine.
    NODE_COMPILE_CACHE: '',
    // An emulated machine stands still for longer than a real one may.
    GATEHOUSE_WATCHDOG_S: '0',
  }
  const start = (isNext: boolean) =>
    startServerProcess(t, { program: artefact.program(isNext), env, readyMs: READY_MS })

  await artefact.install(false)
  const server = await start(false)
  await isVersion(t, server, first)
  await artefact.whileRunning?.()
  await addProvider(server.hooks, 'ci', { open: true })
  const event = await store(server.hooks, 'ci', BODY)
  const fields = { slug: 'team', url: 'https://team.test/', visibility: 'public' }
  t.equal((await postForm(server.links, '/-/new', fields)).status, 303)
  const check = await apiOf(server.ops)<{ id: number }>('POST', '/checks', {
    service: 'gatehouse',
    check: { type: 'http', name: 'hooks', url: `http://127.0.0.1:${port}/healthz`, timeout_s: 60 },
  })
  t.equal(check.status, 201, check.text)
  await hasAll(t, server, event, check.json.id)
  t.same(await server.stop(), { code: 0, signal: null })

  await artefact.install(true)
  const upgraded = await start(true)
  await isVersion(t, upgraded, next)
  await hasAll(t, upgraded, event, check.json.id)
  t.ok((await store(upgraded.hooks, 'ci', BODY)) > event)
  t.same(await upgraded.stop(), { code: 0, signal: null })

  await artefact.remove()
  const left = (await artefact.traces()).filter((path) => !before.has(path))
  t.same(left.toSorted(), artefact.left.toSorted(), 'what stays')
  if (artefact.kept !== undefined) t.ok(existsSync(artefact.kept), 'the data stays')
}

/** All services are well, with their documentation and the explorer of their API. */
async function isVersion(t: Test, server: ServerProcess, version: string) {
  for (const address of [server.hooks, server.links, server.ops]) {
    const health = await until(
      async () => {
        const answer = await request(`${address}/healthz`)
        return answer.status === 200 && answer
      },
      `${address} to be well`,
      READY_MS,
    )
    t.match(health.text, `"${version}"`)
    t.equal((await request(`${address}/api/docs/swagger-ui-bundle.js`)).status, 200)
    await hasDocs(t, address)
  }
}

/** The webhook, the link and the check. */
async function hasAll(t: Test, server: ServerProcess, event: number, check: number) {
  t.equal(String(await payloadOf(server.hooks, event)), BODY)
  t.equal(await leadsTo(server.links, '/team'), 'https://team.test/')
  t.match(await apiOf(server.ops)('POST', `/checks/${check}/run`), {
    status: 200,
    json: { name: 'hooks', state: 'ok' },
  })
}
