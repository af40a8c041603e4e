import { isList, memberAt, numberOf, parseJson } from '../../../../kernel/json.ts'
import { readItems } from './json-items.ts'
import { jsonRow, unreadable, type Row } from './rows.ts'

/** Where the APIs of other programs have their list of links; some answer the list alone. */
const LISTS = ['shortUrls.data', 'data', 'results', 'links']

/** Where they say how many links there are on all pages. */
const TOTALS = ['shortUrls.pagination.totalItems', 'total', 'metadata.total_results']

/** Whether a JSON text is an answer with a list of links. */
export function isAnswer(text: string): boolean {
  const page = parseJson(text)
  return isList(page) || LISTS.some((path) => isList(memberAt(page, path)))
}

/**
 * Reads links from the answers of an API, one page after the other. A file that has not all pages
 * ends with a refused row: nobody should take a part for the whole. The rows are numbered by links:
 * an answer is often one line of text.
 */
export async function* readAnswers(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Row> {
  let row = 0
  let links = 0
  let wanted = 0
  for await (const { kind, text, problem } of readItems(bytes)) {
    if (kind === 'item') links += 1
    if (problem !== undefined) yield unreadable(++row, problem)
    else if (kind === 'item') yield jsonRow(++row, text)
    else {
      if (!isAnswer(text)) {
        yield unreadable(++row, `is no list of links; one stands in ${LISTS.join(', ')}`)
      }
      const page = parseJson(text)
      const totals = TOTALS.map((path) => numberOf(memberAt(page, path)))
      wanted = totals.find((total) => total !== undefined) ?? wanted
    }
  }
  if (links < wanted) {
    yield unreadable(++row, `the file has ${links} of ${wanted} links; add the other pages to it`)
  } else if (row === 0) yield unreadable(1, 'the file has no links')
}
