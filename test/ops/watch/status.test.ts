import { t } from 'tap'
import { auditOf } from '../../helpers/audit.ts'
import { backends } from '../../helpers/backends.ts'
import { FORM_TYPE } from '../../helpers/hooks.ts'
import { request } from '../../helpers/http.ts'
import { inventoryFile, startOps } from '../../helpers/ops.ts'
import { secret } from '../../helpers/secrets.ts'
import { until } from '../../helpers/until.ts'

const [, postgres] = backends
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

/** The page's text without marks, once it shows this. */
async function shows(line: RegExp) {
  return until(
    async () => {
      const text = await ops.page('/status')
      const plain = text.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ')
      return line.test(plain) && plain
    },
    String(line),
    30_000,
  )
}

await t.test('what is up, in the order of the setting', async (t) => {
  const text = await shows(/All services are up/)
  t.match(text, /till up .*shop up .*Incidents of 14 days None\./)
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
  const text = await shows(/Down: shop/)
  t.match(text, /till maintenance impaired .*shop down/)
  t.equal(text.split('was down from').length - 1, 2, 'those of 14 days, joined where they overlap')
  t.match(
    text,
    /shop was down from \S+ \S+ UTC .*for 1 h 0 min .*shop was down from .*for 3 h 0 min/,
  )
})

await t.test('nothing of the inside is there', async (t) => {
  const text = await ops.page('/status')
  t.notMatch(text, inner)
  t.notMatch(text, 'disk')
  for (const address of ['/checks', '/sessions', '/audit', '/api/docs/']) t.notMatch(text, address)
})

await t.test('a page chooses the services, over the setting', async (t) => {
  const choose = (...services: readonly string[]) =>
    request(`${ops.base}/config/status`, {
      method: 'POST',
      headers: FORM_TYPE,
      body: services.map((name) => `services=${name}`).join('&'),
    })
  t.match(await choose('blog'), { status: 200 })
  t.notMatch(await shows(/blog/), /shop|till/)
  const page = await request(`${ops.base}/config`)
  t.same(
    [...page.text.matchAll(/value="(\w+)" checked/g)].map(([, name]) => name),
    ['blog'],
  )
  t.match(await choose('n'.repeat(201)), { status: 400 })
  t.match(await shows(/blog/), /blog/, 'what was refused changes nothing')
  t.match(await choose(), { status: 200 })
  t.match(await request(`${ops.base}/status`), { status: 404 }, 'none switches it off')
  const changes = (await auditOf(env, '--service', 'ops')).map(({ subject }) => subject)
  t.same(changes, ['status_services', 'status_services'])
})
