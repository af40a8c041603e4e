import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { ended, inventoryFile, startOps } from '../helpers/ops-setup.ts'
import { secret } from '../helpers/secrets.ts'

await t.test('what a check quotes has no secret, nor half of one where it is cut', async (t) => {
  const [, postgres] = backends
  const key = secret('model-key')
  const says = (text: string): object => {
    return { type: 'command', argv: ['sh', '-c', `echo '${text}'; exit 1`] }
  }
  // Of the last line 200 characters are quoted; without a name a check is called as its command.
  const checks = [says(`the key is ${key}`), { ...says(`${'x'.repeat(190)}${key}`), name: 'long' }]
  const ops = await startOps(t, postgres, {
    ...{ OPS_RUNNER: 'probe', OPS_MODEL_KEY: key },
    OPS_INVENTORY: await inventoryFile(t, { services: [{ name: 'shop', checks }] }),
  })
  await ended(ops)
  const events = await postgres.query(ops.env, 'select message from ops.events')
  t.equal(events.length, 2)
  for (const { message } of events) t.match(message, /«redacted»/)
  for (const table of ['events', 'sessions', 'session_lines', 'check_states', 'memories']) {
    const rows = await postgres.query(ops.env, `select * from ops.${table}`)
    t.notMatch(JSON.stringify(rows), key.slice(0, 10), table)
  }
})
