import { OWN, SLUGS, UNKNOWN } from './model-calls.ts'
import type { Call, Fields } from './model-calls.ts'
import type { Model } from './model-state.ts'

/** From the names in steps to the ids in calls. */
export type Names = {
  resolve(call: Call): Call
  /** Texts of the tokens that were made, revoked ones too. */
  readonly made: readonly string[]
  /** Notes what the last step made. */
  note(): void
}

/** Slugs get a prefix of their sequence, so that no memory of the one before counts for this one. */
export function openNames(model: Model, prefix: string): Names {
  const first = model.tokens.size
  /** Also of links that are gone. */
  const ids = new Map<string, string>()
  const [made, madeIds]: [string[], string[]] = [[], []]
  const isSlug = (text: string): boolean => SLUGS.some((slug) => slug === text)
  const slugOf = (text: string): string => (isSlug(text) ? prefix + text : text)
  const linkOf = (text: string): string =>
    isSlug(text) ? (ids.get(slugOf(text)) ?? UNKNOWN) : text
  function userOf(name: string): string {
    return (
      [...model.users.values()].find(({ email }) => email === `${name}@example.com`)?.id ?? name
    )
  }
  function fieldsOf(fields: Fields): Fields {
    const own = `http://${OWN}/`
    const url = fields.url.startsWith(own)
      ? `http://${model.own}/${slugOf(fields.url.slice(own.length))}`
      : fields.url
    return { ...fields, slug: slugOf(fields.slug), url }
  }
  return {
    made,
    note() {
      for (const { slug, id } of model.links.values()) ids.set(slug, id)
      for (const [text, { id }] of [...model.tokens].slice(first)) {
        if (made.includes(text)) continue
        made.push(text)
        madeIds.push(id)
      }
    },
    resolve(call) {
      return {
        ...call,
        ...('link' in call ? { link: linkOf(call.link) } : {}),
        ...('user' in call ? { user: userOf(call.user) } : {}),
        ...('slug' in call ? { slug: slugOf(call.slug) } : {}),
        ...('fields' in call ? { fields: fieldsOf(call.fields) } : {}),
        ...('token' in call ? { token: madeIds[Number(call.token)] ?? call.token } : {}),
      } as Call
    },
  }
}
