import * as Type from '../../../../kernel/schema.ts'
import { suggestionOptions } from '../../../../html/form.ts'
import { partView } from '../../../../html/links/layout.ts'
import { withDefault } from '../../../../kernel/validate.ts'
import {
  peopleCompletions,
  tagCompletions,
} from '../../../../services/links/names/links/completions.ts'
import { signedIn } from '../../access.ts'
import { page } from '../../kit.ts'

const text = withDefault(Type.String(), '')

/** What fields of tags, people and members of links offer while one types into them. */
export const completionEndpoints = [
  page({
    path: '/-/complete/tags',
    access: signedIn,
    query: Type.Object({ tags: text }),
    async answer({ app, caller, query }) {
      const values = await tagCompletions(app.links.db, caller, query.tags)
      return partView('Tags', suggestionOptions(values))
    },
  }),

  page({
    path: '/-/complete/people',
    access: signedIn,
    query: Type.Object({ email: text, owner: text }),
    async answer({ app, caller, query }) {
      const asked = query.email || query.owner
      const values = await peopleCompletions(app.links.db, caller, asked, { groups: false })
      return partView('People', suggestionOptions(values))
    },
  }),

  page({
    path: '/-/complete/members',
    access: signedIn,
    query: Type.Object({ email: text }),
    async answer({ app: { links }, caller, query: { email } }) {
      const groups = links.takesGroups()
      const values = await peopleCompletions(links.db, caller, email, { groups })
      return partView('People and groups', suggestionOptions(values))
    },
  }),
]
