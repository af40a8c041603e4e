import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../helpers/program.ts'

/**
 * The sentences of a page, by its sections. A row of a table is one, its cells apart by ` | `. A table of fields is
 * one sentence, its head: the members are read from it. What ends with a colon introduces, as words in bold do that
 * are a whole sentence; what ends with "not shown." binds nothing.
 */
export function sentencesOf(page: string) {
  return blocksOf(page).flatMap(({ section, lines }) =>
    textsOf(lines)
      .filter((text) => !/:$|not shown\.$|^\*\*[^*]+\.\*\*$/.test(text))
      .map((text) => ({ section, text })),
  )
}

/** The members that the section with this beginning declares, in a table of fields or in a sentence. */
export function membersOf(page: string, section: string) {
  const blocks = blocksOf(page).filter((block) => block.section.startsWith(section))
  const table = blocks.find(({ lines }) => isFields(lines))
  if (table !== undefined) {
    return table.lines.slice(2).flatMap((line) => {
      const [names = '', type = ''] = cellsOf(line)
      return names.split(', ').map((name) => ({ name: name.replace(' (required)', ''), type }))
    })
  }
  const [sentence = ''] = textsOf(blocks[0]?.lines ?? [])
  const found = [...sentence.matchAll(/`(\w+)`(?: \(([^)]*)\))?/g)]
  if (found.length === 0) throw new Error(`${page}.md: ${section} has no members`)
  return found.map(([, name = '', type = '']) => ({ name, type }))
}

/** Tables, items of lists and paragraphs. */
function blocksOf(page: string) {
  const text = readFileSync(join(ROOT, `docs/contract/${page}.md`), 'utf8')
  const blocks: { section: string; lines: string[] }[] = []
  let section = ''
  let lines: string[] | undefined
  for (const line of text.split('\n')) {
    const heading = /^#+ (.*)$/.exec(line)
    if (heading !== null) section = heading[1] ?? ''
    if (heading !== null || line === '') {
      lines = undefined
    } else if (lines === undefined || isItem(line)) {
      lines = [line]
      blocks.push({ section, lines })
    } else lines.push(line)
  }
  return blocks
}

function isItem(line: string) {
  return /^ *(-|\d+\.) /.test(line)
}

function isFields(lines: readonly string[]) {
  return lines[0]?.startsWith('| Field |') === true
}

function textsOf(lines: readonly string[]) {
  const [first = ''] = lines
  if (isFields(lines)) return [cellsOf(first).join(' | ')]
  if (first.startsWith('|')) return lines.slice(2).map((line) => cellsOf(line).join(' | '))
  const text = lines.map((line) => line.trim()).join(' ')
  return text.replace(/^(-|\d+\.) /, '').split(/(?<=\.\**) +(?=[A-Z`*(])/)
}

function cellsOf(line: string) {
  return line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim())
}
