import { checkQueries, type Transition } from '../../../db/ops/checks.ts'
import { cutBytes } from '../../../kernel/text.ts'
import type { RandomBytes } from '../../../kernel/tokens.ts'
import { readHealth, type CheckHealth, type ServiceHealth } from '../checks/health.ts'
import { STATE_WORDS, type CheckSources } from '../checks/states.ts'
import type { Service } from '../inventory/inventory.ts'
import { fenced } from '../sessions/prompt.ts'
import { describeHost, type HostFacts, type ReadHost } from './host-facts.ts'

/** What is known when a session begins. */
export interface Situation {
  host: HostFacts | undefined
  /** The worst first. */
  services: readonly ServiceHealth[]
  /** What operators say of the services, by name. */
  descriptions: ReadonlyMap<string, string>
  /** The newest first. */
  changes: readonly Transition[]
}

const DAY_MS = 86_400_000
const MAX_CHANGES = 20
/** Bytes in a prompt. A headless agent gets it in an argument, with much else. */
const SERVICES_BYTES = 8 * 1024
const CHANGES_BYTES = 4 * 1024
/** Characters of a text of others in a line. */
const MAX_TEXT = 200

export async function readSituation(
  sources: CheckSources & { host: ReadHost },
  now: Date,
): Promise<Situation> {
  const since = new Date(now.getTime() - DAY_MS)
  const [host, { services }, inventory, changes] = await Promise.all([
    sources.host(),
    readHealth(sources, now),
    sources.inventory.current(),
    checkQueries.listTransitions(sources.db, { since, limit: MAX_CHANGES }),
  ])
  return { host, services, descriptions: descriptionsOf(inventory.services), changes }
}

function descriptionsOf(services: readonly Service[]): ReadonlyMap<string, string> {
  return new Map(services.map(({ name, description = '' }) => [name, description]))
}

/**
 * Host, states and changes for a prompt. States and changes are data: a check repeats what a page
 * or a program answered.
 */
export function describeSituation(situation: Situation, random: RandomBytes): readonly string[] {
  const { host, services, descriptions, changes } = situation
  const states = services.map((service) => {
    return describeService(service, descriptions.get(service.name) ?? '')
  })
  const all = [
    'Services, the worst first:',
    linesWithin(states, SERVICES_BYTES, 'more services'),
    '',
    'Changes of the last 24 hours, the newest first:',
    linesWithin(changes.map(describeChange), CHANGES_BYTES, 'earlier changes') || 'none',
  ]
  const what = 'the services of the inventory, with the states of their checks as last seen'
  return [
    ...(host === undefined ? [] : [describeHost(host)]),
    services.length === 0
      ? 'The inventory has no services.'
      : fenced('SERVICES', what, all.join('\n'), random),
  ]
}

function describeService({ name, checks }: ServiceHealth, description: string): string {
  const about = description === '' ? '' : ` (${inLine(description)})`
  const bad = checks.filter(({ state }) => state !== 'ok')
  const good = checks.length - bad.length
  const count = checks.length === 0 ? 'without checks' : `${good} of ${checks.length} checks ok`
  return [`- ${inLine(name)}${about}: ${count}`, ...bad.map(describeCheck)].join('\n')
}

function describeCheck({ state, name, since, message, mute }: CheckHealth): string {
  const muted = mute === undefined ? '' : ', muted'
  const begun = `since ${minuteOf(since)}${muted}`
  return `  ${STATE_WORDS[state]} ${inLine(name)}, ${begun}: ${inLine(message)}`
}

function describeChange({ at, service, name, before, state, message }: Transition): string {
  const step = `${STATE_WORDS[before]} → ${STATE_WORDS[state]}`
  return `- ${minuteOf(at)} ${inLine(service)}: ${inLine(name)}: ${step}: ${inLine(message)}`
}

/** Such as `2026-11-26T04:02Z`. */
function minuteOf(at: Date): string {
  return `${at.toISOString().slice(0, 16)}Z`
}

/** A text of others can't begin a line that looks like ours. */
function inLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim().slice(0, MAX_TEXT).toWellFormed()
}

/** As many entries as fit, and how many there are besides. */
function linesWithin(entries: readonly string[], bytes: number, besides: string): string {
  let left = bytes
  const shown = entries.filter((entry) => {
    left -= Buffer.byteLength(entry) + 1
    return left >= 0
  })
  // Even the first one may be too long: a service can have hundreds of checks that fail.
  const [first] = entries
  if (shown.length === 0 && first !== undefined) shown.push(cutBytes(first, bytes))
  const more = entries.length - shown.length
  return [...shown, ...(more > 0 ? [`and ${more} ${besides}`] : [])].join('\n')
}
