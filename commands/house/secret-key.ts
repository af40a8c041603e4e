import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { syncPath } from '../../db/disk.ts'
import { ConfigError } from '../../kernel/config.ts'
import type { RandomBytes } from '../../kernel/tokens.ts'
import { variableOf, type ConfigSource } from '../frame/configuration.ts'

const NAME = 'GATEHOUSE_SECRET_KEY'

/** The file of the key in the data directory. */
export function keyFile({ current }: ConfigSource): string {
  return join(current.GATEHOUSE_DATA_DIR, variableOf(NAME).file ?? '')
}

/** Where the key is that encrypts secrets: a file, or the variable; undefined without a key. */
export function placeOfKey(config: ConfigSource): string | undefined {
  const origin = config.origins.get(NAME)
  if (origin === undefined) return undefined
  return origin.place === 'data directory' ? keyFile(config) : NAME
}

/**
 * Makes the key in the data directory of the embedded database, unless there is a key. The caller
 * holds the lock of the directory. Gives the file if it is new.
 *
 * @throws ConfigError for a file that can't be read: a new key would not read what the old one has
 * sealed.
 */
export function ensureKey(config: ConfigSource, random: RandomBytes): string | undefined {
  // A directory beside a server's database may be a container's, gone before the secrets are.
  if (config.current.DATABASE_URL !== undefined || config.origins.has(NAME)) return undefined
  const file = keyFile(config)
  if (existsSync(file)) {
    throw new ConfigError(
      `${file} is empty or can't be read by this user, and it encrypts secrets: ` +
        'put it back, or correct its owner',
    )
  }
  writeDurably(file, random(32).toString('base64'))
  const outcome = config.readAgain()
  if ('problem' in outcome) throw new ConfigError(outcome.problem)
  return file
}

/** The whole text is on the disk before the file has its name. */
function writeDurably(file: string, text: string): void {
  const part = `${file}.part`
  rmSync(part, { force: true })
  writeFileSync(part, `${text}\n`, { flag: 'wx', mode: 0o600, flush: true })
  renameSync(part, file)
  syncPath(dirname(file))
}
