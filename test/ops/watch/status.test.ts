import { t } from 'tap'
import { auditOf } from '../../helpers/audit.ts'
import { postgres } from '../../helpers/backends.ts'
import { FORM_TYPE } from '../../helpers/hooks.ts'
import { request, wordsOf } from '../../helpers/http.ts'
import { inventoryFile, startOps } from '../../helpers/ops.ts'
import { secret } from '../../helpers/secrets.ts'
import { until } from '../../helpers/until.ts'

const env = await postgres.env(t)
/** What nobody may read there: names of checks, addresses and messages. */
const inner = secret('inner')
const disk = (name: string) => ({ type: 'disk', name, path: '/', max_percent: 100, every: '24h' })
const OPS_INVENTORY = await inventoryFile(t, {
  services: [
    { name: 'shop', description: inner, checks: [disk(`${inner} a`), disk(`${inner} b`)] },
    { name: 'blog', checks: [disk(inner)] },
    { name: 'till', checks: [disk(`${inner} till`)] },
  ],
})

const ops = await startOps(t, postgres, {
  ...env,
  OPS_INVENTORY,
  OPS_STATUS_SERVICES: 'till, shop',
})
const { query } = ops

const read = async () => wordsOf(await ops.page('/status'))

const choose = async (status: number, ...services: readonly string[]) => {
  const body = services.map((name) => `services=${name}`).join('&')
  const sent = { method: 'POST', headers: FORM_TYPE, body }
  t.match(await request(`${ops.base}/config/status`, sent), { status })
}

const looked = 'select from ops.checks where checked_at is not null'
await until(async () => (await query(looked)).length === 4, 'the first looks')

await t.test('what is up, in the order of the setting', async (t) => {
  const text = await read()
  t.match(text, /All services are up.*till up .*shop up .*Incidents of 14 days None\./)
  t.notMatch(text, 'blog', 'a service that is not chosen')
  const answer = await request(`${ops.base}/status`, {
    headers: { 'X-Forwarded-For': '192.0.2.1' },
  })
  t.match(answer, { status: 200 }, 'anybody may read it')
  t.equal(answer.headers['cache-control'], 'public, max-age=30')
})

await t.test('a failure, maintenance, and incidents that overlap', async (t) => {
  await query(
    `with failing as (
       update ops.checks set state = 'fail', message = '${inner}' where service = 'shop' returning id, name
     ), other as (
       update ops.checks set state = 'warn' where service = 'till'
     ), periods as (
       insert into ops.check_periods (check_id, state, began_at, ended_at, message)
       select id, 'fail', now() - b * interval '1 hour', now() - e * interval '1 hour', '${inner}'
         from failing, (values ('a', 50, 48), ('b', 49, 47), ('b', 20, 19), ('a', 400, 399)) as p(which, b, e)
        where name like '% ' || which
     )
     insert into ops.mutes (service, starts_at, ends_at, reason, author)
     values ('till', now() - interval '1 hour', now() + interval '1 hour', '${inner}', '${inner}')`,
  )
  // What was read is kept for ten seconds, but for another choice.
  await choose(200, 'shop', 'till')
  const text = await read()
  t.match(text, /Down: shop.*shop down .*till maintenance impaired/)
  t.equal(text.split('was down from').length - 1, 2, 'those of 14 days, joined where they overlap')
  t.match(text, /shop was down from \S+ \S+ UTC .*for 1 h 0 min .*shop was.*for 3 h 0 min/)
})

await t.test('nothing of the inside is there', async (t) => {
  const text = await ops.page('/status')
  t.notMatch(text, inner)
  t.notMatch(text, 'disk')
  for (const address of ['/checks', '/sessions', '/audit', '/api/docs/']) t.notMatch(text, address)
})

await t.test('a page chooses the services, over the setting', async (t) => {
  await choose(200, 'blog')
  await choose(400, 'n'.repeat(201))
  t.match(await read(), 'blog up', 'what was refused changes nothing')
  t.notMatch(await read(), /shop|till/)
  const boxes = (await ops.page('/config')).matchAll(/value="(\w+)" checked/g)
  t.same(
    [...boxes].map(([, name]) => name),
    ['blog'],
  )
  await choose(200)
  t.match(await request(`${ops.base}/status`), { status: 404 }, 'none switches it off')
  const changes = (await auditOf(env, '--service', 'ops')).map(({ subject }) => subject)
  t.same([...new Set(changes), changes.length], ['status_services', 3])
})
