import type { Executor } from '../../../../db/client.ts'
import { linkQueries as q, type LinkAccess } from '../../../../db/links/names/links.ts'
import type { Role } from '../../../../db/links/people/users.ts'
import { foldName, nameMeant } from './slug.ts'
import { namesakesOf, namesOf, type Named } from '../aliases/names.ts'
import { readVisitPath } from './visit-path.ts'
import { wholeDefaults } from './placeholders.ts'
import {
  invalidUrl,
  NO_FURTHER_PATH,
  prepareTarget,
  targetOf,
  type Target,
  type TargetFields,
} from './target.ts'

/** Whether a URL's host, with its port, is one under which this resolver is reached. */
export type OwnHosts = (url: URL) => boolean

/** Longer chains of links to links are refused, too. */
const MAX_HOPS = 10

/** The browsers' search: its query decides where it leads, and any visit may replace that. */
const SEARCH = '/-/go'

/** Further paths of visits, with as many segments as there are numbered places. */
const FURTHER = Array.from({ length: 10 }, (_, count) => ({
  ...NO_FURTHER_PATH,
  segments: Array<string>(count).fill('a'),
}))

/** Visitors, where the url has a place for them. */
const SOMEBODY = 'a'
const VISITORS = [undefined, SOMEBODY, 'b']

/** Who writes a url: a user, or a command on this machine, which may read every link. */
export interface UrlWriter {
  ids: readonly string[]
  role: Role
}

/**
 * Throws the Fault of a url that leads back to its own link, directly or through other links. Only
 * the plain visit is followed: urls where a visit's path or query decides which link they lead to
 * are refused at once. Such links are written one at a time, because two at once could each close
 * the other's loop. A secure link that the writer may not follow ends the chain: a refusal would
 * tell where it leads. Browsers end such a loop.
 */
export async function refuseLoop(
  tx: Executor,
  isOwn: OwnHosts,
  writer: UrlWriter,
  link: TargetFields & Named,
): Promise<void> {
  if (!mayLeadHere(isOwn, link.url)) return
  await q.lockLoops(tx, {})
  const target = prepareTarget(link)
  const own = new Set(namesOf(link))
  const folded = new Set([...own].map(foldName))
  if (isVisitsChoice(target, isOwn)) throw looping('may lead back to this link')
  let location = targetOf(target, NO_FURTHER_PATH, '', SOMEBODY)
  for (let hops = 0; hops <= MAX_HOPS; hops++) {
    if (location === undefined) return
    const address = new URL(location)
    const visit = isOwn(address) ? readVisitPath(address.pathname) : undefined
    if (visit === undefined) return
    const name = nameMeant(visit.asked)
    if (name === undefined) return
    const next = await linkOf(tx, writer, name)
    // A new link, or a new name of it, is not stored yet.
    const isMeant = next === undefined ? folded.has(foldName(name)) : own.has(next.slug)
    if (isMeant || own.has(name)) throw looping('leads back to this link')
    if (next === undefined || !mayFollow(writer, next)) return
    location = targetOf(prepareTarget(next), visit.more, address.search.slice(1), SOMEBODY)
  }
  if (location !== undefined) throw looping(`leads through more than ${MAX_HOPS} links`)
}

/** Whether a url, or a default in it that is a whole address, leads to this resolver. */
export function mayLeadHere(isOwn: OwnHosts, url: string): boolean {
  return [url, ...wholeDefaults(url)].some((address) => isOwn(new URL(address)))
}

/**
 * Whether the segments, the query or the user of a visit decide which link or page of ours it leads
 * to, or whether it leads here at all.
 */
function isVisitsChoice(target: Target, isOwn: OwnHosts): boolean {
  const visitors = target.userPlace === 'none' ? [undefined] : VISITORS
  const locations = FURTHER.flatMap((more) =>
    visitors.map((visitor) => targetOf(target, more, '', visitor)),
  )
  const reached = locations.filter((location) => location !== undefined)
  const paths = reached.map((location) => {
    const address = new URL(location)
    return isOwn(address) ? address.pathname : ''
  })
  const answering = paths.map((path) => /^\/(-\/)?[^/]*/.exec(path)?.[0])
  return paths.includes(SEARCH) || new Set(answering).size > 1
}

/** The link that a visit of the writer means by a name. */
async function linkOf(
  tx: Executor,
  writer: UrlWriter,
  name: string,
): Promise<LinkAccess | undefined> {
  const link = await q.findLinkBySlug(tx, { slug: name, users: writer.ids })
  if (link !== undefined) return link
  const namesakes = await namesakesOf(tx, name, writer)
  return namesakes.length === 1 ? namesakes[0] : undefined
}

function mayFollow({ role }: UrlWriter, link: LinkAccess): boolean {
  if (link.visibility !== 'secure' || role === 'admin') return true
  return link.is_owner || link.is_recipient
}

function looping(problem: string) {
  return invalidUrl(`${problem}; give where it should end`)
}
