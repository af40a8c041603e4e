// Run as a process: imports the modules that its arguments name and prints, as JSON, the regular
// expressions that they build while they are loaded, with the place of each.
import { pathToFileURL } from 'node:url'
import type { FoundExpression } from './regular-expressions.ts'

const found: FoundExpression[] = []

function note({ source, flags }: RegExp) {
  // The first frame is this function, the second one the trap below.
  const [, , , caller = ''] = (new Error().stack ?? '').split('\n')
  const place = /file:\/\/(.*):(\d+):\d+/.exec(caller)
  if (place !== null) found.push({ path: place[1] ?? '', line: Number(place[2]), source, flags })
}

globalThis.RegExp = new Proxy(RegExp, {
  construct(target, given, newTarget: typeof RegExp) {
    const built = Reflect.construct(target, given, newTarget) as RegExp
    note(built)
    return built
  },
})

for (const path of process.argv.slice(2)) await import(pathToFileURL(path).href)
process.stdout.write(JSON.stringify(found))
