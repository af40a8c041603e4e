import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The least that a server can be: it answers, and says when it is ready. */
const MAIN = `import { createServer } from 'node:http'
const server = createServer((request, response) => response.end('ok'))
server.listen(0, '127.0.0.1', () => process.stdout.write('ready\\n'))
process.once('SIGTERM', () => process.exit(0))
`

/** Builds a bare node:http server as one executable, in the way `npm run build` builds the product. */
export function buildBareExecutable(folder: string): string {
  const node = join(folder, 'node')
  copyFileSync(process.execPath, node)
  // Where it is not installed, the product keeps its symbols as well.
  spawnSync('strip', [node])
  writeFileSync(join(folder, 'main.mjs'), MAIN)
  const configuration = {
    ...{ main: 'main.mjs', mainFormat: 'module', executable: node, output: 'bare' },
    ...{ disableExperimentalSEAWarning: true, useCodeCache: true },
  }
  writeFileSync(join(folder, 'sea.json'), JSON.stringify(configuration))
  execFileSync(process.execPath, ['--build-sea', 'sea.json'], { cwd: folder, stdio: 'ignore' })
  return join(folder, 'bare')
}
