import type { Visitor } from './links-pages.ts'
import { slugsIn } from './links-pages.ts'

/** The address of the next page of the list whose table's body has this id; undefined on the last one. */
export function nextOf(text: string, rows: string): string | undefined {
  const [, href] = new RegExp(`<a\\s+id="${rows}-more-link"\\s+href="([^"]*)"`).exec(text) ?? []
  return href?.replaceAll('&amp;', '&')
}

/** The slugs of all pages of a list, as its links lead through them. */
export async function listedAll(
  who: Visitor,
  path: string,
  rows: string,
): Promise<readonly string[]> {
  const slugs: string[] = []
  for (let next: string | undefined = path; next !== undefined;) {
    const page = await who.get(next)
    if (page.status !== 200) throw new Error(`${next} answered ${page.status}`)
    slugs.push(...slugsIn(page.text))
    next = nextOf(page.text, rows)
  }
  return slugs
}
