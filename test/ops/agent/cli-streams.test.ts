import { join } from 'node:path'
import { t } from 'tap'
import { claudeResult, openAgentOps } from '../../helpers/agents.ts'
import { postgres } from '../../helpers/backends.ts'
import { eventsOfSession, runSession, type Session } from '../../helpers/ops.ts'
import { ROOT } from '../../helpers/program.ts'

const ops = await openAgentOps(t, postgres)
const { agent, lines } = ops
const END = claudeResult()
const LAST = 'All well.'
const LONGEST = 16 * 1024

/** Runs a session that ends like this, with this event if that is named; gives what it put out. */
async function ends(expected: object, message?: string) {
  const session = await runSession(ops)
  t.match(session, expected, message ?? '')
  if (message !== undefined) t.match(await eventsOfSession(ops, session.id), [{ message }])
  return { id: session.id, texts: lines(session.id).map(({ text }) => text) }
}

const COMPLETED = { status: 'completed' }

/** What a session put out whose agent prints these lines, then its result. */
async function put(printed: readonly (object | string)[]) {
  agent.says([...printed, END])
  const { texts } = await ends(COMPLETED)
  t.equal(texts.at(-1), LAST, 'the output is whole')
  return texts.slice(0, -1)
}

/** A command that prints the captured stream of a real agent. */
const cat = (name: string) => `cat ${join(ROOT, 'test/fixtures/agents', `${name}.ndjson`)}\n`

/** A line of an agent that says this. */
function says(text: string): object {
  return { type: 'assistant', message: { content: [{ type: 'text', text }] } }
}

const CAPTURED: readonly (readonly [
  name: string,
  expected: Partial<Session>,
  output: readonly (string | RegExp)[],
])[] = [
  [
    'claude_tier1',
    { status: 'completed', cost_usd: 0.00028, num_turns: 2, exit_code: 0 },
    [
      '"subtype":"ui_invalidate"',
      /^system claude 2\.1\.\S+, model claude-haiku-5-5$/,
      'tool Bash {"command":"echo mock-ran","description":"mock"}',
      'result mock-ran',
      'turn Turn 1',
      'text Service nginx is healthy.',
    ],
  ],
  [
    // Its total has the parent's cost in it; only what it added is charged.
    'claude_resumed_tier2',
    { status: 'completed', cost_usd: 0.0028, num_turns: 1, exit_code: 0 },
    ['system claude 2.1', 'text Service nginx is healthy.'],
  ],
  [
    'claude_429',
    { status: 'failed', cost_usd: null, num_turns: null, exit_code: 1 },
    [
      'ui_invalidate',
      'system claude 2.1',
      ...[1, 2, 3, 4, 5, 6].map((at) => `error retry ${at} of 10: rate_limit (429)`),
      /^error Session failed: the agent ended without a result \(exit code 1\).*rate_limit/,
    ],
  ],
  [
    'codex',
    { status: 'completed', cost_usd: null, num_turns: 2, exit_code: 0 },
    [
      'system codex, thread 01a1fbe8',
      'error Model metadata for `gpt-5-mock` not found',
      "tool /bin/bash -lc 'echo mock-ran'",
      'result mock-ran',
      'turn Turn 1',
      'text Service nginx is healthy.',
    ],
  ],
  [
    'opencode',
    { status: 'completed', cost_usd: 0.0028, num_turns: 2, exit_code: 0 },
    [
      'tool bash {"command":"echo mock-ran","description":"mock"}',
      'result mock-ran',
      'turn Turn 1: 1,240 tokens, $0.0014',
      'text Service nginx is healthy.',
      'turn Turn 2: ',
    ],
  ],
  [
    'gemini',
    { status: 'completed', cost_usd: null, num_turns: 2, exit_code: 0 },
    [
      'system gemini, model gemini-2.5-flash',
      'tool run_shell_command {"command":"echo mock-ran","description":"mock"}',
      'result mock-ran',
      'turn Turn 1',
      'text Service nginx is healthy.',
    ],
  ],
]

for (const [name, expected, output] of CAPTURED) {
  t.test(`the captured stream ${name}`, async (t) => {
    agent.does(`${cat(name)}exit ${expected.exit_code}\n`)
    const { id } = await ends(expected)
    const shown = lines(id).filter(({ text }) => text !== '')
    t.equal(shown.length, output.length, 'every line is there')
    const texts = shown.map(({ kind, text }) => `${kind} ${text}`)
    t.match(texts, output)
  })
}

t.test('a refused key stops the agent, which would retry for minutes', async () => {
  agent.does(`${cat('claude_401')}exec sleep 600\n`)
  const stopped = { status: 'failed', cost_usd: null, num_turns: null }
  await ends(stopped, 'key is refused: authentication_failed (401)')
})

t.test('the result line outranks the exit code', async () => {
  agent.says([END], 3)
  await ends({ status: 'completed', exit_code: 0, cost_usd: 0.25 })
  agent.says([claudeResult({ is_error: true, result: 'It went wrong.' })])
  await ends({ status: 'failed', exit_code: 0, cost_usd: 0.25 }, 'It went wrong.')
})

t.test('no result is a failure, whatever the exit code', async () => {
  agent.says([{ type: 'system', subtype: 'init', model: 'm' }])
  await ends({ status: 'failed', exit_code: 0 }, 'without a result (exit code 0)')
  agent.does('exit 7\n')
  await ends({ status: 'failed', exit_code: 7 })
  agent.does('kill -9 $$\n')
  await ends({ status: 'failed', exit_code: 137 })
})

t.test('lines that nobody knows are stored and harm nothing', async (t) => {
  const deep = '['.repeat(20_000) + ']'.repeat(20_000)
  agent.says([
    'Warning: not JSON at all',
    '{"type":"cut off',
    deep,
    'null',
    { type: 'tomorrow', what: { a: 1 } },
    { type: 'assistant', message: { content: 'no list' } },
    { type: 'user', message: null },
    { type: 'result' },
    { type: 'step_finish', sessionID: 's', part: null },
    END,
  ])
  const { texts } = await ends({ status: 'completed', cost_usd: null, num_turns: 1 })
  t.same(texts.slice(0, 2), ['Warning: not JSON at all', '{"type":"cut off'])
  t.ok(texts.includes('{"type":"tomorrow","what":{"a":1}}'))
})

t.test('what no count of turns and no known price can be is null', async () => {
  const none = { modelUsage: {}, model_usage_since_last_result: undefined }
  const odd = { odd: { costUSD: 3, costBasis: 'unknown' } }
  for (const fields of [
    { ...none, num_turns: 2.5, total_cost_usd: -1 },
    { ...none, num_turns: 1e10, total_cost_usd: 1e300 },
    { num_turns: -3, modelUsage: odd, model_usage_since_last_result: odd },
  ]) {
    agent.says([claudeResult(fields)])
    await ends({ status: 'completed', num_turns: null, cost_usd: null })
  }
})

t.test('the errors of the agents', async () => {
  const end = (subtype: string) =>
    claudeResult({ is_error: true, result: undefined, errors: ['Reached it'], subtype })
  const opencode = { name: 'E', data: { message: 'no key' } }
  for (const [why, said] of Object.entries({
    'turn cap': end('error_max_turns'),
    'budget is spent': end('error_max_budget_usd'),
    'Reached it': end('error_during_execution'),
    'stream lost': { type: 'turn.failed', error: { message: 'stream lost' } },
    'no key': { type: 'error', sessionID: 's', error: opencode },
    quota: { type: 'result', status: 'error', error: { message: 'quota' }, stats: {} },
  })) {
    agent.says([said], 1)
    await ends({ status: 'failed', exit_code: 1 }, why)
  }
})

t.test('what a terminal acts on is taken out', async (t) => {
  const noisy = [
    ['\u001b[1;31mred\u001b[0m and \u001b[38;5;12mblue\u001b[m', 'red and blue'],
    ['\u001b[2J\u001b[Hcleared\u001b[?25l', 'cleared'],
    ['\u001b]0;title\u0007after a title', 'after a title'],
    ['tags \u{e0041}\u{e0042}, soft\u00ad hyphen, \u2028', 'tags , soft hyphen, '],
    ['bell\u0007 back\u0008 delete\u007f', 'bell back delete'],
    ['user\u202egpj.exe\u202c', 'usergpj.exe'],
    ['zero\u200bwidth\u200d \ufeffmark\u2060', 'zerowidth mark'],
    ['\u001b(Bplain\u001b)0 \u001b7saved\u001b8 \u001b#8\u001b=keys\u001bc', 'plain saved keys'],
    ['Ünïcödé 漢字 🙂 stays', 'Ünïcödé 漢字 🙂 stays'],
  ] as const
  const plain = noisy.map(([raw]) => raw)
  const expected = noisy.map(([, clean]) => clean)
  t.same(await put([...plain, ...plain.map(says)]), [...expected, ...expected])
})

t.test('lines end with LF, CRLF or CR: nothing hides behind a progress bar', async (t) => {
  const bar = 'harmful\rharmless\r10 %\r100 %'
  const texts = await put([says('one\n\ntwo\r\nthree'), bar, 'windows\r'])
  t.equal(texts.join('|'), 'one||two|three|harmful|harmless|10 %|100 %|windows')
})

t.test('a line has 16 KiB at most, cut between characters', async (t) => {
  const fits = 'x'.repeat(LONGEST)
  const texts = await put([
    fits,
    `${fits}x`,
    // Every place within a character of 2, 3 and 4 bytes comes to lie on the border.
    ...['é', '漢', '🙂'].flatMap((char) =>
      [0, 1, 2, 3].map((before) => 'y'.repeat(before) + char.repeat(9_000)),
    ),
  ])
  t.equal(texts[0], fits, 'one that fits is whole')
  for (const text of texts.slice(1)) {
    const bytes = Buffer.byteLength(text)
    t.ok(bytes <= LONGEST && bytes > LONGEST - 8, `${bytes} bytes`)
    t.ok(
      text.endsWith('…') && text.isWellFormed() && !text.includes('\ufffd'),
      'a whole character',
    )
  }
})

t.test('what the database can’t keep harms no session', async (t) => {
  const odd = 'nul <\u0000>, half a pair <\ud83d> and <\ude42>'
  agent.says([says(odd), { type: 'unknown', odd }, claudeResult({ result: `Sum: ${odd}` })])
  const { id, texts } = await ends(COMPLETED)
  const clean = 'nul <>, half a pair <\ufffd> and <\ufffd>'
  t.same(texts, [clean, `{"type":"unknown","odd":"${clean}"}`, `Sum: ${clean}`])
  const rows = await ops.query('select summary from ops.sessions where id = $1', [id])
  t.same(rows, [{ summary: `Sum: ${clean}` }])
})

t.test('bytes that are no UTF-8, standard error, and no line end at the end', async (t) => {
  agent.does(`echo 'a warning' >&2; sleep 0.2
printf 'bad \\377\\376 bytes\\n'; printf '%s' '${JSON.stringify(END)}'
`)
  const { id } = await ends(COMPLETED)
  t.match(lines(id), [
    { kind: 'error', text: 'a warning' },
    { text: 'bad \ufffd\ufffd bytes' },
    { kind: 'text', text: LAST },
  ])
})

t.test('an output that is too long is cut, and says where, in file and database', async (t) => {
  const long = Array.from({ length: 900 }, (_, at) => `line ${at} ${'x'.repeat(10_000)}`)
  agent.says([...long, END])
  const { id, texts } = await ends(COMPLETED)
  const cut = texts.findIndex((text) => text.startsWith('Output too long: cut here.'))
  t.ok(cut > 0, 'it says where it is cut')
  t.match(lines(id)[cut], { kind: 'system' })
  t.same(texts.slice(0, cut), long.slice(0, cut), 'its beginning is there')
  const [, omitted = ''] = /^(\d+) lines are left out here\.$/.exec(texts[cut + 1] ?? '') ?? []
  const end = texts.slice(cut + 2)
  t.same(end, [...long.slice(cut + Number(omitted)), LAST], 'and its end')
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  t.ok(bytes > 8_000_000 && bytes < 8.2 * 1024 * 1024, `${bytes} bytes`)
  const stored = 'select text from ops.session_lines where session_id = $1 order by seq'
  const rows = await ops.query(stored, [id])
  const inDatabase = rows.map(({ text }) => text)
  t.same(texts, inDatabase)
})

t.test('a long message that comes in parts keeps its end, and says so', async (t) => {
  const part = (content: string) => ({ type: 'message', role: 'assistant', content, delta: true })
  const log = Array.from({ length: 40 }, (_, at) => part(`line ${at} ${'x'.repeat(4_000)}\n`))
  const result = { type: 'result', status: 'success', stats: {} }
  agent.says([...log, part('It is down.'), result])
  const { texts } = await ends(COMPLETED)
  t.ok(texts.includes('The message is longer than 64 KB: its beginning was not kept.'))
  t.ok(texts.includes('It is down.'))
})
