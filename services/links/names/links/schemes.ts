import type { Variable } from '../../../../kernel/variables.ts'
import { notTarget, otherScheme, REFUSED_SCHEMES, type TargetFields } from './target.ts'
import { linksFault } from '../../faults.ts'

/** Schemes beside http and https that links may lead to, in lower case. */
export type Schemes = ReadonlySet<string>

const REFUSED = [...REFUSED_SCHEMES].join(', ')
const SCHEME = /^[a-z][a-z0-9+.-]*$/

/** LINKS_SCHEMES. Links that are stored keep working when their scheme is no longer named. */
export const schemesVariable = {
  form: `a comma-separated list of schemes such as mailto,tel, without ${REFUSED}`,
  counts: 'at once',
  read(text) {
    const schemes = text.split(',').map((entry) => entry.trim().toLowerCase())
    const bad = schemes.findIndex((scheme) => !SCHEME.test(scheme) || REFUSED_SCHEMES.has(scheme))
    if (bad >= 0) throw new SyntaxError(`entry ${bad + 1} is no scheme that links may have`)
    return new Set(schemes)
  },
} satisfies Variable<Schemes>

/** Throws the Fault of a url whose scheme is not among these, or that has no path to append to. */
export function checkScheme({ url, append_path }: TargetFields, schemes: Schemes): void {
  const scheme = otherScheme(url)
  if (scheme === undefined) return
  if (!schemes.has(scheme)) throw notTarget([...schemes])
  if (!append_path) return
  const problem = `append_path needs an http:// or https:// url; ${scheme}: has no path`
  throw linksFault('INVALID_URL', problem, 'append_path')
}
