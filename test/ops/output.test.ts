import { t } from 'tap'
import { claudeResult, openAgentOps } from '../helpers/agent-setup.ts'
import type { Line } from '../helpers/agent-setup.ts'
import { backends } from '../helpers/backends.ts'
import { ended, trigger } from '../helpers/ops-setup.ts'
import type { Session } from '../helpers/ops-setup.ts'

const [, postgres] = backends
const database = await postgres.env(t)
const ops = await openAgentOps(t, postgres, database)
const { agent } = ops
const END = claudeResult()
const LAST = 'All well.'
const MOST = 16 * 1024

/** What a session put out whose agent prints these lines, then its result. */
async function put(lines: readonly (object | string)[]): Promise<readonly string[]> {
  agent.says([...lines, END])
  const session = await run()
  const texts = ops.lines(session.id).map(({ text }) => text)
  t.equal(texts.at(-1), LAST, 'the output is whole')
  return texts.slice(0, -1)
}

async function run(): Promise<Session> {
  const session = await ended(ops, (await trigger(ops)).id)
  t.equal(session.status, 'completed')
  return session
}

/** A line of an agent that says this. */
function says(text: string): object {
  return { type: 'assistant', message: { content: [{ type: 'text', text }] } }
}

t.test('what a terminal acts on is taken out', async (t) => {
  const noisy: readonly (readonly [string, string])[] = [
    ['\u001b[1;31mred\u001b[0m and \u001b[38;5;12mblue\u001b[m', 'red and blue'],
    ['\u001b[2J\u001b[Hcleared\u001b[?25l', 'cleared'],
    ['\u001b]0;title\u0007after a title', 'after a title'],
    ['\u001b]8;;https://x.example\u001b\\a link\u001b]8;;\u001b\\', 'a link'],
    ['\u009b31mone byte', 'one byte'],
    ['tags \u{e0041}\u{e0042}, soft\u00ad hyphen, \u2028', 'tags , soft hyphen, '],
    ['bell\u0007 back\u0008 delete\u007f', 'bell back delete'],
    ['user\u202egpj.exe\u202c', 'usergpj.exe'],
    ['\u2066isolated\u2069 \u200fmarks\u200e', 'isolated marks'],
    ['zero\u200bwidth\u200d \ufeffmark\u2060', 'zerowidth mark'],
    ['\u001b(Bplain\u001b)0 \u001b7saved\u001b8 \u001b#8\u001b=keys\u001bc', 'plain saved keys'],
    ['twice \u001b\u001b[31mred, and cut \u001b', 'twice red, and cut '],
    ['a\ttab stays', 'a\ttab stays'],
    ['Ünïcödé 漢字 🙂 stays', 'Ünïcödé 漢字 🙂 stays'],
  ]
  const expected = noisy.map(([, clean]) => clean)
  t.same(await put(noisy.map(([raw]) => raw)), expected, 'as plain lines')
  t.same(await put(noisy.map(([raw]) => says(raw))), expected, 'as what an agent says')
})

t.test('lines end with LF, CRLF or CR: nothing hides behind a progress bar', async (t) => {
  const bar = 'harmful\rharmless\r10 %\r100 %'
  t.same(await put([says('one\ntwo\r\nthree'), bar, 'windows\r']), [
    ...['one', 'two', 'three'],
    ...['harmful', 'harmless', '10 %', '100 %', 'windows'],
  ])
  t.same(await put([says('a\n\nb')]), ['a', '', 'b'], 'an empty line stays')
})

t.test('a line has 16 KiB at most, cut between characters', async (t) => {
  const fits = 'x'.repeat(MOST)
  const texts = await put([
    ...[fits, `${fits}x`],
    // Every place within a character of 2, 3 and 4 bytes comes to lie on the border.
    ...['é', '漢', '🙂'].flatMap((char) =>
      [0, 1, 2, 3].map((before) => 'y'.repeat(before) + char.repeat(9_000)),
    ),
  ])
  t.equal(texts[0], fits, 'one that fits is whole')
  for (const text of texts.slice(1)) {
    const bytes = Buffer.byteLength(text)
    t.ok(bytes <= MOST && bytes > MOST - 8, `${bytes} bytes`)
    t.ok(text.endsWith('…') && text.isWellFormed() && !text.includes('\ufffd'), 'a whole character')
  }
})

t.test('what the database can’t keep harms no session', async (t) => {
  const odd = 'nul <\u0000>, half a pair <\ud83d> and <\ude42>'
  agent.says([says(odd), { type: 'unknown', odd }, claudeResult({ result: `Sum: ${odd}` })])
  const { id } = await run()
  const clean = 'nul <>, half a pair <\ufffd> and <\ufffd>'
  t.same(
    ops.lines(id).map(({ text }) => text),
    [clean, `{"type":"unknown","odd":"${clean}"}`, `Sum: ${clean}`],
  )
  const rows = await postgres.query(database, 'select summary from ops.sessions where id = $1', [
    id,
  ])
  t.same(rows, [{ summary: `Sum: ${clean}` }])
})

t.test('a long line that is cut within a character harms no other', async (t) => {
  // Invisible, so that the line is short where it is cut, at both places that a character can have.
  const texts = [65_000, 65_001].map((hidden) => '\u200b'.repeat(hidden) + '🙂'.repeat(5_000))
  const [even, odd] = await put([...texts.map(says)])
  t.match(even, /^🙂+…$/u)
  t.match(odd, /^🙂+\ufffd?…$/u)
})

t.test('a line that is nested beyond measure is shown as it is', async (t) => {
  const deep = '['.repeat(20_000) + ']'.repeat(20_000)
  const within = `{"type":"assistant","message":{"content":[{"type":"tool_use","input":${deep}}]}}`
  const texts = await put([deep, within])
  t.same(
    texts.map((text) => text.slice(0, 100)),
    [deep, within].map((text) => text.slice(0, 100)),
  )
})

t.test('bytes that are no UTF-8, and no line end at the end', async (t) => {
  agent.does(`printf 'bad \\377\\376 bytes\\n'; printf '%s' '${JSON.stringify(END)}'\n`)
  const { id } = await run()
  t.match(ops.lines(id), [{ text: 'bad \ufffd\ufffd bytes' }, { text: LAST }])
})

t.test('standard error is kept beside', async (t) => {
  agent.does(`echo 'a warning' >&2; sleep 0.2; echo '${JSON.stringify(END)}'\n`)
  const { id } = await run()
  t.match(ops.lines(id), [
    { kind: 'error', text: 'a warning' },
    { kind: 'text', text: LAST },
  ])
})

t.test('file and database hold the same lines, numbered from 1', async (t) => {
  agent.says([...Array.from({ length: 3_000 }, (_, at) => says(`line ${at}`)), END])
  const { id } = await run()
  const inFile = ops.lines(id)
  t.same(
    inFile.map(({ seq }) => seq),
    inFile.map((_, at) => at + 1),
  )
  t.equal(inFile.length, 3_001)
  const text =
    'select seq, at, kind, text from ops.session_lines where session_id = $1 order by seq'
  const rows = await postgres.query(database, text, [id])
  t.same(
    rows.map((row) => ({ ...row, at: row['at'] instanceof Date && row['at'].toISOString() })),
    inFile satisfies readonly Line[],
  )
})

t.test('an output that is too long is cut, and says where, in file and database', async (t) => {
  const long = Array.from({ length: 1_000 }, (_, at) => `line ${at} ${'x'.repeat(10_000)}`)
  agent.says([...long, END])
  const { id } = await run()
  const inFile = ops.lines(id)
  const texts = inFile.map(({ text }) => text)
  const cut = texts.findIndex((text) => text.startsWith('Output too long: cut here.'))
  t.ok(cut > 0, 'it says where it is cut')
  t.match(inFile[cut], { kind: 'system' })
  t.same(texts.slice(0, cut), long.slice(0, cut), 'its beginning is there')
  const [, omitted = ''] = /^(\d+) lines are left out here\.$/.exec(texts[cut + 1] ?? '') ?? []
  const end = texts.slice(cut + 2)
  t.same(end, [...long.slice(cut + Number(omitted)), LAST], 'and its end')
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  t.ok(bytes > 8_000_000 && bytes < 8.2 * 1024 * 1024, `${bytes} bytes`)
  const text = 'select text from ops.session_lines where session_id = $1 order by seq'
  const rows = await postgres.query(database, text, [id])
  t.same(
    rows.map((row) => row['text']),
    texts,
  )
})
