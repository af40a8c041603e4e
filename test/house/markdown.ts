import { anchorOf } from '../../services/docs-markdown.ts'

/** The anchors that the heads of a page of Markdown have. */
export function anchorsOf(markdown: string) {
  const text = markdown.replaceAll(/^ *```[^]*?^ *```$/gm, '')
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => anchorOf(heading))
}

/** The rows of all tables that have this head, cells without the outer bars. */
export function rowsUnder(markdown: string, head: string) {
  const [, ...tables] = markdown.split(`${head}\n`)
  const rows = tables.flatMap((table) => table.split('\n\n', 1)[0]?.trim().split('\n').slice(1))
  return rows.map((row = '') =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}
