/**
 * Indents JSON text by two spaces without touching its literals: `JSON.parse` and back would round
 * long numbers, and what is shown must be what was sent. Null when the text is no JSON.
 */
export function indentJson(text: string): string | null {
  try {
    JSON.parse(text)
  } catch {
    // SyntaxError: no JSON.
    return null
  }
  let depth = 0
  return text.replace(TOKEN, (token) => {
    switch (token) {
      case '{':
      case '[':
        depth++
        return token + line(depth)
      case '}':
      case ']':
        depth--
        return line(depth) + token
      case ',':
        return token + line(depth)
      case ':':
        return ': '
      default:
        return /^[\s]/.test(token) ? '' : token.replace(/^([[{])\s*([\]}])$/, '$1$2')
    }
  })
}

/** Strings and empty brackets whole, then single structure characters and white space. */
const TOKEN = /"(?:[^"\\]|\\.)*"|\{\s*\}|\[\s*\]|[{}[\],:]|\s+/g

function line(depth: number): string {
  return '\n' + '  '.repeat(depth)
}
