import { StringDecoder } from 'node:string_decoder'

/**
 * Splits bytes into lines, whatever their chunks: no character is cut at the border of a chunk. A
 * line with more than `maxLength` characters is cut, so that no line takes more memory.
 */
export function splitLines(maxLength: number, take: (line: string) => void) {
  const decoder = new StringDecoder()
  let line = ''

  function extend(text: string): void {
    line += text.slice(0, maxLength - line.length)
  }

  return {
    push(bytes: Uint8Array): void {
      const [first = '', ...rest] = decoder.write(bytes).split('\n')
      extend(first)
      for (const next of rest) {
        take(line)
        line = ''
        extend(next)
      }
    },
    /** Takes the last line if it has no end. */
    end(): void {
      extend(decoder.end())
      if (line !== '') take(line)
    },
  }
}
