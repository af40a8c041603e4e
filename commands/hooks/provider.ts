import { validate } from '../../kernel/validate.ts'
import { duration } from '../../kernel/variables.ts'
import { DURATION_FORM, formatDuration } from '../../kernel/time.ts'
import { AlarmForm, BURST_FORM, INTERVAL_FORM } from '../../services/hooks/receive/alarms.ts'
import {
  createProvider,
  enableProvider,
  MAX_OVERLAP_S,
  providerStatus,
  readProviders,
  removeProvider,
  rotateSecret,
  setAlarms,
  setAnswers,
  setTopics,
  type Proof,
} from '../../services/hooks/receive/providers/providers.ts'
import { isSignedProvider } from '../../services/hooks/receive/schemes/provider-names.ts'
import { readTopics } from '../../services/hooks/receive/schemes/form.ts'
import type { AnswerChanges } from '../../services/hooks/receive/deliveries/answers.ts'
import { ANSWER_FLAGS, answersOf } from './answer-flags.ts'
import {
  command,
  fieldsOf,
  JSON_FLAG,
  readFields,
  secretFlag,
  text,
  UsageError,
  value,
  type Call,
  type Command,
} from '../frame/command.ts'
import { printRows } from '../frame/output.ts'
import { ROW_FLAGS, rowOf, SCHEME_FLAG } from './scheme-flags.ts'

const NAME = text('NAME', 'the name of the provider, such as ci or generic:ci')

const SECRET = secretFlag('the secret that the sender has')

const ALARM_FLAGS = {
  expect: text('INTERVAL', `silence for longer raises an alarm: ${INTERVAL_FORM}`),
  burst: text('COUNT', `more in 5 minutes raises an alarm: ${BURST_FORM}`),
  off: { summary: 'turn both alarms off' },
}

const SET_FLAGS = {
  ...ANSWER_FLAGS,
  'usual-answer': { summary: 'answer 202 with the id of the event again' },
  topics: ROW_FLAGS.topics,
}

/** `gatehouse provider …`. A token or secret that it creates is the last line of stdout, alone. */
export const commands = [
  command({
    name: 'provider add',
    summary: 'add a provider of webhooks; its token or secret is the last line of the output',
    args: { name: NAME },
    flags: {
      open: { summary: 'accept deliveries from anybody, without a token or signature' },
      scheme: SCHEME_FLAG,
      signed: { summary: 'the same as --scheme standard' },
      secret: SECRET,
      enable: { summary: 'accept deliveries at once' },
      ...ROW_FLAGS,
      ...ANSWER_FLAGS,
    },
    needs: 'database',
    check: ({ flags }) => void [proofOf(flags), rowOf(flags.scheme, flags), answersOf(flags)],
    async run({ args, flags }, tools) {
      const { secret, enable } = flags
      const name = args.name.replace(/^generic:/, '')
      const made = await createProvider(tools, {
        name,
        proof: proofOf(flags),
        row: rowOf(flags.scheme, flags),
        answers: answersOf(flags),
        secret,
        // The flag --open is itself the acknowledgement.
        acknowledgeOpen: true,
        enabled: enable,
      })
      const next = `disabled; enable it with: gatehouse provider enable ${name}`
      tools.output.err(`${made.name} created, ${enable ? 'enabled' : next}`)
      if (made.token !== null) tools.output.out(made.token)
    },
  }),
  command({
    name: 'provider list',
    summary: 'list the providers and whether they are ready',
    flags: { json: JSON_FLAG },
    needs: 'database',
    async run({ flags: { json } }, { db, secrets, now, output }) {
      const providers = await readProviders(db, now())
      const schemes = new Map(providers.map(({ name, scheme }) => [name, scheme]))
      const statuses = providers.map((provider) => providerStatus(provider, secrets))
      printRows(output, json, statuses, {
        NAME: ({ name }) => name,
        TRUST: ({ name, trust_mode }) => `${trust_mode} ${schemes.get(name) ?? ''}`.trimEnd(),
        STATE: ({ enabled }) => (enabled ? 'enabled' : 'disabled'),
        SECRET: ({ secret_status }) => secret_status,
        PATH: ({ path, channel }) => path ?? channel ?? '',
      })
    },
  }),
  switchCommand('enable', 'accept deliveries of a provider'),
  switchCommand('disable', 'refuse deliveries of a provider'),
  command({
    name: 'provider rotate',
    summary: 'replace the token or secret; the new one is the last line of the output',
    args: { name: NAME },
    flags: {
      overlap: value(
        'TIME',
        `how long the old one is accepted as well: ${DURATION_FORM}`,
        duration(0, MAX_OVERLAP_S, '30d at most; 0 for none'),
      ),
      secret: SECRET,
    },
    needs: 'database',
    async run({ args, flags }, tools) {
      const { secret, overlap = tools.config.current.HOOKS_ROTATION_OVERLAP_S } = flags
      const rotation = { overlapSeconds: overlap, secret, seen: undefined }
      const made = await rotateSecret(tools, fullName(args.name), rotation)
      const what = made.trust_mode === 'token' ? 'token' : 'secret'
      const time = formatDuration(overlap)
      const old = overlap === 0 ? 'stops at once' : `is accepted as well for ${time}`
      tools.output.err(`${made.name} has a new ${what}; the old one ${old}`)
      if (made.token !== null) tools.output.out(made.token)
    },
  }),
  command({
    name: 'provider alarm',
    summary: 'say when silence or many refusals of a provider raise an alarm',
    args: { name: NAME },
    flags: ALARM_FLAGS,
    needs: 'database',
    check: ({ flags }) => void alarmsOf(flags),
    async run({ args, flags }, tools) {
      const change = alarmsOf(flags)
      await setAlarms(tools, fullName(args.name), change)
      tools.output.err(`${fullName(args.name)}: ${alarmText(change)}`)
    },
  }),
  command({
    name: 'provider set',
    summary: 'choose the methods and topics that a provider accepts, and its answer to an event',
    args: { name: NAME },
    flags: SET_FLAGS,
    needs: 'database',
    check: ({ flags }) => void changesOf(flags),
    async run({ args, flags }, tools) {
      const changes = changesOf(flags)
      const name = fullName(args.name)
      const { topics } = changes
      if (topics !== undefined) await setTopics(tools, name, topics)
      if (hasAnswers(changes)) await setAnswers(tools, name, changes)
      tools.output.err(`${name}: ${changesText(changes)}`)
    },
  }),
  command({
    name: 'provider remove',
    summary: 'remove a provider; its events stay',
    args: { name: NAME },
    needs: 'database',
    async run({ args: { name } }, tools) {
      await removeProvider(tools, fullName(name))
      tools.output.err(`${name} is removed; its events stay`)
    },
  }),
]

interface ProofFlags {
  open: boolean
  signed: boolean
  scheme: string | undefined
  secret: string | undefined
}

/** How the sender proves itself; `UsageError` for flags that don't go together. */
function proofOf({ open, signed, scheme, secret }: ProofFlags): Proof {
  if (open && signed) throw new UsageError('--open and --signed exclude each other')
  if (open && scheme !== undefined) throw new UsageError('--open and --scheme exclude each other')
  if (signed && scheme !== undefined && scheme !== 'standard') {
    throw new UsageError('--signed is --scheme standard: give one of the two')
  }
  const proof = scheme ?? (signed ? 'standard' : open ? 'open' : 'token')
  if (secret !== undefined && (proof === 'token' || proof === 'open')) {
    throw new UsageError('--secret is for --scheme: a token is made here')
  }
  return proof
}

interface Changes extends AnswerChanges {
  topics?: readonly string[]
}

function changesOf(flags: Call<Record<string, never>, typeof SET_FLAGS>['flags']): Changes {
  const { topics } = flags
  const named = topics === undefined ? {} : { topics: readFields(() => readTopics(topics)) }
  const changes = { ...answersOf(flags), ...named }
  if (flags['usual-answer']) {
    if (changes.answer === undefined) return { ...changes, answer: null }
    throw new UsageError('--usual-answer takes no other flag of the answer')
  }
  if (Object.keys(changes).length > 0) return changes
  throw new UsageError(
    'Missing --methods, --answer-status, --answer-body, --usual-answer or --topics',
  )
}

function hasAnswers({ methods, answer }: Changes): boolean {
  return methods !== undefined || answer !== undefined
}

function changesText({ methods, answer, topics }: Changes): string {
  const parts = []
  if (topics !== undefined) parts.push(`accepts the topics ${topics.join(', ') || 'none'}`)
  if (methods !== undefined) parts.push(`accepts ${(methods ?? ['POST']).join(', ')}`)
  if (answer === null) parts.push('answers 202 with the id of the event')
  else if (answer !== undefined) {
    parts.push(`answers ${answer.status}, ${answer.type ?? 'without a body'}`)
  }
  return parts.join('; ')
}

function alarmsOf(flags: Call<Record<string, never>, typeof ALARM_FLAGS>['flags']): AlarmForm {
  const change = readFields(() => validate(AlarmForm, fieldsOf(AlarmForm, flags)))
  const isEmpty = Object.keys(change).length === 0
  if (flags.off && isEmpty) return { expected_interval: null, rejection_burst: null }
  if (flags.off) throw new UsageError('--off turns both alarms off and takes no other flag')
  if (isEmpty) throw new UsageError('Missing --expect, --burst or --off')
  return change
}

function switchCommand(action: 'enable' | 'disable', summary: string): Command {
  return command({
    name: `provider ${action}`,
    summary,
    args: { name: NAME },
    needs: 'database',
    async run({ args: { name } }, tools) {
      await enableProvider(tools, fullName(name), action === 'enable')
      tools.output.err(`${name} is ${action}d`)
    },
  })
}

/** `ci` and `generic:ci` mean the same provider; the signed ones have no prefix. */
function fullName(name: string) {
  return isSignedProvider(name) || name.includes(':') ? name : `generic:${name}`
}

function alarmText({ expected_interval: interval, rejection_burst: burst }: AlarmForm) {
  const parts = []
  if (interval === null) parts.push('silence raises no alarm')
  else if (interval !== undefined) parts.push(`silent after ${formatDuration(interval)}`)
  if (burst === null) parts.push('refusals raise no alarm')
  else if (burst !== undefined) {
    const refusals = burst === 1 ? 'refusal' : 'refusals'
    parts.push(`a burst is ${burst} ${refusals} in 5 minutes`)
  }
  return parts.join('; ')
}
