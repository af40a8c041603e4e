import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import type { Test } from 'tap'
import { Variables } from '../../kernel/variables.ts'
import { runCli } from '../helpers/cli.ts'
import type { CliResult } from '../helpers/cli.ts'
import { ROOT } from '../helpers/program.ts'
import { secret } from '../helpers/secrets.ts'
import { temporaryFolder } from '../helpers/owner.ts'

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

t.test('help lists the commands and every variable with its flag', async (t) => {
  const { code, stdout, stderr } = await runCli(['help'])
  t.match({ code, stderr }, { code: 0, stderr: '' })
  const services = [
    'provider',
    'endpoint',
    'forward',
    'send-sample',
    'user',
    'token',
    'import',
    'export',
  ]
  for (const command of ['serve', 'check', 'migrate', ...services, 'version', 'help']) {
    t.match(stdout, new RegExp(`^ +gatehouse \\[?${command}\\b`, 'm'), command)
  }
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

t.test('wrong usage ends with code 2 and one line that names it', async (t) => {
  const value = secret('given-as-flag')
  const env = { GATEHOUSE_DATA_DIR: join(await temporaryFolder(t), 'none') }
  const cases: readonly (readonly [readonly string[], string | RegExp])[] = [
    [['launch'], 'There is no command "launch"'],
    [['--launch'], 'There is no flag "--launch"'],
    [['serve', '--launch=now'], 'There is no flag "--launch"'],
    [['serve', 'nothing'], 'There is no service "nothing"'],
    [['hooks', 'nothing'], 'There is no service "nothing"'],
    [[`--hooks-chat-secret=${value}`], 'There is no flag "--hooks-chat-secret"'],
    [['serve', '--hooks-chat-secret', value], 'There is no flag "--hooks-chat-secret"'],
    [[`--database-url=${value}`], 'There is no flag "--database-url"'],
    [['serve', '--hooks-addr'], '--hooks-addr needs a value'],
    [['check', '--fast'], '"check" takes names of services and --json'],
    [['check', 'hook'], '"check" takes names of services and --json'],
    [['migrate', 'down'], '"migrate" takes no argument'],
    [['provider'], 'Missing action'],
    [['provider', 'sell', 'x'], 'Unknown action "sell"'],
    [['provider', 'add'], 'Missing NAME'],
    [['provider', 'remove'], 'Missing NAME'],
    [['provider', 'add', 'a', 'b'], 'Too many arguments'],
    [['provider', 'list', 'a'], 'Too many arguments'],
    [['provider', 'add', 'a', '--quick'], `Unknown option '--quick'`],
    [['provider', 'list', '--open'], '"provider list" takes no --open'],
    [['provider', 'rotate', 'a', '--json'], '"provider rotate" takes no --json'],
    [['provider', 'add', 'a', '--open', '--signed'], '--open and --signed exclude each other'],
    [['provider', 'add', 'a', '--secret', value], '--secret is for --signed: a token is made here'],
    [
      ['provider', 'rotate', 'a', '--overlap', '1w'],
      /^gatehouse: --overlap must be .*, 30d at most/,
    ],
    [
      ['provider', 'rotate', 'a', '--overlap', '31d'],
      /^gatehouse: --overlap must be .*, 30d at most/,
    ],
    [['provider', 'alarm', 'a'], 'Missing --expect, --burst or --off'],
    [
      ['provider', 'alarm', 'a', '--expect', '1w'],
      /^gatehouse: --expect must be a whole number with/,
    ],
    [['provider', 'alarm', 'a', '--burst', '-1'], /^gatehouse: .*--burst/],
    [['provider', 'alarm', 'a', '--burst', 'x'], /^gatehouse: --burst must be a whole number/],
    [
      ['provider', 'alarm', 'a', '--off', '--burst', '1'],
      /^gatehouse: --off turns both alarms off/,
    ],
    [['provider', 'alarm', 'a', '--open'], '"provider alarm" takes no --open'],
  ]
  for (const [args, line] of cases) {
    wrongUsage(t, await runCli(args, { env }), line, args.join(' ').replace(value, '…'))
  }
  t.match(await runCli(['check'], { env }), { stdout: /not created yet/ }, 'nothing was created')
})

function wrongUsage(
  t: Test,
  { code, stdout, stderr }: CliResult,
  line: string | RegExp,
  name: string,
): void {
  const lines = stderr.split('\n')
  t.match({ code, stdout, lines: lines.length }, { code: 2, stdout: '', lines: 3 }, name)
  const first = typeof line === 'string' ? `gatehouse: ${line}` : line
  t.match(lines, [first, /gatehouse help/, ''], name)
}
