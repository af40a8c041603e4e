/** A text made to cost, of about so many characters. */
type Shape = (size: number) => string

const repeat = (text: string, size: number) => text.repeat(Math.ceil(size / text.length))

/** Texts that a careless reader takes much longer for than their length asks. */
export const SHAPES: Readonly<Record<string, Shape>> = {
  'open brackets': (size) => repeat('[{', size),
  'nested lists': (size) => repeat('[', size / 2) + repeat(']', size / 2),
  'nested objects': (size) => repeat('{"a":', size / 2) + '1' + repeat('}', size / 10),
  'unclosed quotes': (size) => `{"a": ${repeat('"\\', size)}`,
  'empty code': (size) => repeat('`', size),
  'bold marks': (size) => repeat('**a', size),
  hashes: (size) => `# ${repeat('#', size)}`,
  'a heading between separators': (size) => {
    const spaces = repeat(' ', size / 2)
    return `# \u2028${spaces}a${spaces}\u2028a`
  },
  spaces: (size) => repeat(' ', size) + 'a',
  'blank lines': (size) => repeat(' \n', size) + 'a',
  'line separators': (size) => repeat('\u2028', size / 3) + 'a',
  'list items': (size) => repeat('- ', size),
  'combining marks': (size) => 'a' + repeat('\u0301', size / 2),
  'half pairs': (size) => `{"a": "${repeat('\\ud83d', size)}"}`,
  dashes: (size) => `${repeat('-', size)}a`,
  slashes: (size) => `https://example.com/${repeat('/', size)}a`,
  'one letter and dots': (size) => repeat('a.', size),
  'calls that never end': (size) => `<tool_call>list_services${repeat('<arg_key>', size)}`,
  'keys, then values': (size) =>
    `<tool_call>list_services${repeat('<arg_key>', size / 3)}` +
    repeat('</arg_key><arg_value>', (size * 2) / 3),
  fences: (size) => repeat('```json\n{"name": "list_services"\n', size),
  'reasoning marks': (size) => repeat('<think>', size / 2) + repeat('</think>', size / 2),
  'fences of a prompt': (size) => repeat('Between the two lines ALERT-', size),
}

/** JSON that is long where it is taken apart: names, depth, members. */
export const PAYLOADS: Readonly<Record<string, Shape>> = {
  'members below a long name': (size) => below(`{"${repeat('n', size / 2)}":`, size / 2),
  'members below long names': (size) => {
    const names = Array.from({ length: 50 }, (_, n) => `{"${n}${repeat('n', size / 100)}":`)
    return below(names.join(''), size / 2, 50)
  },
  'long names': (size) => {
    const names = Array.from({ length: 20 }, (_, n) => `"${n}${repeat('n', size / 20)}":${n}`)
    return `{${names.join()}}`
  },
  'short values': (size) => `[${repeat('1,', size)}1]`,
  'many members': (size) => below('{"m":', size),
  lines: (size) => repeat('a line\n', size),
}

/** Small members below what opens. */
function below(opening: string, size: number, depth = 1) {
  const members = Array.from({ length: size / 12 }, (_, n) => `"${n}":${n}`)
  return `${opening}{${members.join()}}${'}'.repeat(depth)}`
}
