import { t } from 'tap'
import { eachBackend } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { ackOf, createSender, keepAlive, send } from '../helpers/deliveries.ts'
import { extent } from '../helpers/program.ts'
import { follow } from '../helpers/replays.ts'
import { apiOf } from '../helpers/api.ts'
import { allIn, request } from '../helpers/http.ts'
import { leadsTo, linksServer, makeLink } from '../helpers/links.ts'
import { opsServer, startGate, trigger, type Session } from '../helpers/ops.ts'
import { noFailureIn } from '../helpers/outages.ts'
import { keepSecret, secret } from '../helpers/secrets.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { postForm, signatureHeaders } from '../helpers/hooks.ts'
import { openStream } from '../helpers/sse.ts'
import { until } from '../helpers/until.ts'
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder, type Owner } from '../helpers/owner.ts'

// While the server runs its clock is set forward and back, by hours, days and a year. Each time:
// - ids go on in order, and the stream brings each event once, in order, without a gap;
// - signatures with a time are held against the clock as it is now; a token ends by it, and is good
//   again when the clock is set back before its end;
// - a session that runs is not ended for it, and the schedule goes on;
// - what is young stays, also when retention runs under the wrong clock;
// - the live status goes on, a changed link is seen, a cursor from before leads on, each event is in the
//   log once, and pages show no negative or missing time;
// - nothing crashes, and nothing is answered 500.

const [HOUR, DAY] = [3_600_000, 24 * 3_600_000]
const YEAR = 365 * DAY
const AHEAD = extent({
  short: [YEAR, -3 * HOUR],
  long: [3 * HOUR, 0, -3 * HOUR, 3 * DAY, -3 * DAY, YEAR, 0, -YEAR, YEAR],
})
const PAGES = {
  hooks: ['/', '/log', '/providers', '/settings'],
  links: ['/-/'],
  ops: ['/', '/sessions'],
}
const WRONG_TIME = /Invalid Date|NaN|[>\s]-\d+ ?(ms|s|m|min|h|d|days?|hours?|minutes?|seconds?)\b/
const INTERVAL_S = 2

await eachBackend(t, 'a clock that is set', async (t, backend) => {
  const clock = await openSetClock(t)
  const [sender, key, gate] = [createSender(), secret('payments'), await startGate(t)]
  const env = {
    ...(await backend.env(t)),
    ...sender.env,
    HOOKS_PAYMENTS_SECRET: key,
    OPS_INTERVAL: String(INTERVAL_S),
    OPS_INVENTORY: gate.inventory,
  }
  const server = await startServerProcess(t, { env: { ...env, ...clock.env } })
  const { hooks, links } = server
  const { api } = opsServer(server, env)
  const service = linksServer(server, env)
  const ann = await service.user('ann')
  const link = await makeLink(ann, 'moves', { url: 'https://first.test/' })
  const made = await runCli(['token', 'create', ann.email, '--expires', '10d'], {
    env,
    secretShown: true,
  })
  const mortal = apiOf(links, keepSecret('token', made.stdout.trim()))
  const agent = keepAlive(t, 1)
  const live = follow(t, `${hooks}/events`)
  const ids: number[] = []
  async function deliver(count: number) {
    for (const one of await sender.deliveries(count)) {
      const answer = await send(agent, hooks, one)
      t.equal(answer.status, 202, 'a delivery')
      ids.push(ackOf(one, answer).id)
    }
  }
  const pay = async (at: number) => {
    const body = JSON.stringify({ id: `evt_${Math.random()}`, type: 'charge.succeeded' })
    const signed = signatureHeaders('payments', body, {
      secret: key,
      at: Math.floor(at / 1_000),
    })
    const headers = { 'Content-Type': 'application/json', ...signed }
    const answer = await request(`${hooks}/webhooks/payments`, { method: 'POST', headers, body })
    if (answer.status === 202) ids.push(answer.json<{ id: number }>().id)
    return answer.status
  }
  const sessions = async () =>
    (await api<{ sessions: readonly Session[] }>('GET', '/sessions?limit=100')).json.sessions
  /** Not the first of the list: that is the one with the latest start, by whatever the clock said then. */
  const present = async () => (await sessions()).find(({ status }) => status === 'running')

  await deliver(5)
  const cursor = nextOf((await request(`${hooks}/log?limit=2`)).text)
  for (const ahead of AHEAD) {
    await t.test(`${ahead / HOUR} hours ahead`, async (t) => {
      // One of the schedule looks at no check whose state is young.
      const held = async () => gate.waiting() > 0 || ((await trigger({ api })) && false)
      await until(held, 'a session to run')
      const running = await present()
      t.ok(running)
      clock.set(ahead)
      const now = () => Date.now() + ahead
      const follows = async () => {
        const stream = await openStream(t, `${hooks}/events`)
        const { data } = await stream.until(({ event }) => event === 'status')
        stream.close()
        const { generated_at }: { generated_at: string } = JSON.parse(data)
        return Math.abs(Date.parse(generated_at) - now()) < 10_000
      }
      await until(follows, 'the live status to have the new time')

      await deliver(5)
      t.equal(await pay(now()), 202, 'signed by the clock as it is now')
      t.equal(await pay(now() + 2 * HOUR), 401, 'signed ahead of it')
      t.equal(await pay(now() - 2 * HOUR), 401, 'stale by it')
      t.equal((await mortal('GET', '/users/me')).status, ahead > 10 * DAY ? 401 : 200, 'a token')

      const url = `https://at-${Math.abs(ahead)}.test/`
      t.equal((await ann.api('PUT', `/links/${link.id}`, { url })).status, 200)
      await until(async () => (await leadsTo(links, '/moves')) === url, 'a change to be seen')

      const saved = await postForm(hooks, '/settings', { retention_max_age_days: '1' })
      t.equal(saved.status, 200, 'which has retention run')
      t.equal((await request(hooks + cursor)).status, 200, 'a cursor from before')
      for (const [name, paths] of Object.entries(PAGES)) {
        for (const path of paths) {
          const { status, text } = await request(server[name as keyof typeof PAGES] + path)
          t.equal(status, 200, `${name} ${path}`)
          t.notMatch(text.replaceAll(/<(script|style).*?<\/\1>/gs, ''), WRONG_TIME)
        }
      }

      await gate.pass()
      const ended = await until(async () => {
        const status = (await sessions()).find(({ id }) => id === running?.id)?.status
        return status !== 'running' && status
      }, 'the session to end')
      t.equal(ended, 'completed', 'the session')
      const goesOn = async () =>
        (await sessions()).some(
          ({ id, trigger }) => trigger === 'scheduled' && id > (running?.id ?? 0),
        )
      await until(goesOn, 'the schedule to go on', 20_000)
    })
  }
  gate.open()

  t.same(
    ids,
    ids.toSorted((a, b) => a - b),
    'ids in order',
  )
  const first = ids[0] ?? 0
  t.same(
    ids,
    ids.map((_, at) => first + at),
    'and without a hole',
  )
  await until(() => live.ids.at(-1) === ids.at(-1), 'the stream to have all')
  t.same(live.ids, ids, 'each once and in order')
  t.same(await logOf(hooks), ids, 'the log has each once')
  noFailureIn(t, server)
  t.same(await server.stop(), { code: 0, signal: null })
})

function nextOf(text: string) {
  return (
    /href="(\/log\?[^"]*cursor=[^"]*)"/.exec(text)?.[1]?.replaceAll('&amp;', '&') ?? '/no-next'
  )
}

/** All ids of the log, page by page, in their order. */
async function logOf(base: string) {
  const ids: number[] = []
  for (let path = '/log?limit=4'; path !== '/no-next';) {
    const { text } = await request(base + path)
    const links = allIn(text, /href="\/log\/(\d+)"/g).map(Number)
    ids.push(...new Set(links))
    path = nextOf(text)
  }
  return ids.toSorted((a, b) => a - b)
}

/** A server's wall clock, which a test sets while the server runs. */
type SetClock = {
  /** Goes to the server's variables. */
  env: Record<string, string>
  /** From now on the clock is so far ahead of the right time; negative: behind. */
  set(aheadMs: number): void
}

/**
 * A module that all threads of the server load gives them another `Date`, whose distance from the right
 * time stands in a file. Nothing else tells the program the time of day, and the embedded engine asks
 * `Date` too. libfaketime would do it for any program, but gets between the threads and the time-outs of
 * their locks; here timers and `performance.now()` stay what they are, as when a real clock is set.
 */
async function openSetClock(t: Owner): Promise<SetClock> {
  const file = join(await temporaryFolder(t, 'clock'), 'ahead')
  const set = (aheadMs: number) => {
    writeFileSync(`${file}.new`, String(aheadMs))
    renameSync(`${file}.new`, file)
  }
  set(0)
  const inside = `
    import { readFileSync } from 'node:fs'
    const Real = globalThis.Date
    let [ahead, read] = [0, -Infinity]
    const now = () => {
      if (performance.now() - read > 10) {
        ahead = Number(readFileSync(${JSON.stringify(file)}, 'utf8'))
        read = performance.now()
      }
      return Real.now() + ahead
    }
    const Set = new Proxy(Real, {
      construct: (_, args, made) =>
        Reflect.construct(Real, args.length === 0 ? [now()] : args, made === Set ? Real : made),
      apply: () => new Real(now()).toString(),
      get: (_, name) => (name === 'now' ? now : Real[name]),
    })
    globalThis.Date = Set`
  const preload = `--import=data:text/javascript,${encodeURIComponent(inside)}`
  return { env: { NODE_OPTIONS: preload }, set }
}
