import { badRequest } from '../../../../kernel/fault.ts'
import { isList, memberAt, numberOf, parseJson } from '../../../../kernel/json.ts'
import { readItems } from './json-items.ts'
import { readKutt } from './kutt.ts'
import type { ImportLine, LinkRecord } from './records.ts'
import { readShlink } from './shlink.ts'

/** Programs whose API lists links as JSON, page by page. */
export const APIS = ['shlink', 'kutt'] as const
export type ApiName = (typeof APIS)[number]

/** How an API answers. */
interface LinkApi {
  /** Where the list stands in a page, and the number of links on all pages. Lists alone do, too. */
  list: string
  total: string
  /** Reads an item of the list. */
  read: (text: string) => LinkRecord
}

const API: Readonly<Record<ApiName, LinkApi>> = {
  shlink: { list: 'shortUrls.data', total: 'shortUrls.pagination.totalItems', read: readShlink },
  kutt: { list: 'data', total: 'total', read: readKutt },
}

/**
 * Reads links from the answers of an API, one page after the other. A file that has not all pages
 * ends with a refused line: nobody should take a part for the whole. The lines are numbered by
 * links: an answer is often one line of text.
 */
export async function* readAnswers(
  bytes: AsyncIterable<Uint8Array>,
  name: ApiName,
): AsyncGenerator<ImportLine> {
  const { list, total, read } = API[name]
  let line = 0
  let links = 0
  let wanted = 0
  for await (const { kind, text, problem } of readItems(bytes)) {
    if (kind === 'item') links += 1
    if (problem !== undefined) yield refused(++line, problem)
    else if (kind === 'item') yield { line: ++line, ...read(text) }
    else {
      const page = parseJson(text)
      if (!isList(page) && !isList(memberAt(page, list))) {
        yield refused(++line, `is no list of links by ${name}: ${list} is missing`)
      }
      wanted = numberOf(memberAt(page, total)) ?? wanted
    }
  }
  if (links < wanted) {
    yield refused(++line, `the file has ${links} of ${wanted} links; add the other pages to it`)
  } else if (line === 0) yield refused(1, 'the file has no links')
}

function refused(line: number, problem: string): ImportLine {
  const read = (): never => {
    throw badRequest(problem)
  }
  return { line, slug: '', read }
}
