import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import sea from 'node:sea'

const root = join(import.meta.dirname, '..')

/** Packages whose files are served or loaded as they are, by the prefix of their asset's name. */
const PACKAGES: Readonly<Record<string, string>> = { 'htmx/': 'htmx.org/dist' }

/**
 * Bytes of a file that belongs to the program, by its path in the repository (`sql/hooks.sql`,
 * `html/assets/app.css`) or in a package (`htmx/htmx.min.js`): from the executable when it runs as
 * one, else from disk.
 */
export function asset(name: string): Buffer {
  if (sea.isSea()) return Buffer.from(sea.getAsset(name))
  for (const [prefix, folder] of Object.entries(PACKAGES)) {
    if (name.startsWith(prefix)) return readFileSync(packageFile(folder, name.slice(prefix.length)))
  }
  return readFileSync(join(root, name))
}

/** Text of an asset. */
export function assetText(name: string): string {
  return asset(name).toString('utf8')
}

/** Names of the files in a folder of the program, sorted. */
export function assetNames(folder: string): readonly string[] {
  if (!sea.isSea()) return readdirSync(join(root, folder)).sort()
  const inside = sea.getAssetKeys().filter((key) => key.startsWith(`${folder}/`))
  return inside.map((key) => key.slice(folder.length + 1)).sort()
}

function packageFile(folder: string, file: string): string {
  const [name = '', ...rest] = folder.split('/')
  const manifest = createRequire(import.meta.url).resolve(`${name}/package.json`)
  return join(manifest, '..', ...rest, file)
}
