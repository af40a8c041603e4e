import { createInterface } from 'node:readline'
import { Writable, type Readable } from 'node:stream'

/** Asks a person at a terminal. */
export type Questions = ReturnType<typeof openQuestions>

/** Asks on stderr: stdout is for the setting of the proxy, which may go to a file. */
export function openQuestions(input: Readable) {
  let isHidden = false
  const echo = new Writable({
    write(chunk: Buffer, _encoding, done) {
      if (!isHidden) process.stderr.write(chunk)
      done()
    },
  })
  const lines = createInterface({ input, output: echo, terminal: true })
  const answers = lines[Symbol.asyncIterator]()

  async function answerTo(question: string, hidden: boolean) {
    process.stderr.write(`${question}: `)
    isHidden = hidden
    const { done, value } = await answers.next()
    isHidden = false
    if (hidden) process.stderr.write('\n')
    if (done) throw new Error('ended before all questions were answered; nothing was written')
    return String(value).trim()
  }

  return {
    /**
     * Asks until `read` takes the answer; undefined for an empty one. What is typed for a hidden
     * question is not shown.
     */
    async ask<T>(question: string, form: string, read: (text: string) => T, hidden = false) {
      for (;;) {
        const text = await answerTo(question, hidden)
        if (text === '') return undefined
        try {
          return read(text)
        } catch {
          process.stderr.write(`Expected ${form}.\n`)
        }
      }
    },
    async confirm(question: string) {
      return /^y(?:es)?$/i.test(await answerTo(`${question} [y/N]`, false))
    },
    [Symbol.dispose]: () => lines.close(),
  }
}
