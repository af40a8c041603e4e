import { wantsFragment, type Context } from '../../../kernel/http/context.ts'
import { wantsFullPage } from '../../form.ts'

/** True for a browser, which shows a refused form again; a program gets the refusal's code. */
export function showsForm(context: Context): boolean {
  return wantsFragment(context) || wantsFullPage(context)
}
