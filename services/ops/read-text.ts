/** Reads an answer's body up to a number of bytes; the rest is left, since it may be endless. */
export async function readText(
  { body }: Response,
  limit: number,
): Promise<{ readonly text: string; readonly cut: boolean }> {
  const chunks: Uint8Array[] = []
  let size = 0
  if (body !== null) {
    for await (const chunk of body) {
      chunks.push(chunk)
      size += chunk.length
      if (size > limit) break
    }
  }
  return { text: Buffer.concat(chunks).toString('utf8', 0, limit), cut: size > limit }
}
