/** The longest text that is made: brackets within brackets would make gigabytes of a few kilobytes. */
const LONGEST = 8 * 1024 * 1024

/**
 * Indents JSON text by two spaces without touching its literals: `JSON.parse` and back would round
 * long numbers, and what is shown must be what was sent. Null when the text is no JSON, or would
 * become too long.
 */
export function indentJson(text: string): string | null {
  try {
    JSON.parse(text)
  } catch {
    // SyntaxError: no JSON.
    return null
  }
  if (indentedLength(text) > LONGEST) return null
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

/** About how long JSON is once it is indented; never much less than it turns out to be. */
function indentedLength(text: string): number {
  let length = text.length
  let depth = 0
  let quoted = false
  for (let at = 0; at < text.length; at++) {
    const char = text[at] ?? ''
    if (quoted && char === '\\') at++
    else if (char === '"') quoted = !quoted
    else if (!quoted && '{}[],'.includes(char)) {
      if (char !== ',') depth += char === '{' || char === '[' ? 1 : -1
      length += 1 + 2 * depth
    }
  }
  return length
}
