import type { RendererObject } from 'marked'

/** Where the documentation is on each listener. */
export const DOCS = '/-/docs/'

/** What links of a page are resolved by. */
interface DocLinks {
  /** The name of the page that has them. */
  page: string
  isPage: (name: string) => boolean
}

/** The anchor of a heading, as code hosts make it. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-')
}

/** A page of the documentation as HTML. `marked` is loaded when somebody reads the first page. */
export async function renderMarkdown(source: string, links: DocLinks): Promise<string> {
  const { Marked, Renderer } = await import('marked')
  const renderer: RendererObject = {
    heading({ tokens, depth, text }) {
      return `<h${depth} id="${anchorOf(text)}">${this.parser.parseInline(tokens)}</h${depth}>\n`
    },
    link({ href, tokens }) {
      const text = this.parser.parseInline(tokens)
      const address = addressOf(href, links)
      return address === undefined ? text : `<a href="${address}">${text}</a>`
    },
    image({ href, text }) {
      const address = addressOf(href, links)
      return address === undefined ? text : `<img src="${address}" alt="${text}" loading="lazy">`
    },
    table(token) {
      const table = Renderer.prototype.table.call(this, token)
      // A cell without a text heads nothing.
      return `<div class="wide" tabindex="0">${table.replaceAll('<th></th>', '<td></td>')}</div>\n`
    },
  }
  return new Marked({ renderer }).parse(source, { async: true })
}

/** Where a link leads on this server; undefined where only the repository has its target. */
function addressOf(href: string, { page, isPage }: DocLinks) {
  if (href.startsWith('#') || /^[a-z]+:/.test(href)) return href
  const { pathname, hash } = new URL(href, `http://repository/docs/${page}.md`)
  const [, folder, name = '', ending] =
    /^\/docs\/(pictures\/)?(.*)\.(md|png)$/.exec(pathname) ?? []
  if (folder !== undefined) return `${DOCS}pictures/${name}.${ending}`
  if (!isPage(name)) return undefined
  return `${DOCS}${name === 'README' ? '' : name}${hash}`
}
