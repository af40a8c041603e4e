import { anchorOf } from '../../services/docs-markdown.ts'

/** The anchors that the heads of a page of Markdown have. */
export function anchorsOf(markdown: string): readonly string[] {
  const text = markdown.replaceAll(/^ *```[^]*?^ *```$/gm, '')
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => anchorOf(heading))
}
