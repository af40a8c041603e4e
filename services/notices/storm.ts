import type { DueSend, Level, Notice, Stage } from '../../db/notices.ts'
import { shorten } from '../../kernel/markup.ts'

// Several notices as one: how many, of which services, and the first of them in their words.

/** Notices that a message names; the others are counted. */
const MAX_NAMED = 5
const MAX_SERVICES = 10
const MAX_LINE = 200

/** What happens to several notices, by stage; an acknowledgement needs no words. */
type Words = Readonly<Record<Exclude<Stage, 'acknowledgement'>, string>>

/** The words for notices whose keys begin with a prefix. */
const WORDS: readonly (readonly [prefix: string, words: Words])[] = [
  [
    'check ',
    { beginning: 'checks fail', end: 'checks are good again', reminder: 'checks still fail' },
  ],
  [
    'links broken ',
    {
      beginning: 'links are broken',
      end: 'links are not broken any more',
      reminder: 'links are still broken',
    },
  ],
]
const OTHER: Words = {
  beginning: 'notices',
  end: 'failures are over',
  reminder: 'failures still last',
}

const SEVERITY: readonly Level[] = ['info', 'warning', 'critical']

/** The notice that stands for several of the same stage. */
export function noticeOfAll(sends: readonly [DueSend, ...DueSend[]]): Notice {
  const [first] = sends
  const { id, begin_id, created_at } = first
  const services = countServices(sends)
  const [only = ''] = services.keys()
  return {
    id,
    begin_id,
    created_at,
    kind: 'event',
    session_id: null,
    level: highestLevel(sends),
    service: services.size === 1 ? only : `${services.size} services`,
    message: textOf(sends, services),
    site: 'ops',
    path: '/notices',
    lasts: false,
  }
}

function textOf(
  sends: readonly [DueSend, ...DueSend[]],
  services: ReadonlyMap<string, number>,
): string {
  const named = sends
    .slice(0, MAX_NAMED)
    .map(({ service, message }) => shorten(`${service}: ${firstLine(message)}`, MAX_LINE))
  const others = sends.length - named.length
  const rest = others > 0 ? [`and ${others} more`] : []
  const title = `${sends.length} more ${whatOf(sends)}: ${listServices(services)}`
  return [title, ...named, ...rest].join('\n')
}

/** Such as "checks fail" where all are checks. */
function whatOf(sends: readonly [DueSend, ...DueSend[]]): string {
  const found = WORDS.find(([prefix]) => sends.every(({ key }) => key?.startsWith(prefix)))
  const words = found?.[1] ?? OTHER
  const [{ stage }] = sends
  return stage === 'acknowledgement' ? OTHER.beginning : words[stage]
}

/** `bad (12), shop (2)`: those with the most first. */
function listServices(services: ReadonlyMap<string, number>): string {
  const sorted = [...services].sort(([, a], [, b]) => b - a)
  const named = sorted.slice(0, MAX_SERVICES).map(([name, count]) => `${name} (${count})`)
  const others = sorted.length - named.length
  return others > 0 ? `${named.join(', ')} and ${others} more services` : named.join(', ')
}

function countServices(sends: readonly DueSend[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const { service } of sends) counts.set(service, (counts.get(service) ?? 0) + 1)
  return counts
}

function highestLevel(sends: readonly DueSend[]): Level {
  const highest = Math.max(...sends.map(({ level }) => SEVERITY.indexOf(level)))
  return SEVERITY[highest] ?? 'critical'
}

function firstLine(text: string): string {
  const end = text.indexOf('\n')
  return end === -1 ? text : text.slice(0, end)
}
