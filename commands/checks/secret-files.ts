import { existsSync, readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { notesOf, type ConfigSource } from '../../kernel/config.ts'
import { Variables, type VariableName } from '../../kernel/variables.ts'
import { fine, wrong, type Finding } from './finding.ts'

const OTHERS_READ = 0o004
const OTHERS_WRITE = 0o002

/** Files that hold secrets, by who may read or change them. Nothing when there are none. */
export function secretFileFindings(
  config: ConfigSource,
  credentials: string | undefined,
): readonly Finding[] {
  const files = [...environmentFile(config), ...credentialFiles(credentials)]
  const what = 'secret files'
  const bad = files.flatMap(({ path, secret }) => problemOf(path, secret) ?? [])
  if (files.length === 0 || bad.length > 0) return bad.map((text) => wrong(what, text))
  const places = files.map(({ path }) => (dirname(path) === credentials ? credentials : path))
  return [fine(what, [...new Set(places)].join(', '))]
}

interface SecretFile {
  readonly path: string
  readonly secret: boolean
}

function environmentFile({ envFile, origins }: ConfigSource): readonly SecretFile[] {
  // That it can't be read is said of the configuration.
  if (envFile === undefined || !existsSync(envFile)) return []
  const secret = [...origins].some(
    ([name, { place }]) => place === 'environment file' && notesOf(name).secret === true,
  )
  return [{ path: envFile, secret }]
}

/** Files of systemd's that a variable is read from. */
function credentialFiles(folder: string | undefined): readonly SecretFile[] {
  if (folder === undefined) return []
  const names = (Object.keys(Variables.properties) as VariableName[])
    .filter((name) => notesOf(name).secret === true)
    .map((name) => name.toLowerCase())
  try {
    return readdirSync(folder)
      .filter((file) => names.includes(file))
      .map((file) => ({ path: join(folder, file), secret: true }))
  } catch {
    return []
  }
}

function problemOf(path: string, secret: boolean): string | undefined {
  const { mode = 0 } = statSync(path, { throwIfNoEntry: false }) ?? {}
  if ((mode & OTHERS_WRITE) !== 0)
    return `everybody on this host may change ${path}: chmod o-rwx ${path}`
  if (secret && (mode & OTHERS_READ) !== 0)
    return `everybody on this host may read ${path}, and it holds secrets: chmod o-rwx ${path}, then replace them`
  return undefined
}
