import fs from 'node:fs'
import path from 'node:path'

/** Forces one file or directory to the disk. */
export function syncPath(target: string): void {
  const fd = fs.openSync(target, 'r')
  try {
    fs.fsyncSync(fd)
  } finally {
    fs.closeSync(fd)
  }
}

/** Forces a directory and everything in it to the disk. */
export function syncTree(directory: string): void {
  for (const entry of fs.readdirSync(directory, { withFileTypes: true })) {
    const target = path.join(directory, entry.name)
    if (entry.isDirectory()) syncTree(target)
    else if (entry.isFile()) syncPath(target)
  }
  syncPath(directory)
}
