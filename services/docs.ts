import { asset, assetNames, assetText } from '../kernel/assets.ts'
import { trusted, type Html } from '../kernel/html.ts'
import { anchorOf, DOCS, renderMarkdown } from './docs-markdown.ts'

/** A page of the documentation. */
export interface DocPage {
  title: string
  content: Html
}

/** A part of a page that has all words of a search. */
export interface DocMatch {
  href: string
  page: string
  heading: string
  excerpt: string
}

/** A heading with the text below it, up to the next heading. */
interface Part {
  heading: string
  text: string
}

/** The first page of the documentation, which leads to all others. */
export const FIRST_PAGE = 'README'
const PAGE = /^(?:decisions\/)?[\w-]+\.md$/
const FENCE = /^ *```/
const HEADING = /^#{1,6} (.*)$/
const MAX_MATCHES = 30
const EXCERPT_BEFORE = 60
const EXCERPT_LENGTH = 240

/** Each page is drawn when it is first asked for: drawing all at once takes half a second. */
const drawn = new Map<string, DocPage>()
let texts: ReadonlyMap<string, string> | undefined

/** The pages as they were written, by name: those for people who use it, then the decisions. */
function sources() {
  if (texts !== undefined) return texts
  const paths = assetNames('docs').filter((path) => PAGE.test(path))
  const ordered = paths.toSorted((a, b) => Number(a.includes('/')) - Number(b.includes('/')))
  texts = new Map(ordered.map((path) => [path.slice(0, -'.md'.length), assetText(`docs/${path}`)]))
  return texts
}

/** A page, such as `hooks` or `decisions/048-actors`; undefined where there is none. */
export async function readDoc(name: string): Promise<DocPage | undefined> {
  const source = sources().get(name)
  if (source === undefined) return undefined
  const known = drawn.get(name)
  if (known !== undefined) return known
  const text = await renderMarkdown(source, {
    page: name,
    isPage: (other) => sources().has(other),
  })
  // The files belong to the program, so their HTML is trusted.
  const page = { title: titleOf(source), content: trusted(text) }
  drawn.set(name, page)
  return page
}

/** A picture of the documentation; undefined where there is none. */
export function readPicture(name: string): Uint8Array | undefined {
  const isThere = assetNames('docs/pictures').includes(name)
  return isThere ? asset(`docs/pictures/${name}`) : undefined
}

/** The parts that have all words of a text, those with the words in their heading first. */
export function searchDocs(text: string): readonly DocMatch[] {
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
  if (words.length === 0) return []
  const matches: (DocMatch & { inHeading: number })[] = []
  for (const [name, source] of sources()) {
    const page = titleOf(source)
    for (const part of partsOf(source)) {
      const heading = part.heading.toLowerCase()
      const all = `${page}\n${part.heading}\n${part.text}`.toLowerCase()
      if (!words.every((word) => all.includes(word))) continue
      matches.push({
        href: `${DOCS}${name === FIRST_PAGE ? '' : name}#${anchorOf(part.heading)}`,
        page,
        heading: plain(part.heading),
        excerpt: excerptOf(plain(part.text), words),
        inHeading: words.filter((word) => heading.includes(word)).length,
      })
    }
  }
  return matches.toSorted((a, b) => b.inHeading - a.inHeading).slice(0, MAX_MATCHES)
}

function titleOf(source: string) {
  return plain(HEADING.exec(source.slice(0, source.indexOf('\n')))?.[1] ?? '')
}

function partsOf(source: string): readonly Part[] {
  const parts: Part[] = []
  let isCode = false
  for (const line of source.split('\n')) {
    if (FENCE.test(line)) isCode = !isCode
    const heading = isCode ? undefined : HEADING.exec(line)?.[1]
    const last = parts.at(-1)
    if (heading !== undefined) parts.push({ heading, text: '' })
    else if (last !== undefined) last.text += `${line}\n`
  }
  return parts
}

/** A text without the marks of Markdown, on one line. */
function plain(markdown: string) {
  return markdown
    .replaceAll(/\]\([^()\s]*\)/g, '')
    .replaceAll(/```\w*|[*`[\]|]|-{3,}/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim()
}

/** The text around the first word that it has. */
function excerptOf(text: string, words: readonly string[]) {
  const lower = text.toLowerCase()
  const places = words.map((word) => lower.indexOf(word)).filter((at) => at >= 0)
  const from = Math.max(0, Math.min(...places, text.length) - EXCERPT_BEFORE)
  const start = places.length === 0 ? 0 : from
  const cut = text.slice(start, start + EXCERPT_LENGTH).toWellFormed()
  return `${start > 0 ? '…' : ''}${cut}${start + EXCERPT_LENGTH < text.length ? '…' : ''}`
}
