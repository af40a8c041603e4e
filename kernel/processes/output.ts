import type { Socket } from 'node:net'

/** What a process writes to. */
interface Pipes {
  stdout: Socket
  stderr: Socket
}

/** Takes what a process writes. Reading waits for the promise; a throw stops the process. */
export type TakeOutput = (bytes: Buffer, pipe: 'stdout' | 'stderr') => unknown

/** How long the pipes of a process are read after its exit. */
export const LAST_OUTPUT_MS = 1_000
const LAST_OUTPUT_LOOKS = 10

/** Reads the pipes of a process, also after its exit: its last words may still be in them. */
export function readOutput(child: Pipes, onOutput: TakeOutput, onBug: () => void) {
  const waiting = new Set<'stdout' | 'stderr'>()
  let ignored = false
  let bug: { error: unknown } | undefined

  async function read(name: 'stdout' | 'stderr'): Promise<void> {
    try {
      for await (const bytes of child[name]) {
        waiting.add(name)
        if (!ignored) await onOutput(bytes, name)
        waiting.delete(name)
      }
    } catch (error) {
      waiting.delete(name)
      // `finish` has destroyed the pipe.
      if (ignored) return
      bug ??= { error }
      onBug()
    }
  }
  const closed = Promise.all([read('stdout'), read('stderr')])

  return {
    /**
     * Reads the rest. `stays`: what the process has left goes on writing, and must not meet a
     * closed pipe.
     */
    async finish(stays: boolean): Promise<void> {
      const late = Promise.withResolvers<void>()
      // A process outside of the group may hold the pipes open forever.
      let looks = 0
      const timer = setInterval(() => {
        if (waiting.size === 0 && ++looks >= LAST_OUTPUT_LOOKS) late.resolve()
      }, LAST_OUTPUT_MS / LAST_OUTPUT_LOOKS)
      await Promise.race([closed, late.promise])
      clearInterval(timer)
      ignored = true
      for (const pipe of [child.stdout, child.stderr]) {
        // What stays must not keep this process alive.
        if (stays) pipe.unref()
        else pipe.destroy()
      }
      if (bug !== undefined) throw bug.error
    },
  }
}
