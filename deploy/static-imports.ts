import { readFileSync } from 'node:fs'
import type { Plugin } from 'esbuild'

const LOADED = /\bawait import\((['"]\.{1,2}\/[^'"]+['"])\)/g

/**
 * Makes what a command loads when it is called a part of the one module like all the rest. Apart, it would
 * be compiled at each start: the code cache of the executable holds what runs at once. What services load
 * when it is configured, such as the client of a broker, stays apart, for its memory.
 */
export const staticImports: Plugin = {
  name: 'static-imports',
  setup({ onLoad }) {
    onLoad({ filter: /\/(server|commands\/[^/]+)\.ts$/ }, ({ path }) => {
      const names: string[] = []
      const source = readFileSync(path, 'utf8').replaceAll(
        LOADED,
        (_, name: string) => `loaded$${names.push(name) - 1}`,
      )
      const imports = names.map((name, at) => `import * as loaded$${at} from ${name}\n`)
      return { contents: `${source}\n${imports.join('')}`, loader: 'ts' }
    })
  },
}
