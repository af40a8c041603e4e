import type { Executor } from '../../db/client.ts'
import { findLinkBySlug, takeLoopTurn } from '../../db/links/links.ts'
import type { LinkAccess, LinkFields } from '../../db/links/rows.ts'
import type { Role } from '../../db/links/users.ts'
import { refusal, type Refusal } from './refusal.ts'
import {
  encodePath,
  readSearchTerms,
  type SearchTerms,
  readVisitPath,
  type VisitPath,
} from './visits.ts'
import { slugsMeant } from './slug.ts'
import {
  NO_FURTHER_PATH,
  prepareTarget,
  targetOf,
  type FurtherPath,
  type Target,
} from './target.ts'

/** Tells whether a URL's host (with its port) is one under which this resolver is reached. */
export type OwnHosts = (url: URL) => boolean

/** Longer chains of links to links are nobody's wish, and refused as well. */
const LONGEST_CHAIN = 10

/** Where the browsers' search leads is said by its query, which any visit may replace. */
const SEARCH = '/-/go'

/** Further segments as visits may bring them: as many as there are places with a number. */
const FURTHER: readonly FurtherPath[] = Array.from({ length: 10 }, (_, count) => ({
  ...NO_FURTHER_PATH,
  segments: Array<string>(count).fill('a'),
}))

/** Who writes a url: a user, or a command on this machine, which may read every link. */
export interface UrlWriter {
  readonly id: string | null
  readonly role: Role
}

/**
 * Refuses a url that leads back to its own link, at once or by way of others. What a visit adds never
 * decides to which link of ours a url leads, so that following the plain visit tells of all. Such links
 * are written one at a time: two at once could each close the other's loop. A secure link that the
 * writer may not follow ends the chain: a refusal would tell where it leads. Browsers end such a loop.
 */
export async function refuseLoop(
  tx: Executor,
  isOwn: OwnHosts,
  writer: UrlWriter,
  slug: string,
  { url, append_path }: Pick<LinkFields, 'url' | 'append_path'>,
): Promise<Refusal | undefined> {
  if (!isOwn(new URL(url))) return undefined
  await takeLoopTurn(tx)
  const target = prepareTarget(url, append_path)
  if (isVisitsChoice(target)) return looping('may lead back to this link')
  let location = targetOf(target, NO_FURTHER_PATH, '')
  for (let hops = 0; hops <= LONGEST_CHAIN; hops++) {
    if (location === undefined) return undefined
    const address = new URL(location)
    if (!isOwn(address)) return undefined
    const visits = visitsOf(address, isOwn)
    if (visits.some(({ asked }) => slugsMeant(asked).includes(slug))) {
      return looping('leads back to this link')
    }
    location = await locationOf(tx, writer, visits)
  }
  return location === undefined
    ? undefined
    : looping(`leads through more than ${LONGEST_CHAIN} links`)
}

/** Whether the segments or the query of a visit decide which link or page of ours it leads to. */
function isVisitsChoice(target: Target): boolean {
  const paths = FURTHER.map((more) => targetOf(target, more, ''))
    .filter((location) => location !== undefined)
    .map((location) => new URL(location).pathname)
  const answering = paths.map((path) => /^\/(-\/)?[^/]*/.exec(path)?.[0])
  return paths.includes(SEARCH) || new Set(answering).size > 1
}

/** A visit of this resolver: its path, and its query without the `?`. */
interface Visit extends VisitPath {
  readonly search: string
}

/** The visits that an address of the resolver may stand for, the likeliest first. */
function visitsOf({ pathname, search, searchParams }: URL, isOwn: OwnHosts): readonly Visit[] {
  if (pathname !== SEARCH) return visitsAt([pathname], search.slice(1))
  const terms = readSearchTerms(searchParams.get('q') ?? '')
  const keyword = `http://${terms.name}/`
  const isKeyword = URL.canParse(keyword) && isOwn(new URL(keyword))
  const meant = isKeyword ? [terms, readSearchTerms(terms.rest)] : [terms]
  return visitsAt(
    meant.map(({ name, rest }: SearchTerms) => `/${encodePath(name + rest)}`),
    '',
  )
}

function visitsAt(paths: readonly string[], search: string): readonly Visit[] {
  return paths
    .map(readVisitPath)
    .filter((path) => path !== undefined)
    .map((path) => ({ ...path, search }))
}

/** Where the first link leads that the visits find; undefined for none, or one that the writer may not follow. */
async function locationOf(
  tx: Executor,
  writer: UrlWriter,
  visits: readonly Visit[],
): Promise<string | undefined> {
  for (const { asked, more, search } of visits) {
    for (const slug of slugsMeant(asked)) {
      const link = await findLinkBySlug(tx, slug, writer.id)
      if (link === undefined) continue
      if (!mayFollow(writer, link)) return undefined
      return targetOf(prepareTarget(link.url, link.append_path), more, search)
    }
  }
  return undefined
}

function mayFollow(
  { role }: UrlWriter,
  { visibility, is_owner, is_recipient }: LinkAccess,
): boolean {
  return visibility !== 'secure' || is_owner || is_recipient || role === 'admin'
}

function looping(problem: string): Refusal {
  return refusal('INVALID_URL', `url ${problem}; give where it should end`, 'url')
}
