import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { temporaryFolder, type Owner } from '../helpers/owner.ts'

const REDOCLY = createRequire(import.meta.url).resolve('@redocly/cli/package.json')

/** Runs `redocly lint` with its recommended rules, without its notices and its telemetry. */
export async function lint(
  t: Owner,
  document: string,
): Promise<{ code: number; problems: readonly object[] }> {
  const file = join(await temporaryFolder(t, 'lint'), 'openapi.yaml')
  writeFileSync(file, document)
  const program = join(REDOCLY, '..', 'bin', 'cli.js')
  const child = spawn(process.execPath, [program, 'lint', file, '--format=json'], {
    // tap's own loaders have no business there.
    env: {
      PATH: process.env['PATH'] ?? '',
      REDOCLY_TELEMETRY: 'off',
      REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true',
    },
    cwd: join(file, '..'),
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  const ended = Promise.withResolvers<number>()
  child.once('error', ended.reject)
  child.once('close', (code) => ended.resolve(code ?? 1))
  const code = await ended.promise
  const { problems }: { problems: readonly Problem[] } = JSON.parse(output)
  return {
    code,
    problems: problems.map(({ ruleId, severity, location }) => ({
      ruleId,
      severity,
      path: location[0]?.pointer,
    })),
  }
}

type Problem = {
  ruleId: string
  severity: string
  location: readonly { pointer: string }[]
}
