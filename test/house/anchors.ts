/** The anchors that the heads of a page of Markdown have. */
export function anchorsOf(markdown: string): readonly string[] {
  const text = markdown.replaceAll(/^ *```[^]*?^ *```$/gm, '')
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, text = '']) =>
    text
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  )
}
