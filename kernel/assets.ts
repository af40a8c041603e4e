import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import sea from 'node:sea'
import { fileURLToPath } from 'node:url'
import { zstdDecompressSync } from 'node:zlib'

/**
 * Packages with files that are sent or loaded as they are: by the prefix of their assets' names.
 */
const PACKAGES: Readonly<Record<string, string>> = {
  'htmx/': 'htmx.org',
  'pglite/': '@electric-sql/pglite',
  'swagger-ui/': 'swagger-ui-dist',
}

/**
 * Whether the program runs from its executable, which also holds what is made from the sources.
 */
export const inExecutable: boolean = sea.isSea()

/**
 * Bytes of a file that belongs to the program, by its path in the repository (`sql/server.sql`,
 * `html/assets/app.css`) or in a package (`htmx/htmx.min.js`): from the executable when it runs as
 * one, where it is compressed, else from disk.
 */
export function asset(name: string): Buffer<ArrayBuffer> {
  if (!inExecutable) return readFileSync(assetFile(name))
  return zstdDecompressSync(new Uint8Array(sea.getRawAsset(name)))
}

/** Text of an asset. */
export function assetText(name: string): string {
  return asset(name).toString('utf8')
}

/** Paths of all files in a folder of the program, relative to it and sorted. */
export function assetNames(folder: string): readonly string[] {
  if (!inExecutable) {
    const entries = readdirSync(assetFile(folder), { recursive: true, withFileTypes: true })
    const files = entries.filter((entry) => entry.isFile())
    return files
      .map((file) => relative(assetFile(folder), join(file.parentPath, file.name)))
      .sort()
  }
  const inside = sea.getAssetKeys().filter((key) => key.startsWith(`${folder}/`))
  return inside.map((key) => key.slice(folder.length + 1)).sort()
}

/** Where an asset is on disk; only when the program runs from its sources. */
export function assetFile(name: string): string {
  for (const [prefix, packageName] of Object.entries(PACKAGES)) {
    if (!name.startsWith(prefix)) continue
    // The files lie beside the package's main file.
    const main = fileURLToPath(import.meta.resolve(packageName))
    return join(dirname(main), name.slice(prefix.length))
  }
  return join(import.meta.dirname, '..', name)
}

/** How an operator calls this program: as what is installed, or by npm in its folder. */
export const PROGRAM_NAME = inExecutable ? 'gatehouse' : 'npx gatehouse'
