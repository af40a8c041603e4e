import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t, type Test } from 'tap'
import { claudeResult, openAgentOps } from '../helpers/agents.ts'
import { postgres } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { calls, refusal, says, startModel, type Call } from '../helpers/model.ts'
import { ended, inventoryFile, runSession, sessionsOf, startOps, trigger } from '../helpers/ops.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import type { Env } from '../helpers/program.ts'
import { startReceiver } from '../helpers/replays.ts'
import { keepSecret, secret } from '../helpers/secrets.ts'

/** With what every encoding writes in another way. */
const awkward = keepSecret('chat', `Kq7&/+ "é%${randomBytes(12).toString('base64')}?=Zx9`)
/** So long that many of them fit into a line once they are redacted. */
const plain = keepSecret('model', randomBytes(60).toString('hex'))
const agentKey = secret('agent')
const database = await postgres.env(t)
const results = await temporaryFolder(t, 'results')
const ops = await openAgentOps(t, postgres, {
  ...database,
  OPS_CHAT_API_KEY: awkward,
  OPS_MODEL_KEY: plain,
  ANTHROPIC_API_KEY: agentKey,
  // A secret that only looks like a URL: its % begins no encoded byte.
  HOOKS_CHAT_SECRET: 'https://user:100%@example.com',
  OPS_RESULTS_DIR: results,
})
const { agent, api, server } = ops

const TABLES =
  'ops.sessions ops.session_lines ops.events ops.memories ops.actions ops.checks notices.notices'

/** Every row of the tables of ops, as one text. */
async function storedTexts(env: Env) {
  const rows = await Promise.all(
    TABLES.split(' ').map((table) => postgres.query(env, `select * from ${table}`)),
  )
  return JSON.stringify(rows)
}

/** Everything that the service keeps or shows. */
async function everything(): Promise<ReadonlyMap<string, string>> {
  const places = new Map<string, string>()
  places.set('database', await storedTexts(database))
  for (const { id } of await sessionsOf(ops)) {
    places.set(`file of ${id}`, readFileSync(join(results, `session-${id}.ndjson`), 'utf8'))
    places.set(`session ${id}`, (await api('GET', `/sessions/${id}`)).text)
    places.set(`stream of ${id}`, (await request(`${ops.base}/sessions/${id}/stream`)).text)
  }
  for (const path of ['/sessions', '/events', '/memories']) {
    places.set(path, (await api('GET', path)).text)
  }
  places.set('log', server.logs().join('\n'))
  return places
}

/** None of these texts stands anywhere, raw or as JSON has it. */
async function nowhere(t: Test, texts: readonly string[]) {
  for (const [place, held] of await everything()) {
    const found = texts.filter(
      (text) => held.includes(text) || held.includes(JSON.stringify(text).slice(1, -1)),
    )
    t.same(found, [], place)
  }
}

const session = (prompt?: string) => runSession(ops, prompt)

/** Runs a session whose agent says a text in each way that it has. */
function sessionThatSays(said: (kind: string) => string, prompt: string, ...more: object[]) {
  const content = [{ type: 'tool_result', content: said('tool') }]
  agent.says([
    ...said('raw line').split(/\r?\n/),
    { type: 'assistant', message: { content: [{ type: 'text', text: said('text') }] } },
    { type: 'user', message: { content } },
    ...more,
    claudeResult({ result: said('result') }),
  ])
  return session(prompt)
}

function textsOf(id: number) {
  return ops
    .lines(id)
    .map(({ text }) => text)
    .join('\n')
}

/** A secret in each form that is looked for, by the form's name. */
function formsOf(text: string): Readonly<Record<string, string>> {
  const encoded = encodeURIComponent(text)
  const base64 = (before: string) => Buffer.from(`${before}${text}, and more`).toString('base64')
  return {
    raw: text,
    'URL-encoded': encoded,
    'URL-encoded in small letters': encoded.replaceAll(/%../g, (hex) => hex.toLowerCase()),
    'in JSON': JSON.stringify(text).slice(1, -1),
    base64: base64(''),
    'base64 one byte later': base64('u'),
    'base64 two bytes later': base64('u:'),
    base64url: Buffer.from(`x${text}y`).toString('base64url'),
    hex: Buffer.from(text).toString('hex'),
  }
}

/** What of a form only the secret decides: the ends of base64 depend on what stands beside it. */
function heartOf(form: string) {
  return form.slice(12, 28)
}

for (const [name, text] of Object.entries({ awkward, agentKey })) {
  t.test(`a secret in each form (${name})`, async (t) => {
    const forms = Object.entries(formsOf(text))
    const said = (kind: string) =>
      forms.map(([form, written]) => `${kind}, ${form}: <${written}> end`).join('\n')
    const prompt = `Use ${text} and ${encodeURIComponent(text)}`
    const field = forms.map(([, written]) => written)
    const done = await sessionThatSays(said, prompt, { type: 'unknown', field })
    t.match(done, { status: 'completed', prompt_text: 'Use «redacted» and «redacted»' })
    const put = textsOf(done.id)
    for (const [form] of forms) {
      for (const kind of ['raw line', 'text', 'tool']) {
        t.match(put, new RegExp(`${kind}, ${form}: <.{0,12}«redacted».{0,16}> end`))
      }
    }
    await nowhere(
      t,
      forms.map(([, written]) => heartOf(written)),
    )
  })
}

/** Text with a line break after each so many characters. */
function wrapped(text: string, width: number, lineBreak: string) {
  return text.match(new RegExp(`.{1,${width}}`, 'g'))?.join(lineBreak) ?? ''
}

t.test('an encoded secret over several lines', async (t) => {
  const bytes = Buffer.from(`user:${plain}, and more`)
  const texts = [bytes.toString('base64'), bytes.toString('base64url'), bytes.toString('hex')]
  const breaks = ['\n', '\r\n', '\n    ', String.raw`\n`, String.raw`\r\n`, String.raw`\\n`]
  const forms = texts.flatMap((text) =>
    breaks.flatMap((lineBreak) => [76, 60, 8].map((width) => wrapped(text, width, lineBreak))),
  )
  const said = forms.map((form, at) => `form ${at}: <${form}>`).join('\n')
  const { id, status, prompt_text } = await sessionThatSays(() => said, said)
  t.equal(status, 'completed')
  t.equal(prompt_text?.split('\n').length, said.split('\n').length, 'lines stay lines')
  const put = textsOf(id)
  for (const at of forms.keys()) {
    const marked = put.match(new RegExp(`form ${at}: <[^<>«]*(?:«redacted»[^<>«]*)+>`, 'g'))
    t.equal(marked?.length, 3, `raw lines, text and tool, form ${at}`)
  }
  // The ends depend on what stands beside the secret: 16 characters, and what may be cut in two there.
  const hearts = texts.flatMap((text) => text.slice(24, -40).match(/.{8}/g) ?? [])
  await nowhere(t, hearts)
})

t.test('a secret that comes in pieces', async (t) => {
  const half = Math.floor(plain.length / 2)
  const [first, second] = [plain.slice(0, half), plain.slice(half)]
  const delta = (content: string) =>
    JSON.stringify({ type: 'message', role: 'assistant', content, delta: true })
  const escaped = [...plain].map(
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  writeFileSync(join(agent.folder, 'unknown'), `{"type":"unknown","text":"${escaped.join('')}"}\n`)
  agent.does(`printf '%s' 'chunks <${first}'; sleep 0.3; echo '${second}>'
printf '%s' 'aside <${first}' >&2; sleep 0.3; echo between; sleep 0.3; echo '${second}>' >&2
echo '${delta(`parts <${first}`)}'; echo between >&2; sleep 0.3; echo '${delta(`${second}>`)}'
cat ${agent.folder}/unknown
printf '%s\\n' 'colours <${first}\u001b[31m${second}>' 'hidden <${first}\u200b${second}>'
echo '{"type":"result","status":"success","stats":{}}'
`)
  const { id, status } = await session()
  t.equal(status, 'completed')
  const put = textsOf(id)
  for (const form of ['chunks', 'aside', 'parts', 'colours', 'hidden']) {
    t.match(put, `${form} <«redacted»>`, form)
  }
  t.match(put, '{"type":"unknown","text":"«redacted»"}')
  await nowhere(t, [first, second])
})

t.test('a secret at the cut of a line', async (t) => {
  // Around what a line keeps, around what is read of one, and where redaction makes the text shorter.
  const starts = [16_384, 65_536, 65_536 + awkward.length].flatMap((start) =>
    [0, 1, 5, 20, plain.length - 1].map((before) => start - before),
  )
  const read = 1024 * 1024
  const texts = [...starts, read - 1, read - 20].map((at) => `${'x'.repeat(at)}${plain} end`)
  const noisy = [0, 200, 500].map(
    (before) => `${'\u001b[0m'.repeat(16_384)}${'y'.repeat(before)}${plain}`,
  )
  agent.says([...texts, ...noisy, claudeResult()])
  const { id, status } = await session()
  t.equal(status, 'completed')
  const put = ops.lines(id)
  t.equal(put.length, texts.length + noisy.length + 1)
  for (const { text } of put) t.ok(Buffer.byteLength(text) <= 16_384, 'a line is bounded')
  await nowhere(t, [plain.slice(0, 8), plain.slice(-8)])
})

t.test('a secret that a model or a tool echoes is kept nowhere', async (t) => {
  // Few characters a chunk: the secret comes in pieces.
  const model = await startModel(t, undefined, { chunk: 5 })
  const key = model.env['OPS_MODEL_KEY'] ?? ''
  const base64 = Buffer.from(`user:${key}`).toString('base64')
  const forms = [key, encodeURIComponent(key), base64, Buffer.from(key).toString('base64url')]
  const echo = `seen ${forms.join(' and ')} here`
  const folder = await temporaryFolder(t, 'secrets')
  writeFileSync(join(folder, 'leak.conf'), `first\nkey = ${key}\n${echo}\n`)
  const results = join(folder, 'results')
  const print = ['node', '-e', 'console.log(process.argv[1]); process.exit(4)', echo]
  const operation = { name: 'restart', action_type: 'restart', argv: print }
  const ops = await startOps(t, postgres, {
    ...model.env,
    OPS_REPOS_DIR: folder,
    OPS_UNSANDBOXED: 'true',
    OPS_RESULTS_DIR: results,
    OPS_INVENTORY: await inventoryFile(t, {
      services: [{ name: 'shop', checks: [], operations: [operation] }],
      readonly: [['echo']],
    }),
  })
  await ended(ops)
  const told: string[] = []
  const list: readonly Call[] = [
    ['read_file', { path: 'leak.conf' }],
    ['run_readonly', { argv: ['echo', echo] }],
    ['record_event', { level: 'critical', message: echo, service: key }],
    ['remember', { category: 'behavior', observation: echo, service: key }],
    ['run_operation', { service: 'shop', operation: 'restart', reason: echo }],
    [key, { [key]: key }],
    ['recall', `{"service": "${key}`],
  ]
  const up: Call = ['escalate', { reason: echo, findings: `${echo}\n${echo}` }]
  model.answer(({ tier, step, results }) => {
    told.push(...results)
    if (tier < 3) return calls(up)
    return step === 0 ? calls(...list) : says(`All: ${echo}`)
  })
  await trigger(ops, `why does ${key} not work?`)
  const last = await ended(ops)
  t.match(last, { tier: 3, status: 'completed', num_turns: 2 })
  t.equal(told.length, list.length)
  model.answer([refusal(400, { message: `bad key ${echo}` })])
  t.match(await runSession(ops), { status: 'failed' })

  const stored = await storedTexts(ops.env)
  const files = readdirSync(results).map((name) => readFileSync(join(results, name), 'utf8'))
  t.match(stored, 'seen «redacted» and «redacted» and')
  t.match(files.join(), /All: seen «redacted»[^]*bad key seen «redacted»/)
  const prompts = model.asked.map(({ prompt }) => prompt)
  const middle = Buffer.from(key).toString('base64').slice(4, 20)
  for (const place of [stored, ...files, ...ops.server.logs(), ...told, ...prompts]) {
    for (const form of [...forms, middle]) t.notMatch(place, form)
  }
})

t.test('no half of a secret stays where an error of the endpoint is cut', async (t) => {
  const key = secret('model-key')
  const headers = { 'content-type': 'text/plain' }
  // 300 characters are told, and 10,000 bytes are read.
  const bodies = [`${'x'.repeat(290)}${key}`, `${' '.repeat(9_990)}${key}`]
  const { url } = await startReceiver(t, (_, response) => {
    response.writeHead(400, headers).end(bodies.pop())
  })
  const env = { OPS_MODEL_URL: `${url}/v1`, OPS_MODEL_KEY: key }
  const ops = await startOps(t, postgres, env)
  t.match(await ended(ops), { status: 'failed' })
  t.match(await runSession(ops), { status: 'failed' })
  const stored = await storedTexts(ops.env)
  t.match(stored, /x{290}«redacted»/)
  t.notMatch(stored, key.slice(0, 10))
})
