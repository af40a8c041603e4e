import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { startModelOps, type Call } from '../../helpers/model.ts'
import { eventsOf, inventoryFile, listOf } from '../../helpers/ops.ts'
import { temporaryFolder } from '../../helpers/owner.ts'
import { useTools } from '../../helpers/tools.ts'

const file = join(await temporaryFolder(t, 'operations'), 'ran.txt')
const ran = () => (existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [])

/** An operation that writes a line to a file: what has run can be read there. */
function writes(name: string, action_type = name, more: object = {}) {
  const argv = ['sh', '-c', `echo "$2" >> "$1"`, 'sh', file, name]
  return { name, action_type, argv, ...more }
}

const checks = [{ type: 'file_age', name: 'written', path: file, max_age_s: 600 }]
const operations = [
  writes('restart', 'restart', { verify: 'written' }),
  writes('deploy', 'redeployment'),
  writes('clean'),
  writes('flush', 'flush', { cooldown: { count: 3, window_s: 60 } }),
  writes('broken', 'repair', { argv: ['sh', '-c', 'exit 3'] }),
]
const services = [
  { name: 'shop', checks, operations },
  { name: 'blog', checks: [], operations: [writes('restart')] },
]

function operation(name: string, service = 'shop'): Call {
  return ['run_operation', { service, operation: name, reason: 'it hangs' }]
}

await t.test('operations within their limits', async (t) => {
  const OPS_INVENTORY = await inventoryFile(t, { services })
  const { ops, model } = await startModelOps(t, { OPS_INVENTORY })
  const play = (...list: readonly Call[]) => useTools(t, { model, ops }, list, 3)

  await t.test('dry run: nothing runs, and it is recorded what would', async (t) => {
    await ops.api('PUT', '/config', { dry_run: true })
    const told = await play(operation('restart'), operation('deploy'))
    t.match(told, ['Dry run: restart was recorded and not run', 'Dry run: deploy'])
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
        'restart: ended with 0',
        'Error: Cooldown: restart was not run: restart of shop was done 2 times within 14400 s, 2 at most',
        'deploy: ended with 0',
        /^Error: Cooldown: .* 1 times within 86400 s, 1 at most/,
        'restart: ended with 0',
      ])
      t.same(ran(), ['restart', 'restart', 'deploy', 'restart'])
      t.match(await listOf(ops, 'cooldowns'), [
        { service: 'blog', action_type: 'restart', count: 1 },
        { service: 'shop', action_type: 'redeployment', count: 1 },
        { service: 'shop', action_type: 'restart', count: 2 },
      ])
      const events = await eventsOf(ops, '?limit=1000')
      const messages = events.map(({ level, message }) => `${level} ${message}`)
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
      'Error: broken: ended with 3',
      'Error: Service "shop" has no operation "nothing"',
      'Error: There is no service "y"',
    ])
  })
})
