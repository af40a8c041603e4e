import { type Import, type SourceFile, type Violation, importsOf } from './source-tree.ts'

const SERVICES = ['hooks', 'links', 'ops']

/** What each layer may import from the repository. */
const BELOW: Readonly<Record<string, readonly string[]>> = {
  // The composition root may take from every layer.
  'server.ts': ['commands', 'routes', 'services', 'html', 'db', 'kernel'],
  commands: ['commands', 'routes', 'services', 'html', 'db', 'kernel'],
  routes: ['routes', 'services', 'html', 'db', 'kernel'],
  services: ['services', 'db', 'kernel'],
  html: ['html', 'kernel'],
  db: ['db', 'kernel'],
  kernel: ['kernel'],
}

/** Packages that only one place may use. */
const HOMES: readonly { name: string; folder: string }[] = [
  { name: 'postgres', folder: 'db/' },
  { name: '@electric-sql/pglite', folder: 'db/embedded/' },
  { name: '@redis/client', folder: 'services/hooks/queues/' },
  { name: 'ws', folder: 'kernel/http/websocket.ts' },
]

/** Imports that do not go down. `packages` are the dependencies that package.json declares. */
export function importViolations(
  files: readonly SourceFile[],
  packages: readonly string[],
): readonly Violation[] {
  return files.flatMap((file) =>
    importsOf(file).flatMap((imported) => {
      const rule = imported.isLocal
        ? localRule(file.path, imported)
        : packageRule(file.path, imported.target, packages)
      return rule === undefined ? [] : [{ path: file.path, line: imported.line, rule }]
    }),
  )
}

/** Chains of imports that come back to where they began, once each. */
export function cycles(files: readonly SourceFile[]): readonly Violation[] {
  const graph = new Map(files.map((file) => [file.path, importsOf(file)]))
  const done = new Set<string>()
  const found: Violation[] = []
  const visit = (path: string, chain: readonly string[]): void => {
    if (done.has(path)) return
    for (const { target, line, isLocal } of graph.get(path) ?? []) {
      const at = [...chain, path].indexOf(target)
      if (at >= 0) {
        const loop = [...chain, path, target].slice(at).join(' → ')
        found.push({ path, line, rule: `imports go in a circle: ${loop}` })
      } else if (isLocal) {
        visit(target, [...chain, path])
      }
    }
    done.add(path)
  }
  for (const { path } of files) visit(path, [])
  return found
}

function localRule(from: string, { target, isTypeOnly }: Import): string | undefined {
  const [layer, other] = [layerOf(from), layerOf(target)]
  if (layer === 'html' && isTypeOnly && ['db', 'services'].includes(other))
    return foreign(from, target)
  if (!(BELOW[layer] ?? []).includes(other))
    return `${layer} may not import ${target}: imports go down only`
  if (layer === 'html' && other === 'kernel' && !isTypeOnly && !target.startsWith('kernel/html')) {
    return `html may import kernel/html and types, not ${target}`
  }
  return layer === 'commands' || layer === 'server.ts' ? undefined : foreign(from, target)
}

/** A service's part of a layer stays with that service's parts of the others. */
function foreign(from: string, target: string): string | undefined {
  const [own, other] = [serviceOf(from), serviceOf(target)]
  if (own === undefined || other === undefined || own === other) return undefined
  return `${own} may not import ${other}: services meet in PostgreSQL or in commands/serve.ts`
}

function packageRule(
  from: string,
  target: string,
  packages: readonly string[],
): string | undefined {
  if (target.startsWith('node:')) return undefined
  if (!packages.includes(target)) return `${target} is not a dependency in package.json`
  const home = HOMES.find(({ name }) => name === target)?.folder
  const isHome = home !== undefined && from.startsWith(home)
  if (layerOf(from) === 'kernel' && target !== 'typebox' && !isHome) {
    return `kernel may import node: modules and typebox, not ${target}`
  }
  return home === undefined || isHome ? undefined : `only ${home} may import ${target}`
}

function layerOf(path: string): string {
  return path.split('/')[0] ?? ''
}

function serviceOf(path: string): string | undefined {
  const [, second = ''] = path.split('/')
  return SERVICES.find((name) => second === name || second === `${name}.ts`)
}
