import { notesOf } from '../kernel/config.ts'
import { flagOf, Variables, type VariableName } from '../kernel/variables.ts'
import { BACKUP_USAGE } from './backup.ts'
import { CHECK_USAGE } from './check.ts'
import { table } from './output.ts'
import { DB_USAGE } from './db.ts'
import { ENDPOINT_USAGE } from './endpoint.ts'
import { EXPORT_USAGE } from './export.ts'
import { FORWARD_USAGE } from './forward-arguments.ts'
import { IMPORT_USAGE } from './import.ts'
import { PROVIDER_USAGE } from './provider.ts'
import { RESTORE_USAGE } from './restore.ts'
import { SEND_SAMPLE_USAGE } from './send-sample.ts'
import { TOKEN_USAGE } from './token.ts'
import { USER_USAGE } from './user.ts'

const COMMANDS: readonly (readonly [string, string])[] = [
  ['gatehouse [serve] [hooks] [links] [ops]', 'run the services (default: all three)'],
  [
    CHECK_USAGE,
    'say of everything that a start needs whether it is fine, or what to do; change nothing',
  ],
  ['gatehouse migrate', 'bring the database up to date'],
  [PROVIDER_USAGE, 'manage who may send webhooks'],
  [ENDPOINT_USAGE, 'manage where programs reach the tools (MCP)'],
  [
    FORWARD_USAGE,
    'post each event to a target of your own, in order, over restarts (default --from http://127.0.0.1:8080)',
  ],
  [SEND_SAMPLE_USAGE, 'send a made-up delivery, signed or with its token from standard input'],
  [USER_USAGE, 'manage who has links'],
  [TOKEN_USAGE, 'make and revoke tokens for the links API'],
  [
    IMPORT_USAGE,
    'take links from an export of golink (JSON lines) or from CSV; say what became of each line',
  ],
  [EXPORT_USAGE, 'print all links, as CSV (complete) or as golink has them'],
  [BACKUP_USAGE, 'write everything in the database to a new file, also beside a running server'],
  [RESTORE_USAGE, 'put a backup into an empty database'],
  [DB_USAGE, 'copy the embedded database to an empty one of a PostgreSQL server'],
  ['gatehouse version', 'print the version'],
  ['gatehouse help', 'print this'],
]

/** The text of `gatehouse help`: commands, then every variable with its flag, default and meaning. */
export function helpText(): string {
  const commands = COMMANDS.map(([usage, what]) => `  ${usage}\n      ${what}`)
  const variables = (Object.keys(Variables.properties) as VariableName[]).map((name) => {
    const { form, secret, default: fallback } = notesOf(name)
    return [name, secret === true ? '(no flag)' : `--${flagOf(name)}`, fallback ?? '', form]
  })
  const lines = table(['VARIABLE', 'FLAG', 'DEFAULT', 'ACCEPTED'], variables).map(
    (line) => `  ${line}`,
  )
  return [
    'Gatehouse: webhooks, go/links and an operations agent in one program.',
    '',
    'Commands:',
    ...commands,
    '',
    'Configuration (flag over environment file over environment over default;',
    '--env-file FILE or GATEHOUSE_ENV_FILE names the file, which is re-read when it changes):',
    ...lines,
    '',
  ].join('\n')
}
