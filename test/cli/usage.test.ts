import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { commandTable } from '../../commands/commands.ts'
import { COMMAND_GROUPS } from '../../commands/frame/command.ts'
import { VARIABLE_NAMES, variableOf } from '../../commands/frame/configuration.ts'
import { postgres } from '../helpers/backends.ts'
import {
  FREE,
  refuseCommands,
  runCli,
  runOk,
  refusedRows,
  type RefusedCommand,
} from '../helpers/cli.ts'
import { freePort, temporaryFolder } from '../helpers/owner.ts'
import { deploymentParts, lacks } from '../runner/system-parts.ts'
import { ROOT, type Env } from '../helpers/program.ts'
import { startReceiver } from '../helpers/replays.ts'
import { secret } from '../helpers/secrets.ts'

const COMMANDS =
  'serve check migrate provider endpoint events forward send-sample user token link import export audit completion version help'.split(
    ' ',
  )

t.test('help fits a screen, and leads to groups, commands and settings', async (t) => {
  const screen = await runOk('help')
  for (const flag of ['--help', '-h']) t.equal((await runCli(flag)).stdout, screen.stdout, flag)
  const names = (await commandTable.all()).map(({ name }) => name)
  const lists = await Promise.all(
    COMMAND_GROUPS.map(async (group) => (await runOk(`help ${group}`)).stdout),
  )
  t.ok(screen.stdout.split('\n').length < 25)
  for (const line of [screen.stdout, ...lists].join('').split('\n')) t.ok(line.length <= 80, line)
  // What the screen names is there.
  const named = /^(?:hooks|links|ops|house| ) {2,6}([a-z][a-z-]*(?: [a-z]+)?)/gm
  for (const [, name = ''] of screen.stdout.matchAll(named)) {
    t.ok(name.startsWith('gatehouse') || names.includes(name), name)
  }
  for (const name of names) {
    const list = lists.filter((text) => new RegExp(`^${name}( |$)`, 'm').test(text))
    t.equal(list.length, 1, `${name} is in one group`)
  }

  const settings = (await runOk('help settings')).stdout.split('\n')
  for (const name of VARIABLE_NAMES) {
    const line = settings.find((text) => text.startsWith(`${name} `))
    const flag = name.toLowerCase().replace(/^gatehouse_|^ops_(?=webhook)/, '')
    const shown =
      variableOf(name).secret === true ? '(no flag)' : `--${flag.replaceAll('_', '-')} `
    t.match(line, shown, `${name} has its line`)
  }
})

t.test('a command explains itself', async (t) => {
  const { stdout } = await runOk('provider add --help')
  const form =
    'gatehouse provider add NAME [--open] [--scheme SCHEME] [--signed] [--secret FILE] [--enable]'
  t.match(stdout, form)
  t.match(stdout, /^ {2}--enable +accept deliveries at once$/m)
  t.notMatch(stdout, 'provider rotate')
  for (const words of ['help provider add', 'provider add -h', 'provider add x --help']) {
    t.equal((await runCli(words)).stdout, stdout, words)
  }
  for (const command of COMMANDS) {
    const help = await runOk(`${command} --help`)
    t.match(help.stdout, new RegExp(`^(gatehouse )?${command}\\b`))
  }
  const common = await runOk('checks add --help')
  t.match(common.stdout, /^ +--type TYPE[^]*^ +--every/m)
  t.notMatch(common.stdout, /--host|--url/)
  const ofType = await runOk('checks add --type tcp --help')
  t.match(ofType.stdout, /^ +--host TEXT +a name or an address \(needed\)/m)
  t.notMatch(ofType.stdout, '--url')
  const nested = await runOk('events list --help')
  t.match(nested.stdout, '[--header NAME[=VALUE]]\n', 'brackets within brackets stay together')
})

t.test('each command, typed wrong in five ways', async (t) => {
  const mistyped = (word: string) => word + word.slice(-1)
  const rows: (readonly [words: readonly string[], line: RegExp, see: string])[] = []
  for (const { name, args = {}, flags = {} } of await commandTable.all()) {
    const words = name.split(' ')
    const [first = '', action] = words
    const given = Object.values(args).filter((arg) => !('repeated' in arg))
    const filled = [...words, ...given.map(() => 'x')]
    const ownHelp = name === 'help' ? 'help' : `${name} --help`
    const add = (called: readonly string[], line: string, see = ownHelp) =>
      rows.push([called, new RegExp(`^gatehouse: ${line}`), see])
    const unknown = `There is no command "${mistyped(first)}"; did you mean ${first}\\?$`
    add([mistyped(first), ...words.slice(1)], unknown, 'help')
    if (action !== undefined) {
      const line = `Unknown action "${mistyped(action)}", expected one of .*; did you mean ${action}\\?$`
      add([first, mistyped(action)], line, `help ${first}`)
    }
    const [flag, valued] = [
      Object.keys(flags)[0],
      Object.entries(flags).find(([, one]) => 'read' in one)?.[0],
    ]
    const wrongFlag = flag === undefined ? 'nothing' : mistyped(flag)
    const meant = flag === undefined ? '' : `; did you mean --${flag}\\?`
    add([...filled, `--${wrongFlag}`], `"${name}" takes no --${wrongFlag}${meant}$`)
    if (valued !== undefined) add([...filled, `--${valued}`], `--${valued} needs a value: \\S`)
    if (given.length > 0) add(words, 'Missing [A-Z]+: \\S')
    if (given.length < Object.keys(args).length) continue
    const takes = given.length === 0 ? 'none' : '[A-Z ]+'
    add([...filled, 'y'], `Too many arguments: "${name}" takes ${takes}$`)
  }
  t.ok(rows.length > 250, `${rows.length} lines`)
  const env = { GATEHOUSE_DATA_DIR: join(await temporaryFolder(t), 'none') }
  for (const [words, line, see] of rows) {
    const { code, stdout, stderr } = await runCli(words, { env })
    const [said = '', ...more] = stderr.split('\n')
    const isAsExpected = code === 2 && stdout === '' && line.test(said)
    t.ok(isAsExpected, `${words.join(' ')}: ${String(line)}, said: ${said}`)
    t.same(more, [`See: gatehouse ${see}`, ''], words.join(' '))
  }
  t.notOk(existsSync(env.GATEHOUSE_DATA_DIR))
})

t.test('a command that had no database says that it made one', async (t) => {
  const folder = await temporaryFolder(t)
  const env = { GATEHOUSE_DATA_DIR: folder }
  const line = `gatehouse: made a new, empty database in ${folder}; `
  t.match(await runCli('user list', { env }), { code: 0, stderr: line })
  t.notMatch(await runCli('user list', { env }), { stderr: line }, 'once')
})

t.test('without its server, its database or its address, a command says what to do', async (t) => {
  const { port } = await startReceiver(t)
  const away = await freePort()
  const taken: Env = { ...FREE, HOOKS_ADDR: `127.0.0.1:${port}`, ...(await postgres.env(t)) }
  const nobody = `no server answers at http://127.0.0.1:${away} (ECONNREFUSED): start it with gatehouse serve, or name a running one by --from`
  const unreachable = /ECONNREFUSED.*\): start it, or correct DATABASE_URL$/
  await refuseCommands(t, undefined, [
    ...['list', 'show 1', 'payload 1', 'list --follow'].map((words): RefusedCommand => [
      { args: `events ${words}`, env: { HOOKS_ADDR: `127.0.0.1:${away}` } },
      1,
      nobody,
    ]),
    ...['provider list', 'user list', 'checks list', 'migrate', 'serve hooks'].map(
      (args): RefusedCommand => [
        { args, env: { ...FREE, DATABASE_URL: `postgres://gatehouse@127.0.0.1:${away}/none` } },
        1,
        unreachable,
      ],
    ),
    [
      { args: 'serve hooks', env: taken },
      1,
      `HOOKS_ADDR: another program listens on 127.0.0.1:${port} (ss -ltnp names it): stop it, or set HOOKS_ADDR (--hooks-addr) to another address`,
    ],
    [
      'migrate --hooks-addr 8080',
      1,
      'HOOKS_ADDR is not valid (it has no port from 0 to 65535): expected host:port, unix:/path, ',
    ],
  ])
})

t.test('the man pages have every command, flag and variable', async (t) => {
  const { stdout } = await runOk('help --man')
  for (const command of COMMANDS) t.match(stdout, `\ngatehouse ${command.replace('-', '\\-')}`)
  t.match(stdout, '\n\\-\\-skip\\-failed\n')
  t.notMatch(stdout, /^ \(/m, 'each member of a check says what it is for')
  const page = await runOk('help --man-settings')
  for (const name of VARIABLE_NAMES) t.match(page.stdout, new RegExp(`\n${name}(, |\n)`))
  t.match(page.stdout, '\nHOOKS_ADDR, \\-\\-hooks\\-addr\n')
  t.match(page.stdout, '; a secret, without a flag; counts from the next start\n')
  if (spawnSync('man', ['--version']).status !== 0) return
  const folder = await temporaryFolder(t)
  const options = {
    encoding: 'utf8',
    env: { ...process.env, LC_ALL: 'C', MANWIDTH: '90' },
  } as const
  const shown = [stdout, page.stdout].map((text, at) => {
    const file = join(folder, `page.${at}`)
    writeFileSync(file, text)
    const { stdout: rendered, stderr } = spawnSync('man', ['--warnings', '-l', file], options)
    t.equal(stderr, '', 'troff has no complaints')
    return rendered
  })
  t.match(shown[0], 'gatehouse provider add NAME [--open]')
  t.match(shown[1], /HOOKS_ADDR, --hooks-addr\n.*default\s+127\.0\.0\.1:8080/)
})

t.test('completion, as bash has it', async (t) => {
  const { stdout } = await runOk('completion bash')
  for (const [line, offered] of [
    ['gatehouse se', 'serve\nsend-sample\n'],
    ['gatehouse provider r', 'rotate\nremove\n'],
    ['gatehouse provider add shop --se', '--secret\n'],
    ['gatehouse user role ann@example.com a', 'admin\n'],
    // The name of a file.
    ['gatehouse import links', '\n'],
  ] as const) {
    const words = line.split(' ')
    const call = `COMP_WORDS=(${line}); COMP_CWORD=${words.length - 1}; _gatehouse`
    const script = `${stdout}\n${call}\nprintf '%s\\n' "\${COMPREPLY[@]}"`
    const shell = spawnSync('bash', ['--norc', '-u', '-c', script], { encoding: 'utf8' })
    t.match(shell, { status: 0, stderr: '' }, line)
    t.equal(shell.stdout, offered, line)
  }
  const { stdout: zsh } = await runCli('completion zsh')
  t.match(zsh, /^#compdef gatehouse\n/)
  t.ok(zsh.includes(stdout) && zsh.includes('bashcompinit'))
  if (lacks(deploymentParts.zsh) === false) {
    const words = 'COMP_WORDS=(gatehouse provider rot); COMP_CWORD=2'
    const script = `${zsh}\n${words}\nemulate ksh -c _gatehouse; print -r -- $COMPREPLY`
    const shell = spawnSync('zsh', ['-f', '-c', script], { encoding: 'utf8' })
    t.match(shell, { stdout: ' rotate ', stderr: '' }, 'the functions run in zsh')
  }
  const { stdout: fish } = await runCli('completion fish')
  t.match(fish, /^complete -c gatehouse .*'gatehouse provider'.* -a 'add list /m)
})

t.test('version prints the package’s version', async (t) => {
  const { version }: { version: string } = JSON.parse(
    readFileSync(join(ROOT, 'package.json'), 'utf8'),
  )
  for (const word of ['version', '--version']) {
    t.same(await runCli([word]), { code: 0, stdout: `${version}\n`, stderr: '' }, word)
  }
})

t.test('words and flags that a command does not take', async (t) => {
  const value = secret('given-as-flag')
  await refuseCommands(t, undefined, [
    ...refusedRows('', 2, [
      ['launch', 'There is no command "launch"'],
      ['--launch', 'There is no flag "--launch"'],
      ['help launch', 'There is no command "launch"'],
      ['serve nothing', 'SERVICE must be hooks, links or ops'],
      ['hooks nothing', '"hooks" alone runs that service, and takes no "nothing"'],
      ['hooks --nope 1', '"serve" takes no --nope'],
      ['check hook', 'SERVICE must be hooks, links or ops'],
      [`--hooks-chat-secret=${value}`, 'There is no flag "--hooks-chat-secret"'],
      [`serve --hooks-chat-secret ${value}`, '"serve" takes no --hooks-chat-secret'],
      [`--database-url=${value}`, 'There is no flag "--database-url"'],
      ['serve --hooks-addr', '--hooks-addr needs a value'],
      ['completion csh', 'SHELL must be bash, zsh or fish'],
      ['provider', 'Missing action'],
      ['provider list --json=1', '--json takes no value'],
      ['endpoint add x --allow everything', '--allow must be replay'],
      ['user role ann@example.com', 'Missing ROLE'],
      ['user role ann@example.com owner', 'ROLE must be user or admin'],
      ['token revoke one', 'ID must be the id of a token; see: gatehouse token list EMAIL'],
      ['import', 'Missing FILE: a file, - is standard input'],
      ['import a --owner ann', '--owner must be an e-mail address'],
      ['export --format json', '--format must be jsonl or csv'],
    ]),
    ...refusedRows('token create ann@example.com', 2, [
      ['--scope write', '--scope must be full, read or create'],
      ['--name a\u0007', '--name must have no control characters'],
      ['--expires soon', '--expires must be a time with its zone such as '],
      ['--expires 999999999d', '--expires must be a time'],
      ['--expires 2020-01-31T12:00:00Z', '--expires must be in the future'],
      ['--expires 0', '--expires must be in the future'],
    ]),
    ...['forward http://127.0.0.1:1/hook', 'events list'].map((words): RefusedCommand => [
      `${words} --from http://ann:${value}@127.0.0.1:1`,
      2,
      '--from has a password, which others can see: give it by -',
    ]),
    ...[
      'provider add a --scheme github --secret - --answer-body -',
      'destination set a --authorization - --headers -',
    ].map((args): RefusedCommand => [{ args, input: 'text' }, 2, /can't all read standard input/]),
  ])
})

t.test('wrong usage of provider', async (t) => {
  const value = secret('given-as-flag')
  const noArgument = '--secret must be - for standard input'
  const body = '--answer-body must be text of 4096 bytes at most'
  const overlap =
    '--overlap must be a whole number with s, m, h or d, such as 90s, 15m, 24h or 7d, 30d at most'
  await refuseCommands(t, undefined, [
    ...refusedRows('provider', 2, [
      ['add a --open --signed', '--open and --signed exclude each other'],
      [`add a --signed --secret ${value}`, noArgument],
      [`rotate a --secret=${value}`, noArgument],
      ['rotate a --overlap 1w', overlap],
      ['rotate a --overlap 31d', overlap],
      ['alarm a', 'Missing --expect, --burst or --off'],
      ['alarm a --expect 1w', '--expect must be a whole number with'],
      ['alarm a --burst x', '--burst must be a whole number'],
      ['alarm a --off --burst 1', '--off turns both alarms off'],
      ['set a', 'Missing --methods, --answer-status, --answer-body, --usual-answer or --topics'],
      ['set a --usual-answer --answer-status 200', '--usual-answer takes'],
      ['set a --methods GET,TRACE', '--methods must be some of GET, POST, PUT'],
      ['set a --methods GET,,PUT', '--methods must be some of GET'],
      ['set a --answer-status 302', '--answer-status must be 200 to 299, or 400 to 599'],
      ['set a --answer-type text/html', '--answer-type must be text/plain, '],
      ['set a --answer-type text/plain', '--answer-type needs --answer-body: '],
      ['add a --answer-status 204 --answer-body x', '--answer-body must be empty'],
      ['add a --scheme ebay', '--scheme must be the name of a sender, such as github'],
      ['add a --scheme github --open', '--open and --scheme exclude each other'],
      ['add a --scheme github --signed', '--signed is --scheme standard: give one of the two'],
      ['add a --scheme github --header X-A', '--header is for the scheme hmac alone'],
      ['add a --scheme hmac', '--header is missing: it names where the signature is'],
    ]),
    ...refusedRows('provider add a --scheme hmac --header', 2, [
      ['X:A', '--header must be the name of a header'],
      ['Host', '--header must be a header of this sender: every request has host'],
    ]),
    ...refusedRows('provider add a --scheme hmac --header X-Own', 2, [
      ['--encoding base32', '--encoding must be hex, base64 or base64url'],
      ['--algorithm sha1', '--algorithm must be sha256 or sha512 (SHA-1 is refused: '],
      ['--prefix a"b', '--prefix must be up to 64 letters'],
      ['--signed-text {timestamp}.{body}', '--timestamp-header is missing: --signed-text has'],
      ['--signed-text {id}.{body}', '--id-header is missing: --signed-text has {id}'],
      ['--signed-text {body}.{timestamp}', '--signed-text must be what is signed, such as'],
      [
        '--signed-text {id}{timestamp}{body}',
        '--signed-text must be what is signed, such as {body}, {timestamp}.{body} or {id}.{timestamp}.{body}: {id} is followed by a full stop',
      ],
      ['--timestamp-header X-T', '--timestamp-header needs {timestamp} in --signed-text: '],
      [
        '--event-type-json type --event-type-header X-T',
        '--event-type-json and --event-type-header exclude each other',
      ],
      ['--event-type-json a..b', '--event-type-json must be the path of a member'],
      ['--id-header x-own', '--id-header must be another header than that of header'],
    ]),
    [
      { args: 'provider add a --secret -', input: value },
      2,
      '--secret is for --scheme: a token is made here',
    ],
    ...['x'.repeat(4_097), 'a\0b'].map((input): RefusedCommand => [
      { args: 'provider set a --answer-body -', input },
      2,
      body,
    ]),
  ])
})

t.test('wrong usage of forward', async (t) => {
  const form = 'TARGET must be an http:// or https:// URL without credentials'
  const from = '--from must be an http:// or https:// URL, or unix:/path'
  const program = '--exec takes no TARGET; arguments of the program come after --'
  const file = '--exec must be a program that can be run: a path, or a name in PATH'
  const name = '--name must have 1 to 200 characters, and no control characters'
  await refuseCommands(t, undefined, [
    ...refusedRows('forward', 2, [
      ['', 'Missing TARGET: an http:// or https:// URL'],
      ['http://h/ -- more', 'Words after -- are arguments of a program: give it'],
      ['--exec sh more', program],
      ['--exec /nowhere/sh', file],
      ['--exec /', file],
      ['--exec', '--exec needs a value: run this program for each event'],
      ['localhost:3000', form],
      ['http://me:pass@localhost/', form],
    ]),
    ...refusedRows('forward http://localhost:3000/hook', 2, [
      [
        '--timeout 0',
        '--timeout must be a whole number with s, m, h or d, such as 90s, 15m, 24h or 7d, from 1s to 7d',
      ],
      ['--timeout 8d', '--timeout must be'],
      ['--from ftp://localhost/', from],
      ...['unix:', 'unix:run/a', 'unix://run/a', 'unix:/', 'unix:/a:b', 'unix:/a?b'].map(
        (path) =>
          [
            `--from ${path}`,
            '--from unix:/path takes no spaces, colons or special characters',
          ] as const,
      ),
      ['--from --json', '--from needs a value: the server, '],
      [`--text ${'x'.repeat(501)}`, '--text may have 500 characters at most'],
      ['--json-member data.object', '--json-member must be path=value, such as'],
      ['--retries 1.5', '--retries must be a whole number'],
      ['--since now', '--since must be the id of an event'],
      ['--name=', name],
    ]),
  ])
})
