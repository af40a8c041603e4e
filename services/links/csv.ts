/** The cells of one record (RFC 4180), or undefined when its quotes don't pair. */
export function readCells(record: string): readonly string[] | undefined {
  const cells: string[] = []
  for (let at = 0; ; at++) {
    const isQuoted = record[at] === '"'
    const end = isQuoted ? endOfQuoted(record, at + 1) : endOfPlain(record, at)
    if (end === undefined) return undefined
    const cell = record.slice(at, end)
    cells.push(isQuoted ? cell.slice(1, -1).replaceAll('""', '"') : cell)
    at = end
    if (at >= record.length) return cells
  }
}

/** A record of cells, without its line end. */
export function writeCells(cells: readonly string[]): string {
  return cells.map(writeCell).join(',')
}

function writeCell(text: string): string {
  // Spaces at the ends as well: some programs trim what has no quotes.
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

function endOfPlain(record: string, from: number): number {
  const comma = record.indexOf(',', from)
  return comma < 0 ? record.length : comma
}

/** Where the cell ends, behind its closing quote; undefined when something else than a comma follows. */
function endOfQuoted(record: string, from: number): number | undefined {
  let quote = record.indexOf('"', from)
  while (quote >= 0 && record[quote + 1] === '"') quote = record.indexOf('"', quote + 2)
  if (quote < 0) return undefined
  const end = quote + 1
  return end === record.length || record[end] === ',' ? end : undefined
}
