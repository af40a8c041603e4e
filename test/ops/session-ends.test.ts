import { t } from 'tap'
import { failedOutcome, type Job, type Outcome } from '../../services/ops/runners/runner.ts'
import { backends } from '../helpers/backends.ts'
import { openTimedSessions } from '../helpers/sessions-setup.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends
const good: Outcome = { ...failedOutcome(''), status: 'completed', problem: null, summary: 'Good.' }
let run: (job: Job) => Promise<Outcome> = async () => good
const { env, sessions, logged, start, ended, eventsOf, linesOf } = await openTimedSessions(
  t,
  'ends',
  () => ({ name: 'probe', modelOf: () => 'none', run: (job) => run(job) }),
)

/** Has the database refuse some rows of a table as if it were full, until the result is called. */
async function full(table: string, when: string): Promise<() => Promise<void>> {
  const refuse = `begin raise exception 'no space left' using errcode = '53100'; end`
  const text = [
    `create or replace function ops.refuse() returns trigger language plpgsql as $$ ${refuse} $$`,
    `create trigger refuse before insert or update on ops.${table} for each row when (${when})
       execute function ops.refuse()`,
  ]
  for (const one of text) await postgres.query(env, one)
  return async () => void (await postgres.query(env, `drop trigger refuse on ops.${table}`))
}

t.test('a session that was stopped begins no next tier', async (t) => {
  run = async (job) => {
    await new Promise((resolve) => job.signal.addEventListener('abort', resolve))
    job.escalate('too late', 'what was found')
    return good
  }
  const id = await start()
  t.ok(await sessions.stop(id))
  t.match(await ended(id), { status: 'stopped' })
  const rows = await postgres.query(env, 'select id from ops.sessions where id > $1', [id])
  t.same(rows, [])
})

t.test('an end that can’t be written at first is written later', async (t) => {
  run = async () => good
  const room = await full('sessions', `new.status <> 'running'`)
  const id = await start()
  await until(() => logged().includes('session not finished yet'), 'its failure to end')
  await room()
  t.match(await ended(id), { status: 'completed', summary: 'Good.', exit_code: 0 })
  t.same(await eventsOf(id), [])
  t.notOk(logged().includes('"session not finished"'), 'it is no error')
})

t.test('an event that can’t be written costs neither the end nor the output', async (t) => {
  run = async (job) => {
    job.output.write('text', 'looked')
    return failedOutcome('the model is gone')
  }
  const room = await full('events', 'true')
  const id = await start()
  t.match(await ended(id), { status: 'failed', exit_code: 1 })
  await room()
  t.same(await eventsOf(id), [])
  t.match(await linesOf(id), [{ text: 'looked' }, { text: 'Session failed: the model is gone' }])
})
