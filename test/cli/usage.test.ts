import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { VARIABLES } from '../../commands/configuration.ts'
import { refuseCommands, runCli, type RefusedCommand } from '../helpers/cli.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { deploymentParts, lacks } from '../runner/system-parts.ts'
import { ROOT } from '../helpers/program.ts'
import { secret } from '../helpers/secrets.ts'

const DOCUMENTED = [
  'DATABASE_URL',
  'GATEHOUSE_DATA_DIR',
  'GATEHOUSE_TRUSTED_PROXIES',
  'HOOKS_ADDR',
  'LINKS_ADDR',
  'OPS_ADDR',
  'HOOKS_BASE_URL',
  'LINKS_BASE_URL',
  'OPS_BASE_URL',
  'HOOKS_CODE_HOST_SECRET',
  'HOOKS_CODE_HOST_SECRET_PREVIOUS',
  'HOOKS_PAYMENTS_SECRET',
  'HOOKS_PAYMENTS_SECRET_PREVIOUS',
  'HOOKS_CHAT_SECRET',
  'HOOKS_CHAT_SECRET_PREVIOUS',
  'GATEHOUSE_SECRET_KEY',
  'HOOKS_ROTATION_OVERLAP_S',
  'HOOKS_MAX_BODY',
  'HOOKS_FRESHNESS_S',
]
const COMMANDS = [
  ...[
    'serve',
    'check',
    'migrate',
    'provider',
    'endpoint',
    'events',
    'forward',
    'send-sample',
    'user',
  ],
  ...['token', 'link', 'import', 'export', 'audit', 'completion', 'version', 'help'],
]

t.test('help lists the commands and every variable with its flag', async (t) => {
  const { code, stdout, stderr } = await runCli(['help'])
  t.match({ code, stderr }, { code: 0, stderr: '' })
  for (const command of COMMANDS) {
    t.match(stdout, new RegExp(`^ +gatehouse \\[?${command}\\b`, 'm'), command)
  }
  t.match(stdout, /^ {2}gatehouse forward \[TARGET\] \[--exec FILE\] \[--from URL\]/m)
  for (const name of DOCUMENTED) {
    const line = stdout.split('\n').find((text) => text.trim().startsWith(`${name} `)) ?? ''
    const flag = name
      .toLowerCase()
      .replace(/^gatehouse_/, '')
      .replaceAll('_', '-')
    const secretive = name === 'DATABASE_URL' || name.includes('SECRET')
    t.match(line, secretive ? '(no flag)' : `--${flag} `, `${name} has its line`)
  }
  for (const flag of ['--webhook-model', '--webhook-system-prompt']) t.match(stdout, ` ${flag} `)
  for (const name of Object.keys(VARIABLES)) {
    t.match(stdout, new RegExp(`^ +${name} `, 'm'), `${name} is listed`)
  }
  for (const flag of ['--help', '-h']) t.equal((await runCli([flag])).stdout, stdout, flag)
})

t.test('a command explains itself', async (t) => {
  const one = await runCli(['provider', 'add', '--help'])
  t.match(one, { code: 0, stderr: '' })
  t.match(
    one.stdout,
    'gatehouse provider add NAME [--open] [--scheme SCHEME] [--signed] [--secret FILE] [--enable]',
  )
  t.match(one.stdout, /^ {2}--enable +accept deliveries at once$/m)
  t.notMatch(one.stdout, 'provider rotate')
  const ways = [
    ['help', 'provider', 'add'],
    ['provider', 'add', '-h'],
    ['provider', 'add', 'x', '--help'],
  ]
  for (const args of ways) t.equal((await runCli(args)).stdout, one.stdout, args.join(' '))

  const group = await runCli(['provider', '--help'])
  t.equal(group.code, 0)
  for (const action of ['add', 'list', 'enable', 'disable', 'rotate', 'alarm', 'remove']) {
    t.match(group.stdout, new RegExp(`^gatehouse provider ${action}\\b`, 'm'))
  }
  t.equal((await runCli(['help', 'provider'])).stdout, group.stdout)
  for (const command of COMMANDS) {
    const { code, stdout } = await runCli([command, '--help'])
    t.match({ code, stdout }, { code: 0, stdout: new RegExp(`^gatehouse ${command}\\b`) }, command)
  }
})

t.test('the man pages have every command, flag and variable', async (t) => {
  const { code, stdout } = await runCli(['help', '--man'])
  t.equal(code, 0)
  for (const command of COMMANDS) t.match(stdout, `\ngatehouse ${command.replace('-', '\\-')}`)
  t.match(stdout, '\n\\-\\-skip\\-failed\n')
  const page = await runCli(['help', '--man-settings'])
  t.equal(page.code, 0)
  for (const name of Object.keys(VARIABLES)) t.match(page.stdout, new RegExp(`\n${name}(, |\n)`))
  t.match(page.stdout, '\nHOOKS_ADDR, \\-\\-hooks\\-addr\n')
  t.match(
    page.stdout,
    /\nDATABASE_URL\n.*; a secret, without a flag; counts from the next start\n/,
  )
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
  const { code, stdout } = await runCli(['completion', 'bash'])
  t.equal(code, 0)
  const complete = (...words: readonly string[]): readonly string[] => {
    const list = words.map((word) => `'${word}'`).join(' ')
    const call = `COMP_WORDS=(${list}); COMP_CWORD=${words.length - 1}; _gatehouse`
    const script = `${stdout}\n${call}\nprintf '%s\\n' "\${COMPREPLY[@]}"`
    const shell = spawnSync('bash', ['--norc', '-u', '-c', script], { encoding: 'utf8' })
    t.same({ status: shell.status, stderr: shell.stderr }, { status: 0, stderr: '' }, call)
    return shell.stdout.trim().split('\n')
  }
  t.same(complete('gatehouse', 'se'), ['serve', 'send-sample'])
  t.same(complete('gatehouse', 'serve', 'h'), ['hooks'])
  t.same(complete('gatehouse', 'provider', 'r'), ['rotate', 'remove'])
  t.same(complete('gatehouse', 'provider', 'add', 'shop', '--se'), ['--secret'])
  t.same(complete('gatehouse', 'user', 'role', 'ann@example.com', 'a'), ['admin'])
  t.same(complete('gatehouse', 'link', 's'), ['show', 'stats'])
  t.same(complete('gatehouse', 'link', 'edit', 'docs', '--arch'), ['--archived'])
  t.same(complete('gatehouse', 'import', 'links'), [''], 'the name of a file')
  const { stdout: zsh } = await runCli(['completion', 'zsh'])
  t.match(zsh, /^#compdef gatehouse\n/)
  t.ok(zsh.includes(stdout) && zsh.includes('bashcompinit'))
  if (lacks(deploymentParts.zsh) === false) {
    const words = 'COMP_WORDS=(gatehouse provider rot); COMP_CWORD=2'
    const script = `${zsh}\n${words}\nemulate ksh -c _gatehouse; print -r -- $COMPREPLY`
    const shell = spawnSync('zsh', ['-f', '-c', script], { encoding: 'utf8' })
    t.match(shell, { stdout: / rotate /, stderr: '' }, 'the functions run in zsh')
  }
  const { stdout: fish } = await runCli(['completion', 'fish'])
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

t.test('wrong usage of commands, services and flags', async (t) => {
  const value = secret('given-as-flag')
  await refuseCommands(t, undefined, [
    [['launch'], 2, 'There is no command "launch"'],
    [['--launch'], 2, 'There is no flag "--launch"'],
    [['serve', '--launch=now'], 2, '"serve" takes no --launch'],
    [['serve', 'nothing'], 2, 'SERVICE must be hooks, links or ops'],
    [['hooks', 'nothing'], 2, 'SERVICE must be hooks, links or ops'],
    [[`--hooks-chat-secret=${value}`], 2, 'There is no flag "--hooks-chat-secret"'],
    [['serve', '--hooks-chat-secret', value], 2, '"serve" takes no --hooks-chat-secret'],
    [[`--database-url=${value}`], 2, 'There is no flag "--database-url"'],
    [['serve', '--hooks-addr'], 2, '--hooks-addr needs a value'],
    [['check', '--fast'], 2, '"check" takes no --fast'],
    [['check', 'hook'], 2, 'SERVICE must be hooks, links or ops'],
    [['migrate', 'down'], 2, 'Too many arguments'],
    [['help', 'launch'], 2, 'There is no command "launch"'],
    ...[
      ['forward', 'http://127.0.0.1:1/hook'],
      ['events', 'list'],
    ].map((words): RefusedCommand => [
      [...words, '--from', `http://ann:${value}@127.0.0.1:1`],
      2,
      '--from has a password, which others can see: give it by -',
    ]),
    [['completion', 'csh'], 2, 'SHELL must be bash, zsh or fish'],
  ])
})

t.test('wrong usage of provider', async (t) => {
  const value = secret('given-as-flag')
  const add = (...flags: readonly string[]) => ['provider', 'add', 'a', ...flags]
  const own = (...flags: readonly string[]) =>
    add('--scheme', 'hmac', '--header', 'X-Own', ...flags)
  const overlap = /^gatehouse: --overlap must be .*, 30d at most/
  const withToken = '--secret is for --scheme: a token is made here'
  const noArgument = /^gatehouse: --secret must be - for .* a secret is no argument$/
  await refuseCommands(t, undefined, [
    [['provider'], 2, 'Missing action'],
    [['provider', 'sell', 'x'], 2, 'Unknown action "sell"'],
    [['provider', 'add'], 2, 'Missing NAME'],
    [['provider', 'remove'], 2, 'Missing NAME'],
    [['provider', 'add', 'a', 'b'], 2, 'Too many arguments'],
    [['provider', 'list', 'a'], 2, 'Too many arguments'],
    [['provider', 'add', 'a', '--quick'], 2, '"provider add" takes no --quick'],
    [['provider', 'list', '--open'], 2, '"provider list" takes no --open'],
    [['provider', 'rotate', 'a', '--json'], 2, '"provider rotate" takes no --json'],
    [['provider', 'add', 'a', '--open', '--signed'], 2, '--open and --signed exclude each other'],
    [{ args: ['provider', 'add', 'a', '--secret', '-'], input: value }, 2, withToken],
    [['provider', 'add', 'a', '--signed', '--secret', value], 2, noArgument],
    [['provider', 'rotate', 'a', `--secret=${value}`], 2, noArgument],
    [add('--scheme', 'paypal'), 2, /--scheme must be the name of a sender, such as github/],
    [add('--scheme', 'github', '--open'), 2, '--open and --scheme exclude each other'],
    [
      add('--scheme', 'github', '--signed'),
      2,
      '--signed is --scheme standard: give one of the two',
    ],
    [add('--header', 'X-A'), 2, '--header is for the scheme hmac alone'],
    [add('--scheme', 'github', '--header', 'X-A'), 2, '--header is for the scheme hmac alone'],
    [add('--scheme', 'hmac'), 2, '--header is missing: it names where the signature is'],
    [own('--header', 'X A'), 2, '--header must be the name of a header'],
    [own('--encoding', 'base32'), 2, '--encoding must be hex, base64 or base64url'],
    [own('--algorithm', 'sha1'), 2, /--algorithm must be sha256 or sha512 \(SHA-1 is refused: /],
    [own('--prefix', 'a"b'), 2, /--prefix must be up to 64 letters/],
    [
      own('--signed-text', '{timestamp}.{body}'),
      2,
      /--timestamp-header is missing: --signed-text has/,
    ],
    [own('--signed-text', '{id}.{body}'), 2, '--id-header is missing: --signed-text has {id}'],
    [
      own('--signed-text', '{body}.{timestamp}'),
      2,
      /--signed-text must be what is signed, such as/,
    ],
    [own('--signed-text', '{id}{timestamp}{body}'), 2, /--signed-text must be .*full stop/],
    [own('--signed-text', '{user}.{body}'), 2, /--signed-text must be/],
    [
      own('--timestamp-header', 'X-T'),
      2,
      /--timestamp-header needs \{timestamp\} in --signed-text: /,
    ],
    [
      own('--event-type-json', 'type', '--event-type-header', 'X-T'),
      2,
      '--event-type-json and --event-type-header exclude each other',
    ],
    [own('--event-type-json', 'a..b'), 2, /--event-type-json must be the path of a member/],
    [own('--id-header', 'x-own'), 2, '--id-header must be another header than that of header'],
    [['provider', 'rotate', 'a', '--overlap', '1w'], 2, overlap],
    [['provider', 'rotate', 'a', '--overlap', '31d'], 2, overlap],
    [['provider', 'alarm', 'a'], 2, 'Missing --expect, --burst or --off'],
    [['provider', 'alarm', 'a', '--expect', '1w'], 2, /--expect must be a whole number with/],
    [['provider', 'alarm', 'a', '--burst', '-1'], 2, /--burst/],
    [['provider', 'alarm', 'a', '--burst', 'x'], 2, /--burst must be a whole number/],
    [['provider', 'alarm', 'a', '--off', '--burst', '1'], 2, /--off turns both alarms off/],
    [['provider', 'alarm', 'a', '--open'], 2, '"provider alarm" takes no --open'],
    [
      own('--header', 'Host'),
      2,
      /--header must be a header of this sender: every request has host/,
    ],
    [
      add('--scheme', 'github', '--id-header', 'Content-Length'),
      2,
      /every request has content-len/,
    ],
    ...['add', 'set'].flatMap((action): RefusedCommand[] => {
      const call = (...flags: string[]) => ['provider', action, 'a', ...flags]
      const body = '--answer-body must be text of 4096 bytes at most'
      return [
        [call('--methods', 'GET,TRACE'), 2, /--methods must be some of GET, POST, PUT/],
        [call('--methods', 'GET,,PUT'), 2, /--methods must be some of GET/],
        [call('--methods', 'HEAD'), 2, /--methods must be some of GET/],
        [call('--answer-status', '302'), 2, '--answer-status must be 200 to 299, or 400 to 599'],
        [call('--answer-type', 'text/html'), 2, /--answer-type must be text\/plain, /],
        [call('--answer-type', 'text/plain'), 2, /--answer-type needs --answer-body: /],
        [call('--answer-status', '204', '--answer-body', 'x'), 2, /--answer-body must be empty/],
        [{ args: call('--answer-body', '-'), input: 'x'.repeat(4_097) }, 2, body],
        [{ args: call('--answer-body', '-'), input: 'a\0b' }, 2, body],
      ]
    }),
    [['provider', 'set', 'a'], 2, 'Missing --methods, --answer-status, --answer-body or'],
    [
      ['provider', 'set', 'a', '--usual-answer', '--answer-status', '200'],
      2,
      /--usual-answer takes/,
    ],
    ...[
      add('--scheme', 'github', '--secret', '-', '--answer-body', '-'),
      ['destination', 'set', 'a', '--authorization', '-', '--headers', '-'],
    ].map((args): RefusedCommand => {
      return [
        { args, input: 'text' },
        2,
        /^gatehouse: --\S+ and --\S+ can't all read standard input/,
      ]
    }),
  ])
})

t.test('wrong usage of endpoint, user and token', async (t) => {
  const email = 'ann@example.com'
  const create = ['token', 'create', email]
  const time = /--expires must be a time with its zone such as .*7d/
  await refuseCommands(t, undefined, [
    [['endpoint'], 2, 'Missing action'],
    [['endpoint', 'make', 'x'], 2, 'Unknown action "make"'],
    [['endpoint', 'add'], 2, 'Missing NAME'],
    [['endpoint', 'revoke'], 2, 'Missing NAME'],
    [['endpoint', 'list', 'x'], 2, 'Too many arguments'],
    [['endpoint', 'add', 'x', 'y'], 2, 'Too many arguments'],
    [['endpoint', 'add', 'x', '--allow', 'everything'], 2, /--allow must be replay/],
    [['endpoint', 'add', 'x', '--json'], 2, '"endpoint add" takes no --json'],
    [['endpoint', 'list', '--allow', 'replay'], 2, '"endpoint list" takes no --allow'],
    [['endpoint', 'add', 'x', '--enable'], 2, '"endpoint add" takes no --enable'],

    [['user'], 2, 'Missing action'],
    [['user', 'remove', email], 2, 'Unknown action "remove"'],
    [['user', 'add'], 2, 'Missing EMAIL'],
    [['user', 'add', email, 'b@example.com'], 2, 'Too many arguments'],
    [['user', 'add', email, '--json'], 2, '"user add" takes no --json'],
    [['user', 'add', email, '--role', 'admin'], 2, '"user add" takes no --role'],
    [['user', 'list', email], 2, 'Too many arguments'],
    [['user', 'list', '--admin'], 2, '"user list" takes no --admin'],
    [['user', 'role'], 2, 'Missing EMAIL'],
    [['user', 'role', email], 2, /Missing ROLE/],
    [['user', 'role', email, 'owner'], 2, /ROLE must be user or admin/],

    [['token'], 2, 'Missing action'],
    [['token', 'show', email], 2, 'Unknown action "show"'],
    [['token', 'create'], 2, 'Missing EMAIL'],
    [['token', 'list'], 2, 'Missing EMAIL'],
    [['token', 'revoke'], 2, 'Missing ID'],
    [
      ['token', 'revoke', 'one'],
      2,
      /ID must be the id of a token; see: gatehouse token list EMAIL/,
    ],
    [[...create, 'x'], 2, 'Too many arguments'],
    [[...create, '--json'], 2, '"token create" takes no --json'],
    [['token', 'list', email, '--scope', 'read'], 2, '"token list" takes no --scope'],
    [[...create, '--scope', 'write'], 2, /--scope must be full, read or create/],
    [[...create, '--name', ' '], 2, /--name must have 1 to 100 characters/],
    [[...create, '--name', 'a\u0007'], 2, /--name must have no control characters/],
    [[...create, '--expires', 'soon'], 2, time],
    [[...create, '--expires', '999999999d'], 2, time],
    [[...create, '--expires', '3000000d'], 2, time],
    [[...create, '--expires', '2020-01-31T12:00:00Z'], 2, /--expires must be in the future/],
    [[...create, '--expires', '0'], 2, /--expires must be in the future/],
  ])
})

t.test('wrong usage of import and export', async (t) => {
  await refuseCommands(t, undefined, [
    [['import'], 2, 'Missing FILE: a file, - is standard input'],
    [['import', 'a', 'b'], 2, 'Too many arguments'],
    [['import', 'a', '--format', 'xml'], 2, /--format must be jsonl, csv, shlink or kutt/],
    [['import', 'a', '--owner', 'ann'], 2, /--owner must be an e-mail address/],
    [['import', 'a', '--force'], 2, '"import" takes no --force'],
    [['export', 'a'], 2, 'Too many arguments'],
    [['export', '--format', 'json'], 2, /--format must be jsonl or csv/],
    [['export', '--json'], 2, '"export" takes no --json'],
  ])
})

t.test('wrong usage of forward', async (t) => {
  const target = 'http://localhost:3000/hook'
  const form = 'TARGET must be an http:// or https:// URL without credentials'
  const from = '--from must be an http:// or https:// URL, or unix:/path'
  const socket = '--from unix:/path takes no spaces, colons or special characters'
  const sockets = ['unix:', 'unix:run/a', 'unix://run/a', 'unix:/', 'unix:/a b', 'unix:/a:b']
  const member = '--json-member must be path=value, such as data.object.id=evt_1'
  const long = 'x'.repeat(501)
  const program = '--exec takes no TARGET; arguments of the program come after --'
  const file = '--exec must be a program that can be run: a path, or a name in PATH'
  await refuseCommands(t, undefined, [
    [['forward'], 2, 'Missing TARGET: an http:// or https:// URL'],
    [['forward', target, 'more'], 2, 'Too many arguments'],
    [['forward', '--', target], 2, 'Missing TARGET'],
    [['forward', target, '--', 'more'], 2, 'Words after -- are arguments of a program: give it'],
    [['forward', target, '--exec', 'sh'], 2, program],
    [['forward', '--exec', 'sh', 'more'], 2, program],
    [['forward', '--exec', '/nowhere/sh'], 2, file],
    [['forward', '--exec', 'sh -c exit'], 2, file],
    [['forward', '--exec', '/'], 2, file],
    [['forward', '--exec', ''], 2, file],
    [['forward', '--exec'], 2, '--exec needs a value: run this program for each event'],
    [['forward', target, '--timeout', '90'], 2, /--timeout must be .* from 1s to 7d/],
    [['forward', target, '--timeout', '0'], 2, /--timeout must be/],
    [['forward', target, '--timeout', '8d'], 2, /--timeout must be/],
    [['forward', 'localhost:3000'], 2, form],
    [['forward', 'http://me:pass@localhost/'], 2, form],
    [['forward', target, '--from', 'localhost:8080'], 2, from],
    [['forward', target, '--from', 'ftp://localhost/'], 2, from],
    ...[...sockets, 'unix:/a?b'].map(
      (path) => [['forward', target, '--from', path], 2, socket] as const,
    ),
    [['forward', target, '--text', long], 2, '--text may have 500 characters at most'],
    [
      ['forward', target, '--json-member', `a=${long.slice(2)}`],
      2,
      '--json-member may have 500 characters at most',
    ],
    [['forward', target, '--json-member', 'data.object'], 2, member],
    [['forward', target, '--retries', 'many'], 2, /--retries must be a whole number/],
    [['forward', target, '--retries', '1.5'], 2, /--retries must be a whole number/],
    [['forward', target, '--since', 'now'], 2, /--since must be the id of an event/],
    [
      ['forward', target, '--name', ''],
      2,
      '--name must have 1 to 200 characters, and no control characters',
    ],
    [['forward', target, '--from'], 2, '--from needs a value: the server, '],
    [['forward', target, '--from', '--json'], 2, '--from needs a value: the server, '],
    [['forward', target, '--json=1'], 2, '--json takes no value'],
    [['forward', target, '--fast'], 2, '"forward" takes no --fast'],
  ])
})
