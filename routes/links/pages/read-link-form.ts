import { readLinkInput, readSlug, type LinkInput } from '../../../services/links/link-input.ts'
import { isRefusal, type Refusal } from '../../../services/links/refusal.ts'

/** Reads the slug of a form: people type capitals and spaces around it, which no slug has. */
export function typedSlug(form: URLSearchParams): string {
  return (form.get('slug') ?? '').trim().toLowerCase()
}

/** Reads a link's form by the rules of the API; what was not ticked is off. */
export function readLinkForm(form: URLSearchParams): LinkInput | Refusal {
  const tags = (form.get('tags') ?? '')
    .split(/[,\n]/)
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '')
  return readLinkInput({
    url: (form.get('url') ?? '').trim(),
    title: (form.get('title') ?? '').trim(),
    // Browsers send line ends as two characters, of which the field showed one.
    description: (form.get('description') ?? '').replaceAll('\r\n', '\n').trim(),
    tags,
    ...(form.has('visibility') && { visibility: form.get('visibility') }),
    append_path: form.get('append_path') === 'true',
  })
}

/** The form of a new link, or all that is wrong with it at once. */
export function readNewLink(
  form: URLSearchParams,
): { readonly slug: string; readonly input: LinkInput } | readonly Refusal[] {
  const slug = readSlug({ slug: typedSlug(form) })
  const input = readLinkForm(form)
  if (isRefusal(slug)) return [slug, ...(isRefusal(input) ? [input] : [])]
  return isRefusal(input) ? [input] : { slug, input }
}
