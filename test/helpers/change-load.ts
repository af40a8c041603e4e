import type { Caller, Link } from './links-setup.ts'
import type { Owner } from './owner.ts'

/** Writers of links that go on until they are stopped. */
export type ChangeLoad = {
  /** Every answer and error so far that is not as it should be. */
  readonly others: readonly unknown[]
  /** How many changes were begun, and how many requests had to be sent again. */
  readonly counts: { readonly made: number; readonly repeated: number }
  stop(): Promise<void>
}

/**
 * Who changes a link and makes new ones, four at a time. What makes one is a POST, which nginx does not
 * send twice: at the instant in which an instance closes its socket it may be lost, undone.
 */
export function startChanges(t: Owner, { api }: Caller, { id, url }: Link): ChangeLoad {
  const others: unknown[] = []
  let [made, repeated, stopped] = [0, 0, false]
  async function make(slug: string) {
    const first = await api('POST', '/links', { slug, url })
    if (first.status !== 502) return first
    repeated++
    return api('POST', '/links', { slug, url })
  }
  async function work(name: string): Promise<void> {
    while (!stopped) {
      const number = ++made
      try {
        const put = await api('PUT', `/links/${id}`, { url, title: `Title ${number}` })
        const post = await make(`${name}-${number}`)
        if (put.status !== 200 || post.status !== 201) others.push(put.text, post.text)
      } catch (error) {
        others.push(error)
      }
    }
  }
  const working = Promise.all(['ann', 'bob', 'cyd', 'dan'].map(work))
  async function stop(): Promise<void> {
    stopped = true
    await working
  }
  t.teardown(stop)
  return {
    others,
    stop,
    get counts() {
      return { made, repeated }
    },
  }
}
