import { formatDuration } from '../../kernel/time.ts'
import { accepted, anyText, duration, someOf } from '../../kernel/variables.ts'
import { ADDRESS_FORM, readAddress } from '../../services/notices/address.ts'
import { QUIET } from '../../services/notices/quiet.ts'
import { testTarget } from '../../services/notices/sender.ts'
import {
  addTarget,
  describeTarget,
  findTarget,
  readTargets,
  removeTarget,
  setTarget,
  type Target,
  type TargetForm,
} from '../../services/notices/targets.ts'
import {
  command,
  JSON_FLAG,
  secretFlag,
  text,
  urlFlag,
  UsageError,
  value,
  type Call,
  type DatabaseTools,
} from '../frame/command.ts'
import { DONE, FAILED, printRows } from '../frame/output.ts'

const NAME = text('NAME', 'the name of the target')

const MAX_AFTER_S = 12 * 3_600
const MAX_REMIND_S = 7 * 86_400

const SERVICES_READING = accepted('names with commas between them', (given) => {
  const names = given.split(',')
  return names.every((name) => name.trim() === name && name !== '') ? names : undefined
})

const LEVELS = someOf('info', 'warning', 'critical')
const AFTER = duration(0, MAX_AFTER_S, '12h at most; 0 for at once')
const REMIND = duration(60, MAX_REMIND_S, 'from 1m to 7d')

const RULE_FLAGS = {
  services: value('NAMES', 'only notices of these services, with commas', SERVICES_READING),
  levels: value('LEVELS', `only notices of these levels: ${LEVELS.form}`, LEVELS),
  quiet: value('HOURS', `when only critical notices go out: ${QUIET.form}`, QUIET),
  after: value('TIME', `only what lasts this long: ${AFTER.form}`, AFTER),
  remind: value(
    'TIME',
    `tell again this often what lasts and is not acknowledged: ${REMIND.form}`,
    REMIND,
  ),
  token: secretFlag('the key of the service, where the address has none'),
}
const ADD_ARGS = { name: NAME, url: text('URL', ADDRESS_FORM) }
const REMOVABLE = someOf('services', 'levels', 'quiet', 'remind', 'token')
const SET_FLAGS = {
  ...RULE_FLAGS,
  url: urlFlag('URL', `${ADDRESS_FORM}; - is standard input`, anyText(ADDRESS_FORM)),
  without: value('WHAT', `remove settings: ${REMOVABLE.form}`, REMOVABLE),
}

/** `gatehouse notify …`: where notices of the operations agent go, beside `OPS_NOTIFY_URL`. */
export const commands = [
  command({
    name: 'notify add',
    summary: 'send the notices from now on to a further target',
    args: ADD_ARGS,
    flags: RULE_FLAGS,
    needs: 'database',
    check({ args: { url }, flags: { token } }) {
      if (URL.canParse(url) && new URL(url).password !== '') {
        throw new UsageError('URL has a password, which others can see: give it by --token')
      }
      checkAddress(url, token)
    },
    async run({ args: { name, url }, flags }, tools) {
      await addTarget(toolsOf(tools), name, { ...formOf(flags), url })
      tools.output.err(`${name} gets the notices from now on`)
    },
  }),
  command({
    name: 'notify set',
    summary: 'change a target; settings that no flag names stay',
    args: { name: NAME },
    flags: SET_FLAGS,
    needs: 'database',
    check({ flags: { url, token, without, ...rules } }) {
      const given = [url, token, without, ...Object.values(rules)]
      if (given.every((one) => one === undefined)) throw new UsageError('Missing a setting')
      if (url !== undefined && token !== undefined) checkAddress(url, token)
    },
    async run({ args: { name }, flags: { url, without = [], ...flags } }, tools) {
      const removed = without.map((one) => [one === 'remind' ? 'remind_s' : one, null] as const)
      const form: TargetForm = { ...formOf(flags), url, ...Object.fromEntries(removed) }
      await setTarget(toolsOf(tools), name, form)
      tools.output.err(`${name} is changed`)
    },
  }),
  command({
    name: 'notify list',
    summary: 'list the targets of notices',
    flags: { json: JSON_FLAG },
    needs: 'database',
    async run({ flags: { json } }, { db, output, ...tools }) {
      printTargets(output, json, await readTargets(db, urlsOf(tools), tools.secrets.box))
    },
  }),
  command({
    name: 'notify show',
    summary: 'show a target of notices',
    args: { name: NAME },
    flags: { json: JSON_FLAG },
    needs: 'database',
    async run({ args: { name }, flags: { json } }, { db, output, ...tools }) {
      printTargets(output, json, [await findTarget(db, urlsOf(tools), tools.secrets.box, name)])
    },
  }),
  command({
    name: 'notify remove',
    summary: 'remove a target, with what it has not got yet',
    args: { name: NAME },
    needs: 'database',
    async run({ args: { name } }, tools) {
      await removeTarget(toolsOf(tools), name)
      tools.output.err(`${name} is removed`)
    },
  }),
  command({
    name: 'notify test',
    summary: 'send a notice to a target now, also in its quiet hours',
    args: { name: text('NAME', 'the name of the target, or OPS_NOTIFY_URL') },
    needs: 'database',
    async run({ args: { name } }, { db, output, now, ...tools }) {
      const target = await findTarget(db, urlsOf(tools), tools.secrets.box, name)
      const site = tools.config.current.OPS_BASE_URL ?? tools.addresses?.().get('ops') ?? ''
      const problem = await testTarget(target, now(), site)
      output.err(problem === undefined ? `${name} has taken it` : `not taken: ${problem}`)
      return problem === undefined ? DONE : FAILED
    },
  }),
]

/** Refuses an address before anything is opened. */
function checkAddress(url: string, token: string | undefined): void {
  try {
    readAddress(url, token)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw new UsageError(`URL is not valid: ${error.message}; expected ${ADDRESS_FORM}`)
  }
}

type RuleFlags = Call<Record<string, never>, typeof RULE_FLAGS>['flags']

function formOf({ after, remind, ...others }: RuleFlags): TargetForm {
  const given = { ...others, after_s: after, remind_s: remind }
  return Object.fromEntries(Object.entries(given).filter(([, one]) => one !== undefined))
}

function toolsOf(tools: DatabaseTools) {
  return { ...tools, box: tools.secrets.box }
}

function urlsOf({ config }: Pick<DatabaseTools, 'config'>) {
  return config.current.OPS_NOTIFY_URL ?? []
}

function printTargets(
  output: DatabaseTools['output'],
  json: boolean,
  targets: readonly Target[],
): void {
  const shown = targets.map((target) => {
    return { ...describeTarget(target), since: target.since ?? null }
  })
  printRows(output, json, shown, {
    NAME: ({ name }) => name,
    KIND: ({ kind }) => kind ?? '',
    HOST: ({ host, problem }) => host ?? problem ?? '',
    SERVICES: ({ services }) => services?.join(',') ?? 'all',
    LEVELS: ({ levels }) => levels?.join(',') ?? 'all',
    QUIET: ({ quiet }) => quiet ?? '',
    AFTER: ({ after_s }) => (after_s === 0 ? '' : formatDuration(after_s)),
    REMIND: ({ remind_s }) => (remind_s === null ? '' : formatDuration(remind_s)),
  })
}
