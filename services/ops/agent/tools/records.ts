import * as Type from '../../../../kernel/schema.ts'
import { eventQueries, type Event } from '../../../../db/ops/events.ts'
import { memoryQueries, type StoredMemory } from '../../../../db/ops/agent/memories.ts'
import { noticeQueries } from '../../../../db/notices.ts'
import { sessionQueries } from '../../../../db/ops/agent/sessions.ts'
import { addEvent, levelOf } from '../../events.ts'
import { pauseProblem, readPause } from '../pause.ts'
import { AGENT_CONFIDENCE, authorOf, CATEGORIES, remember } from '../memories.ts'
import { Offset, pageReply } from './lines.ts'
import { defineTool, done, Text } from './tool.ts'

/** Notices of one session. */
const MAX_NOTICES = 5
/** A session's notice with the same words as an earlier one is not sent again for this long. */
const SAME_MS = 24 * 3_600_000
const Limit = Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 20 }))
const Service = Type.Optional(Text(200, 'Name of a service'))

export const readEventsTool = defineTool({
  name: 'read_events',
  description: 'Reads recorded events, newest first.',
  tier: 1,
  effect: 'reads',
  takes: {
    level: Type.Optional(Type.Enum(['info', 'warning', 'critical'], { type: 'string' })),
    service: Service,
    limit: Limit,
  },
  async run({ level = null, service = null, limit = 20 }, { db }) {
    const filter = { level, service, session: null, offset: 0, limit }
    const events = await eventQueries.listEvents(db, filter)
    return done(events.map(eventLine).join('\n') || 'No events match.')
  },
})

export const readAlertTool = defineTool({
  name: 'read_alert',
  description:
    'Reads the alert that this session looks into, as its sender wrote it. ' +
    'A long one has pages: the last line of a page says how to get the next one.',
  tier: 1,
  effect: 'reads',
  takes: {
    offset: Offset,
  },
  async run({ offset = 0 }, { db, job }) {
    const alert = await sessionQueries.findSessionAlert(db, { session: job.session.id })
    if (alert === undefined) return done('This session looks into no alert.')
    const { title, source, payload } = alert
    const page = pageReply(payload, offset, (next) => `read_alert with {"offset": ${next}}`)
    const head = `Title: ${title}\nSent by: ${source ?? 'an unknown program'}\n\n`
    return offset === 0 ? done(`${head}${page.text}`) : page
  },
})

export const recordEventTool = defineTool({
  name: 'record_event',
  description:
    'Records an event for the operators. critical: people are affected now. ' +
    'warning: somebody must act, or it becomes critical. info: nobody must act.',
  tier: 1,
  effect: 'acts',
  takes: {
    level: Text(50, 'info, warning or critical'),
    message: Text(4_000, 'What happened, in a sentence or two'),
    service: Service,
  },
  async run({ level: word, message, service = null }, { db, clock, job }) {
    const level = levelOf(word)
    const session = job.session.id
    const now = clock.now()
    const event = { session, level, service, message, now }
    const since = new Date(now.getTime() - SAME_MS)
    const { notices, same } = await noticeQueries.countNotices(db, { ...event, since })
    const isCritical = level === 'critical'
    const isSent = isCritical && !same && notices < MAX_NOTICES
    const { id } = await addEvent(db, event, { notify: isSent })
    const recorded = `Recorded as event ${id}, level ${level}.`
    if (isSent || !isCritical) return done(recorded)
    const sent = same ? 'the same words were sent today' : `${MAX_NOTICES} of this session were`
    return done(`${recorded} No notice of it is sent: ${sent}.`)
  },
})

export const recallTool = defineTool({
  name: 'recall',
  description:
    'Reads memories: first those of the operators, then those of earlier sessions, each by confidence.',
  tier: 1,
  effect: 'reads',
  takes: { service: Service, category: Type.Optional(Text(100, 'A category')), limit: Limit },
  async run({ service = null, category = null, limit = 20 }, { db }) {
    const memories = await memoryQueries.listActiveMemories(db, { service, category, limit })
    return done(memories.map(memoryLine).join('\n') || 'Nothing is remembered of that.')
  },
})

export const rememberTool = defineTool({
  name: 'remember',
  description:
    'Notes something for later sessions: what is usual, what depends on what, what helped. ' +
    `It begins with confidence ${AGENT_CONFIDENCE} at most; later sessions that note the same words, and ` +
    'people who confirm it, make it surer.',
  tier: 1,
  effect: 'acts',
  takes: {
    category: Text(100, `One of ${CATEGORIES.join(', ')}, or another word`),
    observation: Text(2_000, 'What was seen, in one sentence that stands on its own'),
    service: Service,
    confidence: Type.Optional(Type.Number({ minimum: 0, maximum: 1, default: AGENT_CONFIDENCE })),
  },
  async run(observed, { db, clock, job }) {
    const { service = null, confidence = AGENT_CONFIDENCE } = observed
    const { id: session, tier } = job.session
    const actor = { kind: 'session', id: session } as const
    const memory = await remember(
      { db, actor },
      {
        ...observed,
        service,
        confidence,
        active: true,
        session,
        tier,
        now: clock.now(),
      },
    )
    return done(`Remembered with confidence ${memory.confidence}.`)
  },
})

export const escalateTool = defineTool({
  name: 'escalate',
  description:
    'Ends this session and starts one of the next tier, which may look deeper or act. ' +
    'Give it all that you found.',
  tier: 1,
  effect: 'acts',
  takes: {
    reason: Text(1_000, 'Why, in one sentence'),
    findings: Text(20_000, 'What was checked, what was found, what is suspected'),
  },
  async run({ reason, findings }, { db, clock, dryRun, job }) {
    const { session, config } = job
    const dry = await dryRun(db)
    const paused = pauseProblem(await readPause(db), 'investigations')
    if (session.tier < config.max_tier && !dry && paused === undefined) {
      job.escalate(reason, findings)
      return done(`The session goes on in tier ${session.tier + 1}.`)
    }
    const highest = `tier ${session.tier} is the highest that is allowed`
    const why = dry ? 'dry run' : (paused ?? highest)
    const { id } = session
    const asked = `Session ${id} asked to escalate and did not (${why})`
    const message = `${asked}: ${reason}\n${findings}`
    const event = { session: id, service: null, message, now: clock.now() }
    await addEvent(db, { ...event, level: 'warning' }, { waits: true })
    return done(`Not escalated (${why}); it was recorded as an event. Finish with what you have.`)
  },
})

function eventLine({ created_at, level, service, message }: Event): string {
  return `${created_at.toISOString()} ${level} ${service ?? '-'}: ${message}`
}

function memoryLine(memory: StoredMemory): string {
  const { service, category, confidence, observation } = memory
  return `[${authorOf(memory)}] ${service ?? '-'} (${category}, ${confidence}): ${observation}`
}
