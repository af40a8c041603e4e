type Role = 'user' | 'admin'
export type User = {
  id: string
  email: string
  display_name: string
  role: Role
  created_at: string
  disabled_at: null
}
export type Token = { id: string; user: string; name: string; scope: string; times: Times }
export type Share = { id: string; shared_by: string; created_at: string }
type Times = { created_at: string; expires_at: string | null }
/** What a writer says of a link, as it is stored. */
export type Written = {
  url: string
  title: string
  description: string
  tags: readonly string[]
  visibility: string
  expires_at: string | null
  max_visits: number | null
  archived: boolean
}
export type Link = Written & {
  id: string
  slug: string
  /** Ids of users, the primary owner first. */
  owners: string[]
  shares: Share[]
  times: { created_at: string; updated_at: string }
  /** What was shown when the ETag was last told. */
  seen: string
}

export type Model = {
  /** Host and port of the service itself, for links to links. */
  readonly own: string
  readonly users: Map<string, User>
  readonly links: Map<string, Link>
  /** Those that can be restored. */
  readonly deleted: Map<string, Link>
  /** By the token's text. */
  readonly tokens: Map<string, Token>
}

/** What the server makes up; the model takes it from the answer. */
export type Made = {
  id: string
  created_at: string
  updated_at: string
  expires_at: string | null
  token: string
}

/** What the service must answer: a refusal, a list for all its pages, or a body made with what is new. */
export type Answer =
  | { status: number; code: string; error?: string }
  | { status: number; list: string; rows: readonly unknown[] }
  | { status: number; body: (made: Made) => unknown }
  | { status: 204 }
  | { status: 302 | 404 | 410; location: string | undefined }

const STATUS: Readonly<Record<string, number>> = {
  UNAUTHORIZED: 401,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  SLUG_CONFLICT: 409,
  DUPLICATE_OWNER: 409,
  DUPLICATE_SHARE: 409,
  LAST_ADMIN: 409,
  PRECONDITION_FAILED: 412,
}
const TEXTS: Readonly<Record<string, string>> = {
  UNAUTHORIZED: 'unauthorized',
  SLUG_CONFLICT: 'slug already taken',
  PRIMARY_OWNER_PROTECTED: 'cannot remove primary owner',
}
export function refused(code: string): Answer {
  const error = TEXTS[code]
  const status = STATUS[code] ?? 400
  return error === undefined ? { status, code } : { status, code, error }
}
