/** The fields of a link as they stand in its form: what is stored, or what was typed. */
export interface LinkFormFields {
  readonly slug: string
  readonly url: string
  readonly title: string
  readonly description: string
  /** Separated by commas. */
  readonly tags: string
  readonly visibility: string
  readonly append_path: boolean
}

export const EMPTY_FIELDS: LinkFormFields = {
  slug: '',
  url: '',
  title: '',
  description: '',
  tags: '',
  visibility: 'public',
  append_path: false,
}
