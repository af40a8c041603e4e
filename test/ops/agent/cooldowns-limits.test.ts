import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { openClient } from '../../../db/client.ts'
import { systemClock } from '../../../kernel/time.ts'
import { openInventory } from '../../../services/ops/watch/inventory/inventory.ts'
import { createRedact } from '../../../services/ops/redact.ts'
import { openSandbox } from '../../../services/ops/agent/tools/sandbox.ts'
import type { ToolContext } from '../../../services/ops/agent/tools/tool.ts'
import { callTool } from '../../../services/ops/agent/tools/toolbox.ts'
import { configQueries } from '../../../db/ops/config.ts'
import { backends } from '../../helpers/backends.ts'
import { startModelOps } from '../../helpers/model.ts'
import type { Call } from '../../helpers/model.ts'
import { beginByHand, eventsOf, inventoryFile, listOf, sessionsOf } from '../../helpers/ops.ts'
import { temporaryFolder, type Owner } from '../../helpers/owner.ts'
import { useTools } from '../../helpers/tools.ts'

/** Operations that write a line to a file: what has run can be read there. */
async function makePlant(t: Owner, shop: string, blog: string) {
  const folder = await temporaryFolder(t, 'operations')
  const file = join(folder, 'ran.txt')
  const writes = (line: string) => ['sh', '-c', `echo "$2" >> "$1"`, 'sh', file, line]
  const one = (name: string, action_type = name, more = {}) => {
    return { name, action_type, argv: writes(name), ...more }
  }
  const checks = [{ type: 'file_age', name: 'written', path: file, max_age_s: 600 }]
  const operations = [
    one('restart', 'restart', { verify: 'written' }),
    one('deploy', 'redeployment'),
    one('clean'),
    one('flush', 'flush', { cooldown: { count: 3, window_s: 60 } }),
    one('broken', 'repair', { argv: ['sh', '-c', 'exit 3'] }),
  ]
  const services = [
    { name: shop, checks, operations },
    { name: blog, checks: [], operations: [one('restart')] },
  ]
  const ran = () => (existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [])
  return { inventory: await inventoryFile(t, { services }), ran }
}

function operation(name: string, service = 'shop'): Call {
  return ['run_operation', { service, operation: name, reason: 'it hangs' }]
}

await t.test('operations within their limits', async (t) => {
  const [, postgres] = backends
  const { inventory, ran } = await makePlant(t, 'shop', 'blog')
  const { ops, model } = await startModelOps(t, { OPS_INVENTORY: inventory })
  const play = (...list: readonly Call[]) => useTools(t, { model, ops }, list, 3)

  await t.test('dry run: nothing runs, and it is recorded what would', async (t) => {
    await ops.api('PUT', '/config', { dry_run: true })
    const told = await play(operation('restart'), operation('deploy'))
    t.match(told, [/^Dry run: restart was recorded and not run/, /^Dry run: deploy/])
    t.same(ran(), [])
    t.same(
      await listOf(ops, 'cooldowns'),
      [],
      'it is no action, so it takes no turn of a real one',
    )
    const dry = /^Dry run: would run restart \(.*ran.txt restart\): it hangs$/
    const events = await eventsOf(ops, '?limit=1000')
    const event = events.find(({ message }) => dry.test(message))
    t.match(event, { level: 'info', service: 'shop' })
    await ops.api('PUT', '/config', { dry_run: false })
  })

  await t.test(
    'defaults: 2 restarts in 4 h for each service, 1 redeployment in 24 h',
    async (t) => {
      const results = await play(
        operation('restart'),
        operation('restart'),
        operation('restart'),
        operation('deploy'),
        operation('deploy'),
        operation('restart', 'blog'),
      )
      t.match(results, [
        /^restart: ended with 0; check written is good: written 0 s ago$/m,
        /^restart: ended with 0/,
        /^Error: Cooldown: restart was not run: restart of shop was done 2 times within 14400 s, 2 at most/,
        /^deploy: ended with 0/,
        /^Error: Cooldown: .* 1 times within 86400 s, 1 at most/,
        /^restart: ended with 0/,
      ])
      t.same(ran(), ['restart', 'restart', 'deploy', 'restart'])
      t.match(await listOf(ops, 'cooldowns'), [
        { service: 'blog', action_type: 'restart', count: 1 },
        { service: 'shop', action_type: 'redeployment', count: 1 },
        { service: 'shop', action_type: 'restart', count: 2 },
      ])
      const messages = (await eventsOf(ops, '?limit=1000')).map(
        ({ level, message }) => `${level} ${message}`,
      )
      t.equal(messages.filter((line) => line === 'info Runs restart: it hangs').length, 3)
      t.equal(messages.filter((line) => /^warning .* was not run/.test(line)).length, 2)
      const verified = `select state from ops.checks where service = 'shop'`
      t.same(await ops.query(verified), [{ state: 'ok' }], 'it is recorded')
    },
  )

  await t.test('its own cooldown, another kind, failures, and what is not there', async (t) => {
    const results = await play(
      ...['flush', 'flush', 'flush', 'flush', 'clean', 'clean', 'clean'].map((n) => operation(n)),
      operation('broken'),
      operation('nothing'),
      operation('x', 'y'),
    )
    t.same(
      results.slice(0, 7).map((text) => text.split(':')[0]),
      ['flush', 'flush', 'flush', 'Error', 'clean', 'clean', 'Error'],
    )
    t.match(results.slice(7), [
      /^Error: broken: ended with 3/,
      /^Error: Service "shop" has no operation "nothing"/,
      /^Error: There is no service "y"/,
    ])
  })

  await t.test('20 concurrent calls on two connections never exceed the limit', async (t) => {
    const { inventory: file, ran } = await makePlant(t, 'other shop', 'other blog')
    const target = ops.env['DATABASE_URL'] ?? ''
    const clients = [1, 2].map(() => openClient({ target, deadlineMs: 10_000, connections: 10 }))
    t.teardown(() => Promise.all(clients.map((client) => client.close())))
    const log = { info() {}, warn() {}, error() {}, flush() {} }
    const dataDirectory = await temporaryFolder(t, 'data')
    const inventory = await openInventory({
      file: () => file,
      addresses: () => new Map(),
      dataDirectory,
      log,
      isOurs: () => false,
      byHand: () => [],
    })
    const config = (await ops.api<ToolContext['job']['config']>('GET', '/config')).json
    const [first] = await sessionsOf(ops)
    if (first === undefined) throw new Error('no session')
    const session = { ...first, id: await beginByHand(postgres, ops.env), tier: 3 }
    const job: ToolContext['job'] = {
      session: { ...session, trigger: 'api' },
      holder: 'test',
      marker: 'none',
      config,
      signal: new AbortController().signal,
      escalate() {},
    }
    const redact = createRedact(() => [])
    const sandbox = openSandbox({
      log,
      unsandboxed: () => false,
      hidden: () => [],
      explain: String,
    })
    const dryRun: ToolContext['dryRun'] = async (tx) =>
      (await configQueries.readSettings(tx, {})).dry_run ?? false
    const callAll = () =>
      Promise.all(
        Array.from({ length: 20 }, (_, at) => {
          const [name, args] = operation('restart', at % 10 === 9 ? 'other blog' : 'other shop')
          const db = clients[at % 2]
          if (db === undefined) throw new Error('no client')
          const runbooks = { current: async () => [] }
          const shared = { db, clock: systemClock, log, inventory, runbooks }
          const options = { ...shared, redact, sandbox, dryRun }
          return callTool(name, args, { ...options, job })
        }),
      )

    await ops.api('PUT', '/config', { dry_run: true })
    t.ok((await callAll()).every(({ ok, text }) => ok && text.startsWith('Dry run')))
    t.same(ran(), [], 'dry run')
    await ops.api('PUT', '/config', { dry_run: false })
    const results = await callAll()
    t.equal(results.filter(({ ok }) => ok).length, 4, '2 of shop and 2 of blog')
    t.equal(ran().length, 4)
    t.equal(results.filter(({ text }) => text.startsWith('Cooldown: ')).length, 16)
    const cooldowns = await listOf<{ service: string }>(ops, 'cooldowns')
    const others = cooldowns.filter(({ service }) => service.startsWith('other '))
    t.match(others, [{ count: 2 }, { count: 2 }])
  })
})
