import type { Fault } from '../../kernel/fault.ts'
import type { Executor } from '../../db/client.ts'
import { linkQueries as q, type LinkAccess, type LinkFields } from '../../db/links/links.ts'
import type { Role } from '../../db/links/users.ts'
import {
  encodePath,
  readSearchTerms,
  type SearchTerms,
  readVisitPath,
  type VisitPath,
} from './visits.ts'
import { slugsMeant } from './slug.ts'
import {
  invalidUrl,
  NO_FURTHER_PATH,
  prepareTarget,
  targetOf,
  type FurtherPath,
  type Target,
} from './target.ts'

/** Whether a URL's host, with its port, is one under which this resolver is reached. */
export type OwnHosts = (url: URL) => boolean

/** Longer chains of links to links are refused, too. */
const MAX_HOPS = 10

/** The browsers' search: its query decides where it leads, and any visit may replace that. */
const SEARCH = '/-/go'

/** Further paths of visits, with as many segments as there are numbered places. */
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
  slug: string,
  { url, append_path }: Pick<LinkFields, 'url' | 'append_path'>,
): Promise<void> {
  if (!isOwn(new URL(url))) return
  await q.lockLoops(tx, {})
  const target = prepareTarget(url, append_path)
  if (isVisitsChoice(target)) throw looping('may lead back to this link')
  let location = targetOf(target, NO_FURTHER_PATH, '')
  for (let hops = 0; hops <= MAX_HOPS; hops++) {
    if (location === undefined) return
    const address = new URL(location)
    if (!isOwn(address)) return
    const visits = visitsOf(address, isOwn)
    if (visits.some(({ asked }) => slugsMeant(asked).includes(slug))) {
      throw looping('leads back to this link')
    }
    location = await locationOf(tx, writer, visits)
  }
  if (location !== undefined) throw looping(`leads through more than ${MAX_HOPS} links`)
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

/**
 * Where the first link that the visits find leads. Undefined for none, or one that the writer may
 * not follow.
 */
async function locationOf(
  tx: Executor,
  writer: UrlWriter,
  visits: readonly Visit[],
): Promise<string | undefined> {
  for (const { asked, more, search } of visits) {
    for (const slug of slugsMeant(asked)) {
      const link = await q.findLinkBySlug(tx, { slug, user: writer.id })
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

function looping(problem: string): Fault {
  return invalidUrl(`${problem}; give where it should end`)
}
