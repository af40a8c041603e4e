import { join } from 'node:path'
import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { request } from '../helpers/http.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { exitOf, spawnProgram } from '../helpers/program.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { until } from '../helpers/until.ts'

const [embedded] = backends
const LIMIT = 1024 * 1024

t.test('what comes over the socket is bounded, and a file of any size is not', async (t) => {
  const env = await embedded.env(t)
  const server = await startServerProcess(t, { services: ['links'], env })
  const socketPath = join(env['GATEHOUSE_DATA_DIR'] ?? '', 'control.sock')
  const send = async (body: string): Promise<readonly string[]> => {
    const { text } = await request('http://control/', { method: 'POST', body, socketPath })
    return text.trimEnd().split('\n')
  }
  const words = JSON.stringify(['user', 'add', 'a'.repeat(LIMIT)])
  t.match(await send(`${words}\n`), [/"err","gatehouse: The command is too long"/, '{"code":2}'])
  t.match(await send('{}\n'), [/must be a list of words/, '{"code":2}'])
  t.match(await send('nothing\n'), [/"err"/, '{"code":1}'])
  const file = `slug,url\n${'x'.repeat(4 * LIMIT)}\n`
  const asked = await send(`${JSON.stringify(['import', '-'])}\n${file}`)
  t.match(asked, [/2 {2}refused .* is longer than 1 MiB/, /refused 1/, '{"code":1}'])

  // A command that has had enough does not wait for the rest of its input.
  const early = spawnProgram(['import', '-', '--owner', 'no@example.com'], env)
  early.stdin.write('slug,url\n')
  t.match(await exitOf(early), { code: 1 })

  const cut = spawnProgram(['import', '-', '--owner', 'operator@localhost'], env)
  const ended = exitOf(cut)
  let [said, problem] = ['', '']
  cut.stdout.setEncoding('utf8').on('data', (text: string) => (said += text))
  cut.stderr.setEncoding('utf8').on('data', (text: string) => (problem += text))
  cut.stdin.on('error', () => undefined)
  const lines = Array.from({ length: 1_100 }, (_, at) => `l${at},https://l.test/${at}`)
  cut.stdin.write(`slug,url\n${lines.join('\n')}\n`)
  await until(() => said.includes('l999 ') || said.includes('l999\n'), 'the first thousand lines')
  await server.kill()
  t.match(await ended, { code: 1 }, 'a server that dies in between is a failure')
  t.match(problem, /^gatehouse: \S/)
  const rows = await embedded.query(env, 'select count(*)::int as n from links.links')
  t.same(rows[0]?.['n'], 1_000, 'what was reported is done, and nothing else')
  cut.stdin.destroy()
})

t.test('a command that says more than its caller has taken waits, each time anew', async (t) => {
  const env = await embedded.env(t)
  const server = await startServerProcess(t, { services: ['links'], env })
  const description = 'x'.repeat(1_900)
  // More parts than Node lets listeners wait for one event without a warning.
  const lines = Array.from({ length: 6_500 }, (_, at) => `l${at},https://l.test/,${description}`)
  const input = `slug,url,description\n${lines.join('\n')}\n`
  const filled = await runCli(['import', '-', '--owner', 'operator@localhost'], { env, input })
  t.equal(filled.code, 0)
  const { code, stdout } = await runCli(['export'], { env })
  t.equal(code, 0)
  t.equal(stdout.split('\n').length, lines.length + 2)
  t.same(
    server.logs().filter((line) => !line.startsWith('{')),
    [],
    'Node warns of nothing',
  )
})

t.test('a data directory whose name is too long for a socket', async (t) => {
  const folder = join(await temporaryFolder(t), 'x'.repeat(110))
  const env = { GATEHOUSE_DATA_DIR: folder }
  t.match(await runCli(['user', 'add', 'ann@example.com'], { env }), { code: 0 })
  t.match(await runCli(['user', 'list'], { env }), { code: 0, stdout: /ann@example\.com/ })
})
