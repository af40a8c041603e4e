const FIRST_MS = 200
const LONGEST_MS = 10_000

/**
 * How long to wait before the next attempt after so many failures in a row, in milliseconds: twice as
 * long each time, ten seconds at most, and of that a random half, so that many who failed together
 * don't come back together.
 */
export function backoffMs(failures: number, random: (size: number) => Buffer): number {
  const whole = Math.min(LONGEST_MS, FIRST_MS * 2 ** (failures - 1))
  return Math.round((whole / 2) * (1 + random(4).readUInt32LE() / 2 ** 32))
}
