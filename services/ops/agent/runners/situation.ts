import { checkQueries, type Transition } from '../../../../db/ops/watch/checks.ts'
import type { RandomBytes } from '../../../../kernel/tokens.ts'
import { readHealth, type CheckHealth, type ServiceHealth } from '../../watch/checks/health.ts'
import { STATE_WORDS, type CheckSources } from '../../watch/checks/states.ts'
import type { Service } from '../../watch/inventory/inventory.ts'
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
/** Bytes in a prompt: a local model may have room for 8,000 tokens in all. */
const SERVICES_BYTES = 6 * 1024
const CHANGES_BYTES = 2 * 1024
/** Checks of a service that are not ok. */
const MAX_BAD = 8
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
    linesWithin(states, SERVICES_BYTES, 'services'),
    '',
    'Changes of the last 24 hours, the newest first:',
    linesWithin(changes.map(describeChange), CHANGES_BYTES, 'changes') || 'none',
  ]
  const what = 'a list of the services, with the states of their checks as last seen'
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
  const more = bad.length - MAX_BAD
  return [
    `- ${inLine(name)}${about}: ${count}`,
    ...bad.slice(0, MAX_BAD).map(describeCheck),
    ...(more > 0 ? [`  and ${more} more that are not ok`] : []),
  ].join('\n')
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

/** As many entries as fit, and how many do not. */
function linesWithin(entries: readonly string[], bytes: number, what: string): string {
  let left = bytes
  const shown = entries.filter((entry) => {
    const size = Buffer.byteLength(entry) + 1
    const fits = size <= left
    if (fits) left -= size
    return fits
  })
  const more = entries.length - shown.length
  return [
    ...shown,
    ...(more > 0 ? [`(not shown: ${more} of ${entries.length} ${what})`] : []),
  ].join('\n')
}
