import type { DueSend, Pace, Stage } from '../../db/notices.ts'

// A storm is one message (decision 054): the first notices of a stage go alone and at once, those of the
// next minute together, and then what comes within five minutes, for as long as something comes.

/** A target reads several notices as one message; PagerDuty has an incident for each of the first. */
export type Receiver = 'people' | 'pagerduty'

/** What is sent next to a target, and how fast it gets what comes after it. */
interface NextMessage {
  /** One notice, or several as one message. */
  sends: readonly [DueSend, ...DueSend[]]
  /** The notice by whose key PagerDuty knows these beginnings. */
  incident: number | null
  pace: Pace
}

const SOON_MS = 60_000
const LATER_MS = 5 * 60_000
/** A storm is over when nothing has come for this long after the time of its next message. */
const CALM_MS = 60_000
/** The longest wait that a receiver may ask for, and a minute; more is a clock that was set back. */
const MAX_AHEAD_MS = 61 * 60_000
/** Notices that go alone before several are one message. */
const ALONE = { people: 1, pagerduty: 10 } as const

/** In the order in which they are sent. */
export const STAGES: readonly Stage[] = ['beginning', 'end', 'reminder', 'acknowledgement']

/** Chooses the next message of what is due; undefined when nothing may be sent now. */
export function nextMessage(
  due: readonly DueSend[],
  paces: readonly Pace[],
  receiver: Receiver,
  now: Date,
): NextMessage | undefined {
  for (const stage of STAGES) {
    const [first, ...others] = due.filter((send) => send.stage === stage)
    if (first === undefined) continue
    const pace = presentPace(stage, paces, now)
    const wait = pace.next_at.getTime() - now.getTime()
    if (wait > 0 && wait < MAX_AHEAD_MS) continue
    // PagerDuty knows an incident by its key: what is sent of it later makes no further one.
    if (receiver === 'pagerduty' && stage !== 'beginning') {
      const same = others.filter(({ incident }) => incident === first.incident)
      return { sends: [first, ...same], incident: null, pace: { ...pace, next_at: now } }
    }
    if (pace.alone < ALONE[receiver]) return aloneOf(first, pace, receiver, now)
    const next_at = after(now, others.length === 0 ? SOON_MS : LATER_MS)
    const incident = receiver === 'pagerduty' ? (pace.incident ?? first.id) : null
    return { sends: [first, ...others], incident, pace: { ...pace, next_at, incident } }
  }
  return undefined
}

function aloneOf(send: DueSend, pace: Pace, receiver: Receiver, now: Date): NextMessage {
  const alone = pace.alone + 1
  const next_at = alone < ALONE[receiver] ? now : after(now, SOON_MS)
  const incident = receiver === 'pagerduty' ? send.id : null
  return { sends: [send], incident, pace: { ...pace, alone, next_at } }
}

/** The pace of a stage; that of a new storm when the last one is over. */
function presentPace(stage: Stage, paces: readonly Pace[], now: Date): Pace {
  const known = paces.find((pace) => pace.stage === stage)
  const isOver = known === undefined || now.getTime() >= known.next_at.getTime() + CALM_MS
  return isOver ? { stage, next_at: now, alone: 0, incident: null } : known
}

function after(now: Date, milliseconds: number): Date {
  return new Date(now.getTime() + milliseconds)
}
