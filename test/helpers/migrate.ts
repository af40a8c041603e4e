import { runCli } from './cli.ts'
import type { Env } from './program.ts'

/** Brings a database up to date by the product's own command, as preparation: throws when it fails. */
export async function migrate(env: Env): Promise<void> {
  const { code, stderr } = await runCli(['migrate'], { env })
  if (code !== 0) throw new Error(`'migrate' ended with ${code}, expected 0: ${stderr}`)
}
