import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { browse } from '../browser/pages.ts'
import { postgres } from '../helpers/backends.ts'
import { addProvider, deliver, post, SIGNED_ENV } from '../helpers/hooks.ts'
import { identity, linksServer, makeLink } from '../helpers/links.ts'
import { calls, says, startModel } from '../helpers/model.ts'
import { ended, inventoryFile, opsServer, trigger } from '../helpers/ops.ts'
import { ROOT } from '../helpers/program.ts'
import { startServer } from '../helpers/server.ts'

// `npm run pictures`: the pictures of docs/pictures, of a day's work in all three services.

const FOLDER = join(ROOT, 'docs/pictures')
const PROVIDERS = ['ci', 'shop', 'crm', 'billing', 'monitoring', 'door-bell', 'backups', 'forms']
/** Widths and colours; only the first kind has no word in its name. */
const SHOTS = [
  ['', 1280, 'light'],
  ['-phone', 390, 'dark'],
] as const
const PAYMENTS = ['invoice.paid', 'invoice.created', 'charge.failed']
const WORDS = ['docs', 'guide', 'roadmap', 'on-call', 'payroll', 'deploy', 'kitchen', 'lunch']

const model = await startModel(t, ({ step }) => {
  if (step === 0) return calls(['list_services', {}])
  if (step === 1) return calls(['run_check', { service: 'shop', check: 'port' }])
  return says('The shop does not answer on its port. Every other service is well.')
})
const env = {
  ...SIGNED_ENV,
  ...model.env,
  ...(await postgres.env(t)),
  GATEHOUSE_TRUSTED_PROXIES: '127.0.0.0/8',
  LINKS_SHORT_KEYWORD: 'go',
}
const server = await startServer(t, {
  env: { ...env, OPS_INVENTORY: await inventoryFile(t, inventory()) },
})
await fillHooks(server.hooks)
const { email, id } = await fillLinks()
const session = await fillOps()

const PICTURES = {
  hooks: ['/', '/log', '/log/7', '/providers', '/destinations'],
  links: ['/-/', `/-/links/${id}`, '/roadmpa'],
  ops: ['/', `/sessions/${session}`, '/alerts'],
}

for (const [service, paths] of Object.entries(PICTURES)) {
  await t.test(service, async (t) => {
    const base = server[service as keyof typeof PICTURES]
    const { page } = await browse(t, base, {
      extraHTTPHeaders: identity(email),
      expectedErrors: [/404/],
    })
    mkdirSync(FOLDER, { recursive: true })
    for (const [at, path] of paths.entries()) {
      const name =
        path
          .replaceAll(id, 'link')
          .replaceAll(/\d+/g, 'one')
          .replaceAll(/[^a-z]+/g, '-')
          .replaceAll(/^-|-$/g, '') || 'home'
      // The first page of each service is also shown as on a phone.
      for (const [kind, width, colorScheme] of at === 0 ? SHOTS : SHOTS.slice(0, 1)) {
        await page.setViewportSize({ width, height: 800 })
        await page.emulateMedia({ colorScheme })
        await page.goto(base + path)
        const file = join(FOLDER, `${service}-${name}${kind}.png`)
        t.ok((await page.screenshot({ path: file })).length > 1_000, file)
      }
    }
  })
}

/** An afternoon of events of many providers, and a few deliveries that are refused. */
async function fillHooks(base: string) {
  const tokens = new Map<string, string>()
  for (const name of PROVIDERS) tokens.set(name, await addProvider(base, name))
  for (let at = 0; at < 60; at++) {
    const amount = 900 + at * 7
    await deliver(
      base,
      'payments',
      JSON.stringify({
        id: `evt_${at}`,
        type: PAYMENTS[at % 3],
        data: {
          object: {
            id: `in_${at}`,
            amount,
            currency: 'eur',
            customer: { name: 'Ada Ltd', city: 'Köln' },
          },
        },
      }),
    )
    if (at % 2 === 0) {
      await deliver(
        base,
        'code_host',
        JSON.stringify({
          ref: 'refs/heads/main',
          commits: [{ id: `${at}f3a`, message: 'Mend the door' }],
          repository: { full_name: 'acme/shop' },
        }),
        { 'X-CodeHost-Event': 'push', 'X-CodeHost-Delivery': `delivery-${at}` },
      )
    }
    const name = PROVIDERS[at % PROVIDERS.length] ?? ''
    await post(
      base,
      `generic/${name}`,
      JSON.stringify({ order: at, state: 'paid', total: amount }),
      {
        Authorization: `Bearer ${tokens.get(name)}`,
        'Content-Type': 'application/json',
        'X-Event-Type': `${name}.changed`,
      },
    )
  }
  for (let at = 0; at < 5; at++)
    await post(base, 'generic/shop', '{}', { Authorization: 'Bearer wrong' })
  await post(base, 'generic/shopp', '{}')
  await postgres.query(
    env,
    `update hooks.events e set received_at = now() - (n.newest - e.id) * interval '7 minutes'
    from (select max(id) as newest from hooks.events) n`,
  )
  await postgres.query(env, 'delete from hooks.activity', [])
  await postgres.query(
    env,
    `insert into hooks.activity (provider, minute, events)
    select provider, date_trunc('minute', received_at), count(*) from hooks.events group by 1, 2`,
  )
}

/** Links of three people; gives the e-mail address of an admin, and one of the admin's links. */
async function fillLinks() {
  const links = linksServer(server, env)
  const ann = await links.user('ann', { admin: true })
  const others = [await links.user('bob'), await links.user('carol')]
  let id = ''
  for (const [at, word] of WORDS.entries()) {
    for (const [place, suffix] of ['', '-team', '-2026'].entries()) {
      const owner = place === 0 ? ann : (others[place - 1] ?? ann)
      const title = `${word[0]?.toUpperCase()}${word.slice(1)} of the team`
      const tags = at % 2 === 0 ? ['team', 'wiki'] : ['ops']
      const made = await makeLink(owner, word + suffix, {
        title,
        tags,
        url: `https://example.com/${word}/{*}`,
        description: 'Kept up to date by everybody who uses it.',
      })
      if (at === 0 && place === 0) id = made.id
      for (let visit = 0; visit < 12 - at; visit++)
        await ann.get(`/${word}${suffix}`, { 'user-agent': 'Mozilla/5.0 Firefox/140.0' })
    }
  }
  return { email: ann.email, id }
}

/** A session of the probe's kind and one with a model that finds something; gives the id of that. */
async function fillOps() {
  const ops = opsServer(server, env)
  await ended(ops)
  await ops.api('POST', '/memories', {
    category: 'timing',
    observation: 'The nightly backup takes 40 minutes.',
    service: 'backup',
  })
  const { id: started } = await trigger(ops, 'Customers say that the shop is slow. Find out why.')
  await ended(ops, started)
  return started
}

/** Services whose checks are good, and one that fails. */
function inventory() {
  const site = (name: string, port: number) => ({
    name,
    checks: [{ type: 'tcp', name: 'port', host: '127.0.0.1', port }],
  })
  const disk = { type: 'disk', name: 'root', path: '/', max_percent: 99 }
  return {
    services: [
      { name: 'host', checks: [disk] },
      site('shop', 1),
      {
        name: 'backup',
        checks: [{ type: 'file_age', name: 'newest', path: '/etc/hostname', max_age_s: 1e9 }],
      },
    ],
  }
}
