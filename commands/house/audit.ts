import { auditQueries, type Change } from '../../db/audit.ts'
import { accepted, integer, oneOf } from '../../kernel/variables.ts'
import { DURATION_FORM, INSTANT_FORM, parseDuration, readInstant } from '../../kernel/time.ts'
import { escapeControls } from '../../kernel/text.ts'
import { command, JSON_FLAG, value } from '../frame/command.ts'
import { SERVICES } from '../frame/configuration.ts'
import type { Output } from '../frame/output.ts'

const DEFAULT_LIMIT = 50
const MAX_LIMIT = 100_000
/** Lines that are read and printed at once. */
const PAGE = 500

/** `gatehouse audit`: who changed what. */
export const commands = [
  command({
    name: 'audit',
    summary: 'list who changed what, newest first',
    flags: {
      service: value(SERVICES.join('|'), 'only changes of this service', oneOf(...SERVICES)),
      since: value(
        'TIME',
        'only changes since a time, or of the last 24h',
        accepted(`${INSTANT_FORM}, or ${DURATION_FORM}`, readSince),
      ),
      limit: value(
        'N',
        `how many at most, ${DEFAULT_LIMIT} unless given`,
        integer({ min: 1, max: MAX_LIMIT }),
      ),
      json: { summary: `${JSON_FLAG.summary}, an object a line` },
    },
    needs: 'database',
    async run({ flags }, { db, now, output }) {
      const { service = null, limit = DEFAULT_LIMIT, json } = flags
      const since = timeOf(flags.since ?? new Date(0), now())
      if (!json) output.out(lineOf(['TIME', 'ACTOR', 'ACTION', 'SERVICE', 'SUBJECT']))
      let before = Number.MAX_SAFE_INTEGER
      for (let left = limit; left > 0;) {
        const asked = { service, since, before, limit: Math.min(left, PAGE) }
        const changes = await auditQueries.listChanges(db, asked)
        print(output, json, changes)
        await output.drained?.()
        left = changes.length < asked.limit ? 0 : left - changes.length
        before = changes.at(-1)?.id ?? 0
      }
    },
  }),
]

function print(output: Output, json: boolean, changes: readonly Change[]): void {
  for (const { at, actor, action, service, subject } of changes) {
    const line = json
      ? JSON.stringify({ at, actor, action, service, subject })
      : lineOf([at.toISOString(), actor, action, service, subject])
    output.out(line)
  }
}

/**
 * Pads short texts to columns. Lines are printed as they are read, because all may not fit into
 * memory.
 */
function lineOf([time = '', actor = '', action = '', service = '', subject = '']: string[]) {
  const cells = [time.padEnd(24), actor.padEnd(24), action.padEnd(20), service.padEnd(7), subject]
  // A newline in a cell would fake a line.
  return cells.map(escapeControls).join('  ').trimEnd()
}

/** An instant, or seconds before the present. */
function readSince(text: string): Date | number | undefined {
  return parseDuration(text) ?? readInstant(text)
}

function timeOf(since: Date | number, now: Date): Date {
  return since instanceof Date ? since : new Date(Math.max(0, now.getTime() - since * 1_000))
}
