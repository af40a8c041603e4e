import { existsSync, readFileSync } from 'node:fs'
import { chmod, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { t } from 'tap'
import type { Test } from 'tap'
import { openForward, recorded, startForward } from '../fixtures/forward-setup.ts'
import { processesWith } from '../helpers/agents.ts'
import { backends } from '../helpers/backends.ts'
import { addProvider, post, startHooks } from '../helpers/hooks.ts'
import type { Ack, Bytes } from '../helpers/hooks.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { startReceiver } from '../helpers/replays.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends
const { base } = await startHooks(t, postgres)
await addProvider(base, 'lan', { open: true })

/** Nobody else sleeps that long: by it the processes of a test are found. */
const long = `sleep ${700_000 + process.pid}`
const sleepers = (): readonly number[] => processesWith(long)
// When the product has failed to.
t.teardown(() => sleepers().forEach((pid) => process.kill(pid, 'SIGKILL')))

async function send(body: Bytes = '{}', type = 'note'): Promise<number> {
  const answer = await post(base, 'generic/lan', body, { 'X-Event-Type': type })
  return answer.json<Ack>().id
}

/** The command line that runs a shell script; `$1` and so on are the arguments. */
function shell(script: string, ...args: readonly string[]): readonly string[] {
  return ['--', '-c', script, 'script', ...args]
}

/** `gatehouse forward --exec sh`, under a name of its own. */
function forward(t: Test, flags: readonly string[], words: readonly string[]) {
  return openForward(t, ['--exec', 'sh', '--from', base, `--name=${t.name}`, ...flags, ...words])
}

function linesOf(file: string): readonly string[] {
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
}

/** Keeps what it is given: the bytes, and everything else. */
const KEEPS = `
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
const [folder, ...args] = process.argv.slice(2)
const { GATEHOUSE_EVENT_ID: id, GATEHOUSE_EVENT_HEADERS: file } = process.env
const chunks = []
for await (const chunk of process.stdin) chunks.push(chunk)
writeFileSync(folder + '/' + id + '.body', Buffer.concat(chunks))
const headers = JSON.parse(readFileSync(file, 'utf8'))
const mode = (statSync(dirname(file)).mode & 0o777).toString(8)
const kept = { args, environment: process.env, headers, mode }
writeFileSync(folder + '/' + id + '.json', JSON.stringify(kept))
`

interface Kept {
  args: readonly string[]
  environment: Readonly<Record<string, string>>
  headers: readonly (readonly [string, string])[]
  mode: string
}

t.test('what a program is given', async (t) => {
  const folder = await temporaryFolder(t, 'kept')
  const script = join(folder, 'keeps.mjs')
  await writeFile(script, KEEPS)
  const args = ['two words', '$HOME `id` *', `'"`, '', '--json', '--', 'é']
  const words = ['--exec', process.execPath, '--from', base, '--', script, folder, ...args]
  const forwarder = startForward(t, words, { LANG: 'C.UTF-8', DEPLOY_KEY: 'not-for-programs' })
  await forwarder.connected()
  const large = Buffer.alloc(3_000_000, 'gatehouse').fill(0, 1_000, 2_000)
  const bodies = ['', Buffer.from([0, 255, 254, 13, 10, 0x1b, 0]), `{"a":"'$(id)\\n\`"}`, large]
  for (const body of bodies) {
    const before = forwarder.lines().length
    const id = await send(body, "it's; a $(type)")
    await until(() => forwarder.lines().length > before, 'the event')
    const bytes = readFileSync(join(folder, `${id}.body`))
    t.ok(bytes.equals(Buffer.from(body)), `${bytes.length} bytes`)
    const kept: Kept = JSON.parse(readFileSync(join(folder, `${id}.json`), 'utf8'))
    t.same(kept.args, args)
    const { PATH, HOME, LANG, GATEHOUSE_EVENT_HEADERS: file = '', ...rest } = kept.environment
    t.ok(PATH && HOME && LANG)
    t.same(rest, {
      GATEHOUSE_EVENT_ID: String(id),
      GATEHOUSE_EVENT_TYPE: "it's; a $(type)",
      GATEHOUSE_EVENT_PROVIDER: 'generic:lan',
    })
    t.match(Object.fromEntries(kept.headers), { 'x-event-type': "it's; a $(type)" })
    t.equal(kept.mode, '700')
    t.notOk(existsSync(dirname(file)), 'the folder is removed')
  }
  t.same(await forwarder.stop(), { code: 0, signal: null })
})

t.test('the output of a program, and its place in the log', async (t) => {
  const script = 'echo "out\tof it"; printf "err \\033[31mof it" >&2'
  const forwarder = forward(t, [], shell(script))
  await forwarder.connected()
  const id = await send()
  await until(() => forwarder.lines().length > 0, 'a line')
  t.match(forwarder.lines(), [new RegExp(`^${id}  generic:lan  note  2 B  exit 0  \\d+ ms$`)])
  t.match(forwarder.said(), /^out {4}of it$/m)
  t.match(forwarder.said(), /^err \\u001b\[31mof it$/m)
  const [attempt] = await recorded(base, id)
  t.match(attempt, { target: 'exec:sh', outcome: 'delivered', answer: /^exit 0 in \d+ ms$/ })
  await forwarder.stop()
  const json = forward(t, ['--json'], shell(script))
  await json.connected()
  await send()
  await until(() => json.lines().length > 0, 'a line')
  const told: unknown = JSON.parse(json.lines()[0] ?? '')
  t.match(told, { status: null, exit_code: 0, attempts: 1, delivered: true })
})

t.test('a program that does not read its input', async (t) => {
  const forwarder = forward(t, [], shell('exec 0<&-; exit 0'))
  await forwarder.connected()
  await send(Buffer.alloc(3_000_000))
  await until(() => forwarder.lines().length > 0, 'a line')
  t.notMatch(forwarder.said(), /again/)
})

t.test('what fails is tried again before the next event', async (t) => {
  const folder = await temporaryFolder(t, 'seen')
  const script = 'echo "$GATEHOUSE_EVENT_ID" >> "$1/seen"; [ -e "$1/ready" ] || exit 7'
  const forwarder = forward(t, [], shell(script, folder))
  await forwarder.connected()
  const [first, second] = [await send(), await send()]
  await until(() => /: the program exited with 7; again in \d+ ms/.test(forwarder.said()), 'it')
  await writeFile(join(folder, 'ready'), '')
  await until(() => forwarder.lines().length === 2, 'both events')
  const seen = linesOf(join(folder, 'seen')).map(Number)
  t.same(seen, [...seen.slice(0, -1).fill(first), second])
  const [delivered, failed] = await recorded(base, first, 2)
  t.match(delivered, { outcome: 'delivered', answer: /^exit 0/ })
  t.match(failed, { outcome: 'failed', answer: 'none', detail: 'the program exited with 7' })
})

t.test('ways to fail', async (t) => {
  const broken = join(await temporaryFolder(t, 'broken'), 'broken')
  await writeFile(broken, '#!/nowhere/sh\n')
  await chmod(broken, 0o755)
  const cases: readonly (readonly [RegExp, string, readonly string[], readonly string[]])[] = [
    [/exited with 3/, 'sh', [], shell(`${long} & exit 3`)],
    [/was ended by SIGKILL/, 'sh', [], shell(`${long} & kill -9 $$`)],
    [/took over 1 s/, 'sh', ['--timeout', '1s'], shell(`${long} & ${long}`)],
    [/could not be started: .*ENOENT/, broken, [], []],
  ]
  for (const [problem, program, flags, words] of cases) {
    const given = ['--exec', program, '--from', base, '--name', String(problem), '--retries', '0']
    const forwarder = openForward(t, [...given, ...flags, ...words])
    await forwarder.connected()
    const id = await send()
    t.same(await forwarder.exited, { code: 1, signal: null })
    t.match(forwarder.said(), problem)
    t.match(await recorded(base, id), [{ outcome: 'failed', detail: problem }])
    await until(() => sleepers().length === 0, 'the end of its group')
  }
})

t.test('what a program leaves lives on if it exits with 0', async (t) => {
  const words = ['--exec', 'sh', '--from', base, '--name', 'leaves']
  const forwarder = startForward(t, [...words, ...shell(`${long} & exit 0`)])
  await forwarder.connected()
  await send()
  await until(() => forwarder.lines().length > 0, 'a line')
  t.same(await forwarder.stop(), { code: 0, signal: null }, 'and holds nothing up')
  const left = sleepers()
  t.equal(left.length, 1)
  for (const pid of left) process.kill(pid, 'SIGKILL')
  await until(() => sleepers().length === 0, 'its end')
})

t.test(
  'a signal ends the group of a program after five seconds, a second one at once',
  async (t) => {
    const folder = await temporaryFolder(t, 'ends')
    const script = `echo "$GATEHOUSE_EVENT_HEADERS" >> "$1/seen"; trap '' INT TERM; ${long}; :`
    const words = ['--exec', 'sh', '--from', base, '--name', 'ends', ...shell(script, folder)]
    for (const code of [0, 1]) {
      const forwarder = startForward(t, words)
      await forwarder.connected()
      if (code === 0) await send()
      await until(() => linesOf(join(folder, 'seen')).length === code + 1, 'the program to run')
      // The command line of the forwarder has these words, too, and that of the shell.
      await until(() => sleepers().length === 3, 'it to sleep')
      process.kill(forwarder.pid, 'SIGINT')
      if (code === 1) process.kill(forwarder.pid, 'SIGTERM')
      t.same(await forwarder.exited, { code, signal: null })
      await until(() => sleepers().length === 0, 'the end of the program')
      const [file = ''] = linesOf(join(folder, 'seen')).slice(-1)
      t.notOk(existsSync(dirname(file)), 'its headers are removed')
      if (code === 0) t.match(forwarder.said(), /: the program was stopped; again in/)
    }
  },
)

t.test('--coalesce passes over all but the newest', async (t) => {
  const folder = await temporaryFolder(t, 'newest')
  const hold = join(folder, 'hold')
  const script = `
    echo "$GATEHOUSE_EVENT_ID" >> "$1/seen"
    while [ -e "$1/hold" ]; do sleep 0.05; done
    [ "$GATEHOUSE_EVENT_TYPE" != bad ]`
  const seen = (): readonly number[] => linesOf(join(folder, 'seen')).map(Number)
  await writeFile(hold, '')
  const forwarder = forward(t, ['--coalesce'], shell(script, folder))
  await forwarder.connected()
  const first = await send()
  await until(() => seen().length === 1, 'the first one to run')
  const [second, newest] = [await send(), await send()]
  await rm(hold)
  await until(() => forwarder.lines().length === 2, 'two events')
  t.same(seen(), [first, newest])

  const bad = await send('{}', 'bad')
  await until(() => forwarder.said().includes(`event ${bad}: `), 'the failure')
  const good = await send()
  await until(() => forwarder.lines().length === 3, 'the newer one in its place')
  t.equal(seen().at(-1), good)
  await forwarder.stop()
  for (const id of [second, bad]) {
    const outcomes = (await recorded(base, id, 0)).map(({ outcome }) => outcome)
    t.notOk(outcomes.includes('delivered'), `${id} was passed over`)
  }

  const again = forward(t, [], shell(script, folder))
  const last = await send()
  await until(() => again.lines().length === 1, 'the next one')
  t.equal(seen().at(-1), last, 'what was passed over does not come back')
})

t.test('--coalesce and --timeout with a target', async (t) => {
  let answer: (status: number) => void = () => undefined
  const target = await startReceiver(t, (_, response) => {
    answer = (status) => response.writeHead(status).end()
  })
  const forwarder = openForward(t, [target.url, '--from', base, '--coalesce'])
  await forwarder.connected()
  await send()
  await until(() => target.received.length === 1, 'the first one')
  await send()
  const newest = await send()
  answer(500)
  await until(() => target.received.length === 2, 'the newest one')
  answer(200)
  await until(() => forwarder.lines().length === 1, 'a line')
  t.match(forwarder.lines(), [new RegExp(`^${newest}  `)])
  await forwarder.stop()

  const silent = await startReceiver(t, () => undefined)
  const flags = ['--timeout', '1s', '--since', String(newest)]
  const hurried = openForward(t, [silent.url, '--from', base, ...flags])
  await until(() => hurried.said().includes(': no answer within 1 s; again'), 'its end')
})
