import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { inventoryFile, startOps } from '../helpers/ops-setup.ts'

const [, postgres] = backends

function checks(...list: readonly object[]): object {
  return { services: [{ name: 'a', checks: list }] }
}
const disk = { type: 'disk', path: '/' }
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
    [checks({ type: 'pixie' }), /\/services\/0\/checks\/0\/type must be one of http, tcp, tls, /],
    [checks(disk, disk), /has "disk \/" twice in service "a"$/m],
    [{ services: [none, none] }, /has service "a" twice$/m],
  ] as const) {
    const file = await inventoryFile(t, inventory)
    await t.rejects(startOps(t, postgres, { OPS_INVENTORY: file }), { message: said })
  }
  const missing = startOps(t, postgres, { OPS_INVENTORY: '/nothing/here.json' })
  await t.rejects(missing, { message: /Inventory \/nothing\/here\.json can't be read: ENOENT/ })
})
