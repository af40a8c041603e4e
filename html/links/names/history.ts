import type { Change } from '../../../db/links/names/history.ts'
import type { Link } from '../../../db/links/names/links.ts'
import { html, type Html, type Printable } from '../../../kernel/html.ts'
import { namedRows, nextLink, section, timeTag } from '../../parts.ts'

/** Some changes of a link, newest first. */
export interface HistoryView {
  link: Pick<Link, 'id' | 'slug'>
  changes: readonly Change[]
  /** Those that left a version which is not the present one, if the viewer may restore it. */
  restorable: ReadonlySet<number>
  /** Address of the page with older changes. */
  next: string | null
}

/** What was done to a link, on its page. */
export function historySection(view: HistoryView): Html {
  return section('history-title', 'History', changesOf(view), { id: 'history' })
}

/** Changes, those that may be restored with the way to it, and the way to older ones. */
export function changesOf({ link, changes, restorable, next }: HistoryView): Html {
  const wayTo = (change: Change) =>
    restorable.has(change.id) &&
    html` <a href="/-/links/${link.id}/history/${change.id}">Restore this version</a>`
  return html`${changeList(changes, wayTo)} ${nextLink(next ?? undefined, 'Older changes')}`
}

/** Changes in sentences, with time and author; `after` follows a sentence. */
export function changeList(
  changes: readonly Change[],
  after: (change: Change) => Printable = () => false,
): Html {
  return html`<ol class="history">
    ${changes.map((change) => {
      const { at, actor, action, detail } = change
      const done = ACTIONS[action]?.(detail) ?? action
      return html`<li>${timeTag(at)} <bdi>${actor}</bdi> ${done}.${after(change)}</li>`
    })}
  </ol>`
}

type Sentence = (detail: Change['detail']) => Printable

/** Words for each action. An action of a later version is shown by its name. */
const ACTIONS: Readonly<Record<string, Sentence>> = {
  created: ({ url }) => html`made the link to ${value(url?.[1])}`,
  imported: ({ url }) => html`imported the link to ${value(url?.[1])}`,
  deleted: () => 'deleted the link',
  restored: () => 'restored the link after it was deleted',
  'owner added': ({ owner }) => html`made ${value(owner?.[1])} a co-owner`,
  'handed over': ({ owner }) =>
    html`handed the link over from ${value(owner?.[0])} to ${value(owner?.[1])}`,
  transferred: ({ owner, share }) => {
    const [from, to] = owner ?? share ?? []
    const what = owner === undefined ? 'the share' : 'the ownership'
    return html`gave ${what} of ${value(from)} to ${value(to)}`
  },
  'owner removed': ({ owner }) => html`ended the co-ownership of ${value(owner?.[0])}`,
  shared: ({ share }) => html`shared the link with ${value(share?.[1])}`,
  'share ended': ({ share }) => html`ended the share with ${value(share?.[0])}`,
  'checks on': () => 'had the address checked again',
  'checks off': () => 'left the address out of the checks',
  edited: (detail) => editedText(detail),
  renamed: ({ slug }) => html`renamed the link from ${value(slug?.[0])} to ${value(slug?.[1])}`,
  'version restored': (detail) => html`restored an earlier version: ${editedText(detail)}`,
}

function editedText(detail: Change['detail']): Printable {
  const parts = Object.entries(detail).map(([name, values]) => edit(name, values))
  return parts.length === 0 ? 'saved the link as it was' : joined(parts)
}

function edit(name: string, [before, after]: readonly unknown[]): Html {
  switch (name) {
    case 'append_path':
      return html`had further path ${after === true ? 'appended' : 'no longer appended'}`
    case 'archived':
      return html`${after === true ? 'archived the link' : 'took the link out of the archive'}`
    case 'expires_at':
      if (after === null) return html`removed the expiry`
      return html`set the expiry to ${timeTag(new Date(String(after)), 'exact')}`
    case 'max_visits':
      if (after === null) return html`removed the limit of visits`
      return html`set the limit of visits to ${value(after)}`
    case 'tags':
      return listEdit(['tag', 'tags'], before as readonly string[], after as readonly string[])
    case 'aliases':
      return listEdit(
        ['further name', 'further names'],
        before as readonly string[],
        after as readonly string[],
      )
    case 'description':
      if (after === '') return html`removed the description`
      return html`${before === '' ? 'added' : 'changed'} the description`
    default: {
      const field = name === 'url' ? 'address' : name
      if (after === '') return html`removed the ${field} ${value(before)}`
      if (before === '') return html`set the ${field} to ${value(after)}`
      return html`changed the ${field} from ${value(before)} to ${value(after)}`
    }
  }
}

function listEdit(
  [one, many]: readonly [one: string, many: string],
  before: readonly string[],
  after: readonly string[],
): Html {
  const added = after.filter((item) => !before.includes(item))
  const removed = before.filter((item) => !after.includes(item))
  const changed = Object.entries({ added, removed }).filter(([, items]) => items.length > 0)
  const parts = changed.map(([verb, items]) => {
    return html`${verb} the ${items.length === 1 ? one : many} ${value(items.join(', '))}`
  })
  return html`${joined(parts)}`
}

/** Parts of a sentence: `a`, `a and b`, `a, b and c`. */
function joined(parts: readonly Html[]): readonly Html[] {
  return parts.map((part, at) => {
    if (at === 0) return part
    return html`${at === parts.length - 1 ? ' and ' : ', '}${part}`
  })
}

function value(text: unknown): Html {
  return html`<q><bdi>${String(text)}</bdi></q>`
}

/** The fields of a link that its form has. */
type FormLink = Omit<Link, 'id' | 'slug' | 'owners' | 'created_at' | 'updated_at'>

/** These fields as the texts of the form. */
export type FieldTexts = Readonly<Record<string, string>>

export function textsOf(link: FormLink): FieldTexts {
  const { url, title, description, tags, visibility, append_path } = link
  const { expires_at, max_visits, archived, aliases } = link
  return {
    url,
    title,
    description,
    tags: tags.join(', '),
    visibility,
    append_path: String(append_path),
    // As browsers write it: without the zone, and without seconds that are zero.
    expires_at: expires_at?.toISOString().replace(/(:00)?(\.000)?Z$/, '') ?? '',
    max_visits: String(max_visits ?? ''),
    archived: String(archived),
    aliases: aliases.join(', '),
  }
}

const FIELDS = [
  ['url', 'Leads to'],
  ['title', 'Title'],
  ['description', 'Description'],
  ['tags', 'Tags'],
  ['visibility', 'Visibility'],
  ['append_path', 'Append a further path'],
  ['expires_at', 'Ends (UTC)'],
  ['max_visits', 'Limit of visits'],
  ['archived', 'Archived'],
  ['aliases', 'Further names'],
] as const

/** Two versions of a link side by side, where they differ; undefined where they don't. */
export function versionTable(
  first: readonly [head: string, texts: FieldTexts],
  second: readonly [head: string, texts: FieldTexts],
): Html | undefined {
  const rows = FIELDS.filter(([name]) => first[1][name] !== second[1][name]).map(
    ([name, label]) => [label, textCell(name, first[1]), textCell(name, second[1])],
  )
  if (rows.length === 0) return undefined
  const heads = ['Field', first[0], second[0]]
  return namedRows(`${first[0]} and ${second[0]}`, heads, rows, 'versions')
}

function textCell(name: string, texts: FieldTexts): Html {
  const text = texts[name] ?? ''
  if (name === 'append_path' || name === 'archived') return html`${text === 'true' ? 'yes' : 'no'}`
  return text === '' ? html`<span class="muted">none</span>` : html`<bdi>${text}</bdi>`
}
