import type { Visibility } from '../../db/links/rows.ts'
import { html, type Html } from '../../kernel/html.ts'

/** How short links are written: for people with the keyword, and as addresses. */
export interface ShortLinks {
  readonly keyword: string
  /** Public address of the service, without a slash at its end. */
  readonly base: string
}

/** A short link as people say it: `go/docs`. */
export function shortName({ keyword }: ShortLinks, slug: string): Html {
  return html`<span class="keyword">${keyword}/</span>${slug}`
}

const ABOUT: Readonly<Record<Visibility, string>> = {
  public: 'Everybody who is signed in finds it',
  private: 'Whoever knows it may follow it; only owners, recipients and admins find it',
  secure: 'Only owners, recipients and admins may follow it',
}

export function visibilityBadge(visibility: Visibility): Html {
  const kind = { public: 'verified', private: '', secure: 'open' }[visibility]
  return html`<span class="badge ${kind}" title="${ABOUT[visibility]}">${visibility}</span>`
}

/** Tags, each leading to the links that have it. */
export function tagList(tags: readonly string[]): readonly Html[] {
  return tags.map((tag) => html`<a class="tag" href="/-/tags/${tag}">#${tag}</a>`)
}
