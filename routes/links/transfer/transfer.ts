import * as Type from '../../../kernel/schema.ts'
import {
  importedView,
  importFormView,
  previewView,
} from '../../../html/links/transfer/transfer.ts'
import { badRequest } from '../../../kernel/fault.ts'
import type { Call } from '../../../kernel/http/declaration.ts'
import { readBytes } from '../../../kernel/http/read-body.ts'
import { jsonReply } from '../../../kernel/http/reply.ts'
import { FileField } from '../../../kernel/http/sent.ts'
import { newForm } from '../../../kernel/http/view.ts'
import { field, withDefault } from '../../../kernel/validate.ts'
import type { Caller } from '../../../services/links/people/users/groups.ts'
import {
  importFile,
  MAX_FILE_BYTES,
  MAX_FILE_LINKS,
  type UploadOptions,
} from '../../../services/links/transfer/transfer/upload.ts'
import { admin, signedIn, token } from '../access.ts'
import { form, page, raw, shortLinks, type LinksRoutes } from '../kit.ts'

const PATH = '/-/admin/import'

const box = withDefault(Type.Boolean(), false)
const flag = field(Type.Optional(Type.Boolean()), 'must be true or false')

const ImportForm = Type.Object({
  file: FileField,
  text: withDefault(Type.String(), ''),
  owner: withDefault(Type.String(), ''),
  update: box,
  create_users: box,
  step: withDefault(Type.Enum(['preview', 'import']), 'preview'),
})

const ImportQuery = Type.Object({
  dry_run: flag,
  update: flag,
  create_users: flag,
  owner: Type.Optional(Type.String()),
})

const Outcome = Type.Enum(['created', 'updated', 'unchanged', 'conflict', 'refused'])

/** What the API answers. */
export const ImportReport = Type.Object({
  dry_run: Type.Boolean(),
  source: Type.String({ description: 'The program that the file is from' }),
  columns: Type.Array(
    Type.Object({
      column: Type.String(),
      becomes: Type.Union([Type.String(), Type.Null()], {
        description: 'The field that it becomes; null where it is not taken over',
      }),
      note: Type.String({ description: 'Why it is not, or how' }),
    }),
  ),
  totals: Type.Object({
    created: Type.Integer(),
    updated: Type.Integer(),
    unchanged: Type.Integer(),
    conflict: Type.Integer(),
    refused: Type.Integer(),
    users: Type.Integer({ description: 'Users who were added' }),
  }),
  lines: Type.Array(
    Type.Object({
      line: Type.Integer(),
      slug: Type.String(),
      outcome: Outcome,
      message: Type.String(),
    }),
  ),
})

/** In base64, with the other fields and what stands between them. */
const FORM_LIMIT = Math.ceil(MAX_FILE_BYTES / 3) * 4 + 64 * 1024

export const transferEndpoints = [
  raw({
    method: 'POST',
    path: '/api/v1/admin/import',
    access: admin(token('full')),
    query: ImportQuery,
    notes: {
      id: 'importLinks',
      tag: 'Admin',
      summary: 'Import links from CSV, or from what another program exports.',
      description:
        `The body is the file as it is, of ${MAX_FILE_BYTES / 1024} KiB and ` +
        `${MAX_FILE_LINKS.toLocaleString('en')} links at most. Its columns tell which program it ` +
        'is from. With dry_run it is only said what would happen, with update existing links are ' +
        'replaced, with create_users missing users are added. owner owns the links without one; ' +
        'it is the caller by default.',
      body: Type.Unknown({ description: 'The file' }),
      bodyTypes: ['text/csv', 'application/json', '*/*'],
      replies: { 200: { description: 'What became of each link', schema: ImportReport } },
    },
    async answer(call) {
      const { query, context } = call
      const bytes = await readBytes(context, undefined, MAX_FILE_BYTES)
      const { dry_run = false, update = false, create_users = false, owner = '' } = query
      const options = { dryRun: dry_run, update, createUsers: create_users, owner }
      const { preview: _preview, ...report } = await run(call, bytes, options)
      return jsonReply(report)
    },
  }),

  page({
    path: PATH,
    access: admin(signedIn),
    answer: ({ caller }) => importFormView(newForm(ImportForm, { owner: caller.email })),
  }),

  form({
    path: PATH,
    access: admin(signedIn),
    body: ImportForm,
    limit: FORM_LIMIT,
    async answer(call) {
      const { file, text, step, owner, update, create_users: createUsers } = call.body
      const bytes = file === '' ? Buffer.from(text) : Buffer.from(file, 'base64')
      if (bytes.length === 0) throw badRequest('choose a file, or paste its text', 'file')
      const report = await run(call, bytes, {
        dryRun: step === 'preview',
        update,
        createUsers,
        owner,
      })
      if (step === 'import') return importedView(report)
      const again = { file: bytes.toString('base64'), owner, update, create_users: createUsers }
      return previewView(report, again, shortLinks(call.app))
    },
    refused: (_call, state) => importFormView(state),
  }),
]

type Options = Omit<UploadOptions, 'caller' | 'takesGroups'>

function run(
  {
    app: { links },
    actor,
    caller,
    now,
  }: Pick<Call<LinksRoutes, Caller>, 'app' | 'actor' | 'caller' | 'now'>,
  bytes: Uint8Array,
  options: Options,
) {
  const tools = { ...links, actor, now: () => now }
  return importFile(tools, bytes, { ...options, caller, takesGroups: links.takesGroups() })
}
