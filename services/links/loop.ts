import type { Executor } from '../../db/client.ts'
import { findLinkBySlug, takeLoopTurn } from '../../db/links/links.ts'
import { percentDecoded } from '../../kernel/percent.ts'
import { refusal, type Refusal } from './refusal.ts'
import { readSearchTerms } from './search-terms.ts'
import { slugsMeant } from './slug.ts'

/** Tells whether a URL's host (with its port) is one under which this resolver is reached. */
export type OwnHosts = (url: URL) => boolean

/** Longer chains of links to links are nobody's wish, and refused as well. */
const LONGEST_CHAIN = 10

/**
 * Refuses a url that leads back to its own link, at once or by way of others. Such links are written
 * one at a time: two at once could each close the other's loop.
 */
export async function refuseLoop(
  tx: Executor,
  isOwn: OwnHosts,
  slug: string,
  target: string,
): Promise<Refusal | undefined> {
  let url = new URL(target)
  if (!isOwn(url)) return undefined
  await takeLoopTurn(tx)
  for (let hops = 0; hops < LONGEST_CHAIN; hops++) {
    const names = namesAsked(url, isOwn)
    if (names.some((name) => /\{[1-9*]\}/.test(name))) {
      return looping('may lead back to this link')
    }
    const meant = names.flatMap((name) => slugsMeant(name))
    if (meant.includes(slug)) return looping('leads back to this link')
    const next = await firstLink(tx, meant)
    if (next === undefined) return undefined
    url = new URL(next)
    if (!isOwn(url)) return undefined
  }
  return looping(`leads through more than ${LONGEST_CHAIN} links`)
}

async function firstLink(tx: Executor, slugs: readonly string[]): Promise<string | undefined> {
  for (const slug of slugs) {
    const link = await findLinkBySlug(tx, slug, null)
    if (link !== undefined) return link.url
  }
  return undefined
}

function looping(problem: string): Refusal {
  return refusal('INVALID_URL', `url ${problem}; give where it should end`, 'url')
}

/** The name of a link that a url of the resolver asks for; a search's may stand behind the keyword. */
function namesAsked({ pathname, searchParams }: URL, isOwn: OwnHosts): readonly string[] {
  if (pathname !== '/-/go') return [firstSegment(pathname)]
  const { name, rest } = readSearchTerms(searchParams.get('q') ?? '')
  const keyword = `http://${name}/`
  const isKeyword = URL.canParse(keyword) && isOwn(new URL(keyword))
  return isKeyword ? [name, readSearchTerms(rest).name] : [name]
}

function firstSegment(pathname: string): string {
  const [, segment = ''] = pathname.split('/')
  // No slug has an encoding that is broken.
  return percentDecoded(segment) ?? ''
}
