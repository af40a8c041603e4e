import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** A file of the repository; paths have forward slashes and start at its root. */
type SourceFile = { path: string; lines: readonly string[] }

/** A rule that is broken, and where. */
export type Violation = { path: string; line: number; rule: string }

const LAYERS = ['commands', 'kernel', 'db', 'services', 'routes', 'html']
const SKIPPED = /(^|\/)(node_modules|\.git|\.tap|\.cache|dist|data|coverage)(\/|$)/
const TEXT =
  /\.(ts|js|mjs|json|md|sql|css|html|txt|sh|ya?ml|toml|service|socket|conf)$|^\.ci\/|\/\.?[a-z-]+$/

/** The product's own TypeScript under `root`: server.ts and the layers' folders. */
export function productFiles(root: string) {
  const inLayers = LAYERS.flatMap((layer) => globSync(`${layer}/**/*.ts`, { cwd: root }))
  const server = existsSync(join(root, 'server.ts')) ? ['server.ts'] : []
  return readAll(root, [...server, ...inLayers.map((path) => path.replaceAll('\\', '/'))])
}

/** Every text file of the repository that a person wrote. */
export function textFiles(root: string) {
  const found = globSync(['*', '.*', '**/*', '.ci/*'], {
    cwd: root,
    exclude: (path) => SKIPPED.test(path),
  })
  const paths = [...new Set(found)].filter((path) => TEXT.test(path) && !SKIPPED.test(path))
  return readAll(
    root,
    paths.filter((path) => path !== 'package-lock.json' && statSync(join(root, path)).isFile()),
  )
}

/** The lines whose code matches, as violations of a rule. */
export function inCode(files: readonly SourceFile[], pattern: RegExp, rule: string) {
  return files.flatMap(({ path, lines }) =>
    lines.flatMap((text, at) =>
      pattern.test(codeOf(text)) ? [{ path, line: at + 1, rule }] : [],
    ),
  )
}

/** The same for whole texts with their comments; the pattern has the flag `g`. */
export function inText(files: readonly SourceFile[], pattern: RegExp, rule: string) {
  return files.flatMap(({ path, lines }) => {
    const text = lines.join('\n')
    return [...text.matchAll(pattern)].map(({ index }) => {
      return { path, line: text.slice(0, index).split('\n').length, rule }
    })
  })
}

/** A line without its comment; empty for a line that is one. */
function codeOf(line: string) {
  if (/^\s*(\/\/|\/\*|\*)/.test(line)) return ''
  return line.replace(/\s\/\/\s.*$/, '')
}

function readAll(root: string, paths: readonly string[]) {
  return [...paths].sort().map((path) => {
    const text = readFileSync(join(root, path), 'utf8')
    return { path, lines: text.replace(/\n$/, '').split('\n') }
  })
}
