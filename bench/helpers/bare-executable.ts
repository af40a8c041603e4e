import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildExecutable } from '../../deploy/executable.ts'
import { ownArchitecture } from '../../deploy/node-binary.ts'

/** The least that a server can be: it answers, and says when it is ready. */
const MAIN = `const { createServer } = require('node:http')
const server = createServer((request, response) => response.end('ok'))
server.listen(0, '127.0.0.1', () => process.stdout.write('ready\\n'))
process.once('SIGTERM', () => process.exit(0))
`

/** Makes a bare node:http server an executable in the very way in which the product becomes one. */
export function buildBareExecutable(folder: string): string {
  writeFileSync(join(folder, 'main.cjs'), MAIN)
  const architecture = ownArchitecture()
  return buildExecutable({ folder, main: 'main.cjs', name: 'bare', architecture }).output
}
