import * as Type from '../../../kernel/schema.ts'
import type { Executor } from '../../../db/client.ts'
import type { LabelledAlert } from '../../../db/ops/alerts/alerts.ts'
import { silenceQueries as q, type Match, type Silence } from '../../../db/ops/alerts/silences.ts'
import { actorText } from '../../../kernel/actor.ts'
import { badRequest, Fault, found } from '../../../kernel/fault.ts'
import { fitsPattern } from '../../../kernel/text.ts'
import { DURATION_FORM, INSTANT_FORM, parseDuration, readInstant } from '../../../kernel/time.ts'
import { field, parsed, validate } from '../../../kernel/validate.ts'
import { noteChange, type ChangeTools } from '../../audit.ts'
import { Instant, MAX_S, Reason, refuseTimes } from '../watch/mutes/mutes.ts'

// While a silence lasts, alerts that match it start no session. They are kept, and read again when it
// ends. Mutes are for checks: they hold back notices.

/** Bounds what is read with each delivery. */
export const MAX_SILENCES = 200
const MAX_LABELS = 10
const MAX_LENGTH = 200
const TEXT = `1 to ${MAX_LENGTH} characters`
const MATCH =
  `must name 1 to ${MAX_LABELS} labels with their values, ` +
  `such as {"service": "shop"}, each of ${TEXT}`

/** What is silenced, and when: from now on unless it names another beginning. */
export const SilenceRequest = Type.Object(
  {
    match: field(
      Type.Record(Type.String(), {
        description:
          '`service`, `source`, `title`, `alertname` or any label; all must fit, and `*` stands ' +
          'for any characters',
      }),
      MATCH,
      [isMatch, MATCH],
    ),
    starts_at: Instant,
    ends_at: parsed(
      Type.Unsafe<Date>({ type: 'string', format: 'date-time' }),
      { wrong: `must be ${INSTANT_FORM}`, missing: `is required and must be ${INSTANT_FORM}` },
      readInstant,
    ),
    reason: Reason,
  },
  {
    additionalProperties: false,
    examples: [
      {
        match: { service: 'shop', alertname: 'Disk*' },
        ends_at: '2027-01-31T12:00:00Z',
        reason: 'the shop moves',
      },
    ],
  },
)
export type SilenceRequest = Type.Static<typeof SilenceRequest>

/** Silences alerts. Throws 400 for times that can't be. */
export function addSilence(
  { db, actor }: ChangeTools,
  request: SilenceRequest,
  now: Date,
): Promise<Silence> {
  const { match, starts_at = now, ends_at, reason } = request
  refuseTimes({ starts_at, ends_at }, now, 'ends_at')
  return db.transaction(async (tx) => {
    const times = { starts_at, ends_at, now }
    const row = { match, ...times, reason, author: actorText(actor), most: MAX_SILENCES }
    const added = await q.addSilence(tx, row)
    if (added === undefined) {
      throw new Fault(409, 'CONFLICT', `there are ${MAX_SILENCES} silences already: end one first`)
    }
    await noteChange(tx, actor, noteOf('add', match))
    return added
  })
}

/** Ends a silence, or cancels one to come; throws 404. */
export async function endSilence(
  { db, actor }: ChangeTools,
  id: number,
  now: Date,
): Promise<void> {
  await db.transaction(async (tx) => {
    const { match } = found(await q.endSilence(tx, { id, now }), 'silence')
    await noteChange(tx, actor, noteOf('end', match))
  })
}

/** Those that last, and those to come. */
export function listSilences(db: Executor, now: Date): Promise<readonly Silence[]> {
  return q.listSilences(db, { now, limit: MAX_SILENCES })
}

/** One alert of a group. */
interface LabelledMember {
  status: 'firing' | 'resolved'
  title: string
  labels: LabelledAlert['labels']
}

/**
 * Finds the silence that holds an alert back now; of several the last to end. A silence holds back a group that it
 * matches, and a group whose firing alerts it all matches.
 */
export function silenceOf(
  silences: readonly Silence[],
  alert: LabelledAlert & { members?: readonly LabelledMember[] },
  now: Date,
): Silence | undefined {
  const firing = (alert.members ?? [])
    .filter(({ status }) => status === 'firing')
    .map(({ title, labels }) => {
      return { source: alert.source, service: labels['service'] ?? alert.service, title, labels }
    })
  return silences
    .filter(({ starts_at, ends_at }) => starts_at <= now && ends_at > now)
    .filter(
      ({ match }) =>
        fitsMatch(alert, match) ||
        (firing.length > 0 && firing.every((member) => fitsMatch(member, match))),
    )
    .toSorted((a, b) => b.ends_at.getTime() - a.ends_at.getTime())[0]
}

/** What is silenced, in words: `service=shop alertname=Disk*`. */
export function matchText(match: Match, between = ' '): string {
  return Object.entries(match)
    .map(([label, value]) => `${label}=${value}`)
    .join(between)
}

const Text = Type.Optional(Type.String({ maxLength: 500 }))

/** A silence as people type it; a field may be absent or empty. */
export const SilenceForm = Type.Object({
  /** A line such as `service=shop` for each label. */
  match: Type.Optional(Type.String({ maxLength: 5_000 })),
  /** How long it lasts, in place of its end. */
  for: Text,
  starts_at: Text,
  ends_at: Text,
  reason: Text,
})

/** Reads what people typed; throws 400. */
export function readSilence(texts: Type.Static<typeof SilenceForm>, now: Date): SilenceRequest {
  const { match = '', for: duration = '', ...times } = texts
  const filled = Object.entries(times).filter(([, text]) => (text ?? '').trim() !== '')
  const given = Object.fromEntries(filled)
  const hasDuration = duration.trim() !== ''
  if (hasDuration === 'ends_at' in given) {
    throw badRequest('for or ends_at must be given, and not both', 'for')
  }
  return validate(SilenceRequest, { ...given, match: readMatch(match), ...endOf() })

  function endOf() {
    if (!hasDuration) return {}
    const seconds = parseDuration(duration.trim())
    if (seconds === undefined) throw badRequest(`for must be ${DURATION_FORM}`, 'for')
    // No date has a year beyond 275760.
    if (seconds > MAX_S) throw badRequest('for must be a year at most', 'for')
    const start = readInstant(given['starts_at']) ?? now
    return { ends_at: new Date(start.getTime() + seconds * 1_000).toISOString() }
  }
}

/** What a silence for just this alert is typed as. */
export function linesFor({ service, title, labels }: LabelledAlert): string {
  const alertname = labels['alertname'] ?? title
  return matchText(service === null ? { alertname } : { service, alertname }, '\n')
}

function readMatch(lines: string): Match {
  const given = lines.split('\n').map((line) => line.trim())
  const pairs = given
    .filter((line) => line !== '')
    .map((line) => {
      const at = line.indexOf('=')
      if (at <= 0)
        throw badRequest(
          'match must have a label with its value in each line, such as service=shop',
          'match',
        )
      return [line.slice(0, at).trim(), line.slice(at + 1).trim()] as const
    })
  return Object.fromEntries(pairs)
}

function fitsMatch(alert: LabelledAlert, match: Match): boolean {
  return Object.entries(match).every(([label, pattern]) => {
    const value = valueOf(alert, label)
    return value !== undefined && fitsPattern(value, pattern)
  })
}

/** Senders without labels have a title, which is what an `alertname` is to others. */
function valueOf({ source, service, title, labels }: LabelledAlert, label: string) {
  const own = Object.hasOwn(labels, label) ? labels[label] : undefined
  if (label === 'service') return service ?? own
  if (label === 'alertname') return own ?? title
  if (own !== undefined) return own
  if (label === 'source') return source ?? undefined
  return label === 'title' ? title : undefined
}

function isMatch(match: Match): boolean {
  const pairs = Object.entries(match)
  const isText = (text: string) =>
    text.trim() !== '' && text.length <= MAX_LENGTH && !text.includes('\0')
  const isBounded = pairs.length > 0 && pairs.length <= MAX_LABELS
  return isBounded && pairs.every((pair) => pair.every(isText))
}

function noteOf(verb: string, match: Match) {
  return { service: 'ops', action: `silence ${verb}`, subject: matchText(match) } as const
}
