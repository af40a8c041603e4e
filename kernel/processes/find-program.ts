import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** The file of a program: a path, or a name in one of the folders of a PATH. */
export function findProgram(program: string, path: string): string | undefined {
  const places = program.includes('/')
    ? [program]
    : path.split(delimiter).map((folder) => join(folder, program))
  return places.find(isProgram)
}

function isProgram(path: string) {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}
