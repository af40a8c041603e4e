/** A text that was collected, or why it cannot be read. */
export interface CollectedText {
  text: string
  problem?: string
}

/** Collects the bytes of a text; of one that is too long only the length is kept. */
export function createPieces(maxBytes: number) {
  let pieces: Uint8Array[] = []
  let size = 0
  return {
    add(piece: Uint8Array) {
      size += piece.length
      if (size > maxBytes) pieces = []
      else if (piece.length > 0) pieces.push(piece)
    },

    isBlank: () => size <= maxBytes && Buffer.concat(pieces).toString().trim() === '',

    /** The text up to now; the next one begins empty. */
    take(): CollectedText {
      const bytes = Buffer.concat(pieces)
      const isTooLong = size > maxBytes
      pieces = []
      size = 0
      if (isTooLong) return { text: '', problem: `is longer than ${sizeText(maxBytes)}` }
      try {
        return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) }
      } catch {
        return { text: '', problem: 'is not UTF-8' }
      }
    },
  }
}

function sizeText(bytes: number): string {
  return bytes < 2 ** 20 ? `${bytes / 2 ** 10} KiB` : `${bytes / 2 ** 20} MiB`
}
