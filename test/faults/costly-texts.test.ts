import { Agent, get } from 'node:http'
import { t, type Test } from 'tap'
import { embedded, postgres } from '../helpers/backends.ts'
import { CHAT_KEY } from '../helpers/alerts.ts'
import { addProvider } from '../helpers/hooks.ts'
import { request, type RequestOptions } from '../helpers/http.ts'
import { linksServer } from '../helpers/links.ts'
import { startModel } from '../helpers/model.ts'
import { ended, opsServer, trigger } from '../helpers/ops.ts'
import type { Owner } from '../helpers/owner.ts'
import { extent } from '../helpers/program.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { openDoctor } from '../helpers/vitals.ts'
import { PAYLOADS, SHAPES } from './costly-texts.ts'

// One thread serves all: no text from outside may hold it. Every face that reads a text gets texts
// made to cost, and every page that shows one is asked for, on one server, while hooks is asked for
// its health. The longest waits are printed. They are no assertion: machines differ.

/** In characters: a payload or an alert, a model's answer, a prompt, and what a header may have. */
const SIZE = {
  payload: extent({ short: 300_000, long: 900_000 }),
  answer: 200_000,
  prompt: 60_000,
  line: 12_000,
}
/** No page shows more, whatever it was given. */
const MAX_PAGE = 3 * 1024 * 1024
/** All texts together have more than ten times as much. */
const MAX_GROWTH_MIB = 10
/** Only for a thread that is held for minutes. */
const TIMEOUT_MS = 300_000
const WAITS_SHOWN = 15

const model = await startModel(t)
const doctor = await openDoctor(t)
const database = await extent({ short: postgres, long: embedded }).env(t)
const env = {
  ...database,
  ...doctor.env,
  ...model.env,
  OPS_CHAT_API_KEY: CHAT_KEY,
  OPS_MAX_TURNS: '4',
}
const server = await startServerProcess(t, { env })
const ops = opsServer(server, env)
const links = linksServer(server, database)
const ann = await links.user('ann')
await addProvider(server.hooks, 'open', { open: true })
await ended(ops)
/** Its answer waits for the database, too, which the embedded engine's upkeep holds at times. */
const health = watch(t, `${server.hooks}/healthz`)
/** This one's waits for the thread alone. */
const thread = watch(t, `${server.hooks}/unknown`)
const waits: { what: string; ms: number; threadMs: number }[] = []
const all = { ...SHAPES, ...PAYLOADS }
/** For each face a text of the kind that it takes apart. The long run sends all texts to each. */
const QUICK: Readonly<Record<string, string>> = {
  payload: 'members below a long name',
  line: 'nested objects',
  alert: 'nested objects',
  prompt: 'bold marks',
  answer: 'keys, then values',
}
const isLong = extent({ short: false, long: true })

function startWait() {
  health.longest()
  thread.longest()
}

/** Notes how long hooks did not answer since the wait was started. */
function noteWait(what: string) {
  waits.push({ what, ms: health.longest(), threadMs: thread.longest() })
}

type Work = (text: (size: number) => string) => Promise<void>

/** Does something with each text. */
async function eachText(face: string, work: Work) {
  for (const [shape, text] of Object.entries(all)) {
    if (!isLong && shape !== QUICK[face]) continue
    startWait()
    await work(text)
    noteWait(`${face}: ${shape}`)
  }
}

/** Sends a request, whose answer may be a refusal, and gives the answer. */
async function ask(t: Test, url: string, options: RequestOptions = {}) {
  const answer = await request(url, { timeoutMs: TIMEOUT_MS, ...options })
  const { pathname, search } = new URL(url)
  const path = (pathname + search).slice(0, 60)
  t.ok(answer.status < 500, `${path} is answered ${answer.status}`)
  t.ok(answer.body.length < MAX_PAGE, `${path} has ${answer.body.length} bytes`)
  return answer
}

/** A payload of hooks: received, listed, shown, compared with another one. */
async function asPayload(t: Test) {
  await eachText('payload', async (text) => {
    const ids: number[] = []
    for (const end of ['', '\n1']) {
      const body = text(SIZE.payload) + end
      const url = `${server.hooks}/webhooks/generic/open`
      const made = await ask(t, url, { method: 'POST', body })
      ids.push(made.json<{ id: number }>().id)
    }
    const [first, second] = ids
    const event = `/log/${first}`
    const pages = [event, `${event}?compare=${second}`, `${event}?raw=1`, `/log?open=${first}`]
    for (const path of [...pages, `/api/v1/events/${first}`]) await ask(t, server.hooks + path)
  })
}

/** The payloads of all shapes are looked through. */
async function asSearch(t: Test) {
  for (const search of ['text=zzz', 'json=zzz%3D1']) {
    startWait()
    const headers = { 'HX-Request': 'true' }
    await ask(t, `${server.hooks}/log?${search}&limit=2`, { headers })
    noteWait(`search: ${search}`)
  }
}

/** In what comes in one line: paths, queries and headers of all services, and fields of links. */
async function asLine(t: Test) {
  await eachText('line', async (text) => {
    const line = encodeURIComponent(text(SIZE.line).slice(0, SIZE.line / 3)).slice(0, SIZE.line)
    for (const base of [server.hooks, server.links, server.ops]) {
      await ask(t, `${base}/${line}`)
      await ask(t, `${base}/?q=${line}`)
      const headers = { authorization: `Bearer ${line}`, cookie: line, 'content-type': line }
      await ask(t, `${base}/`, { headers })
    }
    for (const field of ['slug', 'url', 'title', 'description', 'tags']) {
      const value = field === 'tags' ? [text(SIZE.line)] : text(SIZE.line)
      const link = { slug: 'costly', url: 'https://example.com/', [field]: value }
      t.ok((await ann.api('POST', '/links', link)).status < 500)
    }
    const query = encodeURIComponent(text(1_000).slice(0, 1_000).toWellFormed())
    await ask(t, `${server.links}/-/?q=${query}`)
    await ask(t, `${server.hooks}/log?text=${query}&header=${query}&event_type=${query}`, {
      headers: { 'HX-Request': 'true' },
    })
  })
}

const OPS_PAGES = ['/', '/sessions', '/alerts', '/events', '/memories', '/waiting']

async function showOps(t: Test, session: number | null) {
  const pages = session === null ? OPS_PAGES : [`/sessions/${session}`, ...OPS_PAGES]
  for (const path of pages) await ask(t, server.ops + path)
}

/** An alert, of which a session begins. */
async function asAlert(t: Test) {
  model.answer(['Something is wrong with the shop. Check it.'])
  await eachText('alert', async (text) => {
    const answer = await ask(t, `${server.ops}/api/v1/webhook`, {
      method: 'POST',
      headers: { authorization: `Bearer ${CHAT_KEY}` },
      body: text(SIZE.payload),
    })
    const { session_id } = answer.json<{ session_id: number | null }>()
    if (session_id !== null) await ended(ops, session_id, TIMEOUT_MS)
    await showOps(t, session_id)
  })
}

/** What a person asks, and a memory. */
async function asPrompt(t: Test) {
  model.answer(['All is well.'])
  await eachText('prompt', async (text) => {
    const prompt = text(SIZE.prompt)
    const made = await ops.api<{ id: number }>('POST', '/sessions/trigger', { prompt })
    const memory = { category: 'behavior', observation: text(SIZE.line) }
    t.ok((await ops.api('POST', '/memories', memory)).status < 500)
    if (made.status === 201) await ended(ops, made.json.id, TIMEOUT_MS)
    await showOps(t, made.status === 201 ? made.json.id : null)
  })
}

/** The answer of a model. */
async function asAnswer(t: Test) {
  await eachText('answer', async (text) => {
    model.answer([text(SIZE.answer)])
    const { id } = await trigger(ops)
    await ended(ops, id, TIMEOUT_MS)
    await showOps(t, id)
  })
}

/** Asks for an address again and again, one request after the other. */
function watch(owner: Owner, url: string) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  let longest = 0
  let began = performance.now()
  let isOver = false
  function next() {
    if (isOver) return
    began = performance.now()
    const asked = get(url, { agent }, (answer) => {
      answer.resume().on('end', () => {
        longest = Math.max(longest, performance.now() - began)
        next()
      })
    })
    // The server has ended: the test's own requests tell so.
    asked.on('error', () => undefined)
  }
  next()
  owner.teardown(() => {
    isOver = true
    agent.destroy()
  })
  return {
    /** The longest wait in ms since this was asked before, the one that lasts included. */
    longest() {
      const ms = Math.max(longest, performance.now() - began)
      longest = 0
      return ms
    },
  }
}

await t.test('no text holds the thread', async (t) => {
  // The engine and the compiled code take their memory first.
  if (isLong) await asPayload(t)
  waits.length = 0
  const before = await doctor.examine(server.pid)
  await asPayload(t)
  await asSearch(t)
  await asLine(t)
  await asAlert(t)
  await asPrompt(t)
  await asAnswer(t)
  const grown = (await doctor.examine(server.pid)).heap - before.heap
  t.ok(!isLong || grown < MAX_GROWTH_MIB, `memory grew by ${grown.toFixed(1)} MiB`)
  t.equal(await request(`${server.hooks}/healthz`).then(({ status }) => status), 200)
  const longest = waits.toSorted((a, b) => b.ms - a.ms).slice(0, WAITS_SHOWN)
  for (const { what, ms, threadMs } of longest) {
    process.stderr.write(`${ms.toFixed(0)} ms, the thread ${threadMs.toFixed(0)} ms: ${what}\n`)
  }
})
