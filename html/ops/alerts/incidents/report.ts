import type { Alert } from '../../../../db/ops/alerts/alerts.ts'
import type { AlertSession } from '../../../../db/ops/agent/sessions.ts'
import type { Incident } from '../../../../services/ops/alerts/incidents/incidents.ts'
import { costText, durationText } from '../../layout.ts'
import { chainText, outcomeText } from './incident.ts'

// An incident as Markdown. Alerts, logs and sessions wrote most of it, and it goes into tickets and
// chats: what others wrote stands in code alone, where nothing is a link, an image or a mention.

/** Characters of a text within a line. */
const MAX_LINE = 1_000
const MAX_PAYLOAD = 4_000

/** `address` is that of the page. Control characters are left to the caller. */
export function incidentReport(alert: Alert, incident: Incident, address: string): string {
  const { sessions, found, events, operations, checks, changes, memories, notes } = incident
  const parts = [
    [`# Incident ${alert.id}: ${code(alert.title)}`, address],
    [list(factLines(alert, incident))],
    part('Notes', notes, (note) => [`${time(note.at)}, ${code(note.author)}:`, block(note.text)]),
    listPart('Sessions', sessions.map(sessionLine)),
    part('What was found', found, ({ id, summary }) =>
      summary === null ? [] : [`Session ${id}:`, block(summary)],
    ),
    listPart(
      'Events',
      events.map(({ created_at, level, service, message, session_id }) => {
        const from = [`session ${session_id}`, service !== null && code(service)].filter(Boolean)
        return `${time(created_at)} ${level} (${from.join(', ')}): ${code(message)}`
      }),
    ),
    listPart(
      'What was done',
      operations.map((operation) => {
        const { at, service, session_id, status, decided_by } = operation
        const by = decided_by === null ? '' : ` by ${code(decided_by)}`
        const approval = status === null ? 'no approval needed' : `approval: ${status}${by}`
        const name = code(`${service}/${operation.operation}`)
        const what = `${time(at)} ${name} (session ${session_id}, ${approval})`
        return `${what}: ${code(outcomeText(operation))}`
      }),
    ),
    listPart(
      'Checks now',
      checks.map(({ service, name, state, since, message }) => {
        return `${code(`${service}/${name}`)}: ${state} since ${time(since)}: ${code(message)}`
      }),
    ),
    listPart(
      'Changes of states',
      changes.map(({ service, name, state, began_at, message }) => {
        return `${time(began_at)} ${code(`${service}/${name}`)} became ${state}: ${code(message)}`
      }),
    ),
    listPart(
      'What was learned',
      memories.map(({ confidence, session_id, observation }) => {
        return `session ${session_id}, confidence ${confidence}: ${code(observation)}`
      }),
    ),
    ['## Newest delivery', block(alert.payload.slice(0, MAX_PAYLOAD).toWellFormed())],
  ]
  return `${parts.flat().join('\n\n')}\n`
}

function factLines(alert: Alert, incident: Incident): readonly string[] {
  const { state, firing_since, resolved_at, firings, service, source, count } = alert
  const { duration, cost, sessions } = incident
  return [
    `State: ${state}`,
    `Began: ${time(firing_since)}`,
    ...(resolved_at === null ? [] : [`Ended: ${time(resolved_at)}`]),
    `Duration: ${durationText(duration)}`,
    ...(sessions.length === 0 ? [] : [`Cost: ${costText(cost)}`]),
    ...(service === null ? [] : [`Service: ${code(service)}`]),
    ...(source === null ? [] : [`Source: ${code(source)}`]),
    `Deliveries: ${count}; firings: ${firings}`,
  ]
}

function sessionLine(session: AlertSession): string {
  const { id, tier, model, status, started_at, duration_ms, cost_usd } = session
  const took = duration_ms === null ? [] : [`took ${durationText(duration_ms)}`]
  const price = cost_usd === null ? [] : [`cost ${costText(cost_usd)}`]
  const about = [`tier ${tier}`, code(model), status, ...took, ...price].join(', ')
  return `${time(started_at)} session ${id} (${about}): ${chainText(session)}`
}

function listPart(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [`## ${title}`, list(lines)]
}

function part<Row>(
  title: string,
  rows: readonly Row[],
  toBlocks: (row: Row) => readonly string[],
): readonly string[] {
  const blocks = rows.flatMap(toBlocks)
  return blocks.length === 0 ? [] : [`## ${title}`, ...blocks]
}

function list(lines: readonly string[]): string {
  return lines.map((line) => `- ${line}`).join('\n')
}

function time(at: Date): string {
  return at.toISOString()
}

/** A text of others within a line. */
function code(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  const shown = line.length > MAX_LINE ? `${line.slice(0, MAX_LINE).toWellFormed()}…` : line
  const ticks = '`'.repeat(longestTicks(shown) + 1)
  // A space each, which Markdown takes off: a text may begin or end with a tick, or be empty.
  return `${ticks} ${shown} ${ticks}`
}

/** A text of others in lines of its own. No line in it ends the block: its fence is longer. */
function block(text: string): string {
  const fence = '`'.repeat(Math.max(3, longestTicks(text) + 1))
  const lines = text.replaceAll('\t', '  ').replaceAll(/\r\n?/g, '\n')
  return [`${fence}text`, lines, fence].join('\n')
}

function longestTicks(text: string): number {
  return Math.max(0, ...Array.from(text.matchAll(/`+/g), ([ticks]) => ticks.length))
}
