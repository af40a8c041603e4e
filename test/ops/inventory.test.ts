import { t } from 'tap'
import { messageOf } from '../../kernel/log.ts'
import { backends } from '../helpers/backends.ts'
import { inventoryFile, startOps } from '../helpers/ops-setup.ts'
import { secret } from '../helpers/secrets.ts'

const [, postgres] = backends

function checks(...list: readonly object[]): object {
  return { services: [{ name: 'a', checks: list }] }
}
const URL_WRONG = /wrong: \/services\/0\/checks\/1\/url must be a URL without user and password$/m
const password = secret('password')
const disk = { type: 'disk', path: '/' }
const restart = { name: 'up', action_type: 'restart', argv: ['true'] }
const none = { name: 'a', checks: [] }

t.test('an inventory that is wrong stops start-up, in one line that says where', async (t) => {
  for (const [inventory, said] of [
    [{}, /is wrong: the whole must have required properties services$/m],
    [{ services: [], more: 1 }, /is wrong: \/more is not known$/m],
    [checks({ ...disk, percent: 5 }), /is wrong: \/services\/0\/checks\/0\/percent is not known$/m],
    [
      checks(disk, { type: 'tcp', host: 'b' }),
      /wrong: \/services\/0\/checks\/1 must have .* port$/m,
    ],
    [checks(disk, { type: 'process' }), /checks\/1 must have match or program$/m],
    [checks({ type: 'pixie' }), /\/services\/0\/checks\/0\/type must be one of http, tcp, tls, /],
    [checks(disk, disk), /has "disk \/" twice in service "a"$/m],
    ...['http://', 'http://a b/', `http://user:${password}@h/`, `https://${password}@h/`].map(
      (url) => [checks(disk, { type: 'http', url }), URL_WRONG] as const,
    ),
    [
      { services: [{ ...none, checks: [disk], operations: [{ ...restart, verify: 'disc /' }] }] },
      /has no check "disc \/" in service "a" to verify "up"; there are: "disk \/"$/m,
    ],
    [
      { services: [], readonly: [['df'], { argv: ['ps'], netwrok: true }] },
      /is wrong: \/readonly\/1\/netwrok is not known$/m,
    ],
    [
      { services: [], readonly: ['df'] },
      /wrong: \/readonly\/0 must be a list of words, or an object with argv and network$/m,
    ],
    [{ services: [none, none] }, /has service "a" twice$/m],
  ] as const) {
    const file = await inventoryFile(t, inventory)
    const start = startOps(t, postgres, { OPS_INVENTORY: file })
    const message = await start.then(() => 'started', messageOf)
    t.match(message, said)
    t.notMatch(message, password)
  }
  const missing = startOps(t, postgres, { OPS_INVENTORY: '/nothing/here.json' })
  await t.rejects(missing, { message: /Inventory \/nothing\/here\.json can't be read: ENOENT/ })
})
