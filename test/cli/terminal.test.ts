import { t } from 'tap'
import { createLog } from '../../kernel/log.ts'
import { postgres } from '../helpers/backends.ts'
import { runOk, runCli, runCliProcess, type CliProcessOptions } from '../helpers/cli.ts'

/** What a terminal would obey: clear the screen, set its title, go back to the line's start, turn the text. */
const NAME = 'Ann\u001b[2J\u001b]0;x\u0007\rroot\u009b1m\u202e\nadmin@example.com  admin'
const ESCAPED =
  'Ann\\u001b[2J\\u001b]0;x\\u0007\\u000droot\\u009b1m\\u202e\\u000aadmin@example.com  admin'
const OBEYED = /[^\P{C}\n]/u

t.test('what stands in the database commands no terminal', async (t) => {
  const env = await postgres.env(t)
  await runCli('user add ann@example.com', { env })
  const line = 'docs,https://docs.example/,ann@example.com'
  const input = `slug,url,owner\n${line}\n`
  await runOk('import -', { env, input })
  await postgres.query(
    env,
    `update links.users set display_name = '${NAME}'; update links.links set title = '${NAME}'`,
  )
  const listed = await runCli('user list', { env })
  t.notMatch(listed.stdout, OBEYED)
  t.match(listed.stdout, ESCAPED)
  t.equal(listed.stdout.trimEnd().split('\n').length, 2, 'a name adds no line')

  const json = await runCli('user list --json', { env })
  t.notMatch(json.stdout, OBEYED)
  t.match(JSON.parse(json.stdout), [{ display_name: NAME }], 'the same value')

  const exported = await runOk('export', { env })
  t.ok(exported.stdout.includes(NAME), 'a file gets each byte')
  const onTerminal: CliProcessOptions = {
    env,
    program: ['script', '-qec', `${process.execPath} server.ts export`, '/dev/null'],
  }
  const shown = await runCliProcess([], onTerminal)
  t.match(shown, { code: 0 })
  // The terminal itself ends its lines with CR LF.
  t.notMatch(shown.stdout.replaceAll('\r\n', '\n'), OBEYED)
  t.match(shown.stdout, ESCAPED.replace('\\u000a', '\r\n'))
})

t.test('a line of the log has no character that a terminal obeys', async (t) => {
  let text = ''
  const log = createLog(
    (more) => (text += more),
    () => new Date(0),
  )
  log.warn('told', { error: NAME })
  log.flush()
  t.notMatch(text, OBEYED)
  t.match(JSON.parse(text), { error: NAME })
})
