import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { Variables } from '../../kernel/variables.ts'
import { refuseCommands, runCli } from '../helpers/cli.ts'
import { ROOT } from '../helpers/program.ts'
import { secret } from '../helpers/secrets.ts'

const VARIABLES = [
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
  ...['serve', 'check', 'migrate', 'provider', 'endpoint', 'forward', 'send-sample', 'user'],
  ...['token', 'import', 'export', 'version', 'help'],
]

t.test('help lists the commands and every variable with its flag', async (t) => {
  const { code, stdout, stderr } = await runCli(['help'])
  t.match({ code, stderr }, { code: 0, stderr: '' })
  for (const command of COMMANDS) {
    t.match(stdout, new RegExp(`^ +gatehouse \\[?${command}\\b`, 'm'), command)
  }
  t.match(stdout, /^ {2}gatehouse forward TARGET \[--from URL\]/m)
  for (const name of VARIABLES) {
    const line = stdout.split('\n').find((text) => text.trim().startsWith(`${name} `)) ?? ''
    const flag = name
      .toLowerCase()
      .replace(/^gatehouse_/, '')
      .replaceAll('_', '-')
    const secretive = name === 'DATABASE_URL' || name.includes('SECRET')
    t.match(line, secretive ? '(no flag)' : `--${flag} `, `${name} has its line`)
  }
  for (const flag of ['--webhook-model', '--webhook-system-prompt']) t.match(stdout, ` ${flag} `)
  for (const name of Object.keys(Variables.properties)) {
    t.match(stdout, new RegExp(`^ +${name} `, 'm'), `${name} is listed`)
  }
  for (const flag of ['--help', '-h']) t.equal((await runCli([flag])).stdout, stdout, flag)
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
    [['serve', '--launch=now'], 2, 'There is no flag "--launch"'],
    [['serve', 'nothing'], 2, 'There is no service "nothing"'],
    [['hooks', 'nothing'], 2, 'There is no service "nothing"'],
    [[`--hooks-chat-secret=${value}`], 2, 'There is no flag "--hooks-chat-secret"'],
    [['serve', '--hooks-chat-secret', value], 2, 'There is no flag "--hooks-chat-secret"'],
    [[`--database-url=${value}`], 2, 'There is no flag "--database-url"'],
    [['serve', '--hooks-addr'], 2, '--hooks-addr needs a value'],
    [['check', '--fast'], 2, '"check" takes names of services and --json'],
    [['check', 'hook'], 2, '"check" takes names of services and --json'],
    [['migrate', 'down'], 2, '"migrate" takes no argument'],
  ])
})

t.test('wrong usage of provider', async (t) => {
  const value = secret('given-as-flag')
  const overlap = /^gatehouse: --overlap must be .*, 30d at most/
  const withToken = '--secret is for --signed: a token is made here'
  await refuseCommands(t, undefined, [
    [['provider'], 2, 'Missing action'],
    [['provider', 'sell', 'x'], 2, 'Unknown action "sell"'],
    [['provider', 'add'], 2, 'Missing NAME'],
    [['provider', 'remove'], 2, 'Missing NAME'],
    [['provider', 'add', 'a', 'b'], 2, 'Too many arguments'],
    [['provider', 'list', 'a'], 2, 'Too many arguments'],
    [['provider', 'add', 'a', '--quick'], 2, /Unknown option '--quick'/],
    [['provider', 'list', '--open'], 2, '"provider list" takes no --open'],
    [['provider', 'rotate', 'a', '--json'], 2, '"provider rotate" takes no --json'],
    [['provider', 'add', 'a', '--open', '--signed'], 2, '--open and --signed exclude each other'],
    [['provider', 'add', 'a', '--secret', value], 2, withToken],
    [['provider', 'rotate', 'a', '--overlap', '1w'], 2, overlap],
    [['provider', 'rotate', 'a', '--overlap', '31d'], 2, overlap],
    [['provider', 'alarm', 'a'], 2, 'Missing --expect, --burst or --off'],
    [['provider', 'alarm', 'a', '--expect', '1w'], 2, /--expect must be a whole number with/],
    [['provider', 'alarm', 'a', '--burst', '-1'], 2, /--burst/],
    [['provider', 'alarm', 'a', '--burst', 'x'], 2, /--burst must be a whole number/],
    [['provider', 'alarm', 'a', '--off', '--burst', '1'], 2, /--off turns both alarms off/],
    [['provider', 'alarm', 'a', '--open'], 2, '"provider alarm" takes no --open'],
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
    [['endpoint', 'add', 'x', '--allow', 'everything'], 2, /--allow takes replay/],
    [['endpoint', 'add', 'x', '--json'], 2, '"endpoint add" takes no --json'],
    [['endpoint', 'list', '--allow', 'replay'], 2, '"endpoint list" takes no --allow'],
    [['endpoint', 'add', 'x', '--enable'], 2, /Unknown option '--enable'/],

    [['user'], 2, 'Missing action'],
    [['user', 'remove', email], 2, 'Unknown action "remove"'],
    [['user', 'add'], 2, 'Missing EMAIL'],
    [['user', 'add', email, 'b@example.com'], 2, 'Too many arguments'],
    [['user', 'add', email, '--json'], 2, '"user add" takes no --json'],
    [['user', 'add', email, '--role', 'admin'], 2, /Unknown option '--role'/],
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
    [['import'], 2, 'Missing FILE; - is standard input'],
    [['import', 'a', 'b'], 2, 'Too many arguments'],
    [['import', 'a', '--format', 'xml'], 2, /--format must be jsonl or csv/],
    [['import', 'a', '--owner', 'ann'], 2, /--owner must be an e-mail address/],
    [['import', 'a', '--force'], 2, /Unknown option '--force'/],
    [['export', 'a'], 2, 'Too many arguments'],
    [['export', '--format', 'json'], 2, /--format must be jsonl or csv/],
    [['export', '--json'], 2, /Unknown option '--json'/],
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
  await refuseCommands(t, undefined, [
    [['forward'], 2, 'Missing TARGET'],
    [['forward', target, 'more'], 2, 'Too many arguments'],
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
    [['forward', target, '--from'], 2, /Option '--from <value>' argument missing/],
    [['forward', target, '--fast'], 2, /Unknown option '--fast'/],
  ])
})
