import type { Definition } from '../../db/ops/watch/checks.ts'
import type { MuteScope } from '../../db/ops/watch/mutes.ts'
import { parseObject } from '../../kernel/json.ts'
import { DURATION_FORM, formatDuration, INSTANT_FORM } from '../../kernel/time.ts'
import { validate } from '../../kernel/validate.ts'
import { accepted, oneOf } from '../../kernel/variables.ts'
import { runNow } from '../../services/ops/watch/checks/asked.ts'
import {
  addCheck,
  changeCheck,
  findCheck,
  findReference,
  NewCheck,
  referenceOf,
  refuseMistake,
  removeCheck,
} from '../../services/ops/watch/checks/definitions.ts'
import {
  listHealth,
  showHealth,
  toListed,
  type ShownHealth,
} from '../../services/ops/watch/checks/health.ts'
import {
  membersOf,
  readMember,
  TYPES_BY_HAND,
  type Member,
} from '../../services/ops/watch/checks/members.ts'
import { STATE_WORDS } from '../../services/ops/watch/checks/states.ts'
import {
  addMute,
  endMutesOf,
  MuteRequest,
  scopeText,
} from '../../services/ops/watch/mutes/mutes.ts'
import { EVERY_FORM } from '../../services/ops/watch/mutes/windows.ts'
import { createRedact } from '../../services/ops/redact.ts'
import {
  command,
  fieldsOf,
  flagName,
  JSON_FLAG,
  lines,
  readFields,
  secretFlag,
  text,
  UsageError,
  value,
  type Call,
  type DatabaseTools,
  type Flags,
  type Switch,
} from '../frame/command.ts'
import { serviceUrl } from '../frame/configuration.ts'
import { DONE, FAILED, printRows } from '../frame/output.ts'
import { followSecrets } from '../house/secrets.ts'

/** What members are for, where their schema does not say it; docs/checks.md has all of each. */
const MEMBER_SUMMARIES: Readonly<Record<string, string>> = {
  every: 'how often it runs, such as 10s, 5m or 24h; 60s without it',
  timeout_s: 'seconds after which a run has failed, 60 at most; 10 without it',
  retries: 'how often a bad result is tried again before it counts; 1 without it',
  level: 'info, warning or critical: of the event when it fails',
  runbook: 'the name of the runbook that a session reads when it is not ok',
  method: 'the method of the request, GET without it',
  headers: 'headers of the request',
  body: 'the body of the request',
  status: 'the status that is expected, such as 200 or 200-299; 200-399 without it',
  contains: 'a text that the answer must have',
  pattern: 'texts that follow each other in the answer, with * between them',
  members: 'a member that the JSON must have, such as db.state=up',
  max_ms: 'milliseconds that an answer may take',
  days: 'days for which the certificate must still be valid',
  ca: "the path of a PEM file of the authorities that are trusted, in place of the system's",
  insecure: 'take any certificate',
  redirects: 'how many redirects are followed, 10 without it',
  lenient: 'take answers that break the rules of HTTP in ways that browsers bear',
  port: 'the port that it connects to',
  send: 'a text that it sends first',
  record: 'the type of the record, such as MX; A and AAAA without it',
  value: 'the value that the name server must know',
  server: "the name server that is asked, the system's without it",
  match: 'a text that the command line of the process has',
  program: 'the name or the path of the executable',
  min: 'how many processes must run, 1 without it',
  max: 'how many processes may run',
  max_percent: 'how much may be used, in percent',
  max_per_cpu: 'the load of five minutes that each processor may have, 4 without it',
  max_age_s: 'how old the file may be, in seconds',
  min_bytes: 'how large the file must be',
  exists: 'it is enough that the file is there',
  socket: 'the path of the socket of Docker or Podman',
  log_lines: 'how many lines of the log a failure quotes, 3 without it',
  period: 'how often its job calls, such as 5m, 1h or 1d',
  cron: 'when its job begins, as in a crontab, in place of --period',
  tz: 'the time zone of --cron, such as Europe/Berlin; UTC without it',
  grace: 'how much later its job may call, 5m without it',
  token: 'the secret part of the address that its job calls; it is made here without it',
  token_sha256: 'the SHA-256 of that token, 64 digits of hex',
}

const CHECK_ARGS = { check: text('SERVICE/NAME', 'a check, as checks list shows it') }
const MEMBERS = membersOf()
const MEMBER_FLAGS: Flags = Object.fromEntries(
  MEMBERS.map((one) => [flagName(one.name), flagFor(one)]),
)

/** The flags of a type, those that every check of it needs first; without one those of all types. */
function flagsOfType(type: string | undefined): Flags {
  // An unknown type is refused for itself, not for its flags.
  if (type !== undefined && TYPES_BY_HAND.every((known) => known !== type)) return MEMBER_FLAGS
  const shared = MEMBERS.filter(({ types }) => types.length === TYPES_BY_HAND.length)
  const members = type === undefined ? shared : membersOf(type)
  const sorted = members.toSorted(
    (one, other) => Number(other.isRequired) - Number(one.isRequired),
  )
  const flags = sorted.map((one) => {
    return [flagName(one.name), flagFor(one, one.isRequired ? ' (needed)' : '')] as const
  })
  return Object.fromEntries(flags)
}

const DEFINITION = accepted('a JSON object: a check as the inventory file has it', parseObject)
const DEFINITION_FLAGS = {
  type: value(
    'TYPE',
    `what kind of check it is, which decides the flags: --type TYPE --help lists them. ` +
      `One of ${TYPES_BY_HAND.join(', ')}`,
    oneOf(...TYPES_BY_HAND),
  ),
  from: {
    ...value('FILE', 'the check as JSON, in a file; - is standard input', DEFINITION),
    fromInput: true,
    fromFile: true,
  },
} as const
const ADD_ARGS = { name: text('NAME', 'the name of the check') }
const ADD_FLAGS = {
  service: text('SERVICE', 'the service that it is about'),
  ...DEFINITION_FLAGS,
  json: JSON_FLAG,
}
const SET_FLAGS = {
  ...DEFINITION_FLAGS,
  without: lines('MEMBER', 'take a member out of the check, such as retries'),
  json: JSON_FLAG,
}

const SCOPE_ARGS = { scope: text('SERVICE[/NAME]', 'a check, or a service for all of its checks') }
const MUTE_FLAGS = {
  for: text('DURATION', `how long it is muted: ${DURATION_FORM}`),
  'starts-at': text('TIME', `when it begins, instead of now: ${INSTANT_FORM}`),
  'ends-at': text('TIME', 'when it ends, instead of --for'),
  every: text('DAYS HOURS', `when it comes back: ${EVERY_FORM}`),
  tz: text('ZONE', 'the time zone of these hours, such as Europe/Berlin; UTC without it'),
  reason: text('TEXT', 'why, for those who see the mute'),
  json: JSON_FLAG,
}

/** `gatehouse checks …`: their states, and the checks that are made by hand. */
export const commands = [
  command({
    name: 'checks list',
    summary: 'list the checks with their states',
    flags: { json: JSON_FLAG },
    needs: 'database',
    async run({ flags: { json } }, { db, now, output }) {
      const rows = (await listHealth(db, now())).map(toListed)
      printRows(output, json, rows, {
        CHECK: referenceOf,
        STATE: ({ state }) => STATE_WORDS[state],
        SINCE: ({ since }) => since.toISOString(),
        EVERY: ({ every_s }) => formatDuration(every_s),
        'MUTED UNTIL': ({ muted_until }) => muted_until?.toISOString() ?? '',
        'LAST MESSAGE': ({ last_message }) => last_message,
      })
    },
  }),
  command({
    name: 'checks show',
    summary: 'show a check and its definition',
    args: CHECK_ARGS,
    flags: { json: JSON_FLAG },
    needs: 'database',
    async run({ args, flags }, tools) {
      const { id } = await findCheck(tools.db, args.check)
      await printCheck(tools, id, flags.json)
    },
  }),
  command({
    name: 'checks add',
    summary: 'add a check beside those of the inventory file',
    args: ADD_ARGS,
    flags: { ...ADD_FLAGS, ...MEMBER_FLAGS },
    chosenBy: { flag: 'type', flags: (type) => ({ ...ADD_FLAGS, ...flagsOfType(type) }) },
    needs: 'database',
    check: (call) => void readNew(call),
    async run(call, tools) {
      const { service, check } = readNew(call)
      const { id, token } = await addCheck(toolsOf(tools), { service, check }, tools.now())
      tools.output.err(`${service}/${call.args.name} runs from now on`)
      if (token !== null) printAddress(tools, token)
      if (call.flags.json) await printCheck(tools, id, true)
    },
  }),
  command({
    name: 'checks set',
    summary: 'change a check that was made by hand; what no flag names stays',
    args: CHECK_ARGS,
    flags: { ...SET_FLAGS, ...MEMBER_FLAGS },
    chosenBy: { flag: 'type', flags: (type) => ({ ...SET_FLAGS, ...flagsOfType(type) }) },
    needs: 'database',
    check({ flags }) {
      if (flags.without !== undefined || Object.keys(given(flags)).length > 0) return
      throw new UsageError('Missing a setting')
    },
    async run({ args, flags }, tools) {
      const { id } = await findCheck(tools.db, args.check)
      const { check: present } = await showHealth(tools.db, id, tools.now())
      const removed = flags.without?.split('\n') ?? []
      const check = withoutMembers({ ...present, ...given(flags) }, removed)
      await changeCheck(toolsOf(tools), id, check, tools.now())
      tools.output.err(`${args.check} is changed`)
      if (flags.json) await printCheck(tools, id, true)
    },
  }),
  command({
    name: 'checks run',
    summary: 'have the server run a check now; exit code 1 when it is not ok',
    args: CHECK_ARGS,
    flags: { json: JSON_FLAG },
    needs: 'database',
    async run({ args, flags }, { db, now, output }) {
      const { id } = await findCheck(db, args.check)
      await runNow(db, id, now)
      const found = await showHealth(db, id, now())
      output.out(flags.json ? JSON.stringify(found) : foundLine(found))
      return found.state === 'ok' ? DONE : FAILED
    },
  }),
  command({
    name: 'checks remove',
    summary: 'remove a check that was made by hand; its history stays',
    args: CHECK_ARGS,
    needs: 'database',
    async run({ args }, tools) {
      const { id } = await findCheck(tools.db, args.check)
      await removeCheck(tools, id, tools.now())
      tools.output.err(`${args.check} is removed`)
    },
  }),
  command({
    name: 'checks mute',
    summary: 'tell of no failures for a time, or in a maintenance window to come',
    args: SCOPE_ARGS,
    flags: MUTE_FLAGS,
    needs: 'database',
    check: (call) => void readMute(call, null),
    async run(call, tools) {
      const scope = await findScope(tools.db, call.args.scope)
      const mute = await addMute(tools, readMute(call, scope), tools.now())
      const { starts_at, ends_at, every } = mute
      const until = `is muted until ${ends_at.toISOString()}`
      const next = `is muted every ${every}, next from ${starts_at.toISOString()}`
      tools.output.err(`${scopeText(mute)} ${every === null ? until : next}`)
      if (call.flags.json) tools.output.out(JSON.stringify(mute))
    },
  }),
  command({
    name: 'checks unmute',
    summary: 'end the mutes of a check or of a service, also those to come',
    args: SCOPE_ARGS,
    needs: 'database',
    async run({ args }, tools) {
      const scope = await findScope(tools.db, args.scope)
      await endMutesOf(tools, scope, tools.now())
      tools.output.err(`${scopeText(scope)} is not muted any more`)
    },
  }),
]

/** The check, or the service, that a text means. */
async function findScope(db: DatabaseTools['db'], reference: string): Promise<MuteScope> {
  const found = await findReference(db, reference)
  return { service: found.service, check_name: found.exact ? found.name : null }
}

function readMute({ flags }: Call<typeof SCOPE_ARGS, typeof MUTE_FLAGS>, scope: MuteScope | null) {
  const { service = null, check_name: check = null } = scope ?? {}
  const fields = { service, check, ...fieldsOf(MuteRequest, flags) }
  return readFields(() => validate(MuteRequest, fields))
}

/** The flag of a member. */
function flagFor({ name, writing, types, schema }: Member, note = ownersOf(types)): Switch {
  const { description = '' } = schema as { description?: string }
  const summary = (MEMBER_SUMMARIES[name] ?? description) + note
  if (writing === 'switch') return { summary }
  if (writing === 'pairs') return secretFlag(`${summary}, "Name: value" on a line each`)
  const shown = writing === 'number' ? 'NUMBER' : 'TEXT'
  return writing === 'lines' ? lines(shown, summary) : text(shown, summary)
}

function ownersOf(types: readonly string[]): string {
  return ` (${types.length === TYPES_BY_HAND.length ? 'all types' : types.join(', ')})`
}

type Given = Readonly<Record<string, unknown>>

/** The members that flags name: those of the JSON first. */
function given(flags: Given): Definition {
  const { type, from = {} } = flags
  const named = MEMBERS.flatMap((member) => {
    const value = flags[flagName(member.name)]
    if (value === undefined || value === false) return []
    return [[member.name, value === true ? value : readMember(member, String(value))]]
  })
  return {
    ...(from as Definition),
    ...(type !== undefined && { type }),
    ...Object.fromEntries(named),
  }
}

/** The check that a call describes, checked as the inventory file is. */
function readNew({ args: { name }, flags }: Call<typeof ADD_ARGS, typeof ADD_FLAGS>) {
  const { service } = flags
  if (service === undefined) throw new UsageError('--service is required')
  const check = { ...given(flags), name }
  if (!('type' in check)) throw new UsageError('--type is required, or --from with the JSON')
  return readFields(() => {
    // A heartbeat without a token gets one.
    refuseMistake(
      check['type'] === 'heartbeat' ? { token_sha256: '0'.repeat(64), ...check } : check,
    )
    return validate(NewCheck, { service, check })
  }, ['name'])
}

/** The address that the job of a heartbeat calls; it is not shown again. */
function printAddress({ config, addresses, output }: DatabaseTools, token: string): void {
  const base = serviceUrl('ops', config, addresses) ?? 'http://HOST'
  output.err('its job calls this address, which is not shown again:')
  output.out(`${base}/beat/${token}`)
}

function withoutMembers(check: Definition, removed: readonly string[]): Definition {
  const kept = Object.entries(check).filter(([name]) => !removed.includes(name))
  return Object.fromEntries(kept)
}

function foundLine({ state, last_message }: ShownHealth): string {
  return `${STATE_WORDS[state]}  ${last_message}`
}

async function printCheck(
  { db, now, output }: DatabaseTools,
  id: number,
  json: boolean,
): Promise<void> {
  const shown = await showHealth(db, id, now())
  if (json) return output.out(JSON.stringify(shown))
  const { source, check } = shown
  output.out(`${referenceOf(shown)}: ${foundLine(shown)}`)
  output.out(`since ${shown.since.toISOString()}`)
  output.out(source === 'hand' ? 'made by hand:' : 'from the inventory file')
  if (check !== null) output.out(JSON.stringify(check, null, 2))
}

function toolsOf(tools: DatabaseTools) {
  const { box } = tools.secrets
  return { ...tools, box, redact: createRedact(followSecrets(tools.config)) }
}
